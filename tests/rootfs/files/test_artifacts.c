/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: fstat */
/* Files out of /box/out: what a hostile tree can't do, and what a full disk leaves. */
#include "rootfs/files/artifacts.h"

#include "tests/rootfs/inside.h"

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

struct bench {
	char *place; /* "box/out", "dest" below it */
	int box_fd, dest_fd;
	struct arena arena;
	struct artifacts out;
	struct cj_error err;
};

static struct bench make_bench(void)
{
	struct bench b = { .place = make_place() };
	mkdir(at(b.place, "box"), 0755);
	mkdir(at(b.place, "box/out"), 0755);
	mkdir(at(b.place, "dest"), 0755);
	b.box_fd = open(at(b.place, "box"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	b.dest_fd = open(at(b.place, "dest"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(b.box_fd >= 0 && b.dest_fd >= 0);
	return b;
}

static void end_bench(struct bench *b)
{
	cj_close(&b->box_fd);
	cj_close(&b->dest_fd);
	arena_fini(&b->arena);
	end_place(b->place);
}

static int collect(struct bench *b)
{
	int before = open_count();
	int rc = artifacts_collect(&(struct artifacts_from){ .box_fd = b->box_fd }, b->dest_fd,
				   &b->arena, &b->out, &b->err);
	assert_int_equal(open_count(), before);
	return rc;
}

/* Root may read and write everything, so it steps down for this; skips where it can't. */
static int collect_as_user(struct bench *b)
{
	if (geteuid() == 0 && !has_ids()) {
		print_message("skipped: root of a namespace with one id can't become another\n");
		skip();
	}
	bool is_root = has_ids();
	assert_int_equal(is_root ? seteuid(INSIDE_ID) : 0, 0);
	int rc = collect(b);
	assert_int_equal(is_root ? seteuid(0) : 0, 0);
	return rc;
}

static size_t entries(const char *path)
{
	size_t count = 0;
	DIR *dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static bool is_skipped(const struct bench *b, const char *part)
{
	for (size_t i = 0; i < b->out.skipped.count; i++)
		if (strstr(b->out.skipped.items[i], part))
			return true;
	for (size_t i = 0; i < b->out.skipped.count; i++)
		print_error("skipped: %s\n", b->out.skipped.items[i]);
	return false;
}

/* A file that has more bytes than it said. */
static bool fstat_lies;
int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st)
{
	int rc = __real_fstat(fd, st);
	if (rc == 0 && fstat_lies && st->st_size > 0)
		st->st_size--;
	return rc;
}

static int keep(struct bench *b, uint64_t max_bytes)
{
	int before = open_count();
	int rc = artifacts_keep(&(struct artifacts_from){ .box_fd = b->box_fd }, max_bytes,
				&b->arena, &b->out, &b->err);
	assert_int_equal(open_count(), before);
	return rc;
}

/* --- what comes out --------------------------------------------------------------- */

static void files_are_copied_with_size_hash_and_type(void **state)
{
	(void)state;
	struct bench b = make_bench();
	make_file(at(b.place, "box/out/plot.png"), "abc");
	mkdir(at(b.place, "box/out/sub"), 0700);
	mkdir(at(b.place, "box/out/empty"), 0700);
	make_file(at(b.place, "box/out/sub/a b.csv"), "");
	chmod(at(b.place, "box/out/plot.png"), 04600);

	assert_int_equal(collect(&b), 0);
	assert_int_equal(b.out.count, 2);
	assert_int_equal(b.out.skipped.count, 0);
	assert_string_equal(b.out.items[0].path, "plot.png");
	assert_int_equal(b.out.items[0].bytes, 3);
	assert_string_equal(b.out.items[0].sha256,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_string_equal(b.out.items[0].type, "text/plain");
	assert_string_equal(b.out.items[1].path, "sub/a b.csv");
	assert_string_equal(b.out.items[1].type, "text/csv");
	assert_true(reads_as(at(b.place, "dest/plot.png"), "abc"));
	assert_true(reads_as(at(b.place, "dest/sub/a b.csv"), ""));
	assert_false(exists(at(b.place, "dest/empty"))); /* only what has a file in it */

	struct stat st;
	assert_int_equal(stat(at(b.place, "dest/plot.png"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(entries(at(b.place, "dest")), 2);
	end_bench(&b);
}

static void files_that_have_not_changed_since_a_time_are_left_out(void **state)
{
	(void)state;
	struct bench b = make_bench();
	const char *const names[] = { "box/out/old", "box/out/sub/older", "box/out/changed",
				      "box/out/sub/moved" };
	mkdir(at(b.place, "box/out/sub"), 0700);
	for (size_t i = 0; i < 4; i++)
		make_file(at(b.place, names[i]), "a");
	assert_int_equal(symlink("old", at(b.place, "box/out/link")), 0);
	struct timespec after_tick = { .tv_nsec = 20000000 };
	nanosleep(&after_tick, NULL);
	struct artifacts_from from = { .box_fd = b.box_fd };
	clock_gettime(CLOCK_REALTIME_COARSE, &from.since);
	assert_int_equal(truncate(at(b.place, names[2]), 0), 0);
	rename(at(b.place, names[3]), at(b.place, "box/out/new"));
	/* a time in the past hides nothing */
	const struct timespec past[2] = { { 1, 0 }, { 1, 0 } };
	utimensat(AT_FDCWD, at(b.place, names[2]), past, 0);

	assert_int_equal(artifacts_keep(&from, 100, &b.arena, &b.out, &b.err), 0);
	assert_int_equal(b.out.count, 2);
	assert_int_equal(b.out.skipped.count, 0);
	assert_string_equal(b.out.items[0].path, "changed");
	assert_string_equal(b.out.items[1].path, "new");
	end_bench(&b);
}

static void without_box_out_there_are_no_artefacts_and_no_error(void **state)
{
	(void)state;
	struct bench b = make_bench();
	rmdir(at(b.place, "box/out"));
	assert_int_equal(collect(&b), 0);
	assert_int_equal(b.out.count + b.out.skipped.count, 0);
	end_bench(&b);
}

/* The same walk, so the tests below hold for it; the fuzzer compares the two. */
static void files_are_kept_only_in_memory(void **state)
{
	(void)state;
	struct bench b = make_bench();
	make_file(at(b.place, "box/out/plot.png"), "abc");
	mkdir(at(b.place, "box/out/sub"), 0700);
	make_file(at(b.place, "box/out/sub/empty"), "");
	assert_int_equal(symlink("/etc/passwd", at(b.place, "box/out/link")), 0);

	assert_int_equal(keep(&b, 3), 0);
	assert_int_equal(b.out.count, 2);
	assert_string_equal(b.out.items[0].path, "plot.png");
	assert_int_equal(b.out.items[0].bytes, 3);
	assert_memory_equal(b.out.items[0].content, "abc", 3);
	assert_string_equal(b.out.items[0].sha256,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_string_equal(b.out.items[1].path, "sub/empty");
	assert_non_null(b.out.items[1].content);
	assert_true(is_skipped(&b, "'link' in /box/out is not copied: it is a symbolic link"));
	assert_int_equal(entries(at(b.place, "dest")), 0);

	assert_int_equal(keep(&b, 2), 0);
	assert_int_equal(b.out.count, 1);
	assert_true(is_skipped(&b, "'plot.png' in /box/out is not copied: all files together may "
				   "have 2 bytes"));
	end_bench(&b);
}

static void a_file_larger_than_its_reported_size_is_not_kept(void **state)
{
	(void)state;
	struct bench b = make_bench();
	make_file(at(b.place, "box/out/a"), "abc");
	fstat_lies = true;
	int rc = keep(&b, 100);
	fstat_lies = false;
	assert_int_equal(rc, 0);
	assert_int_equal(b.out.count, 0);
	assert_true(is_skipped(&b, "'a' in /box/out is not copied: it grew"));
	end_bench(&b);
}

static void a_link_in_place_of_box_out_is_not_followed(void **state)
{
	(void)state;
	struct bench b = make_bench();
	rmdir(at(b.place, "box/out"));
	assert_int_equal(symlink("/etc", at(b.place, "box/out")), 0);
	assert_int_equal(collect(&b), 0);
	assert_int_equal(b.out.count, 0);
	assert_true(is_skipped(&b, "nothing is copied from /box/out"));
	unlink(at(b.place, "box/out"));
	make_file(at(b.place, "box/out"), "a file");
	assert_int_equal(collect(&b), 0);
	assert_true(is_skipped(&b, "nothing is copied from /box/out: Not a directory"));
	end_bench(&b);
}

static void an_existing_file_is_replaced_completely(void **state)
{
	(void)state;
	struct bench b = make_bench();
	make_file(at(b.place, "box/out/x"), "new");
	make_file(at(b.place, "dest/x"), "an older and longer one");
	assert_int_equal(collect(&b), 0);
	assert_true(reads_as(at(b.place, "dest/x"), "new"));
	end_bench(&b);
}

/* --- hostile trees ------------------------------------------------------------------- */

static void only_regular_files_with_one_link_are_copied(void **state)
{
	(void)state;
	struct bench b = make_bench();
	make_file(at(b.place, "secret"), "secret");
	make_file(at(b.place, "box/out/good"), "good");
	assert_int_equal(symlink("/etc/passwd", at(b.place, "box/out/link")), 0);
	assert_int_equal(symlink("/etc", at(b.place, "box/out/dirlink")), 0);
	assert_int_equal(link(at(b.place, "secret"), at(b.place, "box/out/hard")), 0);
	assert_int_equal(mkfifo(at(b.place, "box/out/pipe"), 0666), 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/box/out/sock", b.place);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);

	assert_int_equal(collect(&b), 0);
	assert_int_equal(b.out.count, 1);
	assert_string_equal(b.out.items[0].path, "good");
	assert_true(is_skipped(&b, "'link' in /box/out is not copied: it is a symbolic link"));
	assert_true(is_skipped(&b, "'dirlink' in /box/out is not copied: it is a symbolic link"));
	assert_true(is_skipped(&b, "'hard' in /box/out is not copied: it has more than one hard"));
	assert_true(is_skipped(&b, "'pipe' in /box/out is not copied: it is neither"));
	assert_true(is_skipped(&b, "'sock' in /box/out is not copied: it is neither"));
	assert_int_equal(entries(at(b.place, "dest")), 1);
	end_bench(&b);
}

static void files_with_unusual_names_are_skipped_and_named_escaped(void **state)
{
	(void)state;
	static const char *const names[] = { "-rf",
					     "new\nline",
					     "esc\x1b[2J",
					     "\xff\xfe",
					     "c1\xc2\x9b"
					     "2J",
					     "del\x7f",
					     "\xc0\xaf",
					     NULL };
	struct bench b = make_bench();
	char path[64];
	for (size_t i = 0; names[i]; i++) {
		(void)snprintf(path, sizeof(path), "box/out/%s", names[i]);
		make_file(at(b.place, path), "x");
	}
	mkdir(at(b.place, "box/out/bad\x01"), 0755);
	make_file(at(b.place, "box/out/bad\x01/inner"), "x");
	make_file(at(b.place, "box/out/\xc3\xa4 fine \xe2\x98\x83.txt"), "x");

	assert_int_equal(collect(&b), 0);
	assert_int_equal(b.out.count, 1);
	assert_string_equal(b.out.items[0].path, "\xc3\xa4 fine \xe2\x98\x83.txt");
	assert_int_equal(b.out.skipped.count, 8);
	assert_true(is_skipped(&b, "'new\\x0aline' in /box/out is not copied: its name has"));
	assert_true(is_skipped(&b, "'-rf' in /box/out is not copied: its name begins with '-'"));
	assert_true(is_skipped(&b, "its name is not UTF-8"));
	for (size_t i = 0; i < b.out.skipped.count; i++)
		for (const char *p = b.out.skipped.items[i]; *p; p++)
			assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
	assert_int_equal(entries(at(b.place, "dest")), 1);
	end_bench(&b);
}

static void unreadable_files_are_skipped(void **state)
{
	(void)state;
	struct bench b = make_bench();
	make_file(at(b.place, "box/out/closed"), "x");
	chmod(at(b.place, "box/out/closed"), 0);
	mkdir(at(b.place, "box/out/shut"), 0);
	assert_int_equal(collect_as_user(&b), 0);
	assert_int_equal(b.out.count, 0);
	assert_true(is_skipped(&b, "'closed' in /box/out is not copied: open: Permission denied"));
	assert_true(is_skipped(&b, "'shut' in /box/out is not copied: open: Permission denied"));
	end_bench(&b);
}

static void a_huge_sparse_file_is_skipped_and_the_rest_is_copied(void **state)
{
	(void)state;
	struct bench b = make_bench();
	make_file(at(b.place, "box/out/huge"), "");
	assert_int_equal(truncate(at(b.place, "box/out/huge"), 1ll << 40), 0);
	make_file(at(b.place, "box/out/small"), "x");
	assert_int_equal(collect(&b), 0);
	assert_int_equal(b.out.count, 1);
	assert_true(is_skipped(&b, "'huge' in /box/out is not copied: all files together"));
	end_bench(&b);
}

static void the_sum_of_all_files_is_limited(void **state)
{
	(void)state;
	struct bench b = make_bench();
	make_file(at(b.place, "box/out/a"), "");
	make_file(at(b.place, "box/out/b"), "");
	assert_int_equal(truncate(at(b.place, "box/out/a"), 200 << 20), 0);
	assert_int_equal(truncate(at(b.place, "box/out/b"), 200 << 20), 0);
	assert_int_equal(collect(&b), 0);
	assert_int_equal(b.out.count, 1);
	assert_int_equal(b.out.items[0].bytes, 200 << 20);
	assert_int_equal(b.out.skipped.count, 1);
	end_bench(&b);
}

static void more_files_than_allowed_are_counted_not_listed(void **state)
{
	(void)state;
	struct bench b = make_bench();
	int out_fd = open(at(b.place, "box/out"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[16];
	for (int i = 0; i < 12000; i++) {
		(void)snprintf(name, sizeof(name), "%05d", i);
		assert_int_equal(mknodat(out_fd, name, S_IFREG | 0644, 0), 0);
	}
	assert_int_equal(collect(&b), 0);
	assert_int_equal(b.out.count, ARTIFACTS_FILES_MAX);
	assert_int_equal(b.out.skipped.count, 101);
	assert_string_equal(b.out.skipped.items[100], "10900 more are not copied");
	for (size_t i = 1; i < b.out.count; i++)
		assert_true(strcmp(b.out.items[i - 1].path, b.out.items[i].path) < 0);
	close(out_fd);
	end_bench(&b);
}

static void make_deep(int dir_fd, int levels)
{
	int fd = dup(dir_fd);
	for (int i = 0; i < levels; i++) {
		check(mkdirat(fd, "d", 0755) == 0);
		int next_fd = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		check(next_fd >= 0);
		close(fd);
		fd = next_fd;
	}
	check(openat(fd, "deepest", O_WRONLY | O_CREAT | O_CLOEXEC, 0644) >= 0);
	close(fd);
}

/* In a jail, whose scratch takes the tree with it. */
static void collect_deep(void *arg)
{
	(void)arg;
	struct arena arena = { 0 };
	struct artifacts out;
	struct cj_error err = { 0 };
	check(mkdir("/tmp/dest", 0755) == 0);
	int box_fd = open("/box", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int out_fd = open("/box/out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int dest_fd = open("/tmp/dest", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_deep(out_fd, 3000);

	struct rlimit few = { 64, 64 };
	check(setrlimit(RLIMIT_NOFILE, &few) == 0); /* descriptors do not grow with the tree */
	check(artifacts_collect(&(struct artifacts_from){ .box_fd = box_fd }, dest_fd, &arena, &out,
				&err) == 0);
	check(out.count == 0 && out.skipped.count == 1);
	check(strstr(out.skipped.items[0], "it lies more than 16 directories deep"));
	arena_fini(&arena);
}

static void a_tree_of_3000_levels_is_copied_to_the_maximum_depth(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	spec.scratch_inodes = 8192;
	run_as_each(&spec, collect_deep, NULL);
}

static void a_file_at_the_maximum_depth_is_copied(void **state)
{
	(void)state;
	struct bench b = make_bench();
	char path[PATH_MAX], name[256];
	memset(name, 'n', 250);
	name[250] = '\0';
	int fd = open(at(b.place, "box/out"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < ARTIFACTS_DEPTH_MAX; i++) {
		assert_int_equal(mkdirat(fd, i < 14 ? name : "d", 0755), 0);
		int next_fd = openat(fd, i < 14 ? name : "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next_fd;
	}
	int file_fd = openat(fd, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(write(file_fd, "deep", 4), 4);
	close(file_fd);
	close(fd);
	assert_int_equal(collect(&b), 0);
	assert_int_equal(b.out.count, 1);
	(void)snprintf(path, sizeof(path), "%s/dest/%s", b.place, b.out.items[0].path);
	assert_true(reads_as(path, "deep"));
	end_bench(&b);
}

/* --- the destination ------------------------------------------------------------------- */

static void links_planted_in_the_destination_are_not_followed(void **state)
{
	(void)state;
	struct bench b = make_bench();
	make_file(at(b.place, "victim"), "untouched");
	mkdir(at(b.place, "elsewhere"), 0755);
	assert_int_equal(symlink("../victim", at(b.place, "dest/x")), 0);
	assert_int_equal(symlink("../elsewhere", at(b.place, "dest/sub")), 0);
	make_file(at(b.place, "dest/blocked"), "a file");
	mkdir(at(b.place, "dest/taken"), 0755);

	make_file(at(b.place, "box/out/x"), "new");
	mkdir(at(b.place, "box/out/sub"), 0755);
	make_file(at(b.place, "box/out/sub/y"), "new");
	mkdir(at(b.place, "box/out/blocked"), 0755);
	make_file(at(b.place, "box/out/blocked/z"), "new");
	make_file(at(b.place, "box/out/taken"), "new");

	assert_int_equal(collect(&b), 0);
	assert_int_equal(b.out.count, 1);
	assert_true(reads_as(at(b.place, "dest/x"), "new")); /* the link itself is replaced */
	assert_true(reads_as(at(b.place, "victim"), "untouched"));
	assert_int_equal(entries(at(b.place, "elsewhere")), 0);
	assert_true(is_skipped(&b, "'sub/y' in /box/out is not copied: the artifacts directory"));
	assert_true(is_skipped(&b, "'blocked/z' in /box/out is not copied: the artifacts"));
	assert_true(is_skipped(&b, "'taken' in /box/out is not copied: a directory has its name"));
	assert_int_equal(entries(at(b.place, "dest")), 4); /* and no temporary file */
	end_bench(&b);
}

static void make_bytes(const char *path, size_t size)
{
	static char bytes[64 << 10];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	check(fd >= 0);
	for (size_t done = 0; done < size; done += sizeof(bytes))
		check(write(fd, bytes, sizeof(bytes)) == sizeof(bytes));
	close(fd);
}

/* The destination is a small tmpfs: the jail's own scratch, filled up but for 300 KiB. */
static void collect_to_full(void *arg)
{
	(void)arg;
	struct arena arena = { 0 };
	struct artifacts out;
	struct cj_error err = { 0 };
	check(mkdir("/tmp/dest", 0755) == 0);
	make_bytes("/box/out/one", 256 << 10);
	make_bytes("/box/out/two", 256 << 10);
	make_bytes("/box/filler", 192 << 10);

	int box_fd = open("/box", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int dest_fd = open("/tmp/dest", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(artifacts_collect(&(struct artifacts_from){ .box_fd = box_fd }, dest_fd, &arena, &out,
				&err) == -ENOSPC);
	check(out.count == 1 && out.items[0].bytes == 256 << 10);
	const char *other = strcmp(out.items[0].path, "one") == 0 ? "'two'" : "'one'";
	check(strstr(err.msg, other) && strstr(err.msg, "No space left on device"));
	check(strstr(err.hint, "it is full; nothing after this file was copied"));

	int count = 0;
	DIR *dir = opendir("/tmp/dest");
	while (readdir(dir))
		count++;
	check(count == 3); /* ".", ".." and the whole one: the half one is gone */
	arena_fini(&arena);
}

static void a_full_disk_names_the_file_and_keeps_the_complete_ones(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	spec.scratch_bytes = 1 << 20;
	run_as_each(&spec, collect_to_full, NULL);
}

static void a_destination_that_cannot_be_written_is_an_error(void **state)
{
	(void)state;
	struct bench b = make_bench();
	make_file(at(b.place, "box/out/x"), "x");
	chmod(at(b.place, "dest"), 0555);
	assert_int_equal(collect_as_user(&b), -EACCES);
	assert_non_null(strstr(b.err.msg, "create 'x' in the artifacts directory"));
	end_bench(&b);
}

/* --- paths of the caller's ------------------------------------------------------------ */

static void named_paths_keep_their_own_names(void **state)
{
	(void)state;
	struct bench b = make_bench();
	mkdir(at(b.place, "box/src"), 0755);
	mkdir(at(b.place, "box/src/sub"), 0755);
	make_file(at(b.place, "box/src/sub/hello"), "built");
	make_file(at(b.place, "box/src/log"), "log");
	mkdir(at(b.place, "box/out/src"), 0755);
	make_file(at(b.place, "box/out/src/log"), "another");
	make_file(at(b.place, "box/out/srcs"), "no clash");
	const struct artifact_place places[] = {
		{ b.box_fd, "src/sub", "/src/sub" }, /* a directory */
		{ b.box_fd, "src/log", "/src/log" },
		{ b.box_fd, "src/none", "/src/none" },
	};
	const struct artifacts_from from = { b.box_fd, places, 3 };
	assert_int_equal(artifacts_collect(&from, b.dest_fd, &b.arena, &b.out, &b.err), 0);
	assert_int_equal(b.out.count, 3);
	assert_string_equal(b.out.items[0].path, "src/log");
	assert_string_equal(b.out.items[1].path, "src/sub/hello");
	assert_string_equal(b.out.items[2].path, "srcs");
	assert_int_equal(b.out.items[0].bytes, 3); /* the one that was named */
	assert_true(is_skipped(&b, "'/src/none' is not copied: No such file"));
	assert_true(is_skipped(&b, "'src' in /box/out is not copied: its name is the first part"));
	end_bench(&b);
}

/* A link on the way or at the end, a fifo, a second hard link, a way out, a name like an option. */
static void named_paths_are_checked_like_box_out(void **state)
{
	(void)state;
	struct bench b = make_bench();
	mkdir(at(b.place, "box/src"), 0755);
	make_file(at(b.place, "box/src/real"), "x");
	assert_int_equal(symlink("/etc", at(b.place, "box/src/etc")), 0);
	assert_int_equal(symlink("real", at(b.place, "box/src/link")), 0);
	assert_int_equal(mkfifo(at(b.place, "box/src/fifo"), 0666), 0);
	assert_int_equal(link(at(b.place, "box/src/real"), at(b.place, "box/src/hard")), 0);
	mkdir(at(b.place, "box/src/-d"), 0755);
	make_file(at(b.place, "box/src/-d/f"), "x");
	const struct artifact_place places[] = {
		{ b.box_fd, "src/etc/passwd", "/src/etc/passwd" },
		{ b.box_fd, "src/link", "/src/link" },
		{ b.box_fd, "src/fifo", "/src/fifo" },
		{ b.box_fd, "src/hard", "/src/hard" },
		{ b.box_fd, "../../etc/passwd", "/a/passwd" },
		{ b.box_fd, "src/-d/f", "/src/-d/f" },
	};
	const struct artifacts_from from = { b.box_fd, places, 6 };
	assert_int_equal(artifacts_collect(&from, b.dest_fd, &b.arena, &b.out, &b.err), 0);
	assert_int_equal(b.out.count, 0);
	assert_int_equal(b.out.skipped.count, 6);
	assert_true(is_skipped(&b, "'/src/etc/passwd' is not copied: "));
	assert_true(is_skipped(&b, "'/src/link' is not copied: it is a symbolic link"));
	assert_true(is_skipped(&b, "'/a/passwd' is not copied: "));
	assert_true(is_skipped(&b, "'/src/-d/f' is not copied: "));
	end_bench(&b);
}

static void a_named_path_has_a_maximum_depth(void **state)
{
	(void)state;
	struct bench b = make_bench();
	char path[512] = "";
	for (int i = 0; i < ARTIFACTS_DEPTH_MAX; i++)
		(void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "/d");
	(void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "/f");
	const struct artifact_place deep = { b.box_fd, path + 1, path };
	const struct artifacts_from from = { b.box_fd, &deep, 1 };
	assert_int_equal(artifacts_keep(&from, 100, &b.arena, &b.out, &b.err), 0);
	assert_true(is_skipped(&b, "is not copied: its path is too deep"));
	end_bench(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_copied_with_size_hash_and_type),
		cmocka_unit_test(without_box_out_there_are_no_artefacts_and_no_error),
		cmocka_unit_test(files_are_kept_only_in_memory),
		cmocka_unit_test(files_that_have_not_changed_since_a_time_are_left_out),
		cmocka_unit_test(a_file_larger_than_its_reported_size_is_not_kept),
		cmocka_unit_test(a_link_in_place_of_box_out_is_not_followed),
		cmocka_unit_test(an_existing_file_is_replaced_completely),
		cmocka_unit_test(only_regular_files_with_one_link_are_copied),
		cmocka_unit_test(files_with_unusual_names_are_skipped_and_named_escaped),
		cmocka_unit_test(unreadable_files_are_skipped),
		cmocka_unit_test(a_huge_sparse_file_is_skipped_and_the_rest_is_copied),
		cmocka_unit_test(the_sum_of_all_files_is_limited),
		cmocka_unit_test(more_files_than_allowed_are_counted_not_listed),
		cmocka_unit_test(a_tree_of_3000_levels_is_copied_to_the_maximum_depth),
		cmocka_unit_test(a_file_at_the_maximum_depth_is_copied),
		cmocka_unit_test(links_planted_in_the_destination_are_not_followed),
		cmocka_unit_test(a_full_disk_names_the_file_and_keeps_the_complete_ones),
		cmocka_unit_test(a_destination_that_cannot_be_written_is_an_error),
		cmocka_unit_test(named_paths_keep_their_own_names),
		cmocka_unit_test(named_paths_are_checked_like_box_out),
		cmocka_unit_test(a_named_path_has_a_maximum_depth),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
