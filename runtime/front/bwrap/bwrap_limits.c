/* SPDX-License-Identifier: Apache-2.0 */
/* --cejail-*: from text to limits, and the part of them that is the child's. */
#include "runtime/front/bwrap/bwrap_limits.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "profiles/profile.h"
#include "profiles/settings.h"
#include "rootfs/mounts.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/json/json_record.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/front/bwrap/bwrap.h"

#define OVERFLOW_UID  65534 /* who has no id in a user namespace: user_namespaces(7) */
#define MOUNTINFO_MAX (16u << 20)
#define ALLOW_PREFIX  "allow:"

bool bwrap_limits_watch(const struct bwrap_limits *l)
{
	bool has_limit = l->result_fd >= 0 || l->network == NETWORK_PUBLIC;
	for (enum limit i = 0; i < LIMIT_COUNT; i++)
		has_limit |= l->values[i] > 0;
	return has_limit;
}

/* The settings of `cejail run` that are an option here, with the name that it has there. */
static const struct setting *setting_of(const char *name)
{
	static const char *const names[] = { "memory",  "pids-limit", "cpu-time",
					     "timeout", "seccomp",    "network",
					     "allow",   "result-fd",  NULL };
	const char *option = strcmp(name, "pids") == 0 ? "pids-limit" : name;
	return text_is_one_of(option, names) ? setting_by_option(option) : NULL;
}

/* Nothing is set. */
static void begin(struct config *c)
{
	config_init(c);
	c->limits = (struct limits_spec){ 0 };
	c->run_limits.wall_ms = 0;
	c->network = NETWORK_MODE_COUNT;
	c->seccomp = NULL;
}

static void lower(struct bwrap_limits *l, enum limit which, uint64_t value,
		  enum bwrap_source source)
{
	if (value == 0)
		return;
	l->is_ordered |= source == BWRAP_FROM_FILE;
	if (l->values[which] > 0 && l->values[which] <= value)
		return;
	l->values[which] = value;
	l->sources[which] = source;
}

/* The first of `list` that `other` has not; NULL: it has all. */
static const char *find_other(const struct strings *list, const struct strings *other)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strings_has(other, list->items[i]))
			return list->items[i];
	return NULL;
}

/* None is less than a list, and a list less than all.  Of two lists the one that is in the other is
 * what both allow; what two other ones allow no list says, because a name may have any address. */
static int tighten_network(struct bwrap_limits *l, const struct config *c, struct arena *a,
			   struct cj_error *err)
{
	if (c->network == NETWORK_NONE || l->network == NETWORK_NONE) {
		l->network = NETWORK_NONE;
		return 0;
	}
	if (c->network == NETWORK_PUBLIC || c->allow.count > 0)
		l->network = NETWORK_PUBLIC;
	const char *other = find_other(&c->allow, &l->allow);
	if (c->allow.count == 0 || (l->allow.count > 0 && !find_other(&l->allow, &c->allow)))
		return 0;
	if (l->allow.count == 0 || !other) {
		l->allow = (struct strings){ 0 };
		return strings_add_all(&l->allow, a, &c->allow) < 0
			   ? cj_fail(err, ENOMEM, "keep the allow list")
			   : 0;
	}
	cj_refuse(err, "two allow lists, and '%s' is in one of them alone", other);
	return cj_hint(err, "let one list have all of the other: cejail-bwrap(1), LIMITS");
}

static int tighten(struct bwrap_limits *l, const struct config *c, enum bwrap_source source,
		   struct arena *a, struct cj_error *err)
{
	if (c->seccomp && strcmp(c->seccomp, "default") != 0) {
		cj_refuse(err, "the filter '%s' is refused: only 'default' is here", c->seccomp);
		return cj_hint(err, "load another one with --seccomp FD");
	}
	l->has_filter |= c->seccomp != NULL;
	l->asks_network |= source == BWRAP_FROM_LINE &&
			   (c->network != NETWORK_MODE_COUNT || c->allow.count > 0);
	l->result_fd = c->result_fd >= 0 ? c->result_fd : l->result_fd;
	lower(l, LIMIT_MEMORY, c->limits.memory_bytes, source);
	lower(l, LIMIT_PIDS, c->limits.pids, source);
	lower(l, LIMIT_CPU_TIME, c->limits.cpu_ms, source);
	lower(l, LIMIT_WALL, c->run_limits.wall_ms, source);
	return tighten_network(l, c, a, err);
}

/* HOST[:PORT],... */
static int take_list(struct config *c, const char *option, const char *text, struct cj_error *err)
{
	const struct setting *s = setting_by_option("allow");
	for (;; text++) {
		size_t size = strcspn(text, ",");
		const char *one = arena_strndup(&c->arena, text, size);
		if (!one)
			return cj_fail(err, ENOMEM, "list what %s allows", option);
		if (setting_set(c, s, option, one, err) < 0)
			return -err->code;
		text += size;
		if (*text == '\0')
			return 0;
	}
}

int bwrap_limits_take(struct bwrap_limits *l, const char *option, const char *text,
		      enum bwrap_source source, struct arena *a, struct cj_error *err)
{
	const struct setting *s = setting_of(option + strlen(BWRAP_PREFIX));
	struct config c;
	if (!s)
		return cj_reject(err, "Unknown option %s", option);
	const char *list = strcmp(s->option, "network") == 0 ? text_after(text, ALLOW_PREFIX)
							     : NULL;
	begin(&c);
	int rc = list ? take_list(&c, option, list, err) : setting_set(&c, s, option, text, err);
	if (rc == 0 && tighten(l, &c, source, a, err) < 0)
		rc = cj_wrap(err, "%s", option);
	config_fini(&c);
	return rc;
}

/* --- the administrator's file --- */

/* The keys of cejail-profile(5) of the same settings; a descriptor has none. */
static int apply(void *context, const char *key, const struct setting *s,
		 const struct json_node *node, struct cj_error *err)
{
	if (!s || !s->option || setting_of(s->option) != s)
		return json_reject_unknown(BWRAP_ADMIN_FILE, node, key, NULL, err);
	return profile_apply(context, BWRAP_ADMIN_FILE, s, node, err);
}

/* In a user namespace root's files belong to the overflow id, and whoever has it can only tighten.
 */
static int check_owner(int fd, size_t *out_size, struct cj_error *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "look at '%s'", BWRAP_ADMIN_FILE);
	*out_size = (size_t)st.st_size;
	if (!S_ISREG(st.st_mode) || (st.st_uid != 0 && st.st_uid != OVERFLOW_UID) ||
	    st.st_mode & (S_IWGRP | S_IWOTH)) {
		cj_refuse(err, "'%s' must be a file of root that no one else can write",
			  BWRAP_ADMIN_FILE);
		return cj_hint(err, "chown root '%s' && chmod 644 '%s'", BWRAP_ADMIN_FILE,
			       BWRAP_ADMIN_FILE);
	}
	return 0;
}

static int read_file(struct config *c, struct cj_error *err)
{
	char *text = NULL;
	size_t size = 0;
	const struct json_node *root = NULL;
	auto_fd int fd =
	    open(BWRAP_ADMIN_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", BWRAP_ADMIN_FILE);
	if (check_owner(fd, &size, err) < 0 ||
	    fd_read_sized(fd, size, PROFILE_BYTES_MAX, &c->arena, &text, &size, BWRAP_ADMIN_FILE,
			  err) < 0 ||
	    json_parse(BWRAP_ADMIN_FILE, text, size, &c->arena, &root, err) < 0)
		return -err->code;
	if (root->type != JSON_OBJECT)
		return json_reject(BWRAP_ADMIN_FILE, root, err, "the limits are an object, not %s",
				   json_type_name(root->type));
	return profile_walk(BWRAP_ADMIN_FILE, root, apply, c, err);
}

int bwrap_limits_read(struct bwrap_limits *l, struct arena *a, struct cj_error *err)
{
	struct config c;
	begin(&c);
	int rc = read_file(&c, err);
	if (rc == 0 && tighten(l, &c, BWRAP_FROM_FILE, a, err) < 0)
		rc = cj_wrap(err, "%s", BWRAP_ADMIN_FILE);
	config_fini(&c);
	return rc;
}

/* --- what they require --- */

uint64_t bwrap_limits_caps(const struct bwrap_config *c, uid_t caller)
{
	const uint64_t kept = caller != 0 ? 0 : c->sets_caps ? c->caps_kept : UINT64_MAX;
	return kept | c->caps_added;
}

/*
 * The monitor is outside of the pid namespace: no process inside can end it, and all of them end
 * with the namespace's first one.
 */
int bwrap_limits_check(struct bwrap_config *c, uid_t caller, struct cj_error *err)
{
	struct bwrap_limits *l = &c->limits;
	/* What --unshare-net has closed, neither the variable nor the file opens. */
	if (l->network == NETWORK_PUBLIC && !l->asks_network && c->namespaces & CLONE_NEWNET)
		l->network = NETWORK_NONE;
	if (l->network != NETWORK_MODE_COUNT) {
		c->namespaces |= CLONE_NEWNET;
		c->optional &= ~(uint64_t)CLONE_NEWNET;
	}
	/* Whoever is root of the host could enter its network: with capabilities at once, and
	 * without them the network namespace would belong to the user namespace of the host. */
	if (l->network == NETWORK_PUBLIC && !(c->namespaces & CLONE_NEWUSER)) {
		cj_refuse(err, BWRAP_PREFIX "network public and allow: need a user namespace, so "
					    "that the command can't change the rules");
		return cj_hint(err, "add --unshare-user; or use none");
	}
	if (l->network == NETWORK_PUBLIC)
		c->optional &= ~(uint64_t)CLONE_NEWUSER;
	/* Without a cgroup those of the network would count as the command's. */
	if (l->network == NETWORK_PUBLIC && c->is_pid_1) {
		cj_refuse(err, "--as-pid-1 and " BWRAP_PREFIX "network public or allow: exclude "
			       "each other");
		return cj_hint(err, "leave --as-pid-1 out");
	}
	if (!bwrap_limits_watch(l))
		return 0;
	c->namespaces |= CLONE_NEWPID;
	if (l->is_ordered) /* a limit of the file may not depend on what the host has */
		c->optional &= ~(uint64_t)CLONE_NEWUSER;
	if (l->is_ordered && !(c->namespaces & CLONE_NEWUSER) && bwrap_limits_caps(c, caller)) {
		cj_refuse(err,
			  "the limits of %s can be undone by a command with capabilities "
			  "over the host",
			  BWRAP_ADMIN_FILE);
		return cj_hint(err, "add --unshare-user, or --cap-drop ALL");
	}
	return 0;
}

/* --- in the child --- */

/* A mount that another one covers is out of reach: whoever could uncover it has a namespace below
 * this one, in which mounts are locked (mount_namespaces(7)). */
static int restrict_place(const char *place, struct cj_error *err)
{
	struct statfs fs;
	auto_fd int fd = open(place, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
		return 0;
	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return cj_fail(err, errno, "look at the mount '%s'", place);
	if (fs.f_type != CGROUP2_SUPER_MAGIC && fs.f_type != CGROUP_SUPER_MAGIC)
		return 0;
	return mounts_restrict(fd, MOUNT_ATTR_RDONLY, place, err);
}

int bwrap_limits_protect(int proc_fd, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	char *text = NULL;
	size_t size = 0;
	if (fd_read_file(proc_fd, "self/mountinfo", MOUNTINFO_MAX, &a, &text, &size, err) < 0)
		return -err->code;
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		if (!strstr(line, " - cgroup"))
			continue;
		const char *place = text_mount_place(line);
		if (!place)
			return cj_fail(err, EPROTO, "read the place of a cgroup mount");
		if (restrict_place(place, err) < 0)
			return cj_wrap(err, "protect the limits");
	}
	return 0;
}
