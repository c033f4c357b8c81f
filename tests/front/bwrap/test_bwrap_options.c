/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of bubblewrap, and what excludes what. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <linux/capability.h>
#include <linux/sched.h>

#include "runtime/front/bwrap/bwrap.h"

#define USER 1000

struct parsed {
	struct arena arena;
	struct bwrap_config config;
	struct cj_error err;
};

static int fake_read(int fd, struct arena *a, char **out_text, size_t *out_size,
		     struct cj_error *err)
{
	static const char text[] = "--dir\0/from\0--args\0003";
	if (fd == 9)
		return cj_fail(err, EBADF, "read");
	*out_text = arena_alloc(a, sizeof(text));
	assert_non_null(*out_text);
	memcpy(*out_text, text, sizeof(text));
	*out_size = fd == 8 ? sizeof(text) : 12; /* 8: with another --args */
	return 0;
}

/* Parses and checks as an ordinary user; returns 0 or -errno. */
static int parse(struct parsed *p, const char *const *args, uid_t caller)
{
	p->err = (struct cj_error){ 0 };
	if (bwrap_parse(args, fake_read, &p->arena, &p->config, &p->err) < 0)
		return -p->err.code;
	return p->config.request == BWRAP_RUN ? bwrap_check(&p->config, caller, caller, &p->err)
					      : 0;
}

#define PARSE(p, caller, ...) parse(p, (const char *const[]){ __VA_ARGS__, NULL }, caller)

static void every_option_is_done_or_refused_with_a_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < bwrap_option_count; i++) {
		const struct bwrap_option *o = &bwrap_options[i];
		assert_memory_equal(o->name, "--", 2);
		assert_true(strlen(o->help) > 10);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(o->name, bwrap_options[k].name);
		if (o->take)
			continue;
		struct parsed p = { 0 };
		assert_true(PARSE(&p, USER, o->name, "5", "5", "5", "true") < 0);
		assert_non_null(strstr(p.err.msg, o->name));
		assert_non_null(strstr(p.err.msg, " is refused: "));
		assert_non_null(strstr(o->help, "; ")); /* what to do instead */
		arena_fini(&p.arena);
	}
	assert_int_equal(bwrap_option_count, 67 + 1 + 7); /* of 0.11, --not-..., ours */
}

static void operations_keep_the_order_of_the_arguments(void **state)
{
	(void)state;
	struct parsed p = { 0 };
	assert_int_equal(PARSE(&p, USER, "--bind", "/a", "/b", "--perms", "0700", "--size", "5",
			       "--tmpfs", "t", "--ro-bind-try", "/c", "/d", "--args", "7",
			       "--symlink", "x", "/y", "--ro-bind-data", "4", "/z", "--chmod",
			       "0755", "/q", "--", "cmd", "--dir"),
			 0);
	const struct bwrap_op *op = p.config.ops;
	assert_int_equal(p.config.nops, 7);
	assert_true(op[0].kind == BWRAP_BIND && !op[0].is_read_only && !op[0].has_devices);
	assert_string_equal(op[0].source, "/a");
	assert_true(op[1].kind == BWRAP_TMPFS && op[1].perms == 0700 && op[1].size == 5);
	assert_string_equal(op[1].dest, "/t");
	assert_true(op[2].is_read_only && op[2].may_be_missing && op[2].perms == -1);
	assert_string_equal(op[3].dest, "/from"); /* of --args */
	assert_string_equal(op[4].source, "x");
	assert_true(op[5].kind == BWRAP_BIND_DATA && op[5].fd == 4 && op[5].is_read_only);
	assert_true(op[6].kind == BWRAP_CHMOD && op[6].perms == 0755);
	assert_string_equal(p.config.argv[1], "--dir");
	arena_fini(&p.arena);
}

static void an_overlay_has_the_sources_before_it(void **state)
{
	(void)state;
	struct parsed p = { 0 };
	assert_int_equal(PARSE(&p, USER, "--overlay-src", "/a", "--overlay-src", "/b", "--overlay",
			       "/rw", "/work", "m", "--overlay-src", "/c", "--tmp-overlay", "/n",
			       "true"),
			 0);
	const struct bwrap_op *op = p.config.ops;
	assert_int_equal(p.config.nops, 2);
	assert_true(op[0].kind == BWRAP_OVERLAY && op[0].layers.count == 2);
	assert_string_equal(op[0].layers.items[1], "/b");
	assert_string_equal(op[0].source, "/rw");
	assert_string_equal(op[0].work, "/work");
	assert_string_equal(op[0].dest, "/m");
	assert_true(op[1].layers.count == 1 && !op[1].source && !op[1].is_read_only);
	assert_string_equal(op[1].layers.items[0], "/c");
	arena_fini(&p.arena);
}

static void a_user_always_gets_a_user_namespace_and_root_only_if_asked(void **state)
{
	(void)state;
	struct parsed p = { 0 };
	assert_int_equal(PARSE(&p, USER, "true"), 0);
	assert_int_equal(p.config.namespaces, CLONE_NEWUSER);
	assert_int_equal(PARSE(&p, 0, "true"), 0);
	assert_int_equal(p.config.namespaces, 0);
	assert_int_equal(PARSE(&p, USER, "--unshare-all", "--share-net", "true"), 0);
	assert_int_equal(p.config.namespaces, CLONE_NEWUSER | CLONE_NEWIPC | CLONE_NEWPID |
						  CLONE_NEWUTS | CLONE_NEWCGROUP);
	assert_int_equal(p.config.optional, CLONE_NEWCGROUP);
	assert_int_equal(PARSE(&p, 0, "--unshare-all", "--unshare-cgroup", "true"), 0);
	assert_int_equal(p.config.optional, CLONE_NEWUSER);
	arena_fini(&p.arena);
}

static void capabilities_change_in_the_order_of_the_arguments(void **state)
{
	(void)state;
	struct parsed p = { 0 };
	assert_int_equal(PARSE(&p, USER, "--cap-add", "ALL", "--cap-drop", "CAP_KILL", "true"), 0);
	assert_true(p.config.caps_added == ~(UINT64_C(1) << CAP_KILL) && p.config.caps_kept == 0);
	assert_int_equal(PARSE(&p, USER, "--cap-add", "CAP_KILL", "--cap-drop", "ALL", "true"), 0);
	assert_true(p.config.caps_added == 0 && p.config.caps_kept == 0 && p.config.sets_caps);
	assert_int_equal(
	    PARSE(&p, USER, "--cap-drop", "CAP_KILL", "--cap-add", "cap_chown", "true"), 0);
	assert_int_equal(p.config.caps_added, UINT64_C(1) << CAP_CHOWN);
	assert_true(!(p.config.caps_kept >> CAP_KILL & 1) && p.config.caps_kept >> CAP_SETUID & 1);
	arena_fini(&p.arena);
}

#define LATE                                                                                       \
	"--overlay-src must be followed by another --overlay-src or one of --overlay, "            \
	"--tmp-overlay, or --ro-overlay"
static void what_is_wrong_is_refused_with_bubblewraps_own_sentence(void **state)
{
	(void)state;
	static const struct {
		const char *args[6], *message;
	} rows[] = {
		{ { "--foo", "x" }, "Unknown option --foo" },
		{ { "--bind", "/a" }, "--bind takes two arguments" },
		{ { "--dir" }, "--dir takes an argument" },
		{ { "--file", "-1", "/x", "x" }, "Invalid fd: -1" },
		{ { "--uid", "2147483648", "x" }, "Invalid uid: 2147483648" },
		{ { "--gid", "1x", "x" }, "Invalid gid: 1x" },
		{ { "--perms", "10000", "--dir", "/x", "x" },
		  "--perms takes an octal argument <= 07777" },
		{ { "--perms", "", "--dir", "/x", "x" },
		  "--perms takes an octal argument <= 07777" },
		{ { "--perms", "0700", "--bind", "/a", "/b" },
		  "--perms must be followed by an option that creates a file" },
		{ { "--perms", "0700", "x" },
		  "--perms must be followed by an option that creates a file" },
		{ { "--size", "1", "--dir", "/x", "x" }, "--size must be followed by --tmpfs" },
		{ { "--size", "1", "--unshare-pid", "--tmpfs", "/x", "x" },
		  "--size must be followed by --tmpfs" },
		{ { "--perms", "0700", "--unshare-pid", "--dir", "/x", "x" },
		  "--perms must be followed by an option that creates a file" },
		{ { "--size", "0", "--tmpfs", "/x", "x" },
		  "--size takes a non-zero number of bytes" },
		{ { "--tmp-overlay", "/x", "x" },
		  "--tmp-overlay requires at least one --overlay-src" },
		{ { "--overlay-src", "/a", "--ro-overlay", "/x", "x" },
		  "--ro-overlay requires at least two --overlay-src" },
		{ { "--overlay-src", "/a", "--dir", "/x", "x" }, LATE },
		{ { "--overlay-src", "/a", "--unshare-pid", "x" }, LATE },
		{ { "--overlay-src", "/a", "x" }, LATE },
		{ { "--overlay", "/a", "/b" }, "--overlay takes three arguments" },
		{ { "--dir", "", "x" }, "an empty text is not a path" },
		{ { "--setenv", "A=B", "c", "x" }, "'A=B' is not the name of a variable" },
		{ { "--cap-add", "CAP_X", "x" }, "unknown cap: CAP_X" },
		{ { "--seccomp", "3", "--add-seccomp-fd", "4", "x" },
		  "--seccomp cannot be combined with --add-seccomp-fd" },
		{ { "--args", "8", "x" }, "--args not supported in arguments file" },
		{ { "--hostname", "h", "x" }, "Specifying --hostname requires --unshare-uts" },
		{ { "--as-pid-1", "x" }, "Specifying --as-pid-1 requires --unshare-pid" },
		{ { "--dir", "/x" }, "no command; see bwrap --help" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed p = { 0 };
		assert_true(parse(&p, rows[i].args, USER) < 0);
		assert_string_equal(p.err.msg, rows[i].message);
		arena_fini(&p.arena);
	}
	struct parsed p = { 0 };
	assert_true(PARSE(&p, 0, "--uid", "5", "x") < 0);
	assert_string_equal(p.err.msg, "Specifying --uid requires --unshare-user or --userns");
	assert_true(PARSE(&p, 0, "--gid", "5", "x") < 0);
	assert_string_equal(p.err.msg, "Specifying --gid requires --unshare-user or --userns");
	assert_int_equal(PARSE(&p, 0, "--uid", "0", "--gid", "0", "x"), 0); /* its own */
	assert_int_equal(PARSE(&p, USER, "--args", "9", "x"), -EBADF);
	arena_fini(&p.arena);
}

static void the_lowest_limit_is_in_force_whoever_sets_it(void **state)
{
	(void)state;
	struct parsed p = { 0 };
	const struct bwrap_limits *l = &p.config.limits;
	assert_int_equal(PARSE(&p, USER, "true"), 0);
	assert_false(bwrap_limits_watch(l));
	assert_int_equal(PARSE(&p, USER, "--cejail-memory", "1G", "--cejail-memory", "64M",
			       "--cejail-memory", "2G", "--cejail-pids", "7", "--cejail-timeout",
			       "1500ms", "true"),
			 0);
	assert_int_equal(l->values[LIMIT_MEMORY], 64 << 20);
	assert_int_equal(l->values[LIMIT_PIDS], 7);
	assert_int_equal(l->values[LIMIT_WALL], 1500);
	assert_int_equal(l->values[LIMIT_CPU_TIME], 0);
	assert_true(bwrap_limits_watch(l) && p.config.namespaces & CLONE_NEWPID);

	assert_int_equal(bwrap_parse_variable("\t--cejail-pids 5  --cejail-timeout 2s\n", &p.arena,
					      &p.config, &p.err),
			 0);
	assert_int_equal(l->values[LIMIT_PIDS], 5);
	assert_int_equal(l->sources[LIMIT_PIDS], BWRAP_FROM_VARIABLE);
	assert_int_equal(l->values[LIMIT_WALL], 1500);
	assert_int_equal(l->sources[LIMIT_WALL], BWRAP_FROM_LINE);
	assert_string_equal(p.config.argv[0], "true");
	assert_int_equal(bwrap_parse_variable("", &p.arena, &p.config, &p.err), 0);
	static const char *const wrong[] = { "true", "--dir /", "--cejail-pids",
					     "--cejail-pids 5 x", "--cejail-pids 0" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_true(bwrap_parse_variable(wrong[i], &p.arena, &p.config, &p.err) < 0);
	arena_fini(&p.arena);
}

static void what_is_not_shared_stays_so(void **state)
{
	(void)state;
	struct parsed p = { 0 };
	assert_int_equal(PARSE(&p, 0, "--cejail-network", "none", "--share-net", "true"), 0);
	assert_true(p.config.namespaces & CLONE_NEWNET && !(p.config.optional & CLONE_NEWNET));
	assert_false(bwrap_limits_watch(&p.config.limits));
	assert_true(PARSE(&p, 0, "--cejail-seccomp", "file", "true") < 0);
	assert_int_equal(PARSE(&p, 0, "--cejail-seccomp", "default", "true"), 0);
	assert_true(p.config.limits.has_filter);
	arena_fini(&p.arena);
}

static void the_tightest_network_is_in_force_in_any_order(void **state)
{
	(void)state;
	static const struct {
		const char *one, *other;
		enum network_mode mode; /* NETWORK_MODE_COUNT: refused */
		const char *allow;      /* the first of the list */
		size_t count;
	} rows[] = {
		{ "public", "none", NETWORK_NONE, NULL, 0 },
		{ "allow:a.b", "none", NETWORK_NONE, NULL, 0 },
		{ "public", "public", NETWORK_PUBLIC, NULL, 0 },
		{ "public", "allow:a.b:80,c.d", NETWORK_PUBLIC, "a.b:80", 2 },
		{ "allow:c.d", "allow:a.b,c.d", NETWORK_PUBLIC, "c.d", 1 },
		{ "allow:c.d,a.b", "allow:a.b,c.d", NETWORK_PUBLIC, NULL, 2 },
		{ "allow:a.b,c.d", "allow:a.b,e.f", NETWORK_MODE_COUNT, NULL, 0 },
		{ "allow:a.b:80", "allow:a.b", NETWORK_MODE_COUNT, NULL, 0 },
	};
	for (size_t i = 0; i < 2 * (sizeof(rows) / sizeof(rows[0])); i++) {
		const char *const values[] = { rows[i / 2].one, rows[i / 2].other };
		struct parsed p = { 0 };
		const struct bwrap_limits *l = &p.config.limits;
		int rc = PARSE(&p, USER, "--cejail-network", values[i % 2], "--cejail-network",
			       values[1 - i % 2], "true");
		assert_int_equal(rc < 0, rows[i / 2].mode == NETWORK_MODE_COUNT);
		if (rc == 0) {
			assert_int_equal(l->network, rows[i / 2].mode);
			assert_int_equal(l->network == NETWORK_NONE ? 0 : l->allow.count,
					 rows[i / 2].count);
		} else {
			assert_non_null(strstr(p.err.msg, "two allow lists"));
		}
		if (rows[i / 2].allow)
			assert_string_equal(l->allow.items[0], rows[i / 2].allow);
		arena_fini(&p.arena);
	}
}

static void only_the_line_itself_opens_what_it_has_unshared(void **state)
{
	(void)state;
	static const char variable[] = "--cejail-network allow:a.b";
	struct parsed p = { 0 };
	const struct bwrap_limits *l = &p.config.limits;
	assert_int_equal(PARSE(&p, USER, "--unshare-net", "--cejail-network", "public", "true"), 0);
	assert_int_equal(l->network, NETWORK_PUBLIC);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(
		    PARSE(&p, USER, i == 0 ? "--unshare-net" : "--unshare-user", "true"), 0);
		assert_int_equal(bwrap_parse_variable(variable, &p.arena, &p.config, &p.err), 0);
		assert_int_equal(bwrap_check(&p.config, USER, USER, &p.err), 0);
		assert_int_equal(l->network, i == 0 ? NETWORK_NONE : NETWORK_PUBLIC);
		assert_true(p.config.namespaces & CLONE_NEWNET);
	}
	arena_fini(&p.arena);
}

static void a_public_network_needs_namespaces_that_the_command_does_not_own(void **state)
{
	(void)state;
	struct parsed p = { 0 };
	assert_int_equal(
	    PARSE(&p, 0, "--cejail-network", "public", "--unshare-user-try", "--share-net", "true"),
	    0);
	assert_true(bwrap_limits_watch(&p.config.limits));
	const uint64_t all = CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID;
	assert_true((p.config.namespaces & all) == all);
	assert_int_equal(p.config.optional & all, 0);
	assert_true(PARSE(&p, 0, "--cejail-network", "public", "true") < 0);
	assert_string_equal(p.err.hint, "add --unshare-user; or use none");
	assert_true(PARSE(&p, 0, "--cejail-network", "allow:a.b", "--cap-drop", "ALL", "true") < 0);
	assert_int_equal(PARSE(&p, USER, "--cejail-network", "allow:a.b", "true"), 0);
	assert_true(PARSE(&p, USER, "--cejail-network", "public", "--unshare-pid", "--as-pid-1",
			  "true") < 0);
	assert_true(PARSE(&p, USER, "--cejail-network", "allow:", "true") < 0);
	assert_true(PARSE(&p, USER, "--cejail-network", "allow:a.b,,c.d", "true") < 0);
	arena_fini(&p.arena);
}

static void a_limit_of_the_file_needs_a_command_that_cannot_undo_it(void **state)
{
	(void)state;
	struct parsed p = { 0 };
	assert_int_equal(PARSE(&p, 0, "--cejail-pids", "5", "true"), 0);
	p.config.limits.is_ordered = true;
	assert_true(bwrap_check(&p.config, 0, 0, &p.err) < 0);
	assert_int_equal(PARSE(&p, 0, "--cejail-pids", "5", "--cap-drop", "ALL", "true"), 0);
	p.config.limits.is_ordered = true;
	assert_int_equal(bwrap_check(&p.config, 0, 0, &p.err), 0);
	assert_int_equal(PARSE(&p, 0, "--cejail-pids", "5", "--unshare-user-try", "true"), 0);
	p.config.limits.is_ordered = true;
	assert_int_equal(bwrap_check(&p.config, 0, 0, &p.err), 0);
	assert_int_equal(p.config.optional & CLONE_NEWUSER, 0);
	arena_fini(&p.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_option_is_done_or_refused_with_a_reason),
		cmocka_unit_test(operations_keep_the_order_of_the_arguments),
		cmocka_unit_test(an_overlay_has_the_sources_before_it),
		cmocka_unit_test(a_user_always_gets_a_user_namespace_and_root_only_if_asked),
		cmocka_unit_test(capabilities_change_in_the_order_of_the_arguments),
		cmocka_unit_test(the_lowest_limit_is_in_force_whoever_sets_it),
		cmocka_unit_test(what_is_not_shared_stays_so),
		cmocka_unit_test(the_tightest_network_is_in_force_in_any_order),
		cmocka_unit_test(only_the_line_itself_opens_what_it_has_unshared),
		cmocka_unit_test(a_public_network_needs_namespaces_that_the_command_does_not_own),
		cmocka_unit_test(a_limit_of_the_file_needs_a_command_that_cannot_undo_it),
		cmocka_unit_test(what_is_wrong_is_refused_with_bubblewraps_own_sentence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
