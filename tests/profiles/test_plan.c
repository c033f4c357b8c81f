/* SPDX-License-Identifier: Apache-2.0 */
/* From what was asked for to what will be done, and what is refused on the way. */
#include "profiles/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "profiles/settings.h"
#include "runtime/base/fd.h"
#include "runtime/base/scope.h"
#include "runtime/jail/idmap.h"

/* One request and its answer. */
struct request {
	struct config c;
	struct invocation inv;
	struct plan plan;
	struct program program;
	struct cj_error err;
};

static char top[] = "/tmp/cejail-plan-XXXXXX";

static void put_file(const char *path, const char *text)
{
	struct cj_error err;
	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text), path, &err), 0);
}

/* A bound socket at `path`; the inode stays when the descriptor is closed. */
static int put_socket(const char *path, mode_t mode)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return chmod(path, mode);
}

/* The tree every test plans with; tests only read it. */
static int tree_setup(void **state)
{
	(void)state;
	if (!mkdtemp(top) || chdir(top) < 0)
		return -1;
	put_file("a.txt", "a");
	put_file("args.json", "{\"n\": 1}");
	put_file("bad.json", "{\"n\": }");
	put_file("with:colon", "x");
	if (mkdir("dir", 0755) < 0 || mkdir("dir/sub", 0755) < 0 || mkfifo("fifo", 0644) < 0)
		return -1;
	if (symlink("dir", "link") < 0 || symlink("a.txt", "link.txt") < 0)
		return -1;
	return put_socket("open.sock", 0666) < 0 || put_socket("closed.sock", 0600) < 0 ? -1 : 0;
}

static int tree_teardown(void **state)
{
	(void)state;
	static const char *const names[] = { "a.txt",      "args.json", "bad.json",
					     "with:colon", "fifo",      "link",
					     "link.txt",   "open.sock", "closed.sock" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlink(names[i]);
	(void)rmdir("dir/sub");
	(void)rmdir("dir");
	return chdir("/") == 0 && rmdir(top) == 0 ? 0 : -1;
}

static int request_setup(void **state)
{
	static struct request r;
	memset(&r, 0, sizeof(r));
	config_init(&r.c);
	*state = &r;
	return 0;
}

static int request_teardown(void **state)
{
	struct request *r = *state;
	config_fini(&r->c);
	return 0;
}

static void set(struct request *r, const char *option, const char *text)
{
	if (setting_set(&r->c, setting_by_option(option), option, text, &r->err) < 0)
		fail_msg("%s", r->err.msg);
}

static void set_key(struct request *r, const char *key, const char *text)
{
	if (setting_set(&r->c, setting_by_key(key), key, text, &r->err) < 0)
		fail_msg("%s", r->err.msg);
}

/* A profile that runs "run -x FILE ARGS". */
static void use_interpreter(struct request *r)
{
	static const char *const words[] = { "run", "-x", "{file}", "{args}" };
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		set_key(r, "command", words[i]);
	set_key(r, "extensions", ".py");
	set_key(r, "extensions", ".pyw");
	set_key(r, "file_name", "main.py");
}

static void use_command(struct request *r)
{
	static const char *const words[] = { "true", NULL };
	r->inv.is_command = true;
	r->inv.args = words;
}

static int make(struct request *r)
{
	r->err = (struct cj_error){ 0 };
	return plan_make(&r->c, &r->inv, &r->plan, &r->program, &r->err);
}

static void assert_made(struct request *r)
{
	if (make(r) < 0)
		fail_msg("%s", r->err.msg);
}

static void assert_refused(struct request *r, const char *said)
{
	if (make(r) == 0)
		fail_msg("it was planned; expected '%s'", said);
	if (!strstr(r->err.msg, said) && !strstr(r->err.hint, said))
		fail_msg("'%s (%s)' does not say '%s'", r->err.msg, r->err.hint, said);
}

static void assert_words(const struct strings *list, const char *const *expected)
{
	for (size_t i = 0; i < list->count; i++) {
		assert_non_null(expected[i]);
		assert_string_equal(list->items[i], expected[i]);
	}
	assert_null(expected[list->count]);
}

/* --- the program ------------------------------------------------------------ */

static void a_file_takes_its_place_in_the_command(void **state)
{
	struct request *r = *state;
	const char *const args[] = { "-v", "{file}", "a b", NULL };
	const char *const expected[] = { "run", "-x", "/box/main.py", "-v", "{file}", "a b", NULL };
	use_interpreter(r);
	r->inv.file = "some/tool.py";
	r->inv.args = args;
	assert_made(r);
	assert_words(&r->program.argv, expected);
	assert_int_equal(r->program.code_source, CODE_FILE);
	assert_string_equal(r->program.code_name, "some/tool.py");
	assert_string_equal(r->program.code_path, "/box/main.py");
	assert_string_equal(r->program.workdir, "/box");
}

static void code_can_be_a_string_or_standard_input(void **state)
{
	struct request *r = *state;
	use_interpreter(r);
	r->inv.file = "-";
	assert_made(r);
	assert_int_equal(r->program.code_source, CODE_STDIN);
	assert_string_equal(r->program.code_path, "/box/main.py");
	r->inv.file = NULL;
	set(r, "code", "print(1)");
	assert_made(r);
	assert_int_equal(r->program.code_source, CODE_STRING);
	assert_string_equal(r->program.code_text, "print(1)");
	assert_string_equal(r->program.code_name, "-c");
}

static void a_file_keeps_an_extension_the_profile_knows(void **state)
{
	struct request *r = *state;
	use_interpreter(r);
	r->inv.file = "a.pyw";
	assert_made(r);
	assert_string_equal(r->program.code_path, "/box/main.pyw");
	r->inv.file = "a.rb";
	assert_made(r);
	assert_string_equal(r->program.code_path, "/box/main.py");
	r->inv.file = "a.pyw/x";
	assert_made(r);
	assert_string_equal(r->program.code_path, "/box/main.py");
}

static void a_command_is_taken_as_it_is(void **state)
{
	struct request *r = *state;
	const char *const args[] = { "echo", "{file}", "{args}", "", NULL };
	r->inv.is_command = true;
	r->inv.args = args;
	assert_made(r);
	assert_words(&r->program.argv, args);
	assert_int_equal(r->program.code_source, CODE_NONE);
	assert_null(r->program.code_path);
}

static void a_shell_has_a_terminal_and_input(void **state)
{
	struct request *r = *state;
	const char *const expected[] = { "sh", NULL };
	set_key(r, "shell", "sh");
	r->inv.use_shell = true;
	assert_made(r);
	assert_words(&r->program.argv, expected);
	assert_true(r->plan.tty);
	assert_true(r->plan.root.tty);
	assert_true(r->program.interactive);
}

static void what_cannot_be_run_is_told_with_what_to_give(void **state)
{
	struct request *r = *state;
	const char *const args[] = { "x", NULL };
	const char *const nothing[] = { NULL };
	r->inv.file = "a.py";
	assert_refused(r, "has no 'command'");
	use_interpreter(r);
	r->inv.file = NULL;
	assert_refused(r, "there is nothing to run");
	assert_refused(r, "give FILE");
	r->inv.use_shell = true;
	assert_refused(r, "has no 'shell'");
	set_key(r, "shell", "sh");
	r->inv.args = args;
	assert_refused(r, "no place for {args}");
	r->inv = (struct invocation){ .is_command = true, .args = nothing };
	assert_refused(r, "'--' is followed by no command");
}

static void a_command_without_a_place_for_the_file_is_refused(void **state)
{
	struct request *r = *state;
	set_key(r, "command", "run");
	r->inv.file = "a.py";
	assert_refused(r, "no place for {file}");
}

static void words_execve_cannot_take_are_refused(void **state)
{
	struct request *r = *state;
	static char word[(128u << 10) + 1];
	const char *args[32] = { "x" };
	memset(word, 'a', sizeof(word) - 1);
	args[1] = word;
	r->inv.is_command = true;
	r->inv.args = args;
	assert_refused(r, "longer than 128 KiB");
	word[sizeof(word) - 2] = '\0';
	assert_made(r);
	for (size_t i = 1; i < 10; i++)
		args[i] = word;
	assert_refused(r, "more than 1024 KiB together");
	assert_refused(r, "--args-json");
}

static void only_named_variables_come_from_the_caller(void **state)
{
	struct request *r = *state;
	const char *const environ_list[] = { "A=1", "SECRET=x", "AB=2", NULL };
	const char *const expected[] = { "X=0", "A=1", NULL };
	use_command(r);
	r->inv.environ = environ_list;
	set(r, "env", "X=0");
	set(r, "env", "A");
	assert_made(r);
	assert_words(&r->program.env, expected);
	set(r, "env", "B");
	assert_refused(r, "--env 'B' is not set here");
	assert_refused(r, "--env B=VALUE");
}

static void a_terminal_has_a_type(void **state)
{
	struct request *r = *state;
	const char *const own[] = { "TERM=xterm", NULL };
	const char *const asked[] = { "TERM=vt100", NULL };
	use_command(r);
	set(r, "tty", NULL);
	assert_made(r);
	assert_words(&r->program.env, own);
	set(r, "env", "TERM=vt100");
	memset(&r->program, 0, sizeof(r->program));
	assert_made(r);
	assert_words(&r->program.env, asked);
}

static void arguments_as_data_are_checked_and_kept(void **state)
{
	struct request *r = *state;
	use_command(r);
	set(r, "args-json", "[1, {\"a\": null}]");
	assert_made(r);
	assert_string_equal(r->program.args_json, "[1, {\"a\": null}]");
	set(r, "args-json", "@args.json");
	assert_made(r);
	assert_string_equal(r->program.args_json, "{\"n\": 1}");
	set(r, "args-json", "{\"a\": }");
	assert_refused(r, "--args-json: JSON:1:");
	set(r, "args-json", "@bad.json");
	assert_refused(r, "--args-json: bad.json:1:");
	set(r, "args-json", "@absent.json");
	assert_refused(r, "absent.json");
	set(r, "args-json", "@fifo");
	assert_refused(r, "fifo");
	set(r, "args-json", "@");
	assert_refused(r, "--args-json");
}

static void what_excludes_each_other_is_refused(void **state)
{
	struct request *r = *state;
	use_interpreter(r);
	set(r, "code", "x");
	r->inv.file = "a.py";
	assert_refused(r, "'-c CODE' and 'FILE' exclude each other");
	r->inv.file = NULL;
	use_command(r);
	assert_refused(r, "'-c CODE' and '-- CMD'");
	r->c.has_code = false;
	r->inv = (struct invocation){ .file = "-" };
	set(r, "interactive", NULL);
	assert_refused(r, "'-' and '--interactive'");
	r->c.interactive = false;
	set(r, "tty", NULL);
	assert_refused(r, "'-' and '--tty'");
	r->inv.file = "a.py";
	assert_made(r); /* docker allows -t alone */
	set(r, "json", NULL);
	assert_refused(r, "use --json=FILE");
	set(r, "json", "out.json");
	assert_made(r);
	set(r, "verbose", NULL);
	set(r, "quiet", NULL);
	assert_refused(r, "'--verbose' and '--quiet'");
}

static void results_need_an_open_descriptor_each(void **state)
{
	struct request *r = *state;
	use_command(r);
	set(r, "result-fd", "1999");
	assert_refused(r, "--result-fd 1999: Bad file descriptor");
	auto_fd int read_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	r->c.result_fd = read_fd;
	assert_refused(r, "not open for writing");
	auto_fd int write_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	r->c.result_fd = write_fd;
	assert_made(r);
	r->c.events_fd = write_fd;
	assert_refused(r, "'--result-fd' and '--events-fd'");
}

/* --- the jail --------------------------------------------------------------- */

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
	assert_int_equal(r->plan.limits.wall_ms, 30000);
	assert_int_equal(r->plan.limits.fsize_bytes, 8u << 20);
	assert_int_equal(r->plan.root.scratch_bytes, 8u << 20);
	assert_int_equal(r->plan.root.scratch_inodes, 2048);
	assert_true(r->plan.limits.kill_on_output_limit);
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

static void the_public_network_is_refused_for_now(void **state)
{
	struct request *r = *state;
	use_command(r);
	set(r, "network", "public");
	assert_refused(r, "network 'public' is not there yet");
	assert_refused(r, "use --network none");
	set(r, "network", "none");
	set(r, "allow", "example.org");
	assert_refused(r, "--allow 'example.org'");
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

/* --- places ----------------------------------------------------------------- */

static const struct bind_spec *only_bind(struct request *r)
{
	assert_made(r);
	assert_int_equal(r->plan.root.nbinds, 1);
	return &r->plan.root.binds[0];
}

static void binds_land_where_they_are_told(void **state)
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
		{ "bind", "open.sock:/x", "use --connect unix:" },
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
	set(r, "connect", "tcp:127.0.0.1:80");
	assert_refused(r, "'tcp:' end point is not there yet");

	config_fini(&r->c);
	(void)snprintf(text, sizeof(text), "unix:%s/closed.sock:/run/x", top);
	set(r, "connect", text);
	if (geteuid() == 0)
		assert_refused(r, "chmod o+w");
	else
		assert_made(r);
}

static void a_copy_lands_in_the_box_unless_told(void **state)
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
		{ "bind", "dir:/box/x", "file", "a.txt:xy", NULL },
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

/* --- --dry-run -------------------------------------------------------------- */

static const struct json_node *written(struct request *r, struct arena *a)
{
	const char *text;
	size_t size;
	const struct json_node *root;
	auto_json_writer struct json_writer *w = json_writer_create(true);
	assert_non_null(w);
	plan_write(w, &r->plan, &r->program);
	if (json_writer_take(w, &text, &size, &r->err) < 0)
		fail_msg("%s", r->err.msg);
	if (json_parse("plan", text, size, a, &root, &r->err) < 0)
		fail_msg("%s in %s", r->err.msg, text);
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
		{ "seccomp", "profile" },
		{ "seccomp", "notes" },
		{ "cgroup_parent", NULL },
		{ "strict", NULL },
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, request_setup, request_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_file_takes_its_place_in_the_command),
		TEST(code_can_be_a_string_or_standard_input),
		TEST(a_file_keeps_an_extension_the_profile_knows),
		TEST(a_command_is_taken_as_it_is),
		TEST(a_shell_has_a_terminal_and_input),
		TEST(what_cannot_be_run_is_told_with_what_to_give),
		TEST(a_command_without_a_place_for_the_file_is_refused),
		TEST(words_execve_cannot_take_are_refused),
		TEST(only_named_variables_come_from_the_caller),
		TEST(a_terminal_has_a_type),
		TEST(arguments_as_data_are_checked_and_kept),
		TEST(what_excludes_each_other_is_refused),
		TEST(results_need_an_open_descriptor_each),
		TEST(limits_are_taken_over_in_their_units),
		TEST(files_are_counted_between_two_bounds),
		TEST(the_public_network_is_refused_for_now),
		TEST(a_root_is_the_host_or_directories),
		TEST(a_root_that_is_no_directory_is_refused),
		TEST(a_seccomp_file_is_read_and_named),
		TEST(a_run_has_a_name),
		TEST(minted_names_differ_and_sort_by_time),
		TEST(a_bind_from_usr_keeps_its_path),
		TEST(binds_land_where_they_are_told),
		TEST(an_escaped_colon_is_part_of_a_bind),
		TEST(binds_are_ordered_so_that_none_hides_another),
		TEST(bad_binds_are_refused),
		TEST(a_socket_is_bound_under_its_own_kind),
		TEST(bad_sockets_are_refused),
		TEST(a_copy_lands_in_the_box_unless_told),
		TEST(bad_copies_are_refused),
		TEST(nothing_lands_on_anything_else),
		TEST(the_plan_is_shown_whole),
		TEST(the_shown_plan_says_what_was_planned),
	};
	return cmocka_run_group_tests(tests, tree_setup, tree_teardown);
}
