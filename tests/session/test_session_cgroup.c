/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: mkdirat rmdir fstatfs system_file_write system_file_write_back */
/*
 * The cgroups of a session: limits and the verdict about memory on a fake cgroupfs with every
 * controller; birth and death on this host's real one.
 */
#include "tests/session/whole_session.h"

#include <sys/mman.h>
#include <sys/socket.h>

#include "runtime/kernel/cgroup/cgroup_tree.h"
#include "runtime/session/session_state.h"
#include "tests/forked.h"
#include "tests/kernel/cgroup/fake_cgroup.h"

/* --- on a fake cgroupfs -------------------------------------------------------------- */

struct bench {
	struct plan plan;
	struct jail *jail;
	struct session_shared shared;
	struct session session;
};

static int begin_fake(void **state)
{
	(void)state;
	fake_begin("cpu memory pids\n");
	return 0;
}

static int end_fake(void **state)
{
	(void)state;
	fake_end();
	return 0;
}

/* A jail's leaf with its limits, and init in it. */
static void begin_bench(struct bench *b, const char *controllers)
{
	struct cj_error err = { 0 };
	*b = (struct bench){ .plan = simple_plan() };
	b->plan.limits.pids = 16;
	b->jail = jail_state_create(&b->plan, "x");
	b->session.jail = b->jail;
	b->session.shared = &b->shared;
	for (size_t i = 0; i < SESSION_EXECS_MAX; i++) {
		b->session.slots[i].leaf = CGROUP_NULL;
		b->session.slots[i].link_fd = -1;
	}
	struct cgroup *c = &b->jail->cgroup;
	(void)snprintf(c->path, sizeof(c->path), "%s/cejail-x", fake.root);
	auto_fd int root_fd = fake_open(fake.root);
	fake_put(root_fd, "cgroup.subtree_control", controllers);
	c->parent_fd = take_fd(&root_fd);
	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		c->offered[i] = strstr(controllers, cgroup_controller_names[i]) != NULL;
	const struct cgroup_limits limits = { 64u << 20, 1000, 17 };
	assert_int_equal(cgroup_make(c, &limits, &err), 0);
	cgroup_divide(c);
	b->session.init_cgroup_fd = b->session.memory.events_fd = -1;
}

static void end_bench(struct bench *b)
{
	for (size_t i = 0; i < SESSION_EXECS_MAX; i++)
		(void)cgroup_destroy(&b->session.slots[i].leaf);
	cj_close(&b->session.init_cgroup_fd);
	cj_close(&b->jail->cgroup.init_fd);
	cj_close(&b->jail->cgroup.dir_fd);
	cj_close(&b->jail->cgroup.cpu_fd);
	jail_state_free(&b->jail);
}

static void add(struct bench *b, unsigned slot)
{
	b->session.execs_begun++;
	b->session.slots[slot].state = SLOT_RUNNING;
	session_cgroup_add(&b->session, &b->session.slots[slot].leaf);
}

static void init_is_born_in_a_leaf_and_the_session_keeps_the_limits(void **state)
{
	(void)state;
	struct bench b;
	begin_bench(&b, "cpu memory pids\n");
	int dir_fd = b.jail->cgroup.dir_fd;
	assert_string_equal(fake_get(dir_fd, "memory.oom.group"), "1\n");
	assert_int_equal(cgroup_birth_fd(&b.jail->cgroup), b.jail->cgroup.init_fd);
	session_cgroup_begin(&b.session);
	assert_true(b.session.init_cgroup_fd >= 0);
	assert_int_equal(b.jail->cgroup.init_fd, -1);
	assert_string_equal(fake_get(dir_fd, "memory.oom.group"), "0\n");
	assert_string_equal(fake_get(dir_fd, "memory.max"), "67108864\n");
	assert_string_equal(fake_get(dir_fd, "pids.max"), "17\n");
	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		assert_non_null(
		    strstr(fake_get(dir_fd, "cgroup.subtree_control"), cgroup_controller_names[i]));
	end_bench(&b);
}

static void an_exec_has_a_leaf_that_the_kernel_kills_as_one(void **state)
{
	(void)state;
	struct bench b;
	begin_bench(&b, "cpu memory pids\n");
	session_cgroup_begin(&b.session);
	add(&b, 0);
	add(&b, 1);
	const struct cgroup *leaf = &b.session.slots[1].leaf;
	assert_non_null(strstr(leaf->path, "/cejail-x/e2"));
	assert_string_equal(fake_get(leaf->dir_fd, "memory.oom.group"), "1\n");
	assert_string_equal(fake_get(leaf->dir_fd, "pids.max"), "16\n");
	assert_true(leaf->enforced[CGROUP_MEMORY] && leaf->enforced[CGROUP_PIDS] &&
		    leaf->enforced[CGROUP_CPU]);
	assert_int_equal(session_cgroup_join(leaf, 77), 0);
	assert_string_equal(fake_get(leaf->dir_fd, "cgroup.procs"), "77\n");
	end_bench(&b);
}

static void a_spare_reaper_is_one_process_more(void **state)
{
	(void)state;
	struct bench b;
	begin_bench(&b, "cpu memory pids\n");
	session_cgroup_begin(&b.session);
	assert_true(session_cgroup_has_room(&b.session));
	session_cgroup_make_room(&b.session, true);
	assert_string_equal(fake_get(b.jail->cgroup.dir_fd, "pids.max"), "18\n");
	session_cgroup_make_room(&b.session, false);
	assert_string_equal(fake_get(b.jail->cgroup.dir_fd, "pids.max"), "17\n");
	end_bench(&b);
}

/* Slot 0 has a spare whose reaper was killed. */
static void the_limit_is_the_old_one_when_the_spare_reaper_is_killed(void **state)
{
	(void)state;
	struct bench b;
	struct cj_error err = { 0 };
	int ends[2];
	begin_bench(&b, "cpu memory pids\n");
	session_cgroup_begin(&b.session);
	add(&b, 0);
	session_cgroup_make_room(&b.session, true);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	b.session.slots[0].link_fd = ends[0];
	b.session.slots[0].state = SLOT_SPARE;
	assert_int_equal(session_slots_turn(&b.session, &err), SESSION_LIVES);
	assert_string_equal(fake_get(b.jail->cgroup.dir_fd, "pids.max"), "18\n");
	cj_close(&ends[1]);
	assert_int_equal(session_slots_turn(&b.session, &err), SESSION_LIVES);
	assert_string_equal(fake_get(b.jail->cgroup.dir_fd, "pids.max"), "17\n");
	assert_int_equal(b.session.slots[0].state, SLOT_FREE);
	assert_int_equal(session_slots_next_ms(&b.session), 0); /* no other one is made */
	end_bench(&b);
}

static uint64_t pids_after(struct bench *b, const char *peak, bool has_spare)
{
	fake_put(b->jail->cgroup.dir_fd, "pids.peak", peak);
	session_cgroup_make_room(&b->session, has_spare);
	return b->session.pids_peak;
}

static void the_spare_reaper_is_not_in_the_usage(void **state)
{
	(void)state;
	struct bench b;
	begin_bench(&b, "cpu memory pids\n");
	session_cgroup_begin(&b.session);
	assert_int_equal(pids_after(&b, "1\n", true), 0);  /* init */
	assert_int_equal(pids_after(&b, "2\n", false), 0); /* and the spare */
	assert_int_equal(pids_after(&b, "4\n", true), 3);  /* an exec took it */
	assert_int_equal(pids_after(&b, "5\n", false), 3); /* and there is a new one */
	assert_int_equal(pids_after(&b, "5\n", true), 3);
	end_bench(&b);
}

static void without_controllers_a_leaf_serves_to_kill(void **state)
{
	(void)state;
	struct bench b;
	begin_bench(&b, "\n");
	session_cgroup_begin(&b.session);
	add(&b, 0);
	const struct cgroup *leaf = &b.session.slots[0].leaf;
	assert_true(leaf->dir_fd >= 0);
	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		assert_false(leaf->enforced[i]);
	end_bench(&b);
}

static void a_cgroup_that_cannot_be_divided_gives_no_leaves(void **state)
{
	(void)state;
	struct bench b;
	fake.refuse = "init";
	fake.refuse_errno = EACCES;
	begin_bench(&b, "cpu memory pids\n");
	fake.refuse = NULL;
	assert_int_equal(cgroup_birth_fd(&b.jail->cgroup), b.jail->cgroup.dir_fd);
	session_cgroup_begin(&b.session);
	assert_int_equal(b.session.init_cgroup_fd, -1);
	assert_string_equal(fake_get(b.jail->cgroup.dir_fd, "memory.oom.group"), "1\n");
	add(&b, 0);
	assert_int_equal(b.session.slots[0].leaf.dir_fd, -1);
	end_bench(&b);
}

static void use(const struct bench *b, unsigned slot, unsigned mib, bool is_killed)
{
	char text[32];
	int dir_fd = b->session.slots[slot].leaf.dir_fd;
	(void)snprintf(text, sizeof(text), "%u\n", mib << 20);
	fake_put(dir_fd, "memory.peak", text);
	fake_put(dir_fd, "memory.current", is_killed ? "0\n" : text);
	fake_put(dir_fd, "memory.events",
		 is_killed ? "oom 0\noom_kill 2\n" : "oom 0\noom_kill 0\n");
}

static void the_exec_that_used_most_is_the_cause(void **state)
{
	(void)state;
	struct bench b;
	begin_bench(&b, "cpu memory pids\n");
	session_cgroup_begin(&b.session);
	struct cj_error err = { 0 };
	for (unsigned i = 0; i < 3; i++)
		add(&b, i);
	use(&b, 0, 10, false);
	use(&b, 1, 15, false);
	use(&b, 2, 39, true);
	for (int i = 0; i < 2; i++) /* the same kill, once more */
		assert_int_equal(session_memory_turn(&b.session, true, &err), SESSION_LIVES);

	b.session.slots[2].state = SLOT_FREE;
	use(&b, 0, 30, true); /* the smaller one was killed */
	use(&b, 1, 34, false);
	assert_int_equal(session_memory_turn(&b.session, true, &err), SESSION_OOM);
	end_bench(&b);
}

/* --- on the real one ----------------------------------------------------------------- */

static void need_real(const struct whole_session *w)
{
	if (has_cgroup(w))
		return;
	print_message("skipped: no cgroup v2 that this user may write to\n");
	skip();
}

static void begin_real_session(struct whole_session *w, const struct plan *plan)
{
	begin_session(w, plan);
	need_real(w);
}

static bool exists(const char *path, const char *name)
{
	char full[600];
	(void)snprintf(full, sizeof(full), "%s/%s", path, name);
	return access(full, F_OK) == 0;
}

/* Not while a reaper moves. */
static void serve_until_removed(struct whole_session *w, const char *name)
{
	const uint64_t end_ms = clock_ms() + TEST_PATIENCE_MS;
	while (exists(w->jail->cgroup.path, name)) {
		assert_true(clock_ms() < end_ms);
		(void)session_serve(w->session, NULL, 0, 10, &w->end, &w->err);
	}
	assert_int_equal(w->end, SESSION_LIVES);
}

static void stop_exec(struct whole_session *w, struct exec_handle *e)
{
	assert_int_equal(kill(e->pid, SIGKILL), 0);
	struct exec_result ended = finish_exec(w, e);
	assert_false(ended.is_there);
	assert_true(serve_until_gone(w, e->slot));
}

static void a_leaf_is_there_as_long_as_its_exec(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_real_session(&w, &plan);
	char path[512];
	memcpy(path, w.jail->cgroup.path, sizeof(path));
	assert_true(exists(path, "init"));
	struct exec_handle e = start_shell(&w, "(sleep 1000 >/dev/null 2>&1 &); exit 0", NULL);
	struct exec_result r = finish_exec(&w, &e);
	assert_exited(&r, 0);
	assert_true(exists(path, "e1")); /* a process stays */
	assert_false(cgroup_wait_empty(&w.session->slots[e.slot].leaf, 0));
	r = run_shell(&w, "true", NULL);
	assert_exited(&r, 0);
	assert_int_equal(session_exec_signal(w.session, e.slot, SIGKILL, &w.err), 0);
	serve_until_removed(&w, "e1");
	end_session(&w);
	assert_false(exists(path, ""));
}

static size_t pids_in(const char *path, const char *name, pid_t *out, size_t max)
{
	char full[600];
	(void)snprintf(full, sizeof(full), "%s/%s", path, name);
	auto_fd int fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? 0 : cgroup_tree_own_pids(fd, out, max);
}

static void init_is_where_a_session_needs_it_before_there_is_one(void **state)
{
	(void)state;
	struct whole_session w = { .plan = session_plan(),
				   .descriptors_before = open_descriptors() };
	pid_t pids[4];
	assert_int_equal(session_prepare(&w.plan, unique_id(), &w.jail, &w.err), 0);
	need_real(&w);
	const char *path = w.jail->cgroup.path;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pids_in(path, "", pids, 4), 0);
		assert_int_equal(pids_in(path, "init", pids, 4), 1);
		assert_int_equal(pids[0], w.jail->init_pid);
		if (i == 0)
			assert_int_equal(session_begin(w.jail, &w.session, &w.err), 0);
	}
	end_session(&w);
}

static void a_program_may_use_a_jail_that_was_divided(void **state)
{
	(void)state;
	struct whole_session w = { .plan = session_plan() };
	char path[512];
	assert_int_equal(session_prepare(&w.plan, unique_id(), &w.jail, &w.err), 0);
	need_real(&w);
	memcpy(path, w.jail->cgroup.path, sizeof(path));
	const char *argv[] = { "/bin/sh", "-c", "exit 7", NULL };
	const struct program program = simple_program(argv);
	const struct jail_io io = {
		.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .tty_fd = -1, .hangup_fd = -1
	};
	struct outcome out;
	outcome_init(&out, unique_id(), 4096);
	assert_int_equal(jail_start(w.jail, &program, &io, &w.err), 0);
	assert_int_equal(jail_wait(w.jail, &out, &w.err), 0);
	assert_int_equal(out.exit_code, 7);
	outcome_fini(&out);
	jail_destroy(&w.jail);
	assert_false(exists(path, ""));
}

static const struct session_slot *find_spare(const struct whole_session *w)
{
	const unsigned i = session_find_spare(w->session);
	return i < SESSION_EXECS_MAX ? &w->session->slots[i] : NULL;
}

static void serve_once(struct whole_session *w)
{
	struct pollfd none = { .fd = -1 };
	assert_true(session_serve(w->session, &none, 1, 10, &w->end, &w->err) >= 0);
}

/* The processes of an exec that has ended may take a moment. */
static void await_no_exec(struct whole_session *w)
{
	struct session_status status;
	session_status(w->session, &status);
	for (uint64_t end_ms = clock_ms() + TEST_PATIENCE_MS; status.execs > 0;) {
		assert_true(clock_ms() < end_ms);
		serve_once(w);
		session_status(w->session, &status);
	}
}

/* Serves until a spare reaper is in its cgroup.  Returns its pid. */
static pid_t await_spare(struct whole_session *w, const struct session_slot **out)
{
	pid_t pid = 0;
	for (uint64_t end_ms = clock_ms() + TEST_PATIENCE_MS; pid == 0;) {
		assert_true(clock_ms() < end_ms);
		serve_once(w);
		*out = find_spare(w);
		if (*out)
			(void)cgroup_tree_own_pids((*out)->leaf.dir_fd, &pid, 1);
	}
	return pid;
}

static void a_reaper_waits_in_its_cgroup_for_the_next_exec(void **state)
{
	(void)state;
	const struct plan plan = session_plan();
	struct whole_session w;
	begin_real_session(&w, &plan);
	for (unsigned i = 0; i < 2; i++) {
		const struct session_slot *slot;
		pid_t pid = await_spare(&w, &slot);
		unsigned number = (unsigned)(slot - w.session->slots);
		await_no_exec(&w);
		assert_false(session_slot_has_exec(&w.session->slots[number]));
		struct exec_handle e = start_shell(&w, "exit 3", NULL);
		assert_int_equal(e.slot, number);
		assert_int_equal(slot->state, SLOT_RUNNING);
		struct exec_result done = finish_exec(&w, &e);
		assert_exited(&done, 3);
		assert_int_equal(atomic_load(&w.session->shared->rows[number].reaper_host_pid),
				 pid);
	}
	end_session(&w);
}

static void a_reaper_moves_while_an_exec_runs(void **state)
{
	(void)state;
	const struct plan plan = session_plan();
	const struct session_slot *slot;
	struct whole_session w;
	begin_real_session(&w, &plan);
	struct exec_handle e = start_shell(&w, "sleep 1000", NULL);
	pid_t pid = await_spare(&w, &slot);
	struct exec_result done = run_shell(&w, "exit 3", NULL);
	assert_exited(&done, 3);
	const struct session_row *row = &w.session->shared->rows[slot - w.session->slots];
	assert_int_equal(atomic_load(&row->reaper_host_pid), pid);
	stop_exec(&w, &e);
	end_session(&w);
}

/* What only setrlimit(2) limits counts the spare, too. */
static void a_session_with_few_processes_has_no_reaper_beside_execs(void **state)
{
	(void)state;
	struct plan plan = session_plan();
	const struct session_slot *slot;
	struct whole_session w;
	plan.limits.pids = 15;
	begin_real_session(&w, &plan);
	w.jail->cgroup.enforced[CGROUP_PIDS] = false;
	(void)await_spare(&w, &slot);
	struct exec_handle e = start_shell(&w, "sleep 1000", NULL);
	serve_once(&w);
	assert_null(find_spare(&w));
	stop_exec(&w, &e);
	(void)await_spare(&w, &slot);
	end_session(&w);
}

/* Init is stopped, so the spare is not there for a while. */
static void no_cgroup_is_removed_while_a_reaper_moves(void **state)
{
	(void)state;
	const struct plan plan = session_plan();
	const struct session_slot *slot;
	struct whole_session w;
	begin_real_session(&w, &plan);
	(void)await_spare(&w, &slot);
	struct exec_handle e = start_shell(&w, "exit 3", NULL);
	assert_int_equal(kill(w.jail->init_pid, SIGSTOP), 0);
	const uint64_t deadline = clock_ms() + TEST_PATIENCE_MS;
	while (!find_spare(&w) && clock_ms() < deadline) /* not before the exec has its reaper */
		serve_once(&w);
	assert_non_null(find_spare(&w));
	struct exec_result done = finish_exec(&w, &e);
	assert_exited(&done, 3);
	assert_true(serve_until_gone(&w, e.slot));
	assert_true(exists(w.jail->cgroup.path, "e1"));
	assert_int_equal(session_slots_next_ms(w.session), 0); /* nor does the keeper look again */
	assert_int_equal(kill(w.jail->init_pid, SIGCONT), 0);
	serve_until_removed(&w, "e1");
	end_session(&w);
}

static void a_spare_reaper_that_was_killed_is_replaced(void **state)
{
	(void)state;
	const struct plan plan = session_plan();
	struct whole_session w;
	begin_real_session(&w, &plan);
	const struct session_slot *slot;
	assert_int_equal(kill(await_spare(&w, &slot), SIGKILL), 0);
	assert_true(cgroup_wait_empty(&slot->leaf, TEST_PATIENCE_MS));
	struct exec_result done = run_shell(&w, "exit 4", NULL);
	assert_exited(&done, 4);
	assert_false(exists(w.jail->cgroup.path, "e1"));
	end_session(&w);
}

/* Else a program that can kill it has cejail move one after another. */
static void after_a_spare_reaper_was_killed_only_an_exec_brings_another(void **state)
{
	(void)state;
	const struct plan plan = session_plan();
	const struct session_slot *slot;
	struct whole_session w;
	begin_real_session(&w, &plan);
	assert_int_equal(kill(await_spare(&w, &slot), SIGKILL), 0);
	serve_until_removed(&w, "e1");
	assert_null(find_spare(&w));
	assert_int_equal(session_slots_next_ms(w.session), 0);
	struct exec_result done = run_shell(&w, "exit 4", NULL);
	assert_exited(&done, 4);
	(void)await_spare(&w, &slot);
	end_session(&w);
}

/* As before Linux 5.16. */
static void a_reaper_that_may_not_move_itself_is_moved(void **state)
{
	(void)state;
	const struct plan plan = session_plan();
	struct whole_session w;
	begin_real_session(&w, &plan);
	pid_t self = test_fork();
	if (self == 0)
		for (;;)
			pause();
	w.session->execs_begun++;
	struct cgroup leaf;
	session_cgroup_add(w.session, &leaf);
	pid_t found = 0;
	for (unsigned i = 0; i < 2; i++) { /* the second time it is there already */
		assert_int_equal(session_cgroup_join(&leaf, self), 0);
		assert_int_equal(cgroup_tree_own_pids(leaf.dir_fd, &found, 1), 1);
		assert_int_equal(found, self);
	}
	assert_int_equal(kill(self, SIGKILL), 0);
	assert_int_equal(waitpid(self, NULL, 0), self);
	assert_true(cgroup_destroy(&leaf));
	end_session(&w);
}

static void the_leaves_of_a_killed_keeper_are_swept(void **state)
{
	(void)state;
	struct whole_session *w = mmap(NULL, sizeof(*w) + sizeof(struct cgroup),
				       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct cgroup *copy = (struct cgroup *)(w + 1);
	uint64_t inode;
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t keeper = test_fork();
	if (keeper == 0) {
		const struct plan plan = session_plan();
		begin_session(w, &plan);
		(void)start_shell(w, "sleep 1000", NULL);
		(void)session_serve(w->session, NULL, 0, 0, &w->end, &w->err);
		*copy = w->jail->cgroup;
		inode = cgroup_inode(copy);
		_exit(write(ends[1], &inode, sizeof(inode)) < 0 || pause() < 0);
	}
	assert_int_equal(read(ends[0], &inode, sizeof(inode)), sizeof(inode));
	assert_int_equal(kill(keeper, SIGKILL), 0);
	assert_int_equal(waitpid(keeper, NULL, 0), keeper);
	cj_close(&ends[0]);
	cj_close(&ends[1]);
	if (inode == 0)
		skip();
	assert_int_equal(cgroup_remove_path(copy->path, inode, &w->err), 0);
	assert_false(exists(copy->path, ""));
}

static void a_sweep_removes_the_empty_leaves_of_a_session(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_real_session(&w, &plan);
	char place[512]; /* where no other process sweeps */
	memcpy(place, w.jail->cgroup.path, sizeof(place));
	end_session(&w);
	(void)snprintf(strrchr(place, '/'), 32, "/test-sweep-%d", getpid());
	assert_int_equal(mkdir(place, 0755), 0);
	auto_fd int place_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(place_fd, "cejail-x", 0755), 0);
	assert_int_equal(mkdirat(place_fd, "cejail-x/init", 0755), 0);
	assert_int_equal(mkdirat(place_fd, "cejail-x/e17", 0755), 0);
	assert_int_equal(cgroup_sweep_in(place_fd), 1);
	assert_false(exists(place, "cejail-x"));
	assert_int_equal(rmdir(place), 0);
}

static void only_names_of_ours_are_children(void **state)
{
	(void)state;
	assert_true(cgroup_text_is_child("init") && cgroup_text_is_child("e1") &&
		    cgroup_text_is_child("e123"));
	assert_false(cgroup_text_is_child("e") || cgroup_text_is_child("e1x") ||
		     cgroup_text_is_child("inits") || cgroup_text_is_child("") ||
		     cgroup_text_is_child("..") || cgroup_text_is_child("cejail-x"));
}

#define FAKE(test) cmocka_unit_test_setup_teardown(test, begin_fake, end_fake)

int main(void)
{
	const struct CMUnitTest fakes[] = {
		FAKE(init_is_born_in_a_leaf_and_the_session_keeps_the_limits),
		FAKE(an_exec_has_a_leaf_that_the_kernel_kills_as_one),
		FAKE(a_spare_reaper_is_one_process_more),
		FAKE(the_limit_is_the_old_one_when_the_spare_reaper_is_killed),
		FAKE(the_spare_reaper_is_not_in_the_usage),
		FAKE(without_controllers_a_leaf_serves_to_kill),
		FAKE(a_cgroup_that_cannot_be_divided_gives_no_leaves),
		FAKE(the_exec_that_used_most_is_the_cause),
		cmocka_unit_test(only_names_of_ours_are_children),
	};
	const struct CMUnitTest real[] = {
		cmocka_unit_test(a_leaf_is_there_as_long_as_its_exec),
		cmocka_unit_test(init_is_where_a_session_needs_it_before_there_is_one),
		cmocka_unit_test(a_program_may_use_a_jail_that_was_divided),
		cmocka_unit_test(a_reaper_waits_in_its_cgroup_for_the_next_exec),
		cmocka_unit_test(a_reaper_moves_while_an_exec_runs),
		cmocka_unit_test(a_session_with_few_processes_has_no_reaper_beside_execs),
		cmocka_unit_test(no_cgroup_is_removed_while_a_reaper_moves),
		cmocka_unit_test(a_spare_reaper_that_was_killed_is_replaced),
		cmocka_unit_test(after_a_spare_reaper_was_killed_only_an_exec_brings_another),
		cmocka_unit_test(a_reaper_that_may_not_move_itself_is_moved),
		cmocka_unit_test(the_leaves_of_a_killed_keeper_are_swept),
		cmocka_unit_test(a_sweep_removes_the_empty_leaves_of_a_session),
	};
	int failed = cmocka_run_group_tests(fakes, NULL, NULL);
	return failed + RUN_TESTS_OF_JAILS(real);
}
