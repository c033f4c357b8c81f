/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: arena_alloc arena_array arena_strdup arena_strndup arena_printf strings_add */
/* WRAP: malloc calloc realloc json_parse libexec_start */
/* WRAP: nlmsg_alloc_simple nl_addr_build rtnl_link_veth_alloc rtnl_link_alloc rtnl_addr_alloc */
/* WRAP: rtnl_neigh_alloc rtnl_route_alloc rtnl_route_nh_alloc rtnl_link_build_add_request */
/*
 * A jail when there is no memory, in the supervisor and in init (which is its fork): each
 * allocation is refused once.  Either the run fails and says so, or it went as it should; and
 * nothing is left.
 */
#include "tests/jail/whole_jail.h"
#include "tests/netns/gateway_here.h"
#include "tests/no_memory.h"

#include <sys/mman.h>

#include <netlink/errno.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/link/veth.h>
#include <netlink/route/neighbour.h>
#include <netlink/route/route.h>

#include "runtime/kernel/seccomp/filter.h"

/* yajl ends the process where it gets no memory (runtime/base/json/json.c says why). */
static bool is_yajl;

NO_MEMORY(void *, calloc, (size_t count, size_t size), (count, size), NULL)

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
	return !is_yajl && is_next(ENOMEM) ? NULL : __real_realloc(old, size);
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return !is_yajl && is_next(ENOMEM) ? NULL : __real_malloc(size);
}

int __real_json_parse(const char *name, const char *text, size_t size, struct arena *a,
		      const struct json_node **out, struct cj_error *err);
int __wrap_json_parse(const char *name, const char *text, size_t size, struct arena *a,
		      const struct json_node **out, struct cj_error *err);
int __wrap_json_parse(const char *name, const char *text, size_t size, struct arena *a,
		      const struct json_node **out, struct cj_error *err)
{
	is_yajl = true;
	int rc = __real_json_parse(name, text, size, a, out, err);
	is_yajl = false;
	return rc;
}

/* libnl's */
NO_MEMORY(struct nl_msg *, nlmsg_alloc_simple, (int type, int flags), (type, flags), NULL)
NO_MEMORY(struct nl_addr *, nl_addr_build, (int family, const void *bytes, size_t size),
	  (family, bytes, size), NULL)
NO_MEMORY(struct rtnl_link *, rtnl_link_veth_alloc, (void), (), NULL)
NO_MEMORY(struct rtnl_link *, rtnl_link_alloc, (void), (), NULL)
NO_MEMORY(struct rtnl_addr *, rtnl_addr_alloc, (void), (), NULL)
NO_MEMORY(struct rtnl_neigh *, rtnl_neigh_alloc, (void), (), NULL)
NO_MEMORY(struct rtnl_route *, rtnl_route_alloc, (void), (), NULL)
NO_MEMORY(struct rtnl_nexthop *, rtnl_route_nh_alloc, (void), (), NULL)
NO_MEMORY(int, rtnl_link_build_add_request, (struct rtnl_link * l, int flags, struct nl_msg **out),
	  (l, flags, out), -NLE_NOMEM)

/* --- a whole run ------------------------------------------------------------------------- */

/* Code, arguments, a file, output, a refused call. */
static int run_all(struct jail *jail, struct outcome *out, struct cj_error *err)
{
	static const char *words[] = { "/bin/sh", "/box/main.sh", NULL };
	static const struct copy_spec files[] = {
		{ .source = "/etc/passwd", .target = "/box/passwd" },
		{ .target = "/box/bytes", .bytes = "a", .size = 1 },
	};
	const struct jail_io io = {
		.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .tty_fd = -1, .hangup_fd = -1
	};
	static const char code[] = "head -c 9000 /dev/zero; unshare -U true; exit 3";
	const struct program program = {
		.workdir = "/box",
		.argv = { words, 2 },
		.code_source = CODE_STRING,
		.code_name = "-c",
		.code_text = code,
		.code_size = sizeof(code) - 1,
		.code_path = "/box/main.sh",
		.args_json = "{}",
		.files = files,
		.nfiles = 2,
	};
	if (jail_start(jail, &program, &io, err) < 0)
		return -err->code;
	return jail_wait(jail, out, err);
}

static int run_once(const struct plan *plan, struct outcome *out, struct cj_error *err)
{
	struct jail *jail = NULL;
	*calls = 0;
	is_armed = true;
	int rc = jail_prepare(plan, unique_id(), &jail, err);
	if (rc == 0)
		rc = run_all(jail, out, err);
	jail_destroy(&jail);
	is_armed = false;
	return rc;
}

/* Init goes on counting where it was forked, and so long may we be behind. */
#define INIT_MAY_ALLOCATE_MORE 120

static void every_allocation_that_fails_fails_the_run_or_changes_nothing(void **state)
{
	(void)state;
	static const uint16_t port = 8080;
	struct plan plan = simple_plan();
	plan.network.mode = NETWORK_PUBLIC;
	plan.network.uplink = UPLINK_NONE;
	plan.network.starts_early = true;
	plan.network.ports = &port;
	plan.network.nports = 1;
	unsigned failures = 0;
	/* The gateway's processes, which are forks of ours, go on counting. */
	calls =
	    mmap(NULL, sizeof(*calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(calls, MAP_FAILED);
	fail_at = 1;
	for (bool is_over = false; !is_over; fail_at++) {
		unsigned long before = open_descriptors();
		struct cj_error err = { 0 };
		struct outcome out;
		outcome_init(&out, "memory", 4096);
		int rc = run_once(&plan, &out, &err);
		is_over = *calls + INIT_MAY_ALLOCATE_MORE < fail_at;
		if (rc < 0 && !strstr(err.msg, "Cannot allocate memory"))
			print_error("allocation %d: %s\n", fail_at, err.msg);
		assert_true(rc == 0 || strstr(err.msg, "Cannot allocate memory"));
		assert_true(rc < 0 || (out.status == STATUS_EXITED && out.exit_code == 3));
		assert_true(!is_over || rc == 0);
		failures += rc < 0;
		outcome_fini(&out);
		assert_nothing_held(before);
	}
	print_message("%d allocations, %u of them fatal\n", *calls, failures);
	assert_true(failures > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_allocation_that_fails_fails_the_run_or_changes_nothing),
	};
	return RUN_TESTS_OF_JAILS(tests);
}
