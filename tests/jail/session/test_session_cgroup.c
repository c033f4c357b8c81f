/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: mkdirat rmdir fstatfs system_file_write */
/*
 * The cgroups of a session: limits and the verdict about memory on a fake cgroupfs with every
 * controller; birth and death on this host's real one.
 */
#include "tests/jail/session/whole_session.h"

#include <sys/mman.h>

#include "runtime/jail/session/session_state.h"
#include "tests/jail/cgroup/fake_cgroup.h"

/* --- on a fake cgroupfs -------------------------------------------------------------- */

struct bench {
	struct plan plan;
	struct jail *jail;
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
	for (size_t i = 0; i < SESSION_EXECS_MAX; i++)
		b->session.slots[i].leaf = CGROUP_NULL;
	struct cgroup *c = &b->jail->cgroup;
	(void)snprintf(c->path, sizeof(c->path), "%s/cejail-x", fake.root);
	auto_fd int root_fd = fake_open(fake.root);
	fake_put(root_fd, "cgroup.subtree_control", controllers);
	c->parent_fd = take_fd(&root_fd);
	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		c->offered[i] = strstr(controllers, cgroup_controller_names[i]) != NULL;
	const struct cgroup_limits limits = { 64u << 20, 1000, 17 };
	assert_int_equal(cgroup_make(c, &limits, &err), 0);
	b->jail->init_pid = 4242;
	fake_put(c->dir_fd, "cgroup.procs", "4242\n");
}

static void end_bench(struct bench *b)
{
	for (size_t i = 0; i < SESSION_EXECS_MAX; i++)
		(void)cgroup_destroy(&b->session.slots[i].leaf);
	cj_close(&b->jail->cgroup.dir_fd);
	cj_close(&b->jail->cgroup.cpu_fd);
	jail_state_free(&b->jail);
}

static void add(struct bench *b, unsigned slot)
{
	b->session.execs_begun++;
	b->session.slots[slot].is_used = true;
	session_cgroup_add(&b->session, &b->session.slots[slot].leaf);
}

static void init_moves_into_a_leaf_and_the_session_keeps_the_limits(void **state)
{
	(void)state;
	struct bench b;
	begin_bench(&b, "cpu memory pids\n");
	int dir_fd = b.jail->cgroup.dir_fd;
	assert_string_equal(fake_get(dir_fd, "memory.oom.group"), "1\n");
	session_cgroup_begin(&b.session);
	assert_true(b.session.is_divided);
	assert_string_equal(fake_get(dir_fd, "cgroup.procs"), "");
	assert_string_equal(fake_get(dir_fd, "init/cgroup.procs"), "4242\n");
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
	static const char *const refused[] = { "init", "init/cgroup.procs" };
	for (size_t i = 0; i < 2; i++) {
		struct bench b;
		begin_bench(&b, "cpu memory pids\n");
		fake.refuse = refused[i];
		fake.refuse_errno = EACCES;
		session_cgroup_begin(&b.session);
		fake.refuse = NULL;
		assert_false(b.session.is_divided);
		assert_string_equal(fake_get(b.jail->cgroup.dir_fd, "memory.oom.group"), "1\n");
		add(&b, 0);
		assert_int_equal(b.session.slots[0].leaf.dir_fd, -1);
		end_bench(&b);
		fake_end();
		fake_begin("cpu memory pids\n");
	}
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
	for (unsigned i = 0; i < 3; i++)
		add(&b, i);
	use(&b, 0, 10, false);
	use(&b, 1, 15, false);
	use(&b, 2, 39, true);
	assert_false(session_cgroup_is_out_of_memory(&b.session));
	assert_false(session_cgroup_is_out_of_memory(&b.session)); /* the same kill, once more */

	b.session.slots[2].is_used = false;
	use(&b, 0, 30, true); /* the smaller one was killed */
	use(&b, 1, 34, false);
	assert_true(session_cgroup_is_out_of_memory(&b.session));
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

static bool exists(const char *path, const char *name)
{
	char full[600];
	(void)snprintf(full, sizeof(full), "%s/%s", path, name);
	return access(full, F_OK) == 0;
}

static void a_leaf_is_there_as_long_as_its_exec(void **state)
{
	(void)state;
	struct whole_session w;
	const struct plan plan = session_plan();
	begin_session(&w, &plan);
	need_real(&w);
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
	assert_true(serve_until_gone(&w, e.slot));
	assert_false(exists(path, "e1"));
	end_session(&w);
	assert_false(exists(path, ""));
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
	pid_t keeper = fork();
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
	begin_session(&w, &plan);
	need_real(&w);
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
		FAKE(init_moves_into_a_leaf_and_the_session_keeps_the_limits),
		FAKE(an_exec_has_a_leaf_that_the_kernel_kills_as_one),
		FAKE(without_controllers_a_leaf_serves_to_kill),
		FAKE(a_cgroup_that_cannot_be_divided_gives_no_leaves),
		FAKE(the_exec_that_used_most_is_the_cause),
		cmocka_unit_test(only_names_of_ours_are_children),
	};
	const struct CMUnitTest real[] = {
		cmocka_unit_test(a_leaf_is_there_as_long_as_its_exec),
		cmocka_unit_test(the_leaves_of_a_killed_keeper_are_swept),
		cmocka_unit_test(a_sweep_removes_the_empty_leaves_of_a_session),
	};
	int failed = cmocka_run_group_tests(fakes, NULL, NULL);
	return failed + RUN_TESTS_OF_JAILS(real);
}
