/* SPDX-License-Identifier: Apache-2.0 */
/* Files and sockets of a state directory. */
#include "runtime/container/state/state.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/files/owned_dir.h"
#include "runtime/base/json/json_record.h"
#include "runtime/base/scope.h"
#include "runtime/kernel/ids/idmap.h"

#define RECORD     "record.json"
#define RECORD_MAX (64u << 10) /* three paths and some numbers */
#define FILE_MODE  0600
#define ROOT_MODE  0700

/* --- the directory of all states -------------------------------------------------------- */

static const char *standard_root(char out[static PATH_MAX], struct cj_error *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	bool is_root = geteuid() == 0;

	/* The root of a user namespace, as podman makes one for an ordinary user, is that user. */
	if (is_root && (idmap_is_initial() || !runtime || runtime[0] == '\0'))
		return "/run/cejail-oci";
	if (runtime && runtime[0] == '/' &&
	    snprintf(out, PATH_MAX, "%s/cejail-oci", runtime) < PATH_MAX)
		return out;
	cj_refuse(err, "no directory for the states of containers: XDG_RUNTIME_DIR is not set");
	cj_hint(err, "give one with --root DIR");
	return NULL;
}

int state_files_root(const char *root, bool make, struct cj_error *err)
{
	char buf[PATH_MAX];
	struct stat st;
	const char *path = root && root[0] != '\0' ? root : standard_root(buf, err);

	if (!path)
		return -err->code;
	auto_fd int fd = owned_dir_open(path, ROOT_MODE, make ? ROOT_MODE : 0, err);
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

/* --- files ---------------------------------------------------------------------------- */

static int write_new(int dir_fd, const char *name, const char *text, size_t size,
		     struct cj_error *err)
{
	auto_fd int fd =
	    openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);

	if (fd < 0)
		return cj_fail(err, errno, "create '%s'", name);
	return fd_write_all(fd, text, size, name, err);
}

int state_files_put(int dir_fd, const char *name, const char *text, size_t size,
		    struct cj_error *err)
{
	char temporary[64];

	(void)snprintf(temporary, sizeof(temporary), "%s.new", name);
	int rc = write_new(dir_fd, temporary, text, size, err);
	if (rc == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
		rc = cj_fail(err, errno, "rename '%s' to '%s'", temporary, name);
	if (rc < 0) {
		(void)unlinkat(dir_fd, temporary, 0); /* it may not exist */
		return cj_wrap(err, "state directory");
	}
	return 0;
}

/* --- the record ------------------------------------------------------------------------- */

#define RECORD_TEXT(name, field)                                                                   \
	{                                                                                          \
		name, JSON_TAKES_STRING, .is_required = true, .set = json_set_string,              \
					 .write = json_write_string,                               \
					 .offset = offsetof(struct state_record, field)            \
	}
#define RECORD_U64(name, field)                                                                    \
	{                                                                                          \
		name, JSON_TAKES_NUMBER, .is_required = true, .set = json_set_u64,                 \
					 .write = json_write_u64,                                  \
					 .offset = offsetof(struct state_record, field)            \
	}
#define RECORD_CHARS(name, field)                                                                  \
	{                                                                                          \
		name, JSON_TAKES_STRING, .is_required = true, .set = json_set_chars,               \
					 .write = json_write_chars,                                \
					 .offset = offsetof(struct state_record, field),           \
					 .max = sizeof(((struct state_record *)0)->field) - 1      \
	}

static const struct json_key record_keys[] = {
	RECORD_TEXT("id", id),
	RECORD_TEXT("bundle", bundle),
	RECORD_TEXT("rootfs", rootfs),
	{ "pid", JSON_TAKES_NUMBER, .is_required = true, .set = json_set_int,
	  .write = json_write_int, .offset = offsetof(struct state_record, pid), .max = INT_MAX },
	RECORD_U64("pid_start", pid_start),
	{ "created", JSON_TAKES_BOOL, .is_required = true, .set = json_set_bool,
	  .write = json_write_bool, .offset = offsetof(struct state_record, is_created) },
	RECORD_U64("created_ms", created_ms),
	RECORD_U64("owner_uid", owner_uid),
	RECORD_CHARS("cgroup_path", cgroup.path),
	RECORD_U64("cgroup_inode", cgroup.inode),
	RECORD_CHARS("cgroup_unit", cgroup.unit),
	/* A container of an older cejail-oci has none of these. */
	{ "rdt_class", JSON_TAKES_STRING, .set = json_set_chars, .write = json_write_chars,
	  .offset = offsetof(struct state_record, rdt.class_name), .max = RDT_NAME_MAX - 1 },
	{ "rdt_monitor", JSON_TAKES_STRING, .set = json_set_chars, .write = json_write_chars,
	  .offset = offsetof(struct state_record, rdt.monitor),
	  .max = sizeof(((struct rdt_record *)0)->monitor) - 1 },
	{ "rdt_is_made", JSON_TAKES_BOOL, .set = json_set_bool, .write = json_write_bool,
	  .offset = offsetof(struct state_record, rdt.is_made) },
	{ "rdt_is_shared", JSON_TAKES_BOOL, .set = json_set_bool, .write = json_write_bool,
	  .offset = offsetof(struct state_record, rdt.is_shared) },
};
static const struct json_record record_table = {
	record_keys, sizeof(record_keys) / sizeof(record_keys[0]), "the container's record",
	.ignores_unknown = true, /* of a newer cejail-oci */
};

int state_files_parse(const char *text, size_t size, struct arena *a, struct state_record *out,
		      struct cj_error *err)
{
	struct state_record r = { 0 };
	struct json_reader in = { .file = RECORD, .arena = a };
	const struct json_node *node;

	if (json_parse(RECORD, text, size, a, &node, err) < 0 ||
	    json_record_read(&in, node, &record_table, &r, err) < 0)
		return -err->code;
	*out = r;
	return 0;
}

int state_files_read(int dir_fd, struct arena *a, struct state_record *out, struct cj_error *err)
{
	char *text;
	size_t size;

	if (fd_read_file(dir_fd, RECORD, RECORD_MAX, a, &text, &size, err) < 0)
		return -err->code;
	return state_files_parse(text, size, a, out, err);
}

int state_files_write(int dir_fd, const struct state_record *r, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const char *text;
	size_t size;

	if (!w)
		return cj_fail(err, ENOMEM, "write the record of '%s'", r->id);
	json_open_object(w);
	json_record_write(w, &record_table, r);
	json_close_object(w);
	if (json_writer_take(w, &text, &size, err) < 0)
		return -err->code;
	return state_files_put(dir_fd, RECORD, text, size, err);
}

/* --- sockets ---------------------------------------------------------------------------------- */

#define QUEUE       8 /* connections of start that may wait: one is accepted */
#define NOTIFY_MODE 0666

/* The name is by descriptor, because a path may be longer than sun_path: unix(7). */
static int open_socket(const struct state *s, const char *name, int type,
		       struct sockaddr_un *out_address, struct cj_error *err)
{
	*out_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)snprintf(out_address->sun_path, sizeof(out_address->sun_path), "/proc/self/fd/%d/%s",
		       s->dir_fd, name);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	return fd < 0 ? cj_fail(err, errno, "make the socket '%s'", name) : fd;
}

int state_socket_listen(const struct state *s, struct cj_error *err)
{
	struct sockaddr_un address;
	auto_fd int fd = open_socket(s, STATE_SOCKET, SOCK_SEQPACKET, &address, err);

	if (fd < 0)
		return fd;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return cj_fail(err, errno, "bind the start socket");
	if (listen(fd, QUEUE) < 0)
		return cj_fail(err, errno, "listen on the start socket");
	return take_fd(&fd);
}

int state_socket_connect(const struct state *s, struct cj_error *err)
{
	struct sockaddr_un address;
	auto_fd int fd = open_socket(s, STATE_SOCKET, SOCK_SEQPACKET, &address, err);

	if (fd < 0)
		return fd;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return cj_fail(err, errno, "connect to the container's init");
	return take_fd(&fd);
}

int state_socket_notify(const struct state *s, struct cj_error *err)
{
	struct sockaddr_un address;
	auto_fd int fd = open_socket(s, STATE_NOTIFY, SOCK_DGRAM, &address, err);

	if (fd < 0)
		return fd;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return cj_fail(err, errno, "bind the socket '" STATE_NOTIFY "'");
	/* bind(2) obeys the umask */
	if (fchmodat(s->dir_fd, STATE_NOTIFY, NOTIFY_MODE, 0) < 0)
		return cj_fail(err, errno, "set the mode of the socket '" STATE_NOTIFY "'");
	return take_fd(&fd);
}
