/* SPDX-License-Identifier: Apache-2.0 */
/* Where host paths land in the jail, and what may not land there. */
#include "tests/profiles/plan/plan_request.h"

static const struct bind_spec *only_bind(struct request *r)
{
	assert_made(r);
	assert_int_equal(r->plan.root.nbinds, 1);
	return &r->plan.root.binds[0];
}

static void binds_are_mounted_at_their_target(void **state)
{
	struct request *r = *state;
	char source[64];
	use_command(r);
	(void)snprintf(source, sizeof(source), "%s/a.txt", top);
	set(r, "bind", "./a.txt:/data//a/");
	const struct bind_spec *bind = only_bind(r);
	assert_int_equal(bind->kind, BIND_WRITABLE);
	assert_string_equal(bind->source, source);
	assert_string_equal(bind->target, "/data/a");
}

static void a_bind_from_usr_keeps_its_path(void **state)
{
	struct request *r = *state;
	use_command(r);
	set(r, "ro-bind", "/usr/share/");
	const struct bind_spec *bind = only_bind(r);
	assert_int_equal(bind->kind, BIND_READ_ONLY);
	assert_string_equal(bind->source, "/usr/share");
	assert_string_equal(bind->target, "/usr/share");
}

static void an_escaped_colon_is_part_of_a_bind(void **state)
{
	struct request *r = *state;
	use_command(r);
	set(r, "ro-bind", "with\\:colon:x\\:y");
	const struct bind_spec *bind = only_bind(r);
	assert_non_null(strstr(bind->source, "/with:colon"));
	assert_string_equal(bind->target, "/box/x:y");
}

static void binds_are_ordered_so_that_none_hides_another(void **state)
{
	struct request *r = *state;
	use_command(r);
	set(r, "ro-bind", "dir/sub:/data/sub/x");
	set(r, "bind", "dir:/data");
	set(r, "ro-bind", "a.txt:/data/sub");
	assert_made(r);
	assert_string_equal(r->plan.root.binds[0].target, "/data");
	assert_string_equal(r->plan.root.binds[1].target, "/data/sub");
	assert_string_equal(r->plan.root.binds[2].target, "/data/sub/x");
}

/* Each is refused alone; what it says is in the second column. */
static void bad_binds_are_refused(void **state)
{
	static const char *const rows[][3] = {
		{ "ro-bind", "absent", "--ro-bind: find 'absent': No such file" },
		{ "bind", "link:/x", "--bind: 'link' is (or lies behind) a symbolic link" },
		{ "bind", "link/sub:/x", "symbolic link" },
		{ "bind", "dir:/", "'/' can't be a target" },
		{ "bind", "dir:/proc/x", "'/proc/x': /proc is the jail's own" },
		{ "bind", "dir:/dev/shm", "/dev is the jail's own" },
		{ "bind", "dir:/x/../etc", "'..'" },
		{ "bind", "dir:/box", "'/box' is the jail's own" },
		{ "bind", "dir:/tmp/", "'/tmp' is the jail's own" },
		{ "bind", "dir:/x:ro", "too many ':'" },
		{ "bind", "dir:", "empty path" },
		{ "bind", "fifo:/x", "neither a file nor a directory" },
		{ "ro-bind", "/dev/null:/x", "neither a file nor a directory" },
		{ "ro-bind", "/proc:/x", NULL }, /* knowingly: a directory like any other */
		{ "ro-bind", "/usr:/x/", NULL },
		{ "bind", "open.sock:/x", "use --connect unix:" },
		{ "overlay", "dir:/x", NULL },
		{ "overlay", "a.txt:/x", "/a.txt' is not a directory" },
		{ "overlay", "absent:/x", "--overlay: find 'absent': No such file" },
		{ "overlay", "dir:/tmp", "'/tmp' is the jail's own" },
	};
	struct request *r = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		config_fini(&r->c);
		use_command(r);
		set(r, rows[i][0], rows[i][1]);
		if (rows[i][2])
			assert_refused(r, rows[i][2]);
		else
			assert_made(r);
	}
}

static void there_may_be_so_many_overlays(void **state)
{
	struct request *r = *state;
	char text[32];
	use_command(r);
	for (int i = 0; i < OVERLAYS_MAX; i++) {
		(void)snprintf(text, sizeof(text), "dir:/o%d", i);
		set(r, "overlay", text);
	}
	assert_made(r);
	assert_int_equal(r->plan.root.nbinds, OVERLAYS_MAX);
	assert_int_equal(r->plan.root.binds[0].kind, BIND_OVERLAY);
	set(r, "overlay", "dir:/more");
	assert_refused(r, "--overlay: 17 of them; a jail can have 16");
}

static void a_socket_is_bound_under_its_own_kind(void **state)
{
	struct request *r = *state;
	char text[128];
	use_command(r);
	(void)snprintf(text, sizeof(text), "unix:%s/open.sock:/run/host.sock", top);
	set(r, "connect", text);
	const struct bind_spec *bind = only_bind(r);
	assert_int_equal(bind->kind, BIND_SOCKET);
	assert_string_equal(bind->target, "/run/host.sock");
}

static void bad_sockets_are_refused(void **state)
{
	struct request *r = *state;
	char text[512];
	use_command(r);
	(void)snprintf(text, sizeof(text), "unix:%s/a.txt:/run/x", top);
	set(r, "connect", text);
	assert_refused(r, "is not a socket");

	config_fini(&r->c);
	(void)snprintf(text, sizeof(text), "unix:%s/open.sock:/run/%0120d", top, 1);
	set(r, "connect", text);
	assert_refused(r, "longer than 107 characters");

	config_fini(&r->c);
	(void)snprintf(text, sizeof(text), "unix:%s/closed.sock:/run/x", top);
	set(r, "connect", text);
	if (geteuid() == 0)
		assert_refused(r, "chmod o+w");
	else
		assert_made(r);
}

static void a_copy_goes_to_the_box_by_default(void **state)
{
	static const char *const rows[][2] = {
		{ "a.txt", "/box/a.txt" },           { "./dir/sub/", "/box/sub" },
		{ "a.txt:b.txt", "/box/b.txt" },     { "a.txt:/tmp/x/b", "/tmp/x/b" },
		{ "a.txt:/tmp/x/", "/tmp/x/a.txt" }, { "dir:/box", "/box" },
		{ "dir/sub/..", "/box/dir" },
	};
	struct request *r = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		config_fini(&r->c);
		use_command(r);
		set(r, "file", rows[i][0]);
		assert_made(r);
		assert_int_equal(r->program.nfiles, 1);
		assert_string_equal(r->program.files[0].target, rows[i][1]);
		assert_memory_equal(r->program.files[0].source, top, strlen(top));
	}
}

static void bad_copies_are_refused(void **state)
{
	static const char *const rows[][2] = {
		{ "absent", "--file: find " },
		{ "link.txt", "symbolic link" },
		{ "fifo", "neither a file nor a directory" },
		{ "a.txt:/etc/x", "add --writable" },
		{ "a.txt:/box", "'/box' is the jail's own" },
		{ "a.txt:/dev/shm/x", "/dev is the jail's own" },
		{ "a.txt:../x", "'..'" },
		{ "/", "'/' can't be copied in" },
	};
	struct request *r = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		config_fini(&r->c);
		use_command(r);
		set(r, "file", rows[i][0]);
		assert_refused(r, rows[i][1]);
	}
	config_fini(&r->c);
	set(r, "file", "a.txt:/etc/x");
	set(r, "writable", NULL);
	assert_made(r);
}

static void copies_of_a_request_go_to_the_box_by_default(void **state)
{
	static const char *const rows[][2] = {
		{ "d/x", "/box/d/x" }, { "/tmp/./x", "/tmp/x" }, { "/box", NULL },
		{ "/etc/x", NULL },    { "../x", NULL },         { "", NULL },
	};
	struct request *r = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct copy_spec copy = { .target = rows[i][0], .bytes = "ab", .size = 2 };
		config_fini(&r->c);
		use_command(r);
		set(r, "file", "a.txt");
		r->inv.copies = &copy;
		r->inv.ncopies = 1;
		if (!rows[i][1]) {
			assert_refused(r, "files: ");
			continue;
		}
		assert_made(r);
		assert_int_equal(r->program.nfiles, 2);
		assert_null(r->program.files[1].source);
		assert_string_equal(r->program.files[1].target, rows[i][1]);
		assert_int_equal(r->program.files[1].size, 2);
	}
}

/* Two settings that want the same place, or one that would write into another. */
static void nothing_lands_on_anything_else(void **state)
{
	static const char *const rows[][5] = {
		{ "file", "a.txt:x", "file", "args.json:x", "both want '/box/x'" },
		{ "bind", "dir:/x", "ro-bind", "dir:/x", "both want '/x'" },
		{ "bind", "dir:/box/main.py", "code", "1", "both want '/box/main.py'" },
		{ "bind", "dir:/box/x", "file", "a.txt:x/y", "into the host's" },
		{ "file", "a.txt:main.py", "code", "1", "'the program's code'" },
		{ "file", "args.json", "args-json", "1", "both want '/box/args.json'" },
		{ "bind", "dir:/box/out", "artifacts", "o", "both want '/box/out'" },
		{ "file", "a.txt:out", "nofile", "99", "'/box/out' is a directory in every jail" },
		{ "bind", "a.txt:/box/out", "nofile", "99", "'/box/out' is a directory" },
		{ "bind", "dir:/box/x", "file", "a.txt:xy", NULL },
		{ "overlay", "dir:/o", "file", "a.txt:/o/y", NULL },
		{ "overlay", "dir:/o", "file", "a.txt:/o", "both want '/o'" },
		{ "overlay", "dir:/o", "file", "a.txt:/op", "read-only root" },
		{ "overlay", "dir:/o", "ro-bind", "dir:/o", "both want '/o'" },
		{ "file", "dir:/box", "file", "dir/sub:/box", NULL },
	};
	struct request *r = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		config_fini(&r->c);
		r->inv = (struct invocation){ 0 };
		use_interpreter(r);
		set(r, rows[i][0], rows[i][1]);
		set(r, rows[i][2], rows[i][3]);
		if (!r->c.has_code)
			use_command(r);
		if (rows[i][4])
			assert_refused(r, rows[i][4]);
		else
			assert_made(r);
	}
}

static void the_code_can_not_be_the_directory_out(void **state)
{
	struct request *r = *state;
	use_interpreter(r);
	set_key(r, "file_name", "out");
	set(r, "code", "1");
	assert_refused(r, "'/box/out' is a directory in every jail");
}

static void paths_of_artifacts_lie_below_the_box_or_an_overlay(void **state)
{
	static const char *const rows[][2] = {
		{ "/o/sub/file", NULL },
		{ "/box/build/log", NULL },
		{ "build//log/", NULL }, /* relative to /box */
		{ "/usr/bin/sh", "'/usr/bin/sh' is neither below /box nor below an --overlay" },
		{ "/o", "neither" },
		{ "/op/x", "neither" },
		{ "/box", "neither" },
		{ "/o/../etc/passwd", "'..'" },
		{ "/box/out/x", "all of /box/out is" },
		{ "/o/sub", "'/o/sub/file' and '/o/sub' are the same or lie in one another" },
	};
	struct request *r = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		config_fini(&r->c);
		use_command(r);
		set(r, "overlay", "dir:/o");
		if (rows[i][1])
			set(r, "artifact-path", "/o/sub/file");
		set(r, "artifact-path", rows[i][0]);
		if (rows[i][1])
			assert_refused(r, rows[i][1]);
		else
			assert_made(r);
	}
	assert_int_equal(r->program.artifact_paths.count, 1);
}

static void a_value_lies_below_the_box_or_an_overlay(void **state)
{
	static const char *const rows[][2] = {
		{ "/box/out/result.json", NULL },
		{ "/box/v", NULL },
		{ "/o/v", NULL },
		{ "/box", "'/box' is neither below /box nor below an --overlay" },
		{ "/tmp/v", "'/tmp/v' is neither below /box nor below an --overlay" },
		{ "/o", "'/o' is neither below /box nor below an --overlay" },
	};
	struct request *r = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		config_fini(&r->c);
		use_command(r);
		set(r, "overlay", "dir:/o");
		set(r, "value-path", rows[i][0]);
		if (rows[i][1]) {
			assert_refused(r, rows[i][1]);
			continue;
		}
		assert_made(r);
		assert_string_equal(r->program.value_path, rows[i][0]);
	}
	config_fini(&r->c);
	use_command(r);
	set(r, "value-path", "none");
	assert_made(r);
	assert_null(r->program.value_path);
}

static void a_text_becomes_a_file_of_the_box(void **state)
{
	static const struct {
		const char *text, *target, *content;
	} good[] = {
		{ "a=b", "/box/a", "b" },
		{ "d/a=", "/box/d/a", "" },
		{ "/tmp/a==b=c\n", "/tmp/a", "=b=c\n" },
	};
	static const char *const bad[][2] = {
		{ "d/=b", "'d/=b' is not DST=TEXT" },
		{ "../a=b", "'..'" },
		{ "/proc/a=b", "/proc" },
		{ "/usr/a=b", "lies in the read-only root" },
		{ "/box/out=b", "/box/out" },
	};
	struct request *r = *state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		config_fini(&r->c);
		use_command(r);
		set(r, "file-text", good[i].text);
		assert_made(r);
		const struct copy_spec *copy = &r->program.files[0];
		assert_null(copy->source);
		assert_string_equal(copy->target, good[i].target);
		assert_int_equal(copy->size, strlen(good[i].content));
		assert_memory_equal(copy->bytes, good[i].content, copy->size);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		config_fini(&r->c);
		use_command(r);
		set(r, "file-text", bad[i][0]);
		assert_refused(r, bad[i][1]);
	}
}

static void standard_input_is_one_file_and_only_the_callers(void **state)
{
	struct request *r = *state;
	use_command(r);
	set(r, "file", "-:in");
	assert_refused(r, "standard input is not the caller's here");
	r->inv.has_stdin = true;
	assert_made(r);
	assert_true(r->program.files[0].is_stdin);
	assert_string_equal(r->program.files[0].target, "/box/in");
	set(r, "file", "-:other");
	assert_refused(r, "standard input can be one file only");
	config_fini(&r->c);
	set(r, "file", "-");
	assert_refused(r, "'-' has no name for the file in the jail");
	config_fini(&r->c);
	set(r, "file", "-:dir/");
	assert_refused(r, "has no name for the file");
	config_fini(&r->c);
	set(r, "file", "-:in");
	set(r, "interactive", NULL);
	assert_refused(r, "'--file -' and '--interactive' exclude each other");
	config_fini(&r->c);
	set(r, "file", "a.txt:in");
	set(r, "file-text", "in=x");
	assert_refused(r, "both want '/box/in'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		REQUEST_TEST(binds_are_mounted_at_their_target),
		REQUEST_TEST(a_bind_from_usr_keeps_its_path),
		REQUEST_TEST(an_escaped_colon_is_part_of_a_bind),
		REQUEST_TEST(binds_are_ordered_so_that_none_hides_another),
		REQUEST_TEST(bad_binds_are_refused),
		REQUEST_TEST(there_may_be_so_many_overlays),
		REQUEST_TEST(a_socket_is_bound_under_its_own_kind),
		REQUEST_TEST(bad_sockets_are_refused),
		REQUEST_TEST(a_copy_goes_to_the_box_by_default),
		REQUEST_TEST(bad_copies_are_refused),
		REQUEST_TEST(copies_of_a_request_go_to_the_box_by_default),
		REQUEST_TEST(nothing_lands_on_anything_else),
		REQUEST_TEST(paths_of_artifacts_lie_below_the_box_or_an_overlay),
		REQUEST_TEST(a_text_becomes_a_file_of_the_box),
		REQUEST_TEST(standard_input_is_one_file_and_only_the_callers),
		REQUEST_TEST(a_value_lies_below_the_box_or_an_overlay),
		REQUEST_TEST(the_code_can_not_be_the_directory_out),
	};
	return cmocka_run_group_tests(tests, tree_setup, tree_teardown);
}
