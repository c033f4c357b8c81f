/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State directories: made, found, locked, removed.
 *
 * A directory is removed only by the process that has its lock.  A process that gets the lock of a
 * removed directory sees that the name leads to none, or to another one.
 */
#include "runtime/container/state/state.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/owned_dir.h"
#include "runtime/base/json/json_record.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/container/config/oci_config.h"
#include "runtime/kernel/ids/idmap.h"
#include "runtime/kernel/process/process_tree.h"
#include "runtime/run/report/result.h"

#define LOCK_WAIT_MS 10000
#define LOCK_STEP_NS 2000000
#define FILE_MAX     (8u << 20)
#define RECORD       "record.json"
#define RECORD_MAX   (64u << 10) /* three paths and some numbers */
#define LIST_MAX     65536       /* containers */
#define DIR_MODE     0700
#define FILE_MODE    0600
#define QUEUE        8 /* connections of start that may wait: one is accepted */
#define NOTIFY_MODE  0666

void state_close(struct state *s)
{
	cj_close(&s->dir_fd); /* releases the lock */
	cj_close(&s->root_fd);
}

static struct state take_state(struct state *s)
{
	struct state taken = *s;
	*s = STATE_NULL;
	return taken;
}

int state_check_id(const char *id, struct cj_error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+.-";
	size_t size = strlen(id);

	if (size > 0 && size <= STATE_ID_MAX && id[0] != '.' && strspn(id, allowed) == size)
		return 0;
	cj_refuse(err, "invalid container id '%.64s'", id);
	return cj_hint(err,
		       "an id consists of letters, digits and _+.- and does not begin with a dot");
}

static int wait_for_lock(int fd)
{
	const struct timespec step = { .tv_nsec = LOCK_STEP_NS };
	uint64_t deadline = clock_ms() + LOCK_WAIT_MS;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (clock_ms() >= deadline)
			return -EBUSY;
		(void)nanosleep(&step, NULL);
	}
	return 0;
}

void state_unlock(const struct state *s)
{
	(void)flock(s->dir_fd, LOCK_UN); /* cannot fail for a lock of ours */
}

static int reject_missing(const char *id, struct cj_error *err)
{
	return cj_reject_as(err, ENOENT, "container '%s' does not exist", id);
}

int state_await_result(const struct state *s, struct cj_error *err)
{
	auto_fd int fd = openat(s->dir_fd, STATE_RESULT, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0
				       : cj_fail(err, errno, "open '%s' of the state of '%s'",
						 STATE_RESULT, s->id);
	int rc = wait_for_lock(fd);
	return rc < 0 ? cj_fail(err, -rc, "wait for '%s' of the state of '%s'", STATE_RESULT, s->id)
		      : 0;
}

/* Locked, and still the directory of this name. */
static int lock_dir(const struct state *s, struct cj_error *err)
{
	struct stat ours, named;
	int rc = wait_for_lock(s->dir_fd);

	if (rc == -EBUSY) {
		cj_refuse_as(err, EBUSY, "container '%s' is busy", s->id);
		return cj_hint(err, "another cejail-oci works on it");
	}
	if (rc < 0)
		return cj_fail(err, -rc, "lock the state of '%s'", s->id);
	if (fstat(s->dir_fd, &ours) < 0)
		return cj_fail(err, errno, "look at the state of '%s'", s->id);
	if (fstatat(s->root_fd, s->id, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? reject_missing(s->id, err)
				       : cj_fail(err, errno, "look at the state of '%s'", s->id);
	if (ours.st_ino != named.st_ino || ours.st_dev != named.st_dev)
		return reject_missing(s->id, err);
	return 0;
}

int state_lock_alone(struct state *s, struct cj_error *err)
{
	int alone_fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (alone_fd < 0)
		return cj_fail(err, errno, "open the state of '%s' again", s->id);
	cj_close(&s->dir_fd);
	s->dir_fd = alone_fd;
	int rc = lock_dir(s, err);
	if (rc == -ENOENT || rc == -EBUSY)
		cj_close(&s->dir_fd); /* another command removes the container */
	return rc;
}

bool state_is_root(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	return geteuid() == 0 && (idmap_is_initial() || !runtime || runtime[0] == '\0');
}

static const char *standard_root(char out[static PATH_MAX], struct cj_error *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (state_is_root())
		return "/run/cejail-oci";
	if (runtime && runtime[0] == '/' &&
	    snprintf(out, PATH_MAX, "%s/cejail-oci", runtime) < PATH_MAX)
		return out;
	cj_refuse(err, "no directory for the states of containers: XDG_RUNTIME_DIR is not set");
	cj_hint(err, "give one with --root DIR");
	return NULL;
}

/*
 * The directory of all states; made, with its parents, if `make`.
 *
 * `root` NULL: /run/cejail-oci for root (state_is_root()), else cejail-oci in XDG_RUNTIME_DIR.
 * Refused: a directory of another user, and one that every user may write to.
 */
static int open_root(const char *root, bool make, struct cj_error *err)
{
	char buf[PATH_MAX];
	struct stat st;
	const char *path = root && root[0] != '\0' ? root : standard_root(buf, err);

	if (!path)
		return -err->code;
	auto_fd int fd = owned_dir_open(path, DIR_MODE, make ? DIR_MODE : 0, err);
	if (fd < 0)
		return cj_wrap(err, "the states' directory");
	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "open the states' directory '%s'", path);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return cj_reject_as(err, EPERM, "the states' directory '%s' belongs to user %u",
				    path, st.st_uid);
	if (st.st_mode & S_IWOTH) {
		cj_refuse_as(err, EPERM, "every user may write to the states' directory '%s'",
			     path);
		return cj_hint(err, "chmod o-w '%s', or give another one with --root", path);
	}
	return take_fd(&fd);
}

int state_put_file(const struct state *s, const char *name, const char *text, size_t size,
		   struct cj_error *err)
{
	char temporary[64];

	(void)snprintf(temporary, sizeof(temporary), "%s.new", name);
	auto_fd int fd = openat(s->dir_fd, temporary,
				O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
	int rc = fd < 0 ? cj_fail(err, errno, "create '%s'", temporary)
			: fd_write_all(fd, text, size, temporary, err);
	if (rc == 0 && renameat(s->dir_fd, temporary, s->dir_fd, name) < 0)
		rc = cj_fail(err, errno, "rename '%s' to '%s'", temporary, name);
	if (rc < 0) {
		(void)unlinkat(s->dir_fd, temporary, 0); /* it may not exist */
		return cj_wrap(err, "state directory");
	}
	return 0;
}

int state_get_file(const struct state *s, const char *name, struct arena *a, char **out_text,
		   size_t *out_size, struct cj_error *err)
{
	return fd_read_file(s->dir_fd, name, FILE_MAX, a, out_text, out_size, err);
}

#define KEY(its_name, takes, type, field, ...)                                                     \
	{                                                                                          \
		its_name, JSON_TAKES_##takes, .set = json_set_##type, .write = json_write_##type,  \
					      .offset = offsetof(struct state_record, field),      \
					      __VA_ARGS__                                          \
	}
#define FITS(field) .max = sizeof(((struct state_record *)0)->field) - 1
#define REQUIRED    .is_required = true

static const struct json_key record_keys[] = {
	KEY("id", STRING, string, id, REQUIRED),
	KEY("bundle", STRING, string, bundle, REQUIRED),
	KEY("rootfs", STRING, string, rootfs, REQUIRED),
	KEY("pid", NUMBER, int, pid, REQUIRED, .max = INT_MAX),
	KEY("pid_start", NUMBER, u64, pid_start, REQUIRED),
	KEY("created", BOOL, bool, is_created, REQUIRED),
	KEY("created_ms", NUMBER, u64, created_ms, REQUIRED),
	KEY("owner_uid", NUMBER, u64, owner_uid, REQUIRED),
	KEY("cgroup_path", STRING, chars, cgroup.path, REQUIRED, FITS(cgroup.path)),
	KEY("cgroup_inode", NUMBER, u64, cgroup.inode, REQUIRED),
	KEY("cgroup_unit", STRING, chars, cgroup.unit, REQUIRED, FITS(cgroup.unit)),
	/* A container of an older cejail-oci has none of these. */
	KEY("rdt_class", STRING, chars, rdt.class_name, FITS(rdt.class_name)),
	KEY("rdt_monitor", STRING, chars, rdt.monitor, FITS(rdt.monitor)),
	KEY("rdt_is_made", BOOL, bool, rdt.is_made, .is_required = false),
	KEY("rdt_is_shared", BOOL, bool, rdt.is_shared, .is_required = false),
};
static const struct json_record record_table = {
	record_keys, COUNT_OF(record_keys), "the container's record",
	.ignores_unknown = true, /* of a newer cejail-oci */
};

/* EINVAL: it is not whole. */
static int read_record(struct state *s, struct arena *a, struct cj_error *err)
{
	struct state_record r = { 0 };
	struct json_reader in = { .file = RECORD, .arena = a };
	const struct json_node *node;
	char *text;
	size_t size;

	if (fd_read_file(s->dir_fd, RECORD, RECORD_MAX, a, &text, &size, err) < 0 ||
	    json_parse(RECORD, text, size, a, &node, err) < 0 ||
	    json_record_read(&in, node, &record_table, &r, err) < 0)
		return -err->code;
	s->record = r;
	return 0;
}

int state_write(const struct state *s, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct blob text;

	if (!w)
		return cj_fail(err, ENOMEM, "write the record of '%s'", s->id);
	json_record_write(w, &record_table, &s->record);
	if (json_writer_take(w, &text, err) < 0)
		return -err->code;
	return state_put_file(s, RECORD, text.bytes, text.size, err);
}

static int open_dir(const struct oci_options *o, struct state *s, struct cj_error *err)
{
	if (state_check_id(o->id, err) < 0)
		return -err->code;
	s->id = o->id;
	s->root_fd = open_root(o->root, false, err);
	if (s->root_fd == -ENOENT)
		return reject_missing(o->id, err);
	if (s->root_fd < 0)
		return s->root_fd;
	s->dir_fd = openat(s->root_fd, o->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->dir_fd < 0)
		return errno == ENOENT ? reject_missing(o->id, err)
				       : cj_fail(err, errno, "open the state of '%s'", o->id);
	return 0;
}

int state_open(const struct oci_options *o, bool is_locked, struct arena *a, struct state *out,
	       struct cj_error *err)
{
	auto_state struct state s = STATE_NULL;

	if (open_dir(o, &s, err) < 0 || (is_locked && lock_dir(&s, err) < 0))
		return -err->code;
	if (read_record(&s, a, err) < 0) {
		(void)!cj_wrap(err, "container '%s'", o->id);
		return cj_hint(err, "its state is lost; remove the rest with 'delete --force'");
	}
	*out = take_state(&s);
	return 0;
}

int state_open_any(const struct oci_options *o, struct arena *a, struct state *out,
		   struct cj_error *err)
{
	struct cj_error lost = { 0 };
	auto_state struct state s = STATE_NULL;

	if (open_dir(o, &s, err) < 0 || lock_dir(&s, err) < 0)
		return -err->code;
	s.is_lost = read_record(&s, a, &lost) < 0;
	*out = take_state(&s);
	return 0;
}

int state_create(const struct oci_options *o, struct state *out, struct cj_error *err)
{
	auto_state struct state s = STATE_NULL;

	if (state_check_id(o->id, err) < 0)
		return -err->code;
	s.id = o->id;
	s.root_fd = open_root(o->root, true, err);
	if (s.root_fd < 0)
		return s.root_fd;
	if (mkdirat(s.root_fd, o->id, DIR_MODE) < 0)
		return errno == EEXIST
			   ? cj_reject_as(err, EEXIST, "container with id '%s' exists already",
					  o->id)
			   : cj_fail(err, errno, "create the state of '%s'", o->id);
	s.dir_fd = openat(s.root_fd, o->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s.dir_fd < 0) {
		int rc = cj_fail(err, errno, "open the state of '%s'", o->id);
		(void)unlinkat(s.root_fd, o->id, AT_REMOVEDIR); /* empty: nothing is lost */
		return rc;
	}
	/* A delete --force may remove it before this lock: then it does not exist. */
	if (lock_dir(&s, err) < 0)
		return -err->code;
	*out = take_state(&s);
	return 0;
}

int state_remove(struct state *s, struct cj_error *err)
{
	if (s->dir_fd < 0)
		return 0;

	auto_fd_dir struct fd_dir *dir = fd_open_dir(s->dir_fd, ".");
	if (!dir)
		return cj_fail(err, errno, "read the state of '%s'", s->id);
	for (const struct dirent *e; (e = fd_next_entry(dir)) != NULL;)
		if (unlinkat(s->dir_fd, e->d_name, 0) < 0 && errno != ENOENT)
			return cj_fail(err, errno, "remove '%s' of the state of '%s'", e->d_name,
				       s->id);
	if (unlinkat(s->root_fd, s->id, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return cj_fail(err, errno, "remove the state of '%s'", s->id);
	cj_close(&s->dir_fd);
	return 0;
}

int state_reject_stopped(const struct state *s, struct cj_error *err)
{
	return cj_reject_as(err, ESRCH, "container '%s': container not running", s->id);
}

int state_open_init(const struct state *s, struct cj_error *err)
{
	uint64_t start = 0;

	if (s->record.pid <= 0)
		return state_reject_stopped(s, err);
	auto_fd int pidfd = sys_pidfd_open(s->record.pid);
	if (pidfd < 0)
		return errno == ESRCH || errno == EINVAL /* a thread's id now */
			   ? state_reject_stopped(s, err)
			   : cj_fail(err, errno, "open process %d", (int)s->record.pid);
	/* Read after the pidfd: a process that began at this time is the one behind it. */
	int rc = process_tree_start_ticks(s->record.pid, &start);
	if (rc == -ENOENT || rc == -ESRCH || (rc == 0 && start != s->record.pid_start))
		return state_reject_stopped(s, err);
	if (rc < 0)
		return cj_fail(err, -rc, "read when process %d began", (int)s->record.pid);
	/* A zombie is a dead container, unless other threads of its first process live. */
	if (fd_await(pidfd, POLLIN, 0))
		return state_reject_stopped(s, err);
	return take_fd(&pidfd);
}

void state_kill_init(const struct state *s)
{
	struct cj_error ended = { 0 };
	auto_fd int pidfd = state_open_init(s, &ended);

	if (pidfd >= 0)
		(void)sys_pidfd_send_signal(pidfd, SIGKILL); /* it may have ended */
}

/* The name is by descriptor, because a path may be longer than sun_path: unix(7). */
static int open_socket(const struct state *s, const char *name, int type, bool is_bound,
		       struct cj_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct sockaddr *any = (const struct sockaddr *)&address;

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", s->dir_fd,
		       name);
	auto_fd int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cj_fail(err, errno, "make the socket '%s'", name);
	if (is_bound && bind(fd, any, sizeof(address)) < 0)
		return cj_fail(err, errno, "bind the socket '%s'", name);
	if (!is_bound && connect(fd, any, sizeof(address)) < 0)
		return cj_fail(err, errno, "connect to the container's init");
	return take_fd(&fd);
}

int state_socket_listen(const struct state *s, struct cj_error *err)
{
	auto_fd int fd = open_socket(s, STATE_SOCKET, SOCK_SEQPACKET, true, err);

	if (fd >= 0 && listen(fd, QUEUE) < 0)
		return cj_fail(err, errno, "listen on the socket '" STATE_SOCKET "'");
	return take_fd(&fd);
}

int state_socket_connect(const struct state *s, struct cj_error *err)
{
	return open_socket(s, STATE_SOCKET, SOCK_SEQPACKET, false, err);
}

int state_socket_notify(const struct state *s, struct cj_error *err)
{
	auto_fd int fd = open_socket(s, STATE_NOTIFY, SOCK_DGRAM, true, err);

	/* bind(2) obeys the umask */
	if (fd >= 0 && fchmodat(s->dir_fd, STATE_NOTIFY, NOTIFY_MODE, 0) < 0)
		return cj_fail(err, errno, "set the mode of the socket '" STATE_NOTIFY "'");
	return take_fd(&fd);
}

int state_list(const struct oci_options *o, struct arena *a, struct strings *out,
	       struct cj_error *err)
{
	int fd = open_root(o->root, false, err);
	if (fd == -ENOENT) {
		*err = (struct cj_error){ 0 };
		return 0;
	}
	if (fd < 0)
		return fd;
	auto_fd_dir struct fd_dir *dir = fd_take_dir(fd);
	if (!dir)
		return cj_fail(err, errno, "list the containers");
	for (const struct dirent *e; (e = fd_next_entry(dir));) {
		struct cj_error not_ours = { 0 };
		if (state_check_id(e->d_name, &not_ours) < 0)
			continue;
		if (out->count == LIST_MAX)
			return cj_reject(err, "more than %d containers", LIST_MAX);
		if (strings_add(out, a, arena_strdup(a, e->d_name)) < 0)
			return cj_fail(err, ENOMEM, "list the containers");
	}
	strings_sort(out);
	return 0;
}

static const char *const names[] = { "creating", "created", "running", "paused", "stopped" };
_Static_assert(COUNT_OF(names) == STATE_STATUS_COUNT, "a name for each status");

const char *state_status_name(enum state_status status)
{
	return names[status];
}

enum state_status state_status_of(const struct state *s)
{
	struct cj_error err = { 0 };
	auto_container_cgroup struct container_cgroup cgroup = CONTAINER_CGROUP_NULL;

	if (s->is_lost)
		return STATE_STOPPED;
	auto_fd int pidfd = state_open_init(s, &err);
	if (!s->record.is_created)
		return pidfd >= 0 || s->record.pid == 0 ? STATE_CREATING : STATE_STOPPED;
	if (pidfd < 0)
		return STATE_STOPPED;
	if (container_cgroup_open(&s->record.cgroup, &cgroup, &err) == 0 &&
	    container_cgroup_is_frozen(&cgroup))
		return STATE_PAUSED;
	/* Init has the lock until its execve(2). */
	auto_fd int fd = openat(s->dir_fd, STATE_WAITING, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool is_waiting = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	return is_waiting ? STATE_CREATED : STATE_RUNNING;
}

void state_status_write(struct json_writer *w, const struct state *s, enum state_status status,
			const struct oci_pairs *annotations, bool with_owner)
{
	char owner[16];

	json_open_object(w);
	json_member_text(w, "ociVersion", OCI_VERSION_MAX);
	json_member_text(w, "id", s->record.id);
	json_member_u64(w, "pid", status == STATE_STOPPED ? 0 : (uint64_t)s->record.pid);
	json_member_text(w, "status", state_status_name(status));
	json_member_text(w, "bundle", s->record.bundle);
	json_member_text(w, "rootfs", s->record.rootfs);
	result_put_ms(w, "created", s->record.created_ms);
	if (with_owner) {
		/* the number: names come from plug-ins that a static program can't load */
		(void)snprintf(owner, sizeof(owner), "%u", (unsigned)s->record.owner_uid);
		json_member_text(w, "owner", s->record.owner_uid == 0 ? "root" : owner);
	}
	json_member_object(w, "annotations");
	for (size_t i = 0; annotations && i < annotations->count; i++)
		json_member_text(w, annotations->items[i].name, annotations->items[i].value);
	json_close_object(w);
	json_close_object(w);
}
