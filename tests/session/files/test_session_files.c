/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a session from outside: what a hostile tree, and a program that changes it, can't do. */
#include "tests/session/files/file_bench.h"

/* --- looking and reading ------------------------------------------------------------------ */

static void a_file_is_read_with_its_mode_and_size(void **state)
{
	(void)state;
	struct bench b = make_bench();
	struct session_content got;
	mkdir(at(b.place, "box/out"), 0755);
	make_file(at(b.place, "box/out/a.txt"), "hello");
	make_file(at(b.place, "tmp/empty"), "");
	chmod(at(b.place, "box/out/a.txt"), 0640);

	assert_int_equal(read_path(&b, "/box//out/./a.txt", 5, &got), 0);
	assert_string_equal(got.file.path, "/box/out/a.txt");
	assert_string_equal(got.bytes, "hello");
	assert_int_equal(got.size, 5);
	assert_int_equal(got.file.bytes, 5);
	assert_int_equal(got.file.mode, 0640);
	assert_true(got.file.mtime_ms > 1500000000000);
	assert_int_equal(got.file.kind, SESSION_FILE_REGULAR);
	assert_int_equal(read_path(&b, "/tmp/empty", 0, &got), 0);
	assert_int_equal(got.size, 0);
	end_bench(&b);
}

static void a_path_outside_box_and_tmp_is_refused(void **state)
{
	(void)state;
	static const char *const paths[] = {
		"/etc/passwd", "/", "/boxer/a", "/tmpfs",      "/box/../etc/passwd",
		"box/a",       "",  "/box/..",  "/tmp/../box", "/proc/self/environ",
	};
	struct bench b = make_bench();
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		int code = read_fault(&b, paths[i]);
		assert_string_equal(file_error_names[session_file_error(code)], "outside");
		assert_true(remove_path(&b, paths[i]) < 0);
	}
	end_bench(&b);
}

static void what_is_no_regular_file_is_not_read(void **state)
{
	(void)state;
	struct bench b = make_bench();
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/box/socket", b.place);
	auto_fd int sock_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(sock_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(mkfifo(at(b.place, "box/fifo"), 0644), 0);
	mkdir(at(b.place, "box/dir"), 0755);
	make_link("../outside/secret", at(b.place, "box/link"));
	make_link("../outside", at(b.place, "box/way"));

	static const struct {
		const char *path, *fault;
	} rows[] = {
		{ "/box/socket", "not_regular" }, { "/box/fifo", "not_regular" },
		{ "/box/dir", "not_regular" },    { "/box", "not_regular" },
		{ "/box/link", "not_regular" },   { "/box/way/secret", "not_found" },
		{ "/box/none", "not_found" },     { "/box/fifo/x", "not_found" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(
		    file_error_names[session_file_error(read_fault(&b, rows[i].path))],
		    rows[i].fault);
	end_bench(&b);
}

static void looking_reports_a_link_and_does_not_follow_it(void **state)
{
	(void)state;
	struct bench b = make_bench();
	struct session_file file;
	make_link("../outside/secret", at(b.place, "box/link"));
	assert_int_equal(session_file_stat(&b.jail, "/box/link", &b.arena, &file, &b.err), 0);
	assert_int_equal(file.kind, SESSION_FILE_SYMLINK);
	assert_int_equal(session_file_stat(&b.jail, "/box", &b.arena, &file, &b.err), 0);
	assert_int_equal(file.kind, SESSION_FILE_DIRECTORY);
	assert_int_equal(file.bytes, 0);
	assert_int_equal(session_file_stat(&b.jail, "/tmp/no", &b.arena, &file, &b.err), -ENOENT);
	end_bench(&b);
}

/* Nobody reads the FIFO: to open it for reading would let a writer go on. */
static void a_writer_of_a_fifo_goes_on_waiting(void **state)
{
	(void)state;
	struct bench b = make_bench();
	assert_int_equal(mkfifo(at(b.place, "box/fifo"), 0644), 0);
	assert_string_equal(file_error_names[session_file_error(read_fault(&b, "/box/fifo"))],
			    "not_regular");
	assert_int_equal(open(at(b.place, "box/fifo"), O_WRONLY | O_NONBLOCK | O_CLOEXEC), -1);
	assert_int_equal(errno, ENXIO);
	end_bench(&b);
}

static void more_bytes_than_the_limit_are_not_read(void **state)
{
	(void)state;
	struct bench b = make_bench();
	struct session_content got;
	make_file(at(b.place, "box/six"), "123456");
	make_file(at(b.place, "box/sparse"), "");
	assert_int_equal(truncate(at(b.place, "box/sparse"), 1LL << 40), 0);

	assert_int_equal(read_path(&b, "/box/six", 6, &got), 0);
	assert_int_equal(read_path(&b, "/box/six", 5, &got), -EFBIG);
	assert_int_equal(read_path(&b, "/box/sparse", 1 << 20, &got), -EFBIG);
	assert_string_equal(file_error_names[session_file_error(EFBIG)], "too_large");
	assert_int_equal(truncate(at(b.place, "box/sparse"), 4096), 0);
	assert_int_equal(read_path(&b, "/box/sparse", 4096, &got), 0); /* holes count */
	assert_int_equal(got.size, 4096);
	end_bench(&b);
}

static void a_hard_link_is_read_as_any_file(void **state)
{
	(void)state;
	struct bench b = make_bench();
	struct session_content got;
	make_file(at(b.place, "box/a"), "x");
	assert_int_equal(link(at(b.place, "box/a"), at(b.place, "box/b")), 0);
	assert_int_equal(read_path(&b, "/box/b", 10, &got), 0);
	assert_string_equal(got.bytes, "x");
	end_bench(&b);
}

static void an_unreadable_file_is_refused_to_an_ordinary_user(void **state)
{
	(void)state;
	struct bench b = make_bench();
	step_down();
	make_file(at(b.place, "box/shut"), "x");
	mkdir(at(b.place, "box/dir"), 0755);
	make_file(at(b.place, "box/dir/in"), "x");
	chmod(at(b.place, "box/shut"), 0);
	chmod(at(b.place, "box/dir"), 0);
	assert_string_equal(file_error_names[session_file_error(read_fault(&b, "/box/shut"))],
			    "denied");
	assert_string_equal(file_error_names[session_file_error(read_fault(&b, "/box/dir/in"))],
			    "denied");

	struct session_listing list;
	assert_int_equal(list_path(&b, "/box", 2, 10, &list), 0);
	assert_int_equal(list.count, 2);
	assert_true(list.is_truncated);
	assert_int_equal(list_path(&b, "/box/dir", 1, 10, &list), -EACCES);
	assert_int_equal(remove_path(&b, "/box/dir"), -EACCES);
	chmod(at(b.place, "box/dir"), 0755);
	step_up();
	end_bench(&b);
}

/* --- while a program changes the tree --------------------------------------------------------- */

/* "x" is an empty file, then a link to a secret, then a FIFO with a byte in it, again and again. */
static void swap_file(void)
{
	static int kept_fd = -1; /* or the byte is lost */
	(void)!symlink("../outside/secret", "link");
	(void)mkfifo("fifo", 0644);
	cj_close(&kept_fd);
	kept_fd = open("fifo", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	(void)!write(kept_fd, "F", 1);
	(void)close(open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	(void)rename("file", "x");
	(void)rename("link", "x");
	(void)rename("file", "x");
	(void)close(open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	(void)rename("file", "x");
	(void)rename("fifo", "x");
}

static void a_file_that_is_swapped_for_a_link_or_fifo_is_never_followed(void **state)
{
	(void)state;
	struct bench b = make_bench();
	struct session_content got;
	begin_attack(&b, swap_file);
	for (unsigned i = 0; i < ROUNDS; i++) {
		int rc = read_path(&b, "/box/x", 100, &got);
		if (rc == 0)
			assert_int_equal(got.size, 0);
		else
			assert_true(rc == -ENOENT || rc == -ENOTSUP || rc == -ELOOP);
	}
	end_bench(&b);
}

/* "d" is a directory, then a link to the secret's. */
static void swap_directory(void)
{
	(void)mkdir("real", 0755);
	(void)close(open("real/secret", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	(void)!symlink("../outside", "way");
	(void)rename("real", "d");
	(void)rename("d", "real");
	(void)rename("way", "d");
	(void)rename("d", "way");
}

static void a_directory_that_is_swapped_for_a_link_is_never_followed(void **state)
{
	(void)state;
	struct bench b = make_bench();
	struct session_content got;
	struct session_listing list;
	begin_attack(&b, swap_directory);
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (read_path(&b, "/box/d/secret", 100, &got) == 0)
			assert_int_equal(got.size, 0);
		if (list_path(&b, "/box/d", 2, 100, &list) == 0 && list.count > 0)
			assert_int_equal(list.items[0].bytes, 0);
		(void)remove_path(&b, "/box/d");
		if (i % 64 == 0)
			arena_fini(&b.arena);
	}
	end_bench(&b); /* the secret is still there */
}

static void grow(void)
{
	static char piece[65536];
	auto_fd int fd = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	struct stat st;
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 8 << 20)
		(void)!ftruncate(fd, 0);
	(void)!write(fd, piece, sizeof(piece));
}

static void a_file_that_grows_while_it_is_read_ends_at_the_limit(void **state)
{
	(void)state;
	struct bench b = make_bench();
	struct session_content got;
	begin_attack(&b, grow);
	for (unsigned i = 0; i < ROUNDS / 10; i++) {
		int rc = read_path(&b, "/box/log", 1 << 20, &got);
		assert_true(rc == -EFBIG || rc == -ENOENT || (rc == 0 && got.size <= 1 << 20));
		arena_fini(&b.arena);
	}
	end_bench(&b);
}

static void rename_top(void)
{
	(void)mkdir("a", 0755);
	(void)mkdir("a/b", 0755);
	(void)close(open("a/b/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	(void)rename("a/b", "b");
	(void)rename("b", "a/b");
}

static void a_tree_that_is_renamed_meanwhile_is_listed_and_stays_inside(void **state)
{
	(void)state;
	struct bench b = make_bench();
	struct session_listing list;
	begin_attack(&b, rename_top);
	for (unsigned i = 0; i < ROUNDS / 3; i++) {
		assert_int_equal(list_path(&b, "/box", 10, 100, &list), 0);
		for (size_t k = 0; k < list.count; k++)
			assert_null(strstr(list.items[k].path, "secret"));
		arena_fini(&b.arena);
	}
	end_bench(&b);
}

/* --- listing ---------------------------------------------------------------------------------- */

static void a_listing_has_every_kind_and_is_sorted(void **state)
{
	(void)state;
	struct bench b = make_bench();
	struct session_listing list;
	mkdir(at(b.place, "box/b"), 0700);
	make_file(at(b.place, "box/b/file"), "four");
	mkdir(at(b.place, "box/b/deep"), 0700);
	make_file(at(b.place, "box/b/deep/more"), "");
	mkfifo(at(b.place, "box/a"), 0600);
	make_link("/", at(b.place, "box/c"));

	assert_int_equal(list_path(&b, "/box/", 1, 10, &list), 0);
	assert_int_equal(list.count, 3);
	assert_false(list.is_truncated);
	assert_string_equal(list.items[0].path, "/box/a");
	assert_int_equal(list.items[0].kind, SESSION_FILE_FIFO);
	assert_int_equal(list.items[1].kind, SESSION_FILE_DIRECTORY);
	assert_int_equal(list.items[2].kind, SESSION_FILE_SYMLINK);

	assert_int_equal(list_path(&b, "/box", 2, 10, &list), 0);
	assert_int_equal(list.count, 5);
	assert_string_equal(list.items[3].path, "/box/b/file");
	assert_int_equal(list.items[3].bytes, 4);
	assert_int_equal(list_path(&b, "/box", 64, 10, &list), 0);
	assert_int_equal(list.count, 6);
	assert_int_equal(list_path(&b, "/box/a", 1, 10, &list), -ENOTDIR);
	assert_int_equal(list_path(&b, "/box/c", 1, 10, &list), -ENOTDIR);
	assert_int_equal(list_path(&b, "/tmp", 1, 10, &list), 0);
	assert_int_equal(list.count, 0);
	end_bench(&b);
}

static void names_with_control_characters_are_escaped(void **state)
{
	(void)state;
	struct bench b = make_bench();
	struct session_listing list;
	make_file(at(b.place, "box/a\nb\033[2J"), "");
	make_file(at(b.place, "box/\xff\xfe"), "");
	make_file(at(b.place, "box/\xc3\xa4"), "");
	assert_int_equal(list_path(&b, "/box", 1, 10, &list), 0);
	assert_int_equal(list.count, 3);
	assert_string_equal(list.items[0].path, "/box/\\xff\\xfe");
	assert_string_equal(list.items[1].path, "/box/a\\x0ab\\x1b[2J");
	assert_string_equal(list.items[2].path, "/box/\xc3\xa4");
	end_bench(&b);
}

static void a_hundred_thousand_entries_are_cut(void **state)
{
	(void)state;
	struct bench b = make_bench();
	struct session_listing list;
	mkdir(at(b.place, "box/many"), 0755);
	auto_fd int many_fd = open(at(b.place, "box/many"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 0; i < 100000; i++) {
		char name[16];
		(void)snprintf(name, sizeof(name), "f%06u", i);
		assert_int_equal(mknodat(many_fd, name, S_IFREG | 0644, 0), 0);
	}
	assert_int_equal(list_path(&b, "/box", 2, 1000, &list), 0);
	assert_int_equal(list.count, 1000);
	assert_true(list.is_truncated);
	assert_int_equal(list_path(&b, "/box/many", 1, 200000, &list), 0);
	assert_int_equal(list.count, 100000);
	assert_false(list.is_truncated);
	assert_string_equal(list.items[99999].path, "/box/many/f099999");
	assert_int_equal(remove_path(&b, "/box/many"), 0);
	end_bench(&b);
}

/* A directory in a directory, `depth` times; with a file in the last one. */
static void dig(const char *top, unsigned depth)
{
	int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 0; i < depth; i++) {
		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		int next_fd = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next_fd >= 0);
		cj_close(&fd);
		fd = next_fd;
	}
	cj_close(&(int){ openat(fd, "end", O_WRONLY | O_CREAT | O_CLOEXEC, 0644) });
	cj_close(&fd);
}

static void a_deep_tree_is_listed_to_its_limit(void **state)
{
	(void)state;
	struct bench b = make_bench();
	struct session_listing list;
	mkdir(at(b.place, "box/deep"), 0755);
	dig(at(b.place, "box/deep"), 1200);
	assert_int_equal(list_path(&b, "/box/deep", 5000, 10000, &list), 0);
	assert_int_equal(list.count, SESSION_LIST_DEPTH_MAX);
	assert_int_equal(remove_path(&b, "/box/deep"), 0);
	assert_false(exists(at(b.place, "box/deep")));
	end_bench(&b);
}

/* --- removing --------------------------------------------------------------------------------- */

static void a_file_a_link_and_an_empty_directory_are_removed(void **state)
{
	(void)state;
	struct bench b = make_bench();
	make_file(at(b.place, "box/file"), "x");
	make_link("../outside", at(b.place, "box/link"));
	mkdir(at(b.place, "box/dir"), 0755);
	mkdir(at(b.place, "box/full"), 0755);
	make_file(at(b.place, "box/full/x"), "x");
	assert_int_equal(remove_path(&b, "/box/file"), 0);
	assert_int_equal(remove_path(&b, "/box/link"), 0);
	assert_int_equal(remove_path(&b, "/box/dir"), 0);
	assert_int_equal(remove_path(&b, "/box/full"), 0);
	assert_int_equal(remove_path(&b, "/box/full"), -ENOENT);
	assert_int_equal(remove_path(&b, "/box"), -EACCES);
	assert_int_equal(remove_path(&b, "/tmp/"), -EACCES);
	assert_true(exists(at(b.place, "outside")));
	end_bench(&b);
}

static void a_tree_is_removed_and_no_link_in_it_is_followed(void **state)
{
	(void)state;
	struct bench b = make_bench();
	mkdir(at(b.place, "box/t"), 0755);
	mkdir(at(b.place, "box/t/.cejail-removed-0"), 0755);
	for (char c = 'a'; c < 'f'; c++) {
		char name[32];
		(void)snprintf(name, sizeof(name), "box/t/%c", c);
		mkdir(at(b.place, name), 0755);
		dig(at(b.place, name), 70);
		(void)snprintf(name, sizeof(name), "box/t/%c/d/way", c);
		make_link(at(b.place, "outside"), at(b.place, name));
	}
	assert_int_equal(remove_path(&b, "/box/t"), 0);
	assert_false(exists(at(b.place, "box/t")));
	end_bench(&b);
}

/* A program that fills the tree while it is removed. */
static void a_tree_with_a_mount_of_the_caller_below_stays_as_it_is(void **state)
{
	(void)state;
	static const struct bind_spec binds[] = { { .target = "/box/a/b/c/data" } };
	struct bench b = make_bench();
	b.jail.root.binds = binds;
	b.jail.root.nbinds = 1;
	mkdir(at(b.place, "box/a"), 0755);
	mkdir(at(b.place, "box/a/b"), 0755);
	mkdir(at(b.place, "box/a/b/c"), 0755);
	mkdir(at(b.place, "box/a/b/c/data"), 0755);
	mkdir(at(b.place, "box/a/b/c/data2"), 0755);
	make_file(at(b.place, "box/a/file"), "kept");

	static const char *const above[] = { "/box/a", "/box/a/b", "/box/a/b/c" };
	for (size_t i = 0; i < sizeof(above) / sizeof(above[0]); i++) {
		assert_int_equal(remove_path(&b, above[i]), -EBUSY);
		memset(&b.err, 0, sizeof(b.err));
		assert_int_equal(session_file_rename(&b.jail, above[i], "/box/z", &b.err), -EBUSY);
	}
	assert_true(reads_as(at(b.place, "box/a/file"), "kept"));
	assert_int_equal(access(at(b.place, "box/a/b/c/data"), F_OK), 0);
	assert_int_equal(remove_path(&b, "/box/a/b/c/data2"), 0);
	end_bench(&b);
}

static void refill(void)
{
	(void)mkdir("t", 0755);
	(void)mkdir("t/a", 0755);
	(void)mkdir("t/a/b", 0755);
	(void)close(open("t/a/b/c", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	(void)rename("t/a", "t/z");
	(void)!symlink("../../outside", "t/b");
}

static void a_tree_that_is_refilled_meanwhile_never_hangs_the_removal(void **state)
{
	(void)state;
	struct bench b = make_bench();
	begin_attack(&b, refill);
	for (unsigned i = 0; i < ROUNDS / 10; i++) {
		int rc = remove_path(&b, "/box/t");
		assert_true(rc == 0 || rc == -ENOENT || rc == -EBUSY || rc == -ENOTDIR ||
			    rc == -ELOOP);
	}
	end_bench(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_with_its_mode_and_size),
		cmocka_unit_test(a_path_outside_box_and_tmp_is_refused),
		cmocka_unit_test(what_is_no_regular_file_is_not_read),
		cmocka_unit_test(looking_reports_a_link_and_does_not_follow_it),
		cmocka_unit_test(a_writer_of_a_fifo_goes_on_waiting),
		cmocka_unit_test(more_bytes_than_the_limit_are_not_read),
		cmocka_unit_test(a_hard_link_is_read_as_any_file),
		cmocka_unit_test(an_unreadable_file_is_refused_to_an_ordinary_user),
		cmocka_unit_test(a_file_that_is_swapped_for_a_link_or_fifo_is_never_followed),
		cmocka_unit_test(a_directory_that_is_swapped_for_a_link_is_never_followed),
		cmocka_unit_test(a_file_that_grows_while_it_is_read_ends_at_the_limit),
		cmocka_unit_test(a_tree_that_is_renamed_meanwhile_is_listed_and_stays_inside),
		cmocka_unit_test(a_listing_has_every_kind_and_is_sorted),
		cmocka_unit_test(names_with_control_characters_are_escaped),
		cmocka_unit_test(a_hundred_thousand_entries_are_cut),
		cmocka_unit_test(a_deep_tree_is_listed_to_its_limit),
		cmocka_unit_test(a_file_a_link_and_an_empty_directory_are_removed),
		cmocka_unit_test(a_tree_is_removed_and_no_link_in_it_is_followed),
		cmocka_unit_test(a_tree_with_a_mount_of_the_caller_below_stays_as_it_is),
		cmocka_unit_test(a_tree_that_is_refilled_meanwhile_never_hangs_the_removal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
