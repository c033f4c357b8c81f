/* SPDX-License-Identifier: Apache-2.0 */
/* A plan's jail: limits, root, names; and the plan shown whole. */
#include "tests/profiles/plan/plan_request.h"

#include "runtime/kernel/ids/idmap.h"

static void limits_are_taken_over_in_their_units(void **state)
{
	struct request *r = *state;
	use_command(r);
	set(r, "memory", "1G");
	set(r, "disk", "8M");
	set(r, "on-output-limit", "kill");
	assert_made(r);
	assert_int_equal(r->plan.limits.memory_bytes, 1u << 30);
	assert_int_equal(r->plan.limits.millicpus, 1000);
	assert_int_equal(r->program.limits.wall_ms, 30000);
	assert_int_equal(r->plan.limits.disk_bytes, 8u << 20);
	assert_int_equal(r->plan.root.scratch_bytes, 8u << 20);
	assert_int_equal(r->plan.root.scratch_inodes, 2048);
	assert_int_equal(r->program.limits.on_output_limit, OUTPUT_KILL);
	assert_int_equal(r->plan.root.uid, IDMAP_INSIDE_UID);
	assert_int_equal(r->plan.root.gid, IDMAP_INSIDE_GID);
}

static void files_are_counted_between_two_bounds(void **state)
{
	struct request *r = *state;
	use_command(r);
	set(r, "disk", "64K");
	assert_made(r);
	assert_int_equal(r->plan.root.scratch_inodes, 1024);
	set(r, "disk", "1T");
	assert_made(r);
	assert_int_equal(r->plan.root.scratch_inodes, 1u << 20);
}

static void a_root_is_the_host_or_directories(void **state)
{
	struct request *r = *state;
	char both[128], expected[64];
	use_command(r);
	assert_made(r);
	assert_int_equal(r->plan.root.kind, ROOT_HOST);
	set(r, "rootfs", "./dir");
	assert_made(r);
	assert_int_equal(r->plan.root.kind, ROOT_LAYERS);
	(void)snprintf(expected, sizeof(expected), "%s/dir", top);
	assert_int_equal(r->plan.root.layers.count, 1);
	assert_string_equal(r->plan.root.layers.items[0], expected);
	(void)snprintf(both, sizeof(both), "./dir/sub:%s", expected);
	set(r, "rootfs", both);
	assert_made(r);
	assert_int_equal(r->plan.root.layers.count, 2);
	assert_string_equal(r->plan.root.layers.items[1], expected);
}

static void a_root_that_is_no_directory_is_refused(void **state)
{
	struct request *r = *state;
	use_command(r);
	set(r, "rootfs", "alpine");
	assert_refused(r, "no installed image 'alpine'");
	set(r, "rootfs", "./a.txt");
	assert_refused(r, "--rootfs: './a.txt' is not a directory");
	set(r, "rootfs", "./link");
	assert_refused(r, "symbolic link");
	set(r, "rootfs", "./absent");
	assert_refused(r, "'./absent': No such file");
	set(r, "rootfs", "./dir::./dir/sub");
	assert_refused(r, "empty path");
}

static void a_seccomp_file_is_read_and_named(void **state)
{
	struct request *r = *state;
	use_command(r);
	assert_made(r);
	assert_null(r->plan.policy);
	set(r, "seccomp", "absent.json");
	assert_refused(r, "--seccomp");
	assert_refused(r, "absent.json");
}

static void a_run_has_a_name(void **state)
{
	struct request *r = *state;
	use_command(r);
	assert_made(r);
	assert_int_equal(strlen(r->program.id), 26);
	assert_int_equal(strspn(r->program.id, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"), 26);
	set(r, "id", "mine");
	assert_made(r);
	assert_string_equal(r->program.id, "mine");
}

static void minted_names_differ_and_sort_by_time(void **state)
{
	(void)state;
	char before[PLAN_ID_MAX], after[PLAN_ID_MAX];
	struct cj_error err;
	assert_int_equal(plan_mint_id(before, &err), 0);
	(void)usleep(2000);
	assert_int_equal(plan_mint_id(after, &err), 0);
	assert_true(strcmp(before, after) < 0);
	assert_string_not_equal(before + 10, after + 10);
}

/* --- --dry-run -------------------------------------------------------------- */

static const struct json_node *written(struct request *r, struct arena *a)
{
	struct blob text;
	const struct json_node *root;
	auto_json_writer struct json_writer *w = json_writer_create(true);
	assert_non_null(w);
	plan_write(w, &r->plan, &r->program);
	if (json_writer_take(w, &text, &r->err) < 0)
		fail_msg("%s", r->err.msg);
	if (json_parse("plan", text.bytes, text.size, a, &root, &r->err) < 0)
		fail_msg("%s in %s", r->err.msg, text.bytes);
	return root;
}

static const struct json_node *at(const struct json_node *root, const char *one, const char *two)
{
	const struct json_node *node = json_get(root, one);
	if (node && two)
		node = json_get(node, two);
	if (!node)
		fail_msg("the plan has no %s.%s", one, two ? two : "");
	return node;
}

static void the_plan_is_shown_whole(void **state)
{
	static const char *const places[][2] = {
		{ "schema", NULL },
		{ "profile", "name" },
		{ "profile", "sha256" },
		{ "root", "kind" },
		{ "root", "layers" },
		{ "root", "writable" },
		{ "root", "noexec_scratch" },
		{ "root", "tty" },
		{ "root", "scratch_bytes" },
		{ "root", "scratch_inodes" },
		{ "root", "binds" },
		{ "root", "hostname" },
		{ "root", "uid" },
		{ "root", "gid" },
		{ "limits", "memory_bytes" },
		{ "limits", "cpus" },
		{ "limits", "pids" },
		{ "limits", "wall_ms" },
		{ "limits", "cpu_ms" },
		{ "limits", "nofile" },
		{ "limits", "fsize_bytes" },
		{ "limits", "output_bytes" },
		{ "limits", "on_output_limit" },
		{ "network", "mode" },
		{ "network", "uplink" },
		{ "network", "start" },
		{ "network", "allow" },
		{ "network", "allow_by" },
		{ "network", "names" },
		{ "network", "allow_private" },
		{ "network", "connect_ports" },
		{ "seccomp", "profile" },
		{ "seccomp", "notes" },
		{ "warnings", NULL },
		{ "cgroup_parent", NULL },
		{ "strict", NULL },
		{ "reduced", NULL },
		{ "tty", NULL },
		{ "program", "id" },
		{ "program", "argv" },
		{ "program", "env" },
		{ "program", "workdir" },
		{ "program", "code" },
		{ "program", "args_json" },
		{ "program", "files" },
		{ "program", "interactive" },
		{ "program", "collect_artifacts" },
		{ "program", "own_interpreter" },
	};
	struct request *r = *state;
	auto_arena struct arena a = { 0 };
	use_command(r);
	assert_made(r);
	const struct json_node *root = written(r, &a);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		(void)at(root, places[i][0], places[i][1]);
}

static void the_shown_plan_says_what_was_planned(void **state)
{
	struct request *r = *state;
	auto_arena struct arena a = { 0 };
	use_interpreter(r);
	set(r, "code", "print(1)");
	set(r, "env", "A=\xff");
	set(r, "cpus", "0.5");
	set(r, "ro-bind", "/usr/share:/s");
	set(r, "file", "a.txt");
	set(r, "strict", NULL);
	assert_made(r);
	const struct json_node *root = written(r, &a);
	assert_string_equal(at(root, "limits", "cpus")->text, "0.5");
	assert_true(at(root, "strict", NULL)->boolean);
	const struct json_node *bind = at(root, "root", "binds")->child;
	assert_string_equal(json_get(bind, "kind")->text, "read-only");
	assert_string_equal(json_get(bind, "target")->text, "/s");
	assert_string_equal(at(root, "program", "files")->child->child->next->text, "/box/a.txt");
	const struct json_node *code = at(root, "program", "code");
	assert_string_equal(json_get(code, "source")->text, "string");
	assert_string_equal(json_get(code, "text")->text, "print(1)");
	assert_string_equal(at(root, "program", "argv")->child->next->next->text, "/box/main.py");
}

static void a_reduced_jail_has_nothing_that_needs_namespaces(void **state)
{
	static const struct {
		const char *setting, *value, *words;
	} rows[] = {
		{ "network", "public", "'--reduced' has no '--network public'" },
		{ "connect", "tcp:127.0.0.1:1", "no '--connect'" },
		{ "upstream", "a=https://example.org", "no '--upstream'" },
		{ "ro-bind", "/usr/share:/s", "no '--ro-bind'" },
		{ "bind", "/usr/share:/s", "no '--bind'" },
		{ "overlay", "/usr/share:/s", "no '--overlay'" },
		{ "tmpfs", "/s", "no '--tmpfs'" },
		{ "writable", NULL, "no '--writable'" },
		{ "noexec", NULL, "no '--noexec'" },
		{ "rootfs", "/usr", "no '--rootfs'" },
		{ "seccomp", "absent.json", "no '--seccomp'" },
		{ "strict", NULL, "'--reduced' and '--strict' exclude each other" },
		{ "tty", NULL, "'--reduced' and '--tty' exclude each other" },
		{ "setup", "true", "exclude each other" },
		{ "venv", "x", "exclude each other" },
		{ "project", "x", "exclude each other" },
		{ "remote", "/x.sock", "exclude each other" },
	};
	struct request *r = *state;
	use_command(r);
	assert_made(r);
	assert_false(r->plan.reduced);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		config_fini(&r->c);
		config_init(&r->c);
		set(r, "reduced", NULL);
		assert_made(r);
		assert_true(r->plan.reduced);
		set(r, rows[i].setting, rows[i].value);
		assert_refused(r, rows[i].words);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		REQUEST_TEST(limits_are_taken_over_in_their_units),
		REQUEST_TEST(a_reduced_jail_has_nothing_that_needs_namespaces),
		REQUEST_TEST(files_are_counted_between_two_bounds),
		REQUEST_TEST(a_root_is_the_host_or_directories),
		REQUEST_TEST(a_root_that_is_no_directory_is_refused),
		REQUEST_TEST(a_seccomp_file_is_read_and_named),
		REQUEST_TEST(a_run_has_a_name),
		REQUEST_TEST(minted_names_differ_and_sort_by_time),
		REQUEST_TEST(the_plan_is_shown_whole),
		REQUEST_TEST(the_shown_plan_says_what_was_planned),
	};
	return cmocka_run_group_tests(tests, tree_setup, tree_teardown);
}
