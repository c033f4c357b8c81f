/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/private_dir.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "runtime/base/files/empty_dir.h"
#include "runtime/base/scope.h"

#define PREFIX "cejail-"
#define DIGITS 16 /* random, in hexadecimal */

/* Nobody else can make this name before us, so a directory that is there is not ours. */
int private_dir_name(const char *id, char out[static PRIVATE_DIR_MAX], struct cj_error *err)
{
	const char *parent = geteuid() == 0 ? NULL : getenv("TMPDIR");
	uint64_t random;
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return cj_fail(err, errno, "get random bytes");
	if (!parent || parent[0] != '/')
		parent = "/tmp";
	int size =
	    snprintf(out, PRIVATE_DIR_MAX, "%s/" PREFIX "%s-%016" PRIx64, parent, id, random);
	return size < PRIVATE_DIR_MAX ? 0 : cj_reject(err, "TMPDIR '%.64s...' is too long", parent);
}

static int make_below(int dir_fd, const char *name, uid_t uid, gid_t gid, struct cj_error *err)
{
	if (mkdirat(dir_fd, name, 0700) < 0 ||
	    (uid != geteuid() && fchownat(dir_fd, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0))
		return cj_fail(err, errno, "make '%s' in it", name);
	return 0;
}

/* The owner changes last: until then no process of the jail can enter. */
static int fill(int dir_fd, uid_t uid, gid_t gid, struct cj_error *err)
{
	static const char *const names[] = { "box", "box/out", "tmp" };
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (make_below(dir_fd, names[i], uid, gid, err) < 0)
			return -err->code;
	if (uid != geteuid() && fchown(dir_fd, uid, gid) < 0)
		return cj_fail(err, errno, "give it to the jail's user");
	return 0;
}

static void remove_new(const char *path)
{
	auto_fd int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	(void)unlinkat(dir_fd, "box/out", AT_REMOVEDIR); /* what is not there is not there */
	(void)unlinkat(dir_fd, "box", AT_REMOVEDIR);
	(void)unlinkat(dir_fd, "tmp", AT_REMOVEDIR);
	(void)rmdir(path);
}

int private_dir_make(const char *path, uid_t uid, gid_t gid, struct cj_error *err)
{
	if (mkdir(path, 0700) < 0) {
		int rc = cj_fail(err, errno, "make the private directory '%s'", path);
		cj_hint(err, "set TMPDIR to a directory in which you may make others");
		return rc;
	}
	auto_fd int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0)
		(void)!cj_fail(err, errno, "open it");
	else if (fill(dir_fd, uid, gid, err) == 0)
		return 0;
	remove_new(path);
	return cj_wrap(err, "the private directory '%s'", path);
}

/* The last component, which only private_dir_name() gives to the run of this id. */
static const char *own_name(const char *path, const char *id)
{
	char begin[64];
	const char *slash = strrchr(path, '/');
	int size = snprintf(begin, sizeof(begin), PREFIX "%s-", id);
	bool is_own = path[0] == '/' && slash != path && size > 0 && (size_t)size < sizeof(begin) &&
		      strncmp(slash + 1, begin, (size_t)size) == 0 &&
		      strlen(slash + 1) == (size_t)size + DIGITS &&
		      strspn(slash + 1 + size, "0123456789abcdef") == DIGITS;
	return is_own ? slash + 1 : NULL;
}

int private_dir_remove(const char *path, const char *id, struct cj_error *err)
{
	const char *name = own_name(path, id);
	if (!name)
		return cj_reject(err, "'%s' is no private directory of run '%s'", path, id);
	char parent[PRIVATE_DIR_MAX];
	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(name - path), path);
	auto_fd int parent_fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc = parent_fd < 0 ? -errno : empty_dir(parent_fd, name);
	if (rc == 0 && unlinkat(parent_fd, name, AT_REMOVEDIR) < 0)
		rc = -errno;
	return rc < 0 && rc != -ENOENT
		   ? cj_fail(err, -rc, "remove the private directory '%s'", path)
		   : 0;
}
