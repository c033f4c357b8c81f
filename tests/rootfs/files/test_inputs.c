/* SPDX-License-Identifier: Apache-2.0 */
/* Files handed in: what is found, what is refused, and what init makes of it. */
#include "rootfs/files/inputs.h"

#include "tests/rootfs/inside.h"

#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>

static mode_t mode_of(const char *path)
{
	struct stat st;
	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

/* --- the walk ------------------------------------------------------------------------- */

struct seen {
	struct {
		enum input_kind kind;
		mode_t mode;
		char path[256], target[64];
		bool has_fd;
	} items[32];
	size_t count, stop_at;
};

static int note(void *context, const struct input *in, int fd, struct cj_error *err)
{
	struct seen *seen = context;
	if (seen->stop_at > 0 && seen->count + 1 == seen->stop_at)
		return cj_fail(err, EPIPE, "hand in '%s'", in->path);
	if (seen->count < 32) {
		seen->items[seen->count].kind = in->kind;
		seen->items[seen->count].mode = in->mode;
		seen->items[seen->count].has_fd = fd >= 0;
		(void)snprintf(seen->items[seen->count].path, 256, "%.255s", in->path);
		(void)snprintf(seen->items[seen->count].target, 64, "%.63s", in->target);
	}
	seen->count++;
	return 0;
}

static int find(const struct seen *seen, const char *path)
{
	for (size_t i = 0; i < seen->count && i < 32; i++)
		if (strcmp(seen->items[i].path, path) == 0)
			return (int)i;
	return -1;
}

static void refuse(const char *source, int code, const char *part)
{
	struct cj_error err = { 0 };
	struct seen seen = { 0 };
	int before = open_count();
	assert_int_equal(inputs_walk(source, "/box/x", 1 << 20, note, &seen, &err), -code);
	if (!strstr(err.msg, part))
		print_error("message: %s\n", err.msg);
	assert_non_null(strstr(err.msg, part));
	assert_int_equal(open_count(), before);
}

static void a_directory_becomes_its_entries_with_parents_first(void **state)
{
	(void)state;
	char *place = make_place();
	mkdir(at(place, "src"), 0755);
	mkdir(at(place, "src/sub"), 0755);
	chmod(at(place, "src/sub"), 0555);
	make_file(at(place, "src/a.py"), "print(1)");
	chmod(at(place, "src/a.py"), 04711);
	assert_int_equal(symlink("../../etc/passwd", at(place, "src/link")), 0);
	chmod(at(place, "src/sub"), 0755);
	make_file(at(place, "src/sub/b"), "");

	struct cj_error err = { 0 };
	struct seen seen = { 0 };
	int before = open_count();
	assert_int_equal(inputs_walk(at(place, "src"), "/box/src", 100, note, &seen, &err), 0);
	assert_int_equal(open_count(), before);
	assert_int_equal(seen.count, 7);
	assert_int_equal(find(&seen, "/box/src"), 0);
	assert_int_equal(seen.items[0].kind, INPUT_DIRECTORY);
	assert_int_equal(seen.items[6].kind, INPUT_DIRECTORY_END);
	assert_string_equal(seen.items[6].path, "/box/src");

	int file = find(&seen, "/box/src/a.py"), link = find(&seen, "/box/src/link");
	assert_true(file > 0 && link > 0);
	assert_int_equal(seen.items[file].kind, INPUT_FILE);
	assert_true(seen.items[file].has_fd);
	assert_int_equal(seen.items[file].mode, 0711); /* never setuid */
	assert_int_equal(seen.items[link].kind, INPUT_SYMLINK);
	assert_string_equal(seen.items[link].target, "../../etc/passwd");
	assert_false(seen.items[link].has_fd);
	assert_true(find(&seen, "/box/src/sub/b") > find(&seen, "/box/src/sub"));
	end_place(place);
}

static void a_source_that_is_no_file_is_refused_by_name(void **state)
{
	(void)state;
	char *place = make_place();
	mkdir(at(place, "src"), 0755);
	mkfifo(at(place, "src/pipe"), 0666);
	refuse(at(place, "src"), EINVAL, "/src/pipe' is a fifo");
	refuse(at(place, "src/pipe"), EINVAL, "/src/pipe' is a fifo");
	unlink(at(place, "src/pipe"));

	struct sockaddr_un address = { .sun_family = AF_UNIX };
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/src/sock", place);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	refuse(at(place, "src"), EINVAL, "/src/sock' is a socket");
	refuse("/dev/null", EINVAL, "'/dev/null' is a device");
	refuse(at(place, "nothing"), ENOENT, "/nothing'");
	end_place(place);
}

static void a_named_link_is_refused_with_the_remedy(void **state)
{
	(void)state;
	char *place = make_place();
	make_file(at(place, "file"), "");
	assert_int_equal(symlink("file", at(place, "link")), 0);
	struct cj_error err = { 0 };
	struct seen seen = { 0 };
	assert_int_equal(inputs_walk(at(place, "link"), "/box/x", 9, note, &seen, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "/link' is a symbolic link"));
	assert_string_equal(err.hint, "name the file it points to");
	end_place(place);
}

static void a_file_past_the_limit_is_refused_before_it_is_read(void **state)
{
	(void)state;
	char *place = make_place();
	make_file(at(place, "big"), "");
	assert_int_equal(truncate(at(place, "big"), (2 << 20)), 0);
	refuse(at(place, "big"), EFBIG, "/big' has more than 1048576 bytes");
	end_place(place);
}

static void a_deep_tree_is_refused(void **state)
{
	(void)state;
	char *place = make_place();
	char path[PATH_MAX];
	size_t used = (size_t)snprintf(path, sizeof(path), "%s", place);
	for (int i = 0; i < 70; i++) {
		used += (size_t)snprintf(path + used, sizeof(path) - used, "/d");
		assert_int_equal(mkdir(path, 0755), 0);
	}
	refuse(place, EINVAL, "lies more than 64 directories deep");
	end_place(place);
}

static void too_many_entries_are_refused(void **state)
{
	(void)state;
	char *place = make_place();
	int dir_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[16];
	for (int i = 0; i < INPUT_FILES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(mknodat(dir_fd, name, S_IFREG | 0644, 0), 0);
	}
	struct cj_error err = { 0 };
	struct seen seen = { 0 };
	assert_int_equal(inputs_walk(place, "/box/x", 1, note, &seen, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "more than 100000 files and directories"));
	assert_non_null(strstr(err.hint, "--overlay"));
	close(dir_fd);
	end_place(place);
}

static void a_path_too_long_is_refused(void **state)
{
	(void)state;
	char *place = make_place();
	char name[256], target[INPUT_PATH_MAX];
	memset(name, 'n', 255);
	name[255] = '\0';
	make_file(at(place, name), "");
	memset(target, 't', sizeof(target));
	target[0] = '/';
	target[sizeof(target) - 10] = '\0';
	struct cj_error err = { 0 };
	struct seen seen = { 0 };
	assert_int_equal(inputs_walk(place, target, 9, note, &seen, &err), -ENAMETOOLONG);
	end_place(place);
}

static void the_sink_can_stop_the_walk(void **state)
{
	(void)state;
	char *place = make_place();
	make_file(at(place, "a"), "");
	make_file(at(place, "b"), "");
	struct cj_error err = { 0 };
	struct seen seen = { .stop_at = 2 };
	int before = open_count();
	assert_int_equal(inputs_walk(place, "/box/x", 9, note, &seen, &err), -EPIPE);
	assert_int_equal(seen.count, 1);
	assert_int_equal(open_count(), before);
	end_place(place);
}

/* --- writing -------------------------------------------------------------------------- */

struct root {
	char *place;
	int fd;
};

static struct root make_root(void)
{
	struct root root = { .place = make_place() };
	root.fd = open(root.place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(root.fd >= 0);
	return root;
}

static void end_root(struct root *root)
{
	cj_close(&root->fd);
	end_place(root->place);
}

static int with_bytes(const char *bytes)
{
	int fd = memfd_create("input", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, strlen(bytes)), strlen(bytes));
	return fd; /* its offset is at the end: only the bytes may count */
}

static struct input file_input(const char *path, mode_t mode)
{
	struct input in = { .kind = INPUT_FILE, .mode = mode, .max_bytes = 100 };
	(void)snprintf(in.path, sizeof(in.path), "%s", path);
	return in;
}

static int put(const struct root *root, const struct input *in, const char *bytes,
	       struct cj_error *err)
{
	int fd = bytes ? with_bytes(bytes) : -1;
	int before = open_count();
	*err = (struct cj_error){ 0 };
	int rc = input_write(root->fd, in, fd, err);
	assert_int_equal(open_count(), before);
	cj_close(&fd);
	return rc;
}

static void a_file_arrives_complete_with_its_mode_and_its_parents(void **state)
{
	(void)state;
	struct root root = make_root();
	struct cj_error err;
	struct input in = file_input("/box/a/b/main.py", 0755);
	mode_t saved = umask(077);
	assert_int_equal(put(&root, &in, "print(1)\n", &err), 0);
	umask(saved);

	char text[32] = "";
	int fd = open(at(root.place, "box/a/b/main.py"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text)), 9);
	assert_string_equal(text, "print(1)\n");
	close(fd);
	assert_int_equal(mode_of(at(root.place, "box/a/b/main.py")), 0755);
	assert_int_equal(mode_of(at(root.place, "box/a")), 0755);

	in = file_input("//box///empty", 0400);
	assert_int_equal(put(&root, &in, "", &err), 0);
	assert_int_equal(mode_of(at(root.place, "box/empty")), 0400);
	end_root(&root);
}

/* A pack as init gets it. */
struct packed {
	char bytes[INPUT_PACK_MAX];
	size_t size;
};

static void pack_files(const struct input_pack *pack, struct packed *out)
{
	out->size = 0;
	for (size_t i = 0; i < 3 * pack->count; i++) {
		assert_true(pack->parts[i].iov_len <= sizeof(out->bytes) - out->size);
		if (pack->parts[i].iov_len > 0)
			memcpy(out->bytes + out->size, pack->parts[i].iov_base,
			       pack->parts[i].iov_len);
		out->size += pack->parts[i].iov_len;
	}
	assert_int_equal(out->size, pack->size);
}

static bool add_file(struct input_pack *pack, const char *path, mode_t mode, const char *text)
{
	const struct packed_file file = { .mode = mode, .size = (uint32_t)strlen(text) };
	return input_pack_add(pack, &file, path, text);
}

static int write_packed(const struct root *root, const struct packed *p, bool replaces,
			struct cj_error *err)
{
	int before = open_count();
	*err = (struct cj_error){ 0 };
	int rc = input_pack_write(root->fd, p->bytes, p->size, replaces, err);
	assert_int_equal(open_count(), before);
	return rc;
}

static bool has_text(const char *path, const char *wanted)
{
	char text[64] = "";
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0 && strcmp(text, wanted) == 0;
}

static void each_file_of_a_pack_arrives_in_its_directory(void **state)
{
	(void)state;
	static struct packed packed;
	struct root root = make_root();
	struct cj_error err;
	struct input_pack pack = { 0 };
	assert_true(add_file(&pack, "/box/a", 0644, "one"));
	assert_true(add_file(&pack, "/box/b", 0755, ""));
	assert_true(add_file(&pack, "/box/sub/c", 0644, "three"));
	assert_true(add_file(&pack, "/bo", 0644, "four"));
	assert_true(add_file(&pack, "//box//d", 0600, "five"));
	pack_files(&pack, &packed);
	mode_t saved = umask(077);
	assert_int_equal(write_packed(&root, &packed, false, &err), 0);
	umask(saved);
	assert_true(has_text(at(root.place, "box/a"), "one"));
	assert_true(has_text(at(root.place, "box/b"), ""));
	assert_int_equal(mode_of(at(root.place, "box/b")), 0755);
	assert_true(has_text(at(root.place, "box/sub/c"), "three"));
	assert_int_equal(mode_of(at(root.place, "box/sub")), 0755);
	assert_true(has_text(at(root.place, "bo"), "four"));
	assert_true(has_text(at(root.place, "box/d"), "five"));
	assert_int_equal(mode_of(at(root.place, "box/d")), 0600);

	assert_int_equal(write_packed(&root, &packed, false, &err), -EEXIST);
	assert_non_null(strstr(err.msg, "'/box/a'"));
	assert_int_equal(write_packed(&root, &packed, true, &err), 0);
	end_root(&root);
}

static void a_file_of_ours_comes_before_the_bytes_of_its_pack(void **state)
{
	(void)state;
	static struct packed packed;
	struct root root = make_root();
	struct cj_error err;
	struct input_pack pack = { 0 };
	const struct blob ours = own_file_bytes(OWN_FILE_TOOLS_MJS);
	const struct packed_file file = { .mode = 0644, .own = OWN_FILE_TOOLS_MJS, .size = 4 };
	assert_true(input_pack_add(&pack, &file, "/m", "more"));
	pack_files(&pack, &packed);
	assert_true(packed.size < 100);
	assert_int_equal(write_packed(&root, &packed, false, &err), 0);
	auto_free char *text = calloc(1, ours.size + 5);
	auto_fd int fd = open(at(root.place, "m"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, ours.size + 5), ours.size + 4);
	assert_memory_equal(text, ours.bytes, ours.size);
	assert_string_equal(text + ours.size, "more");
	end_root(&root);
}

static void a_pack_with_a_link_in_a_path_is_refused(void **state)
{
	(void)state;
	static struct packed packed;
	struct root root = make_root();
	struct cj_error err;
	static const char *const paths[] = { "/link/x", "/box/../x", "x" };
	assert_int_equal(symlink("box", at(root.place, "link")), 0);
	for (size_t i = 0; i < 3; i++) {
		struct input_pack pack = { 0 };
		assert_true(add_file(&pack, paths[i], 0644, "1"));
		pack_files(&pack, &packed);
		assert_true(write_packed(&root, &packed, true, &err) < 0);
	}
	assert_false(exists(at(root.place, "x")));
	assert_false(exists(at(root.place, "box/x")));
	end_root(&root);
}

static void a_pack_that_ends_within_a_file_is_refused(void **state)
{
	(void)state;
	static struct packed packed;
	struct root root = make_root();
	struct cj_error err;
	struct input_pack pack = { 0 };
	assert_true(add_file(&pack, "/box/a", 0644, "one"));
	pack_files(&pack, &packed);
	const size_t whole = packed.size;
	for (packed.size = 1; packed.size < whole; packed.size++)
		assert_int_equal(write_packed(&root, &packed, true, &err), -EPROTO);
	assert_false(exists(at(root.place, "box/a")));

	/* each field of its head that says more than there is, and a path without its NUL */
	static const struct packed_file wrong[] = {
		{ .size = 4, .path_size = 7 },          { .size = UINT32_MAX, .path_size = 7 },
		{ .size = 3, .path_size = 0 },          { .size = 3, .path_size = 6 },
		{ .size = 3, .path_size = UINT32_MAX },
	};
	packed.size = whole;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memcpy(packed.bytes, &wrong[i], sizeof(wrong[i]));
		assert_int_equal(write_packed(&root, &packed, true, &err), -EPROTO);
	}
	end_root(&root);
}

static void a_full_pack_takes_no_file_more(void **state)
{
	(void)state;
	static char large[INPUT_PACK_MAX + 1], path[INPUT_PATH_MAX + 1];
	struct input_pack pack = { 0 };
	memset(large, 'x', sizeof(large) - 1);
	assert_false(add_file(&pack, "/large", 0644, large));
	memset(path, 'y', sizeof(path) - 1);
	assert_false(add_file(&pack, path, 0644, "1"));
	assert_int_equal(pack.count, 0);
	for (size_t i = 0; i < INPUT_PACK_FILES; i++)
		assert_true(add_file(&pack, "/x", 0644, "1"));
	assert_false(add_file(&pack, "/x", 0644, "1"));
}

static void an_existing_file_is_not_overwritten(void **state)
{
	(void)state;
	struct root root = make_root();
	struct cj_error err;
	struct input in = file_input("/x", 0644);
	assert_int_equal(put(&root, &in, "one", &err), 0);
	assert_int_equal(put(&root, &in, "two", &err), -EEXIST);
	assert_non_null(strstr(err.msg, "'/x'"));

	/* Not through a link to nowhere, either. */
	assert_int_equal(symlink("target", at(root.place, "arrow")), 0);
	in = file_input("/arrow", 0644);
	assert_int_equal(put(&root, &in, "two", &err), -EEXIST);
	assert_false(exists(at(root.place, "target")));
	end_root(&root);
}

static void no_link_in_a_path_is_followed(void **state)
{
	(void)state;
	struct root root = make_root();
	struct cj_error err;
	mkdir(at(root.place, "real"), 0755);
	assert_int_equal(symlink("real", at(root.place, "link")), 0);
	struct input in = file_input("/link/x", 0644);
	assert_true(put(&root, &in, "1", &err) < 0);
	assert_true(err.code == ELOOP || err.code == ENOTDIR);
	assert_string_equal(err.hint, "a link or a file is where a directory should be");
	assert_false(exists(at(root.place, "real/x")));

	in = (struct input){ .kind = INPUT_DIRECTORY, .mode = 0700, .path = "/link" };
	assert_true(put(&root, &in, NULL, &err) < 0);
	in = (struct input){ .kind = INPUT_SYMLINK, .path = "/link/y", .target = "z" };
	assert_true(put(&root, &in, NULL, &err) < 0);
	end_root(&root);
}

static void paths_with_dots_or_without_a_name_are_refused(void **state)
{
	(void)state;
	struct root root = make_root();
	static const char *const paths[] = { "",     "x",       "/",         "//",
					     "/..",  "/../x",   "/box/../x", "/box/.",
					     "/./x", "/box/..", "../x",      NULL };
	struct cj_error err;
	for (size_t i = 0; paths[i]; i++) {
		struct input in = file_input(paths[i], 0644);
		assert_int_equal(put(&root, &in, "1", &err), -EINVAL);
	}
	char longest[300] = "/";
	memset(longest + 1, 'n', 256);
	struct input in = file_input(longest, 0644);
	assert_true(put(&root, &in, "1", &err) < 0);
	end_root(&root);
}

static void an_existing_directory_is_kept_and_a_missing_one_made(void **state)
{
	(void)state;
	struct root root = make_root();
	struct cj_error err;
	mkdir(at(root.place, "box"), 0755);
	struct input in = { .kind = INPUT_DIRECTORY, .mode = 0700, .path = "/box" };
	assert_int_equal(put(&root, &in, NULL, &err), 0);
	assert_int_equal(mode_of(at(root.place, "box")), 0755);
	in = (struct input){ .kind = INPUT_DIRECTORY, .mode = 0750, .path = "/box/out" };
	assert_int_equal(put(&root, &in, NULL, &err), 0);
	assert_int_equal(mode_of(at(root.place, "box/out")), 0750);
	end_root(&root);
}

static void a_link_arrives_as_a_link(void **state)
{
	(void)state;
	struct root root = make_root();
	struct cj_error err;
	struct input in = { .kind = INPUT_SYMLINK, .path = "/box/l", .target = "../../etc" };
	assert_int_equal(put(&root, &in, NULL, &err), 0);
	char text[32] = "";
	assert_int_equal(readlink(at(root.place, "box/l"), text, sizeof(text) - 1), 9);
	assert_string_equal(text, "../../etc");
	end_root(&root);
}

static void a_file_that_grows_past_its_limit_is_refused(void **state)
{
	(void)state;
	struct root root = make_root();
	struct cj_error err;
	struct input in = file_input("/x", 0644);
	in.max_bytes = 4;
	assert_int_equal(put(&root, &in, "1234", &err), 0);
	in = file_input("/y", 0644);
	in.max_bytes = 4;
	assert_int_equal(put(&root, &in, "12345", &err), -EFBIG);
	assert_non_null(strstr(err.msg, "'/y' has more than 4 bytes"));
	end_root(&root);
}

/* On the scratch of a jail, behind its caps. */
static void overfill(void *arg)
{
	(void)arg;
	static char bytes[2 << 20];
	int fd = memfd_create("big", MFD_CLOEXEC);
	check(fd >= 0 && write(fd, bytes, sizeof(bytes)) == sizeof(bytes));
	int root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct input in = {
		.kind = INPUT_FILE, .mode = 0644, .max_bytes = 4 << 20, .path = "/box/data/big"
	};
	struct cj_error err = { 0 };
	check(input_write(root_fd, &in, fd, &err) == -ENOSPC);
	check(strstr(err.msg, "'/box/data/big'") && strstr(err.hint, "raise --disk"));
	memcpy(in.path, "/etc/x", sizeof("/etc/x"));
	err = (struct cj_error){ 0 };
	check(input_write(root_fd, &in, fd, &err) == -EROFS);
	check(strstr(err.hint, "--writable"));
}

static void a_full_scratch_fails_with_the_option_that_raises_it(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	spec.scratch_bytes = 1 << 20;
	run_as_each(&spec, overfill, NULL);
}

/* --- both together -------------------------------------------------------------------- */

static int write_through(void *context, const struct input *in, int fd, struct cj_error *err)
{
	return input_write(((struct root *)context)->fd, in, fd, err);
}

static const struct timespec some_time = { .tv_sec = 1000000000, .tv_nsec = 123456789 };

static void set_time(const char *path)
{
	const struct timespec times[2] = { some_time, some_time };
	assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static bool has_time(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && st.st_mtim.tv_sec == some_time.tv_sec &&
	       st.st_mtim.tv_nsec == some_time.tv_nsec;
}

/* Its mode and time come with its end, unless it was there before. */
static void an_existing_directory_keeps_its_mode(void **state)
{
	(void)state;
	struct root root = make_root();
	struct cj_error err;
	mkdir(at(root.place, "old"), 0750);
	struct input begin = { .kind = INPUT_DIRECTORY, .mode = 0555, .is_open = true };
	struct input end = { .kind = INPUT_DIRECTORY_END, .mode = 0555 };
	end.has_time = true;
	end.mtime = some_time;
	static const char *const names[] = { "old", "new" };
	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(begin.path, sizeof(begin.path), "/%s", names[i]);
		(void)snprintf(end.path, sizeof(end.path), "/%s", names[i]);
		assert_int_equal(put(&root, &begin, NULL, &err), 0);
		assert_int_equal(put(&root, &end, NULL, &err), 0);
	}
	assert_int_equal(mode_of(at(root.place, "old")), 0750);
	assert_false(has_time(at(root.place, "old")));
	assert_int_equal(mode_of(at(root.place, "new")), 0555);
	assert_true(has_time(at(root.place, "new")));
	end_root(&root);
}

static void a_tree_is_copied_unchanged(void **state)
{
	(void)state;
	char *place = make_place();
	struct root root = make_root();
	mkdir(at(place, "pkg"), 0755);
	mkdir(at(place, "pkg/data"), 0700);
	make_file(at(place, "pkg/data/\xff odd\nname"), "bytes");
	make_file(at(place, "pkg/.hidden"), "h");
	assert_int_equal(symlink("data", at(place, "pkg/current")), 0);
	mkdir(at(place, "pkg/closed"), 0755);
	make_file(at(place, "pkg/closed/file"), "c");
	chmod(at(place, "pkg/closed"), 0555);
	set_time(at(place, "pkg/closed/file"));
	set_time(at(place, "pkg/closed"));
	set_time(at(place, "pkg/current"));
	set_time(at(place, "pkg"));

	struct cj_error err = { 0 };
	int rc = inputs_walk(at(place, "pkg"), "/box/pkg", 1 << 20, write_through, &root, &err);
	assert_int_equal(rc, 0);
	assert_true(exists(at(root.place, "box/pkg/data/\xff odd\nname")));
	assert_true(exists(at(root.place, "box/pkg/current/\xff odd\nname")));
	assert_true(exists(at(root.place, "box/pkg/.hidden")));
	assert_int_equal(mode_of(at(root.place, "box/pkg/data")), 0700);
	assert_int_equal(mode_of(at(root.place, "box/pkg/closed")), 0555);
	static const char *const old[] = { "box/pkg", "box/pkg/closed", "box/pkg/closed/file",
					   "box/pkg/current" };
	for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++)
		assert_true(has_time(at(root.place, old[i])));
	chmod(at(root.place, "box/pkg/closed"), 0755); /* or it could not be removed */
	chmod(at(place, "pkg/closed"), 0755);

	/* A second time, everything is there already. */
	rc = inputs_walk(at(place, "pkg"), "/box/pkg", 1 << 20, write_through, &root, &err);
	assert_int_equal(rc, -EEXIST);
	end_root(&root);
	end_place(place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_directory_becomes_its_entries_with_parents_first),
		cmocka_unit_test(a_source_that_is_no_file_is_refused_by_name),
		cmocka_unit_test(a_named_link_is_refused_with_the_remedy),
		cmocka_unit_test(a_file_past_the_limit_is_refused_before_it_is_read),
		cmocka_unit_test(a_deep_tree_is_refused),
		cmocka_unit_test(too_many_entries_are_refused),
		cmocka_unit_test(a_path_too_long_is_refused),
		cmocka_unit_test(the_sink_can_stop_the_walk),
		cmocka_unit_test(a_file_arrives_complete_with_its_mode_and_its_parents),
		cmocka_unit_test(each_file_of_a_pack_arrives_in_its_directory),
		cmocka_unit_test(a_file_of_ours_comes_before_the_bytes_of_its_pack),
		cmocka_unit_test(a_pack_with_a_link_in_a_path_is_refused),
		cmocka_unit_test(a_pack_that_ends_within_a_file_is_refused),
		cmocka_unit_test(a_full_pack_takes_no_file_more),
		cmocka_unit_test(an_existing_file_is_not_overwritten),
		cmocka_unit_test(no_link_in_a_path_is_followed),
		cmocka_unit_test(paths_with_dots_or_without_a_name_are_refused),
		cmocka_unit_test(an_existing_directory_is_kept_and_a_missing_one_made),
		cmocka_unit_test(a_link_arrives_as_a_link),
		cmocka_unit_test(a_file_that_grows_past_its_limit_is_refused),
		cmocka_unit_test(a_full_scratch_fails_with_the_option_that_raises_it),
		cmocka_unit_test(an_existing_directory_keeps_its_mode),
		cmocka_unit_test(a_tree_is_copied_unchanged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
