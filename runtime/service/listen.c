/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets. */
#include "runtime/service/listen.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "runtime/base/scope.h"
#include "runtime/service/operations/notify.h"
#include "runtime/jail/record.h"

#define BACKLOG 512

static struct listener *add(struct listeners *l, int fd, bool is_tcp)
{
	struct listener *item = &l->items[l->count++];

	*item = (struct listener){ .watch = WATCH_NULL, .fd = fd, .is_tcp = is_tcp, .dir_fd = -1 };
	return item;
}

static bool has_token(const struct service_config *c)
{
	for (size_t i = 0; i < c->callers.count; i++)
		if (c->callers.rows[i].has_token)
			return true;
	return false;
}

static bool is_loopback(const struct sockaddr_storage *a)
{
	const struct sockaddr_in *v4 = (const void *)a;
	const struct sockaddr_in6 *v6 = (const void *)a;

	if (a->ss_family == AF_INET)
		return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
	return a->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static int adopt(struct listeners *l, const struct service_config *c, int fd, struct cj_error *err)
{
	struct sockaddr_storage address = { 0 };
	socklen_t size = sizeof(address), int_size = sizeof(int);
	int listens = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &int_size) < 0 || !listens ||
	    getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		return cj_reject(
		    err, "descriptor %d of socket activation is not a listening socket", fd);
	bool is_tcp = address.ss_family != AF_UNIX;
	if (is_tcp && !is_loopback(&address))
		return cj_reject(
		    err, "descriptor %d of socket activation is not on a loopback address", fd);
	if (is_tcp && !has_token(c)) {
		cj_refuse(err, "TCP callers need a token, and none is configured");
		return cj_hint(err, "set \"token_file\", or LoadCredential=token:FILE");
	}
	if (fcntl(fd, F_SETFL, O_NONBLOCK | fcntl(fd, F_GETFL)) < 0)
		return cj_fail(err, errno, "use a socket of socket activation");
	struct listener *item = add(l, fd, is_tcp);
	(void)snprintf(item->name, sizeof(item->name), "descriptor %d", fd);
	return 0;
}

static int adopt_all(struct listeners *l, const struct service_config *c, struct cj_error *err)
{
	int first = -1;
	int count = notify_listen_fds(&first, err);
	int rc = count < 0 ? count : 0;

	if (count > LISTENERS_MAX - 1)
		return cj_reject(err, "socket activation gives %d sockets, the maximum is %d",
				 count, LISTENERS_MAX - 1);
	for (int i = 0; i < count && rc == 0; i++)
		rc = adopt(l, c, first + i, err);
	return rc;
}

/* The directory by descriptor: a socket address has 107 bytes, a path may have more. */
static void address_of(int dir_fd, const char *file, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)snprintf(out->sun_path, sizeof(out->sun_path), "/proc/self/fd/%d/%.64s", dir_fd,
		       file);
}

/* The socket file of a killed service is stale: connect(2) to it is refused. */
static int remove_stale(const struct listener *item, struct cj_error *err)
{
	struct sockaddr_un address;
	struct stat st;

	if (fstatat(item->dir_fd, item->file, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : cj_fail(err, errno, "look at '%s'", item->name);
	if (!S_ISSOCK(st.st_mode)) {
		(void)!cj_fail(err, EEXIST, "make the socket '%s'", item->name);
		return cj_hint(
		    err, "the file there is not a socket: remove it, or choose another --socket");
	}
	auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cj_fail(err, errno, "make a socket");
	address_of(item->dir_fd, item->file, &address);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ||
	    errno != ECONNREFUSED) {
		(void)!cj_fail(err, EADDRINUSE, "make the socket '%s'", item->name);
		return cj_hint(
		    err,
		    "another service answers on it: stop that one, or choose another --socket");
	}
	if (unlinkat(item->dir_fd, item->file, 0) < 0)
		return cj_fail(err, errno, "remove the stale socket '%s'", item->name);
	return 0;
}

/* The owner first, then the mode: until then the mode is 0, and nobody can connect. */
static int open_to_callers(struct listener *item, const struct service_config *c,
			   struct cj_error *err)
{
	const struct group *group = c->socket_group ? getgrnam(c->socket_group) : NULL;

	if (c->socket_group && !group)
		return cj_reject(err, "socket_group: there is no group '%s'", c->socket_group);
	if (group &&
	    fchownat(item->dir_fd, item->file, (uid_t)-1, group->gr_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return cj_fail(err, errno, "give '%s' to the group '%s'", item->name,
			       c->socket_group);
	if (fchmodat(item->dir_fd, item->file, c->socket_mode, 0) < 0 ||
	    fstatat(item->dir_fd, item->file, &item->made, AT_SYMLINK_NOFOLLOW) < 0)
		return cj_fail(err, errno, "open '%s' to its callers", item->name);
	return 0;
}

/* Two services that start at the same time: a lock on the directory makes one wait. */
static int bind_file(struct listener *item, const struct service_config *c, struct cj_error *err)
{
	struct sockaddr_un address;
	char self[32];

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", item->dir_fd);
	auto_fd int lock_fd = open(self, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock_fd < 0 || flock(lock_fd, LOCK_EX) < 0)
		return cj_fail(err, errno, "lock the directory of '%s'", item->name);
	if (remove_stale(item, err) < 0)
		return -err->code;
	address_of(item->dir_fd, item->file, &address);
	mode_t umask_before = umask(0777);
	int rc = bind(item->fd, (struct sockaddr *)&address, sizeof(address));
	(void)umask(umask_before);
	if (rc < 0)
		return cj_fail(err, errno, "make the socket '%s'", item->name);
	if (open_to_callers(item, c, err) < 0)
		return -err->code;
	return listen(item->fd, BACKLOG) < 0 ? cj_fail(err, errno, "listen on '%s'", item->name)
					     : 0;
}

/* The configured path, else beside the records of runs. */
static int find_place(struct listener *item, const char *path, struct cj_error *err)
{
	char self[32], dir[LISTEN_NAME_MAX - 32];

	if (!path) {
		item->dir_fd = record_open_dir(err);
		if (item->dir_fd < 0)
			return -err->code;
		(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", item->dir_fd);
		ssize_t size = readlink(self, dir, sizeof(dir) - 1);
		dir[size < 0 ? 0 : size] = '\0';
		(void)snprintf(item->file, sizeof(item->file), RECORD_SOCKET);
		(void)snprintf(item->name, sizeof(item->name), "%s/" RECORD_SOCKET, dir);
		return 0;
	}
	const char *slash = strrchr(path, '/');
	size_t size = slash ? (size_t)(slash - path) : 0;
	const char *file = slash ? slash + 1 : path;
	if (path[0] != '/' || size >= sizeof(dir) || file[0] == '\0' || strlen(file) > 64)
		return cj_reject(
		    err,
		    "'%s' can't be a socket's path: it must be absolute, its name up to 64 "
		    "bytes",
		    path);
	(void)snprintf(dir, sizeof(dir), "%.*s/", (int)size, path);
	(void)snprintf(item->file, sizeof(item->file), "%s", file);
	(void)snprintf(item->name, sizeof(item->name), "%s", path);
	item->dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return item->dir_fd < 0 ? cj_fail(err, errno, "open the directory '%s'", dir) : 0;
}

static int open_unix(struct listeners *l, const struct service_config *c, struct cj_error *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return cj_fail(err, errno, "make a socket");
	struct listener *item = add(l, fd, false);
	if (find_place(item, c->socket, err) < 0)
		return -err->code;
	return bind_file(item, c, err);
}

static int open_tcp(struct listeners *l, const struct service_config *c, struct cj_error *err)
{
	union tcp_address address;
	socklen_t size = 0;
	int on = 1;

	if (tcp_address_parse(c->tcp, &address, &size, err) < 0)
		return -err->code;
	int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cj_fail(err, errno, "make a socket");
	struct listener *item = add(l, fd, true);
	(void)snprintf(item->name, sizeof(item->name), "%s", c->tcp);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on,
			 sizeof(on)); /* on failure bind(2) reports */
	if (bind(fd, &address.any, size) < 0 || listen(fd, BACKLOG) < 0)
		return cj_fail(err, errno, "listen on '%s'", c->tcp);
	return 0;
}

int listeners_open(const struct service_config *c, struct listeners *out, struct cj_error *err)
{
	*out = (struct listeners){ 0 };
	int rc = adopt_all(out, c, err);
	if (rc == 0 && out->count == 0)
		rc = open_unix(out, c, err);
	if (rc == 0 && c->tcp)
		rc = open_tcp(out, c, err);
	if (rc < 0)
		listeners_close(out);
	return rc;
}

static void remove_file(const struct listener *item)
{
	struct stat st;

	if (fstatat(item->dir_fd, item->file, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == item->made.st_dev && st.st_ino == item->made.st_ino)
		(void)unlinkat(item->dir_fd, item->file,
			       0); /* on failure the next service removes it as stale */
}

void listeners_close(struct listeners *l)
{
	for (size_t i = 0; i < l->count; i++) {
		if (l->items[i].dir_fd >= 0)
			remove_file(&l->items[i]);
		cj_close(&l->items[i].dir_fd);
		cj_close(&l->items[i].fd);
	}
	l->count = 0;
}
