/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_artifacts - any tree below /box/out, with any names, copied out; two paths by name, too.
 *
 * Each entry is a byte for its kind and a name, ended by NUL.
 *
 * Asserted: nothing but whole files is copied, under names that are UTF-8 without control
 * characters and leading dashes; each is listed, and what is listed is there with its size; every
 * entry is either copied or reported, in printable text.
 */
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "rootfs/files/artifacts.h"
#include "rootfs/files/autorun.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "tests/fuzz/bytes.h"

#define ENTRIES_MAX 40
#define DEPTH_MAX   20

/* Names that only a directory of the caller's does not get: autorun.h. */
static bool has_autorun(const struct artifacts *copied)
{
	for (size_t i = 0; i < copied->skipped.count; i++)
		if (strstr(copied->skipped.items[i], AUTORUN_FAULT))
			return true;
	return false;
}

/* In memory the same comes out, byte for byte. */
static void check_kept(const struct artifacts_from *from, int dest_fd,
		       const struct artifacts *copied)
{
	auto_arena struct arena a = { 0 };
	struct artifacts kept = { 0 };
	struct cj_error err = { 0 };
	int rc = artifacts_keep(from, UINT64_MAX, &a, &kept, &err);
	assert(rc == 0);
	if (has_autorun(copied))
		return;
	assert(kept.count == copied->count);
	assert(kept.skipped.count == copied->skipped.count);
	for (size_t i = 0; i < kept.count; i++) {
		const struct artifact *one = &kept.items[i], *other = &copied->items[i];
		char bytes[256];
		auto_fd int fd = openat(dest_fd, one->path, O_RDONLY | O_CLOEXEC);
		assert(strcmp(one->path, other->path) == 0 && one->bytes == other->bytes);
		assert(strcmp(one->sha256, other->sha256) == 0 && one->content);
		ssize_t got = read(fd, bytes, sizeof(bytes));
		assert(got >= 0 && memcmp(bytes, one->content, (size_t)got) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char home[] = "/dev/shm/fuzz-artifacts-XXXXXX";
static int home_fd = -1;

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type;
	return ftw->level > 0 ? remove(path) : 0;
}

static void clear(void)
{
	int rc = nftw(home, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	assert(rc == 0);
}

static void remove_home(void)
{
	clear();
	(void)rmdir(home);
}

static int make_directory(int dir_fd, const char *name)
{
	if (mkdirat(dir_fd, name, 0700) < 0)
		return -1;
	return openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* --- the payload's side ---------------------------------------------------------------- */

struct tree {
	int dirs[DEPTH_MAX];
	size_t depth;
	unsigned made;
};

static bool make_file(int dir_fd, const char *name, size_t size)
{
	auto_fd int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd >= 0 && write(fd, "0123456789abcdef", size % 16) >= 0;
}

static bool make_one(struct tree *t, uint8_t kind, const char *name)
{
	int dir_fd = t->dirs[t->depth];
	switch (kind % 8) {
	case 0:
		return symlinkat("/etc/passwd", dir_fd, name) == 0;
	case 1:
		return mkfifoat(dir_fd, name, 0600) == 0;
	case 2:
		return linkat(t->dirs[0], "linked", dir_fd, name, 0) == 0;
	case 3:
	case 4:
		if (t->depth + 1 == DEPTH_MAX)
			return false;
		t->dirs[t->depth + 1] = make_directory(dir_fd, name);
		if (t->dirs[t->depth + 1] < 0)
			return false;
		t->depth++;
		return true;
	default:
		return make_file(dir_fd, name, kind / 8);
	}
}

static void make_tree(struct bytes b, struct tree *t)
{
	if (bytes_u8(&b) & 1)
		t->made += make_file(t->dirs[0], "linked", 3);
	for (unsigned i = 0; i < ENTRIES_MAX && b.left > 0; i++) {
		uint8_t kind = bytes_u8(&b);
		auto_free char *name = bytes_text(bytes_until(&b, '\0'));
		if (name[0] == '\0' && t->depth > 0)
			cj_close(&t->dirs[t->depth--]); /* up again */
		else if (!strchr(name, '/'))
			t->made += make_one(t, kind, name);
	}
	while (t->depth > 0)
		cj_close(&t->dirs[t->depth--]);
}

/* --- outside ----------------------------------------------------------------------------- */

static void check_words(const char *text)
{
	assert(is_utf8(text, strlen(text)));
	for (const char *c = text; *c; c++)
		assert((uint8_t)*c >= ' ' && *c != 0x7f &&
		       !((uint8_t)c[0] == 0xc2 && (uint8_t)c[1] < 0xa0));
}

static void check_artifact(int dest_fd, const struct artifact *one)
{
	struct stat st;
	check_words(one->path);
	assert(one->path[0] != '-' && one->path[0] != '/' && !strstr(one->path, "/-"));
	assert(!strstr(one->path, "/../") && strncmp(one->path, "../", 3) != 0);
	int rc = fstatat(dest_fd, one->path, &st, AT_SYMLINK_NOFOLLOW);
	assert(rc == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == one->bytes);
	assert((st.st_mode & 07777) == 0644 && strlen(one->sha256) == 64 && one->type[0]);
}

static size_t files_there;

static int count_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path, (void)type, (void)ftw;
	assert(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode));
	files_there += S_ISREG(st->st_mode);
	return 0;
}

static void check_copied(int dest_fd, const struct artifacts *out)
{
	char dest[sizeof(home) + 8];
	(void)snprintf(dest, sizeof(dest), "%s/dest", home);
	files_there = 0;
	int rc = nftw(dest, count_file, 16, FTW_PHYS);
	assert(rc == 0 && files_there == out->count);
	for (size_t i = 0; i < out->count; i++)
		check_artifact(dest_fd, &out->items[i]);
	for (size_t i = 0; i < out->skipped.count; i++)
		check_words(out->skipped.items[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	auto_arena struct arena a = { 0 };
	struct artifacts out = { 0 };
	struct cj_error err = { 0 };
	if (home_fd < 0) {
		char *made = mkdtemp(home);
		(void)umask(022);
		home_fd = made ? open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
		assert(home_fd >= 0);
		(void)atexit(remove_home);
	}
	auto_fd int box_fd = make_directory(home_fd, "box");
	auto_fd int dest_fd = make_directory(home_fd, "dest");
	struct tree tree = { .dirs = { make_directory(box_fd, "out") } };
	assert(dest_fd >= 0 && tree.dirs[0] >= 0);

	make_tree((struct bytes){ bytes, size }, &tree);
	/* "tree" is reserved in /box/out by them */
	const struct artifact_place places[] = {
		{ box_fd, "out/d", "/tree/d" },
		{ box_fd, "out/a/b", "/tree/a/b" },
	};
	const struct artifacts_from from = { box_fd, places, 2 };
	int rc = artifacts_collect(&from, dest_fd, &a, &out, &err);
	assert(rc == 0);
	check_copied(dest_fd, &out);
	check_kept(&from, dest_fd, &out);
	cj_close(&tree.dirs[0]);
	clear();
	return 0;
}
