/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/helpers/upstream/origin.h"

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/kernel/process/landlock.h"
#include "runtime/kernel/process/privileges.h"
#include "runtime/kernel/seccomp/call_list.h"

#define DNS_PORT 53

/* Memory, time, files that are only read, and sockets that are open. */
/* clang-format off */
static const unsigned allowed[] = {
	SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_lseek, SYS_close, SYS_fstat,
	SYS_newfstatat, SYS_statx, SYS_faccessat, SYS_readlinkat, SYS_fcntl, SYS_pipe2, SYS_eventfd2,
	SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg, SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_connect,
	SYS_accept4, SYS_shutdown, SYS_getsockopt, SYS_getsockname, SYS_getpeername, SYS_epoll_ctl,
	SYS_epoll_pwait, SYS_ppoll, SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk, SYS_futex,
	SYS_getrandom, SYS_clock_gettime, SYS_clock_nanosleep, SYS_gettimeofday, SYS_uname,
	SYS_sysinfo, SYS_getpid, SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
	SYS_sched_yield, SYS_sigaltstack,
	SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_restart_syscall, SYS_exit,
	SYS_exit_group,
#ifdef SYS_poll
	SYS_epoll_wait, SYS_poll, SYS_stat, SYS_access, SYS_readlink,
#endif
};
/* clang-format on */

/* (argument & mask) is this number. */
#define MASKED(argument, mask, number)                                                             \
	{                                                                                          \
		CALL_LOW(argument), (uint32_t)(mask), (uint32_t)(number), false                    \
	}
#define IS(argument, number) MASKED(argument, UINT32_MAX, number)

#define OF_TYPE(type) MASKED(1, ~(SOCK_NONBLOCK | SOCK_CLOEXEC), type)
#define FOR_WRITING   (O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY))
/* Nothing here writes to a file, and the helper gets no new code. */
static const struct call_rule rules[] = {
	{ SYS_openat, { MASKED(2, FOR_WRITING, 0) } },
	{ SYS_ioctl, { IS(1, FIONBIO) } },
	{ SYS_ioctl, { IS(1, FIONREAD) } },
	{ SYS_mprotect, { MASKED(2, PROT_EXEC, 0) } },
	{ SYS_mmap, { MASKED(2, PROT_EXEC, 0) } },
	{ SYS_socket, { IS(0, AF_INET), OF_TYPE(SOCK_STREAM) } },
	{ SYS_socket, { IS(0, AF_INET6), OF_TYPE(SOCK_STREAM) } },
	{ SYS_setsockopt, { IS(1, IPPROTO_TCP), IS(2, TCP_NODELAY) } },
	{ SYS_setsockopt, { IS(1, SOL_SOCKET), IS(2, SO_LINGER) } },
	/* OF_LOOKUPS: a lookup's alone.  A plug-in of the resolver is code, from a file. */
	{ SYS_mmap, { MASKED(3, MAP_ANONYMOUS, 0) } },
	{ SYS_socket, { IS(0, AF_INET), OF_TYPE(SOCK_DGRAM) } },
	{ SYS_socket, { IS(0, AF_INET6), OF_TYPE(SOCK_DGRAM) } },
	{ SYS_setsockopt, { IS(1, IPPROTO_IP), IS(2, IP_RECVERR) } },
	{ SYS_setsockopt, { IS(1, IPPROTO_IPV6), IS(2, IPV6_RECVERR) } },
};
#define OF_LOOKUPS 5

#define READABLE_MAX 64

struct readable {
	struct landlock_rule rules[READABLE_MAX];
	struct fd_bag opened;
	size_t count;
};

/* A file or folder that exists, with all below it. */
static void add_place(struct readable *r, const char *path)
{
	const int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 || r->count == READABLE_MAX) {
		if (fd >= 0)
			(void)close(fd);
		return; /* what is not added can't be read */
	}
	fd_bag_add(&r->opened, fd);
	r->rules[r->count++] = (struct landlock_rule){ .fd = fd };
}

/* The folder of a file: another file may take its place.  /etc and "/" have too much in them. */
static void add_folder_of(struct readable *r, const char *file)
{
	char path[PATH_MAX];
	add_place(r, file);
	if (snprintf(path, sizeof(path), "%s", file) >= (int)sizeof(path) || !strrchr(path, '/'))
		return;
	*strrchr(path, '/') = '\0';
	if (path[0] != '\0' && strcmp(path, "/etc") != 0)
		add_place(r, path);
}

/* Also where a link leads. */
static void add_file(struct readable *r, const char *file)
{
	auto_free char *real = realpath(file, NULL);
	add_folder_of(r, file);
	if (real && strcmp(real, file) != 0)
		add_folder_of(r, real);
}

/* Without Landlock the calls below write no file either. */
static int restrict_to(struct readable *r, const uint16_t *ports, size_t count,
		       struct cj_error *err)
{
	int rc = landlock_allow_client(r->rules, r->count, ports, count, err);
	fd_bag_close(&r->opened);
	return rc == -ENOSYS ? 0 : rc;
}

static int load_rules(size_t count, const char *whose, struct cj_error *err)
{
	const struct call_list calls = { allowed, COUNT_OF(allowed), rules, count };
	return call_list_load(&calls, whose, err);
}

int origin_confine(const struct origin_set *set, struct cj_error *err)
{
	if (privileges_keep_only(0, err) < 0 || child_die_with_parent(-1, err) < 0)
		return -err->code;
	const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
	uint16_t ports[UPSTREAMS_MAX];
	struct readable r = { 0 };
	add_place(&r, "/usr/share/ca-certificates"); /* where links of /etc/ssl/certs lead */
	if (set->ca_file)
		add_place(&r, set->ca_file);
	else if (curl->cainfo)
		add_file(&r, curl->cainfo);
	if (set->ca_dir || curl->capath)
		add_place(&r, set->ca_dir ? set->ca_dir : curl->capath);
	for (size_t i = 0; i < set->count; i++) {
		const struct origin *o = &set->origins[i];
		ports[i] = o->port;
		for (size_t j = 0; j < o->nheaders; j++)
			add_file(&r, o->headers[j].file);
	}
	if (restrict_to(&r, ports, set->count, err) < 0)
		return -err->code;
	return load_rules(COUNT_OF(rules) - OF_LOOKUPS, "the helper for upstreams", err);
}

int origin_confine_lookup(struct cj_error *err)
{
	static const char *const places[] = {
		"/etc/hosts",    "/etc/resolv.conf", "/etc/nsswitch.conf",
		"/etc/gai.conf", "/etc/host.conf",   "/etc/ld.so.cache",
		"/lib",          "/lib64",           "/usr/lib",
		"/usr/lib64",    "/usr/local/lib",
	};
	static const uint16_t port = DNS_PORT;
	struct readable r = { 0 };
	for (size_t i = 0; i < COUNT_OF(places); i++)
		add_place(&r, places[i]);
	if (restrict_to(&r, &port, 1, err) < 0)
		return -err->code;
	return load_rules(COUNT_OF(rules), "a lookup for upstreams", err);
}
