/* SPDX-License-Identifier: Apache-2.0 */
/* The result process, and the result as JSON. */
#include "runtime/container/annotation/oci_result.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "netns/gateway.h"
#include "runtime/base/child.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/atomic_file.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/container/state/state.h"
#include "runtime/kernel/cgroup/cgroup_text.h"
#include "runtime/kernel/process/privileges.h"
#include "runtime/run/report/result.h"

#define FILE_MODE 0644
#define START_MS  30000 /* as create waits for init */

void oci_result_close(struct oci_result_place *f)
{
	cj_close(&f->dir_fd);
}

/* What is behind the directory in an absolute path; a relative one is below it. */
static const char *path_below(const char *wanted, const char *base)
{
	size_t size = strlen(base);

	while (size > 0 && base[size - 1] == '/') /* of "/", nothing is left */
		size--;
	if (wanted[0] != '/')
		return wanted;
	if (strncmp(wanted, base, size) != 0 || wanted[size] != '/')
		return NULL;
	return wanted + size + strspn(wanted + size, "/");
}

static int open_below(const char *dir, const char *base, const char *wanted, struct cj_error *err)
{
	struct stat st;
	auto_fd int base_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (base_fd < 0 || fstat(base_fd, &st) < 0) {
		(void)!cj_fail(err, errno, "open the directory of results '%s'", base);
		return cj_hint(err, "make it: install -d -m 755 %s; or name one with --result-dir",
			       base);
	}
	if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & (S_IWGRP | S_IWOTH))) {
		cj_refuse_as(err, EPERM, "another user may write to the directory of results '%s'",
			     base);
		return cj_hint(err, "chown it to the user who runs cejail-oci, and chmod go-w it");
	}
	int fd = sys_openat2(base_fd, dir[0] != '\0' ? dir : ".",
			     O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0,
			     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (fd < 0)
		return cj_fail(err, errno, "open the directory of '%s' below '%s'", wanted, base);
	return fd;
}

static int open_dir(const char *wanted, const char *result_dir, struct arena *a,
		    struct oci_result_place *out, struct cj_error *err)
{
	const char *base = result_dir ? result_dir : RESULT_DIR_DEFAULT;
	bool is_free = !result_dir && !state_is_root();
	const char *path = is_free ? wanted : path_below(wanted, base);

	if (!path) {
		cj_refuse_as(err, EPERM, "'%s' is not below the directory of results '%s'", wanted,
			     base);
		return cj_hint(err, "name a file below it, or another directory with --result-dir");
	}
	if (is_free && path[0] != '/')
		return cj_reject(err, "'%s' is not absolute", path);
	/* "a/b/c" is "a/b" and "c"; "/c" is "/" and "c"; "c" is "" and "c". */
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dir =
	    arena_strndup(a, path, slash == path ? 1 : (size_t)(name - path) - (slash ? 1 : 0));
	if (!dir)
		return cj_fail(err, ENOMEM, "find the result");
	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return cj_reject(err, "'%s' names no file", path);
	out->name = name;
	if (!is_free)
		out->dir_fd = open_below(dir, base, wanted, err);
	else
		out->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (out->dir_fd < 0)
		return err->code ? -err->code : cj_fail(err, errno, "open '%s'", dir);
	return 0;
}

/* A result may be replaced, because an engine starts a container again with the same annotation. */
static int check_old(const struct oci_result_place *f, struct cj_error *err)
{
	char begin[sizeof(OCI_RESULT_BEGIN)] = "";
	struct stat st;
	auto_fd int fd =
	    openat(f->dir_fd, f->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    pread(fd, begin, sizeof(begin) - 1, 0) == (ssize_t)sizeof(begin) - 1 &&
	    strcmp(begin, OCI_RESULT_BEGIN) == 0)
		return 0;
	cj_refuse_as(err, EEXIST, "the file '%s' exists, and is not a result", f->name);
	return cj_hint(err, "remove it, or name another file");
}

int oci_result_find(const char *wanted, const char *result_dir, const char *id, struct arena *a,
		    struct oci_result_place *out, struct cj_error *err)
{
	struct oci_result_place f = OCI_RESULT_PLACE_NULL;
	struct atomic_file probe = NEWFILE_NULL;
	size_t size = strlen(wanted);
	const char *path =
	    size > 0 && wanted[size - 1] == '/' ? arena_printf(a, "%s%s.json", wanted, id) : wanted;

	if (!path)
		return cj_fail(err, ENOMEM, "find the result");
	int rc = open_dir(path, result_dir, a, &f, err);
	if (rc == 0)
		rc = check_old(&f, err);
	if (rc == 0) {
		rc = atomic_file_open(f.dir_fd, FILE_MODE, &probe);
		atomic_file_fini(&probe);
		if (rc < 0)
			(void)!cj_fail(err, -rc, "write a file '%s'", f.name);
	}
	if (rc < 0) {
		oci_result_close(&f);
		return cj_wrap(err, "annotation '" ANNOTATION_RESULT "'");
	}
	*out = f;
	return 0;
}

static int publish(const struct oci_result_place *f, const char *text, size_t size,
		   struct cj_error *err)
{
	struct atomic_file made = NEWFILE_NULL;
	int rc = atomic_file_open(f->dir_fd, FILE_MODE, &made);

	if (rc < 0)
		return cj_fail(err, -rc, "make the result '%s'", f->name);
	rc = fd_write_all(made.fd, text, size, f->name, err);
	if (rc == 0) {
		rc = atomic_file_publish(&made, f->dir_fd, f->name);
		if (rc < 0)
			rc = cj_fail(err, -rc, "publish the result '%s'", f->name);
	}
	atomic_file_fini(&made);
	return rc;
}

enum result_step { RESULT_READY, RESULT_GO, RESULT_STEP_COUNT };
static const char *const step_names[] = { [RESULT_READY] = "ready", [RESULT_GO] = "go" };
static_assert(COUNT_OF(step_names) == RESULT_STEP_COUNT, "each has a name");

/* What the process holds.  The names are the places in fds[], which -1 leaves out. */
enum held {
	HELD_PID,
	HELD_STAT, /* /proc/PID/stat */
	HELD_LOCK,
	HELD_DIR,
	HELD_LINK,
	HELD_CGROUP,
	HELD_RULES,
	HELD_LOG,    /* the link to the process that reads the log of denied packets */
	HELD_READER, /* its pidfd */
	HELD_LOADER, /* the link to the process that reads the counters */
	HELD_LOADER_PID,
	HELD_COUNT
};
static_assert(HELD_COUNT <= CHILD_FDS_MAX, "child_keep_only() keeps all");

struct watcher {
	const struct oci_result_watch *watch;
	int fds[HELD_COUNT];
	struct denials denials;
};

/* linux/pidfd.h of 6.15; Debian 12 has none. */
struct pidfd_info {
	uint64_t mask, cgroupid;
	uint32_t ids[11];
	int32_t exit_code;
};
#define PIDFD_GET_INFO  _IOWR(0xFF, 11, struct pidfd_info)
#define PIDFD_INFO_EXIT (1ULL << 3)

static bool ask_pidfd(int pidfd, int *out)
{
	struct pidfd_info info = { .mask = PIDFD_INFO_EXIT };

	if (ioctl(pidfd, PIDFD_GET_INFO, &info) < 0 || !(info.mask & PIDFD_INFO_EXIT))
		return false;
	*out = info.exit_code;
	return true;
}

/* proc_pid_stat(5): the last field; the second one may contain anything, up to the last ')'. */
static bool ask_stat(int stat_fd, int *out)
{
	char text[SYSTEM_FILE_SMALL], state;
	struct cj_error none = { 0 };
	uint64_t status;

	if (system_file_reread(stat_fd, text, sizeof(text)) <= 0)
		return false;
	const char *behind = strrchr(text, ')');
	if (!behind || sscanf(behind, ") %c", &state) != 1 || state != 'Z')
		return false;
	text[strcspn(text, "\n")] = '\0';
	const char *last = strrchr(text, ' ');
	if (!last || parse_u64(last + 1, 0, UINT16_MAX, &status, &none) < 0)
		return false;
	*out = (int)status;
	return true;
}

static void put_number(struct json_writer *w, const char *key, const struct oci_u64 *number)
{
	json_member_known(w, key, number->is_set, number->value);
}

static void put_end(struct json_writer *w, const struct result_facts *f)
{
	bool is_exit = f->has_wait_status && WIFEXITED(f->wait_status);
	bool is_signal = f->has_wait_status && WIFSIGNALED(f->wait_status);
	/* Others of the container may be killed for lack of memory while the first goes on. */
	bool is_oom = is_signal && WTERMSIG(f->wait_status) == SIGKILL && f->oom_kills.is_set &&
		      f->oom_kills.value > 0;

	json_member_text(w, "status",
			 !f->has_wait_status ? NULL
			 : is_oom            ? "oom"
			 : is_signal         ? "signaled"
					     : "exited");
	json_member_known(w, "exit_code", is_exit, (uint64_t)WEXITSTATUS(f->wait_status));
	json_member_known(w, "signal", is_signal, (uint64_t)WTERMSIG(f->wait_status));
}

/* `refused` is the name of the member that counts what `hits` is: "kills". */
static void put_limit(struct json_writer *w, const char *name, const struct oci_u64 *value,
		      const char *refused, const struct oci_u64 *hits)
{
	json_member_object(w, name);
	put_number(w, "value", value);
	json_put_key(w, "hit");
	if (hits->is_set)
		json_put_bool(w, hits->value > 0);
	else
		json_put_null(w);
	put_number(w, refused, hits);
	json_close_object(w);
}

static void put_network(struct json_writer *w, const struct denials *d)
{
	if (!d) {
		json_member_text(w, "network", NULL);
		return;
	}
	json_member_object(w, "network");
	result_put_denials(w, d->items, d->count);
	json_close_object(w);
}

void oci_result_text(struct json_writer *w, const struct result_facts *f)
{
	json_open_object(w);
	json_member_text(w, "schema", OCI_RESULT_SCHEMA);
	json_member_text(w, "id", f->id);
	put_end(w, f);
	result_put_ms(w, "created", f->created_ms);
	result_put_ms(w, "ended", f->ended_ms);
	json_member_object(w, "usage");
	json_member_known(w, "cpu_ms", f->cpu_us.is_set, f->cpu_us.value / 1000);
	put_number(w, "memory_peak_bytes", &f->memory_peak);
	put_number(w, "pids_peak", &f->pids_peak);
	json_close_object(w);
	json_member_object(w, "limits");
	put_limit(w, "memory", &f->memory_max, "kills", &f->oom_kills);
	put_limit(w, "pids", &f->pids_max, "refused", &f->pids_refused);
	json_close_object(w);
	put_network(w, f->denials);
	json_close_object(w);
}

/* The number in the line "KEY NUMBER"; with `key` NULL, the only one.  Not set: there is none. */
static struct oci_u64 read_number(int dir_fd, const char *file, const char *key)
{
	char text[SYSTEM_FILE_SMALL];
	struct oci_u64 out = { 0 };

	if (dir_fd >= 0 && system_file_read(dir_fd, file, text, sizeof(text)) > 0)
		out.is_set = key ? cgroup_text_value(text, key, &out.value)
				 : cgroup_text_number(text, &out.value);
	return out;
}

static struct step_link link_to_reader(const struct watcher *w)
{
	return (struct step_link){ w->fds[HELD_LOG], "the gateway", gateway_step_names };
}

/* One denial.  After anything else the reader is not listened to: the counters have all denials. */
static bool receive(struct watcher *w)
{
	const struct step_link link = link_to_reader(w);
	auto_step_msg struct step_msg msg = { 0 };
	struct cj_error lost = { 0 };
	struct denial one;
	if (step_next(&link, &msg, &lost) < 0 || msg.step != GATEWAY_DENIED ||
	    msg.size != sizeof(one)) {
		cj_close(&w->fds[HELD_LOG]);
		return false;
	}
	memcpy(&one, msg.data, sizeof(one));
	one.is_shared = false;
	if (denial_is_valid(&one) && one.class != NET_NAME)
		(void)denials_add(&w->denials, &one);
	return true;
}

/* What the kernel has logged: the reader answers when it has told all of it. */
static void drain(struct watcher *w)
{
	const struct step_link link = link_to_reader(w);
	const uint64_t until_ms = clock_ms() + GATEWAY_DRAIN_MS;
	struct cj_error lost = { 0 };
	if (w->fds[HELD_LOG] < 0 || step_say(&link, GATEWAY_DRAIN, &lost) < 0)
		return;
	while (fd_await(w->fds[HELD_LOG], POLLIN, clock_ms_until(until_ms)) && receive(w))
		;
}

static int write_result(struct watcher *w, struct result_facts *f, struct cj_error *err)
{
	const struct oci_result_place file = { w->fds[HELD_DIR], w->watch->file->name };
	auto_json_writer struct json_writer *writer = json_writer_create(false);
	struct blob text;

	oci_result_text(writer, f);
	if (json_writer_take(writer, &text, err) < 0)
		return -err->code;
	return publish(&file, text.bytes, text.size, err);
}

static int report(struct watcher *w, struct cj_error *err)
{
	const int cgroup_fd = w->fds[HELD_CGROUP];
	struct loader loader = {
		.pidfd = w->fds[HELD_LOADER_PID],
		.link = { w->fds[HELD_LOADER], "the loader", loader_step_names },
	};
	uint64_t counts[NET_CLASS_COUNT] = { 0 };
	struct cj_error unread = { 0 };
	struct result_facts f = {
		.id = w->watch->id,
		.created_ms = w->watch->created_ms,
	};

	/* first of all: the parent may reap it at any moment */
	f.has_wait_status = ask_stat(w->fds[HELD_STAT], &f.wait_status) ||
			    ask_pidfd(w->fds[HELD_PID], &f.wait_status);
	f.ended_ms = clock_epoch_ms();
	f.memory_max = read_number(cgroup_fd, "memory.max", NULL);
	f.memory_peak = read_number(cgroup_fd, "memory.peak", NULL);
	f.oom_kills = read_number(cgroup_fd, "memory.events", "oom_kill");
	f.pids_max = read_number(cgroup_fd, "pids.max", NULL);
	f.pids_peak = read_number(cgroup_fd, "pids.peak", NULL);
	f.pids_refused = read_number(cgroup_fd, "pids.events", "max");
	f.cpu_us = read_number(cgroup_fd, "cpu.stat", "usage_usec");
	if (w->fds[HELD_RULES] >= 0) {
		drain(w);
		const bool is_known =
		    loader_read_counters(&loader, w->watch->network->table, counts, &unread) == 0;
		w->fds[HELD_LOADER_PID] = loader.pidfd;
		w->fds[HELD_LOADER] = loader.link.sock_fd;
		denials_settle(&w->denials, counts);
		f.denials = is_known ? &w->denials : NULL; /* the log has not all of them */
	}
	return write_result(w, &f, err);
}

static void wait_for_end(struct watcher *w)
{
	for (;;) {
		/* poll(2) skips negative numbers */
		struct pollfd polled[] = { { .fd = w->fds[HELD_PID], .events = POLLIN },
					   { .fd = w->fds[HELD_LOG], .events = POLLIN } };
		if (poll(polled, COUNT_OF(polled), -1) < 0 && errno != EINTR)
			return;
		if (polled[0].revents != 0)
			return;
		if (polled[1].revents != 0)
			(void)receive(w);
	}
}

/* Before the program can send a packet.  In a pod the process of another container may listen
 * already; then the counters have to do. */
static void start_reader(struct watcher *w)
{
	struct cj_error taken = { 0 };
	struct gateway reader;
	if (w->fds[HELD_LOG] < 0)
		return;
	(void)!gateway_start_log(w->fds[HELD_LOG], &reader, &taken);
	w->fds[HELD_LOG] = reader.link.sock_fd; /* the socket is create's */
	w->fds[HELD_READER] = reader.pidfd;
}

/* Now, because at the end of the container another version may be installed.  Without it the
 * counters are not known. */
static void start_counter(struct watcher *w)
{
	struct cj_error ignored;
	struct loader loader;
	if (w->fds[HELD_RULES] < 0)
		return;
	if (gateway_start_loader(&loader, &ignored) == 0 &&
	    (loader_give_sockets(&loader, &w->fds[HELD_RULES], 1, &ignored) < 0 ||
	     loader_join(&loader, &ignored) < 0))
		loader_stop(&loader);
	w->fds[HELD_LOADER] = loader.link.sock_fd;
	w->fds[HELD_LOADER_PID] = loader.pidfd;
}

static int settle(struct watcher *w, struct cj_error *err)
{
	const uint64_t kept = UINT64_C(1) << CAP_SYS_PTRACE; /* for another user's stat file */

	start_reader(w);
	start_counter(w);
	return privileges_stay_behind("cejail-oci-res", w->fds, HELD_COUNT, kept, err);
}

/* The end of create instead: the container is not created. */
static bool is_told_to_go(struct watcher *w)
{
	const struct step_link link = { w->fds[HELD_LINK], "cejail-oci create", step_names };
	struct cj_error err = { 0 };

	step_wait_forever(&link);
	bool is_told = step_say(&link, RESULT_READY, &err) == 0 &&
		       step_await(&link, RESULT_GO, NULL, &err) == 0;
	cj_close(&w->fds[HELD_LINK]);
	return is_told;
}

static _Noreturn void watch_main(struct watcher *w)
{
	struct cj_error err = { 0 };

	if (settle(w, &err) < 0) {
		const struct step_link link = { w->fds[HELD_LINK], "create", step_names };
		step_abort(&link, &err);
		_exit(1);
	}
	if (!is_told_to_go(w))
		_exit(1);
	wait_for_end(w);
	int rc = report(w, &err); /* nobody is there to be told of a failure */
	cj_end_child(&w->fds[HELD_READER]);
	cj_end_child(&w->fds[HELD_LOADER_PID]);
	_exit(rc < 0 ? 1 : 0);
}

int oci_result_start(const struct oci_result_watch *watch, int *out_go_fd, struct cj_error *err)
{
	char path[32];
	int socks[2];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)watch->pid);
	auto_fd int stat_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (stat_fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	if (step_pair(socks, START_MS, err) < 0)
		return -err->code;
	struct watcher w = {
		.watch = watch,
		.fds = { [HELD_PID] = watch->pidfd,
			 [HELD_STAT] = stat_fd,
			 [HELD_LOCK] = watch->lock_fd,
			 [HELD_DIR] = watch->file->dir_fd,
			 [HELD_LINK] = socks[1],
			 [HELD_CGROUP] = watch->cgroup_fd,
			 [HELD_RULES] = watch->network->rules_fd,
			 [HELD_LOG] = watch->network->log_fd,
			 [HELD_READER] = -1,
			 [HELD_LOADER] = -1,
			 [HELD_LOADER_PID] = -1 },
	};
	auto_fd int link_fd = socks[0];
	const struct step_link link = { link_fd, "the result process", step_names };
	pid_t pid = fork();
	if (pid == 0) {
		cj_close(&link_fd);
		watch_main(&w);
	}
	int rc = pid < 0 ? cj_fail(err, errno, "start the result process") : 0;
	cj_close(&socks[1]);
	if (rc < 0)
		return rc;
	if (step_await(&link, RESULT_READY, NULL, err) < 0)
		return cj_wrap(err, "start it");
	*out_go_fd = take_fd(&link_fd);
	return 0;
}

int oci_result_go(int go_fd, struct cj_error *err)
{
	const struct step_link link = { go_fd, "the result process", step_names };

	return step_say(&link, RESULT_GO, err);
}
