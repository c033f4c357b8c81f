/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/ids/idmap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/kernel/ids/refusal.h"

#define ID_MAP_BYTES_MAX 16384 /* 340 lines of at most 33 bytes: user_namespaces(7) */

/* Of the host's user namespace: USER_NS_INIT_INO in <linux/nsfs.h>. */
#define INITIAL_INODE 0xEFFFFFFDu

#define PREFERRED_FIRST 0x70000000u
#define PREFERRED_COUNT 0x10000u
#define SYSTEM_END      1000u  /* below: system accounts */
#define NAMED_FIRST     60000u /* systemd's own users, dynamic users, "nobody", (uid16_t)-1 */
#define NAMED_END       65536u

/* Maps as text, and the choice of unused ids in them: no system calls. */

static const char *skip_blanks(const char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

/* One decimal number of at most 32 bits; NULL: there is none. */
static const char *take_number(const char *at, uint32_t *out)
{
	uint64_t value;
	at = text_take_u64(skip_blanks(at), &value);
	if (!at || value > UINT32_MAX)
		return NULL;
	*out = (uint32_t)value;
	return at;
}

static const char *take_line(const char *at, struct idrange *out)
{
	at = take_number(at, &out->inside);
	if (at)
		at = take_number(at, &out->outside);
	if (at)
		at = take_number(at, &out->count);
	if (!at)
		return NULL;

	at = skip_blanks(at);
	if (*at != '\n' && *at != '\0')
		return NULL;
	if (out->count == 0 || out->inside > UINT32_MAX - out->count ||
	    out->outside > UINT32_MAX - out->count)
		return NULL;
	return *at == '\n' ? at + 1 : at;
}

int idmap_parse(const char *name, const char *text, struct idmap_ranges *out, struct cj_error *err)
{
	size_t count = 0;
	for (const char *at = text; *at != '\0';) {
		if (count == IDMAP_LINES_MAX)
			return cj_reject(err, "'%s' has more than %d lines", name, IDMAP_LINES_MAX);
		at = take_line(at, &out->items[count]);
		if (!at)
			return cj_reject(err, "'%s' has an unexpected line %zu", name, count + 1);
		count++;
	}
	out->count = count;
	return 0;
}

bool idmap_outside(const struct idmap_ranges *map, uint32_t id, uint32_t *out)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct idrange *r = &map->items[i];
		if (id >= r->inside && id - r->inside < r->count) {
			*out = r->outside + (id - r->inside);
			return true;
		}
	}
	return false;
}

/* Ends are exclusive and 64 bits wide: inside + count may be 2^32 - 1 at most. */
struct stretch {
	uint64_t first, end;
};

static struct stretch overlap(struct stretch a, struct stretch b)
{
	struct stretch both = {
		.first = a.first > b.first ? a.first : b.first,
		.end = a.end < b.end ? a.end : b.end,
	};
	if (both.end < both.first)
		both.end = both.first;
	return both;
}

static uint64_t length(struct stretch s)
{
	return s.end - s.first;
}

/* Keeps the longest piece seen that lies in free_ids. */
static void keep_longest(struct stretch candidate, struct stretch free_ids, struct stretch *best)
{
	struct stretch piece = overlap(candidate, free_ids);
	if (length(piece) > length(*best))
		*best = piece;
}

bool idmap_pick(const struct idmap_ranges *uids, const struct idmap_ranges *gids,
		struct idmap_block *out)
{
	const struct stretch preferred = { PREFERRED_FIRST, PREFERRED_FIRST + PREFERRED_COUNT };
	const struct stretch low = { SYSTEM_END, NAMED_FIRST }, high = { NAMED_END, UINT32_MAX };
	struct stretch best = { 0, 0 };

	for (size_t u = 0; u < uids->count; u++) {
		for (size_t g = 0; g < gids->count; g++) {
			const struct idrange *uid = &uids->items[u], *gid = &gids->items[g];
			struct stretch both = overlap(
			    (struct stretch){ uid->inside, (uint64_t)uid->inside + uid->count },
			    (struct stretch){ gid->inside, (uint64_t)gid->inside + gid->count });
			if (length(overlap(preferred, both)) == PREFERRED_COUNT) {
				*out = (struct idmap_block){ PREFERRED_FIRST, PREFERRED_COUNT };
				return true;
			}
			keep_longest(both, low, &best);
			keep_longest(both, high, &best);
		}
	}
	if (length(best) == 0)
		return false;

	uint64_t count = (length(best) + 1) / 2;
	if (count > PREFERRED_COUNT)
		count = PREFERRED_COUNT;
	*out = (struct idmap_block){ (uint32_t)(best.end - count), (uint32_t)count };
	return true;
}

static int read_map(const char *path, struct idmap_ranges *out, struct cj_error *err)
{
	char text[ID_MAP_BYTES_MAX];
	ssize_t rc = system_file_read(AT_FDCWD, path, text, sizeof(text));
	if (rc < 0)
		return cj_fail(err, (int)-rc, "read '%s'", path);
	return idmap_parse(path, text, out, err);
}

/* In the host's user namespace every id stands for itself, and one call tells that. */
static int read_own_maps(struct idmap_ranges *uids, struct idmap_ranges *gids, struct cj_error *err)
{
	struct stat own;
	if (stat("/proc/self/ns/user", &own) == 0 && own.st_ino == INITIAL_INODE) {
		uids->items[0] = gids->items[0] = (struct idrange){ .count = UINT32_MAX };
		uids->count = gids->count = 1;
		return 0;
	}
	return read_map("/proc/self/uid_map", uids, err) < 0
		   ? -err->code
		   : read_map("/proc/self/gid_map", gids, err);
}

/* The caller maps itself: the only map that needs no capability outside. */
static void choose_own(uid_t uid, struct idmap *out)
{
	*out = (struct idmap){ .uid = uid, .gid = getegid(), .lock_fd = -1 };
}

/*
 * Each byte of the file stands for one id.  An open file description lock ends with its descriptor,
 * even when the process is killed: fcntl(2).  The search begins at a byte that changes with each
 * nanosecond: concurrent jails seldom try the same one.
 */
static int lock_any(int fd, uint32_t count, uint32_t *out_index, struct cj_error *err)
{
	struct timespec now = { 0 };
	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail; no system call: vdso(7) */

	for (uint32_t i = 0; i < count; i++) {
		uint32_t index = (uint32_t)(((uint64_t)now.tv_nsec + i) % count);
		struct flock lock = {
			.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = index, .l_len = 1
		};
		if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
			*out_index = index;
			return 0;
		}
		if (errno != EAGAIN && errno != EACCES)
			return cj_fail(err, errno, "lock an id in 'ids'");
	}
	(void)!cj_fail(err, EAGAIN, "find a free id among %u", count);
	return cj_hint(err, "each running jail uses one: wait until some end");
}

static int choose_unused(int runtime_dir_fd, const struct idmap_block *block, struct idmap *out,
			 struct cj_error *err)
{
	auto_fd int fd =
	    openat(runtime_dir_fd, "ids", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return cj_fail(err, errno, "open 'ids' in the runtime directory");

	uint32_t index = 0;
	if (lock_any(fd, block->count, &index, err) < 0)
		return -err->code;
	*out = (struct idmap){
		.uid = block->first + index,
		.gid = block->first + index,
		.may_setgroups = true,
		.lock_fd = take_fd(&fd),
	};
	return 0;
}

int idmap_choose(int runtime_dir_fd, struct idmap *out, struct cj_error *err)
{
	const uid_t own = geteuid();
	if (own != 0) {
		choose_own(own, out);
		return 0;
	}

	struct idmap_ranges uids, gids;
	if (read_own_maps(&uids, &gids, err) < 0)
		return -err->code;

	struct idmap_block block;
	if (idmap_pick(&uids, &gids, &block))
		return choose_unused(runtime_dir_fd, &block, out, err);
	/*
	 * A root without spare ids may map itself only if it is an ordinary user in the namespace
	 * above.  "0 0 1" would make the payload uid 0 of that namespace.
	 */
	uint32_t outside = 0;
	if (!idmap_outside(&uids, own, &outside) || outside == 0) {
		(void)!cj_fail(err, EPERM, "there is no id for the jail but uid 0");
		return cj_hint(err, "run cejail as an ordinary user, or give this user namespace "
				    "more ids in its uid_map and gid_map");
	}
	choose_own(own, out);
	return 0;
}

void idmap_release(struct idmap *map)
{
	cj_close(&map->lock_fd);
}

/* Init is our child, so no other process has its number yet. */
int idmap_write(const struct idmap *map, pid_t init_pid, struct cj_error *err)
{
	char uid_path[40], gid_path[40], groups_path[40], uid_line[64], gid_line[64];
	(void)snprintf(uid_path, sizeof(uid_path), "/proc/%d/uid_map", (int)init_pid);
	(void)snprintf(gid_path, sizeof(gid_path), "/proc/%d/gid_map", (int)init_pid);
	(void)snprintf(groups_path, sizeof(groups_path), "/proc/%d/setgroups", (int)init_pid);
	(void)snprintf(uid_line, sizeof(uid_line), "%d %u 1", IDMAP_INSIDE_UID, map->uid);
	(void)snprintf(gid_line, sizeof(gid_line), "%d %u 1", IDMAP_INSIDE_GID, map->gid);

	struct fd_text files[3] = { { uid_path, uid_line } };
	size_t count = 1;
	/* Without CAP_SETGID outside, gid_map requires this first: user_namespaces(7). */
	if (!map->may_setgroups)
		files[count++] = (struct fd_text){ groups_path, "deny" };
	files[count++] = (struct fd_text){ gid_path, gid_line };
	if (fd_put_files(AT_FDCWD, files, count, err) == 0)
		return 0;
	(void)refusal_hint(err);
	return -err->code;
}

bool idmap_is_initial(void)
{
	char text[SYSTEM_FILE_SMALL];
	unsigned long first, below, count;

	if (system_file_read(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text)) < 0)
		return true;
	return sscanf(text, "%lu %lu %lu", &first, &below, &count) == 3 && first == 0 &&
	       below == 0 && count == UINT32_MAX;
}

uid_t idmap_outside_uid(void)
{
	struct idmap_ranges uids;
	struct cj_error ignored;
	uint32_t outside = 0;

	if (read_map("/proc/self/uid_map", &uids, &ignored) < 0 ||
	    !idmap_outside(&uids, geteuid(), &outside))
		return geteuid();
	return outside;
}
