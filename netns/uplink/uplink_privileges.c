/* SPDX-License-Identifier: Apache-2.0 */
/* User namespaces, users and capabilities of helpers.  Acts. */
#include "netns/uplink/uplink_privileges.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

static const cap_value_t helper_caps[] = { CAP_SYS_ADMIN, CAP_NET_ADMIN }; /* some: the first */
#define HELPER_CAPS ((int)(sizeof(helper_caps) / sizeof(helper_caps[0])))

int uplink_privileges_join(int sock_fd, struct cj_error *err)
{
	auto_fd int netns_fd = ioctl(sock_fd, SIOCGSKNS);
	if (netns_fd < 0)
		return cj_fail(err, errno, "open a socket's network namespace");
	auto_fd int user_fd = ioctl(netns_fd, NS_GET_USERNS);
	if (user_fd < 0)
		return cj_fail(err, errno, "open the user namespace of a network namespace");
	if (setns(user_fd, CLONE_NEWUSER) < 0)
		return cj_fail(err, errno, "join the user namespace of a network namespace");
	return take_fd(&netns_fd);
}

/* The first id of a map is the only one: user_namespaces(7), "inside outside count". */
static int read_first_id(const char *path, unsigned long *out, struct cj_error *err)
{
	char text[64];
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : sys_read(fd, text, sizeof(text) - 1);
	if (got < 0)
		return cj_fail(err, errno, "read '%s'", path);

	text[got] = '\0';
	char *end = text;
	errno = 0;
	*out = strtoul(text, &end, 10);
	if (end == text || errno != 0)
		return cj_fail(err, EINVAL, "find an id in '%s'", path);
	return 0;
}

int uplink_privileges_become(struct cj_error *err)
{
	unsigned long uid = 0, gid = 0;
	if (read_first_id("/proc/self/uid_map", &uid, err) < 0 ||
	    read_first_id("/proc/self/gid_map", &gid, err) < 0)
		return -err->code;
	if (setresgid((gid_t)gid, (gid_t)gid, (gid_t)gid) < 0)
		return cj_fail(err, errno, "become group %lu", gid);
	if (setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) < 0)
		return cj_fail(err, errno, "become user %lu", uid);
	return 0;
}

static int set_caps(const cap_value_t *caps, int count, struct cj_error *err)
{
	static const cap_flag_t sets[] = { CAP_PERMITTED, CAP_INHERITABLE, CAP_EFFECTIVE };
	cap_t wanted = cap_init();
	if (!wanted)
		return cj_fail(err, errno, "prepare a set of capabilities");

	int rc = 0;
	for (size_t i = 0; count > 0 && rc == 0 && i < sizeof(sets) / sizeof(sets[0]); i++)
		if (cap_set_flag(wanted, sets[i], count, caps, CAP_SET) < 0)
			rc = cj_fail(err, errno, "fill a set of capabilities");
	if (rc == 0 && cap_set_proc(wanted) < 0)
		rc = cj_fail(err, errno, "reduce the capabilities");
	(void)cap_free(wanted); /* frees memory; nothing else can go wrong */
	return rc;
}

int uplink_privileges_keep(bool is_net_admin, struct cj_error *err)
{
	int count = is_net_admin ? HELPER_CAPS : 1;
	if (set_caps(helper_caps, count, err) < 0)
		return -err->code;
	for (int i = 0; i < count; i++)
		if (cap_set_ambient(helper_caps[i], CAP_SET) < 0)
			return cj_fail(err, errno, "make capability %d ambient", helper_caps[i]);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return cj_fail(err, errno, "set no_new_privs");
	return 0;
}

int uplink_privileges_drop(struct cj_error *err)
{
	return set_caps(NULL, 0, err);
}
