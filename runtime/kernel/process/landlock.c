/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock, by its three system calls.
 *
 * The ruleset handles changes: opening for writing, creating, removing, renaming, truncating,
 * requests to devices.  It does not handle reading, which the mounts restrict: a rule for each
 * read-only view would repeat them and cost time.  Programs may be executed only from the jail's
 * own tree; cejail's own program, behind /proc/self/exe, is outside.  No rule allows creating
 * device nodes.
 */
#include "runtime/kernel/process/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

/* <linux/landlock.h> of Debian 12 ends at ABI 2 (5.19); the rest is here, with its kernel. */
#define FS_REFER                (1ULL << 13) /* ABI 2, 5.19 */
#define FS_TRUNCATE             (1ULL << 14) /* ABI 3, 6.2 */
#define FS_IOCTL_DEV            (1ULL << 15) /* ABI 5, 6.10 */
#define SCOPE_ABSTRACT_SOCKET   (1ULL << 0)  /* ABI 6, 6.12 */
#define SCOPE_SIGNAL            (1ULL << 1)  /* ABI 6, 6.12 */
#define RESTRICT_LOG_SELF_OFF   (1U << 0)    /* ABI 7, 6.15 */
#define RESTRICT_LOG_NESTED_OFF (1U << 2)    /* ABI 7, 6.15 */

struct port_attr {
	uint64_t allowed_access;
	uint64_t port;
};

struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net; /* ABI 4, 6.7; the jail's network has its own rules */
	uint64_t scoped;             /* ABI 6 */
};

#define FS_MAKE_DEVICES (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)
#define FS_WRITE        (LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE)
#define FS_CHANGE                                                                                  \
	(FS_WRITE | FS_REFER | FS_IOCTL_DEV | LANDLOCK_ACCESS_FS_REMOVE_DIR |                      \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                            \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |                              \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM)
/* the only rights for a rule on a file */
#define FS_OF_A_FILE (FS_WRITE | FS_IOCTL_DEV | LANDLOCK_ACCESS_FS_READ_FILE)
#define FS_READ      (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define NET_BIND_TCP (1ULL << 0) /* ABI 4, 6.7 */
#define NET_CONNECT  (1ULL << 1)
#define NET_TCP      (NET_BIND_TCP | NET_CONNECT)
#define RULE_PORT    ((enum landlock_rule_type)2) /* ABI 4 */

/* The writable places of every jail. */
static const struct {
	const char *path;
	uint64_t access;
} places[] = {
	{ "/box", FS_CHANGE },     { "/tmp", FS_CHANGE },
	{ "/dev/shm", FS_CHANGE }, { "/dev", FS_WRITE | FS_IOCTL_DEV }, /* null, tty, pts */
	{ "/proc", FS_WRITE }, /* self/comm, self/oom_score_adj; the rest is read-only */
};

/* ABI 1 (5.13 to 5.18) refuses every rename to another directory, and programs do that. */
#define ABI_MIN 2

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return abi < ABI_MIN ? 0 : (int)abi;
}

/* Those of `access` that this kernel can restrict. */
static uint64_t known_access(uint64_t access, int abi)
{
	if (abi < 3)
		access &= ~FS_TRUNCATE;
	if (abi < 5)
		access &= ~FS_IOCTL_DEV;
	return access;
}

struct ruleset {
	int fd;
	uint64_t handled;     /* of the file system, and so what a rule may allow */
	struct fd_bag opened; /* the places of its rules: closed with it, most in one call */
};
#define auto_ruleset __attribute__((cleanup(ruleset_fini)))

static void ruleset_fini(struct ruleset *set)
{
	fd_bag_add(&set->opened, set->fd);
	fd_bag_close(&set->opened);
}

static int create_ruleset(uint64_t access_fs, uint64_t access_net, bool is_scoped, int abi,
			  struct cj_error *err)
{
	struct ruleset_attr attr = {
		.handled_access_fs = access_fs,
		.handled_access_net = abi >= 4 ? access_net : 0,
		.scoped = is_scoped && abi >= 6 ? SCOPE_ABSTRACT_SOCKET | SCOPE_SIGNAL : 0,
	};
	/* an older kernel takes a longer struct whose rest is zero: landlock(7) */
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (fd < 0)
		return cj_fail(err, errno, "landlock_create_ruleset(2)");
	return fd;
}

static int add_rule(int ruleset_fd, int fd, uint64_t access, const char *name, struct cj_error *err)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = access, .parent_fd = fd };
	long rc = syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	struct stat st;
	int code = rc < 0 ? errno : 0;
	if (code == EINVAL && fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode)) {
		rule.allowed_access &= FS_OF_A_FILE;
		rc = syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule,
			     0);
		code = errno;
	}
	return rc < 0 ? cj_fail(err, code, "landlock_add_rule(2) '%s'", name) : 0;
}

static int allow(struct ruleset *set, const char *path, uint64_t access, struct cj_error *err)
{
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	fd_bag_add(&set->opened, fd);
	return add_rule(set->fd, fd, access & set->handled, path, err);
}

static int restrict_self(int ruleset_fd, int abi, struct cj_error *err)
{
	/* the payload must not fill the host's audit log */
	unsigned flags = abi >= 7 ? RESTRICT_LOG_SELF_OFF | RESTRICT_LOG_NESTED_OFF : 0;
	if (syscall(SYS_landlock_restrict_self, ruleset_fd, flags) < 0)
		return cj_fail(err, errno, "landlock_restrict_self(2)");
	return 0;
}

int landlock_restrict(int ruleset_fd, struct cj_error *err)
{
	return restrict_self(ruleset_fd, landlock_abi(), err);
}

static int allow_of(struct ruleset *set, const struct landlock_jail *jail, const char *path,
		    uint64_t access, struct cj_error *err)
{
	for (size_t i = 0; i < jail->nopened; i++)
		if (strcmp(jail->opened[i].path, path) == 0)
			return add_rule(set->fd, jail->opened[i].fd, access & set->handled, path,
					err);
	return allow(set, path, access, err);
}

static int allow_places(struct ruleset *set, const struct landlock_jail *jail, struct cj_error *err)
{
	for (size_t i = 0; i < COUNT_OF(places); i++)
		if (allow_of(set, jail, places[i].path, places[i].access, err) < 0)
			return -err->code;
	for (size_t i = 0; i < jail->nplaces; i++)
		if (allow(set, jail->places[i], FS_CHANGE, err) < 0)
			return -err->code;
	uint64_t everywhere = LANDLOCK_ACCESS_FS_EXECUTE | (jail->is_writable ? FS_CHANGE : 0);
	return allow_of(set, jail, "/", everywhere, err);
}

int landlock_apply(const struct landlock_jail *jail, int *out_ruleset_fd, struct cj_error *err)
{
	if (out_ruleset_fd)
		*out_ruleset_fd = -1;
	int abi = landlock_abi();
	if (abi == 0)
		return 0;

	const uint64_t handled =
	    known_access(LANDLOCK_ACCESS_FS_EXECUTE | FS_CHANGE | FS_MAKE_DEVICES, abi);
	auto_ruleset struct ruleset set = { .fd = create_ruleset(handled, 0, true, abi, err),
					    .handled = handled };
	if (set.fd < 0 || allow_places(&set, jail, err) < 0 || restrict_self(set.fd, abi, err) < 0)
		return -err->code;
	if (out_ruleset_fd)
		*out_ruleset_fd = take_fd(&set.fd);
	return 1;
}

static bool is_public(const struct stat *st)
{
	const mode_t wanted = S_ISDIR(st->st_mode) ? S_IROTH | S_IXOTH : S_IROTH;
	return !S_ISLNK(st->st_mode) && (st->st_mode & wanted) == wanted;
}

static int allow_view(const struct ruleset *set, const struct landlock_view *view,
		      struct cj_error *err)
{
	static const uint64_t access[] = {
		[LANDLOCK_READ] = FS_READ | LANDLOCK_ACCESS_FS_EXECUTE,
		[LANDLOCK_DEVICE] = FS_OF_A_FILE,
		[LANDLOCK_CHANGE] = FS_READ | LANDLOCK_ACCESS_FS_EXECUTE | FS_CHANGE,
	};
	struct stat st;
	auto_fd int fd = open(view->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	/* A distribution without it, or the caller may not reach it. */
	if (fd < 0 && view->use != LANDLOCK_CHANGE &&
	    (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return cj_fail(err, errno, "open '%s'", view->path);
	if (view->use == LANDLOCK_READ && !is_public(&st))
		return 0;
	if (view->use == LANDLOCK_DEVICE && !S_ISCHR(st.st_mode))
		return 0;
	if (add_rule(set->fd, fd, access[view->use] & set->handled, view->path, err) < 0)
		return -err->code;
	if (text_begins_with(view->path, "/proc/"))
		(void)take_fd(&fd); /* until init ends */
	return 0;
}

int landlock_apply_views(const struct landlock_view *views, size_t count, struct cj_error *err)
{
	int abi = landlock_abi();
	if (abi < LANDLOCK_ABI_SCOPES) {
		(void)!cj_fail(err, ENOSYS, "this kernel's Landlock has ABI %d, and %d is needed",
			       abi, LANDLOCK_ABI_SCOPES);
		return cj_hint(err, "Linux 6.12 keeps signals in a jail without namespaces");
	}
	const uint64_t handled = LANDLOCK_ACCESS_FS_EXECUTE | FS_READ | FS_CHANGE | FS_MAKE_DEVICES;
	auto_ruleset struct ruleset set = { .fd = create_ruleset(handled, NET_TCP, true, abi, err),
					    .handled = handled };
	if (set.fd < 0)
		return -err->code;
	for (size_t i = 0; i < count; i++)
		if (allow_view(&set, &views[i], err) < 0)
			return -err->code;
	return restrict_self(set.fd, abi, err);
}

/*
 * A ruleset must handle a right.  Each layer refuses to move files to another directory unless it
 * allows that, so "/" does.  Handling no other right costs no time when files are opened.
 */
int landlock_domain_ruleset(bool *out_has_scopes, struct cj_error *err)
{
	int abi = landlock_abi();
	if (abi == 0)
		return cj_fail(err, ENOSYS, "Landlock");
	auto_ruleset struct ruleset set = { .fd = create_ruleset(FS_REFER, 0, true, abi, err),
					    .handled = FS_REFER };
	if (set.fd < 0 || allow(&set, "/", FS_REFER, err) < 0)
		return -err->code;
	*out_has_scopes = abi >= 6;
	return take_fd(&set.fd);
}

int landlock_apply_tree(struct cj_error *err)
{
	const uint64_t allowed = LANDLOCK_ACCESS_FS_EXECUTE | FS_REFER;
	int abi = landlock_abi();
	if (abi == 0)
		return 0;
	auto_ruleset struct ruleset set = {
		.fd = create_ruleset(allowed | FS_MAKE_DEVICES, 0, false, abi, err),
		.handled = allowed,
	};
	if (set.fd < 0 || allow(&set, "/", allowed, err) < 0 || restrict_self(set.fd, abi, err) < 0)
		return -err->code;
	return 1;
}

static int allow_ports(int ruleset_fd, const uint16_t *ports, size_t count, struct cj_error *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct port_attr rule = { NET_CONNECT, ports[i] };
		if (syscall(SYS_landlock_add_rule, ruleset_fd, RULE_PORT, &rule, 0) < 0)
			return cj_fail(err, errno, "landlock_add_rule(2) TCP port %u", ports[i]);
	}
	return 0;
}

struct kept_rights {
	const struct landlock_rule *rules;
	size_t count;
	const uint16_t *ports;
	size_t nports;
};

static int keep_only(const struct kept_rights *k, uint64_t refused_net, struct cj_error *err)
{
	int abi = landlock_abi();
	if (abi == 0)
		return cj_fail(err, ENOSYS, "Landlock");

	const uint64_t change = FS_CHANGE | LANDLOCK_ACCESS_FS_MAKE_CHAR;
	uint64_t handled =
	    known_access(LANDLOCK_ACCESS_FS_EXECUTE | FS_READ | FS_CHANGE | FS_MAKE_DEVICES, abi);
	auto_fd int ruleset_fd = create_ruleset(handled, refused_net, true, abi, err);
	if (ruleset_fd < 0)
		return -err->code;
	for (size_t i = 0; i < k->count; i++) {
		uint64_t access = (FS_READ | (k->rules[i].may_change ? change : 0)) & handled;
		if (add_rule(ruleset_fd, k->rules[i].fd, access, "a directory", err) < 0)
			return -err->code;
	}
	if (abi >= 4 && allow_ports(ruleset_fd, k->ports, k->nports, err) < 0)
		return -err->code;
	return restrict_self(ruleset_fd, abi, err);
}

int landlock_allow_only(const struct landlock_rule *rules, size_t count, struct cj_error *err)
{
	return keep_only(&(struct kept_rights){ .rules = rules, .count = count }, NET_TCP, err);
}

int landlock_allow_connecting(struct cj_error *err)
{
	return keep_only(&(struct kept_rights){ 0 }, NET_BIND_TCP, err);
}

int landlock_allow_client(const struct landlock_rule *rules, size_t count, const uint16_t *ports,
			  size_t nports, struct cj_error *err)
{
	return keep_only(&(struct kept_rights){ rules, count, ports, nports }, NET_TCP, err);
}
