/* SPDX-License-Identifier: Apache-2.0 */
/* What a container gets of the process that calls create. */
#include "runtime/container/create/creation.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>

#include "netns/nftables/nfnl.h"
#include "netns/rtnetlink/links.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

static int add(struct strings *env, struct arena *a, const char *entry)
{
	return entry ? strings_add(env, a, entry) : -ENOMEM;
}

#define SAFE_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* "PATH=a:/b::/c" becomes "PATH=/b:/c".  Without any it is a path of ours: what a shell takes
 * without PATH may have ".". */
static const char *absolute_path(struct arena *a, const char *value)
{
	char *text = arena_strdup(a, "PATH=");

	for (; text && *value; value += strspn(value, ":")) {
		size_t size = strcspn(value, ":");
		if (value[0] == '/')
			text =
			    arena_printf(a, "%s%s%.*s", text, text[5] ? ":" : "", (int)size, value);
		value += size;
	}
	return text && !text[5] ? "PATH=" SAFE_PATH : text;
}

int inherit_hook_env(struct arena *a, struct strings *out, struct cj_error *err)
{
	/* What a program finds in its working directory by no value of these. */
	static const char *const kept[] = { "HOME=/", "LANG=", "LC_",   "LOGNAME=",
					    "TERM=",  "TZ=",   "USER=", "XDG_RUNTIME_DIR=/" };
	const char *path = getenv("PATH");
	int rc = add(out, a, absolute_path(a, path ? path : ""));

	for (char **e = environ; rc == 0 && *e; e++)
		for (size_t i = 0; i < COUNT_OF(kept); i++)
			if (rc == 0 && strncmp(*e, kept[i], strlen(kept[i])) == 0)
				rc = add(out, a, arena_strdup(a, *e));
	return rc < 0 ? cj_fail(err, ENOMEM, "copy the environment for a hook") : 0;
}

#define PID_MAX_DIGITS 10
#define PID_NAME       "LISTEN_PID="
#define PID_ENTRY_MAX  (sizeof(PID_NAME) + PID_MAX_DIGITS)

static const char *const passed[] = { "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES" };

int inherit_fds_read(unsigned max, struct inherited_fds *out, struct cj_error *err)
{
	const char *count_text = getenv("LISTEN_FDS"), *pid_text = getenv("LISTEN_PID");
	struct cj_error ignored = { 0 };
	uint64_t count = 0, pid = 0;

	*out = (struct inherited_fds){ 0 };
	if (!count_text || !pid_text || parse_u64(pid_text, 1, INT32_MAX, &pid, &ignored) < 0 ||
	    (pid != 1 && pid != (uint64_t)getpid()))
		return 0;
	if (parse_u64(count_text, 0, max, &count, err) < 0)
		return cj_wrap(err, "the variable LISTEN_FDS");
	out->count = (unsigned)count;
	return 0;
}

static bool is_passed(const char *entry)
{
	for (size_t i = 0; i < COUNT_OF(passed); i++) {
		size_t size = strlen(passed[i]);
		if (strncmp(entry, passed[i], size) == 0 && entry[size] == '=')
			return true;
	}
	return false;
}

int inherit_fds_pass(struct inherited_fds *l, struct strings *env, struct arena *a,
		     struct cj_error *err)
{
	const char *names = getenv("LISTEN_FDNAMES");
	struct strings merged = { 0 };
	int rc = 0;

	if (l->count == 0)
		return 0;
	for (size_t i = 0; rc == 0 && i < env->count; i++)
		if (!is_passed(env->items[i]))
			rc = add(&merged, a, env->items[i]);
	l->pid_entry = arena_alloc(a, PID_ENTRY_MAX);
	if (l->pid_entry)
		l->pid_entry[0] = '\0'; /* until inherit_fds_name_self() */
	if (rc == 0)
		rc = add(&merged, a, l->pid_entry);
	if (rc == 0)
		rc = add(&merged, a, arena_printf(a, "LISTEN_FDS=%u", l->count));
	if (rc == 0 && names)
		rc = add(&merged, a, arena_printf(a, "LISTEN_FDNAMES=%s", names));
	if (rc < 0)
		return cj_fail(err, ENOMEM, "pass LISTEN_FDS on");
	*env = merged;
	return 0;
}

void inherit_fds_name_self(const struct inherited_fds *l)
{
	if (l->pid_entry)
		(void)snprintf(l->pid_entry, PID_ENTRY_MAX, PID_NAME "%d", (int)getpid());
}

#define OWN_NETNS "/proc/self/ns/net"

static int open_netns(int *out_netns_fd, int *out_route_fd, struct cj_error *err)
{
	*out_netns_fd = open(OWN_NETNS, O_RDONLY | O_CLOEXEC);
	if (*out_netns_fd < 0)
		return cj_fail(err, errno, "open '" OWN_NETNS "'");
	*out_route_fd = nfnl_socket(NETLINK_ROUTE, err);
	return *out_route_fd < 0 ? *out_route_fd : 0;
}

/* This process has one thread, and nothing is done there but to open two descriptors. */
static int enter_and_open(int init_pidfd, int home_fd, int *out_netns_fd, int *out_route_fd,
			  struct cj_error *err)
{
	if (setns(init_pidfd, CLONE_NEWNET) < 0)
		return cj_fail(err, errno, "join the container's network namespace");
	int rc = open_netns(out_netns_fd, out_route_fd, err);
	if (setns(home_fd, CLONE_NEWNET) < 0)
		return cj_fail(err, errno, "go back to the caller's network namespace");
	return rc;
}

int inherit_devices_move(const struct oci_linux *config, int init_pidfd, struct arena *a,
			 struct inherited_devices *out, struct cj_error *err)
{
	auto_fd int home_fd = -1, from_fd = -1, netns_fd = -1;

	if (config->nnet_devices == 0)
		return 0;
	out->indexes = arena_array(a, config->nnet_devices, sizeof(*out->indexes));
	if (!out->indexes)
		return cj_fail(err, ENOMEM, "linux.netDevices");
	if (open_netns(&home_fd, &from_fd, err) < 0 ||
	    enter_and_open(init_pidfd, home_fd, &netns_fd, &out->there_fd, err) < 0)
		return cj_wrap(err, "linux.netDevices");
	const struct links_move where = { from_fd, home_fd, out->there_fd, netns_fd };
	for (size_t i = 0; i < config->nnet_devices; i++) {
		const struct oci_net_device *d = &config->net_devices[i];
		if (links_move(&where, d->host_name, d->name, &out->indexes[i], err) < 0)
			return cj_wrap(err, "linux.netDevices");
	}
	return 0;
}

int inherit_devices_return(const struct oci_linux *config, const struct inherited_devices *moved,
			   struct cj_error *err)
{
	auto_fd int here_fd = -1, netns_fd = -1;

	if (moved->there_fd < 0)
		return 0;
	if (open_netns(&netns_fd, &here_fd, err) < 0)
		return cj_wrap(err, "linux.netDevices");
	const struct links_move where = { moved->there_fd, -1, here_fd, netns_fd };
	for (size_t i = 0; i < config->nnet_devices; i++) {
		const struct oci_net_device *d = &config->net_devices[i];
		struct cj_error failed = { 0 };
		int index = moved->indexes[i];
		if (index > 0 && links_move(&where, d->name, d->host_name, &index, &failed) < 0)
			*err = failed;
	}
	return err->code != 0 ? cj_wrap(err, "linux.netDevices: give them back") : 0;
}
