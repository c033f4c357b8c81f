/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the place of a result. */
#include "runtime/container/annotation/result_place.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/files/atomic_file.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/container/annotation/annotations.h"
#include "runtime/container/state/state.h"

#define FILE_MODE 0644

void result_place_close(struct result_place *f)
{
	cj_close(&f->dir_fd);
}

/* --- below one directory ------------------------------------------------------------------ */

static int open_base(const char *path, struct cj_error *err)
{
	struct stat st;
	auto_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0) {
		int rc = cj_fail(err, errno, "open the directory of results '%s'", path);
		cj_hint(err, "make it: install -d -m 755 %s; or name one with --result-dir", path);
		return rc;
	}
	if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & (S_IWGRP | S_IWOTH))) {
		cj_refuse_as(err, EPERM, "another user may write to the directory of results '%s'",
			     path);
		return cj_hint(err, "chown it to the user who runs cejail-oci, and chmod go-w it");
	}
	return take_fd(&fd);
}

/* What is behind the directory in an absolute path; a relative one is below it. */
static const char *path_below(const char *wanted, const char *base)
{
	size_t size = strlen(base);

	while (size > 1 && base[size - 1] == '/')
		size--;
	if (wanted[0] != '/')
		return wanted;
	if (strncmp(wanted, base, size) != 0 || wanted[size] != '/')
		return NULL;
	return wanted + size + strspn(wanted + size, "/");
}

static int open_below(const char *dir, const char *base, const char *wanted, struct cj_error *err)
{
	auto_fd int base_fd = open_base(base, err);

	if (base_fd < 0)
		return base_fd;
	int fd = sys_openat2(base_fd, dir[0] != '\0' ? dir : ".",
			     O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0,
			     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (fd < 0)
		return cj_fail(err, errno, "open the directory of '%s' below '%s'", wanted, base);
	return fd;
}

/* --- both ---------------------------------------------------------------------------------- */

/* "a/b/c" is "a/b" and "c"; "/c" is "/" and "c"; "c" is "" and "c". */
static int split(const char *path, struct arena *a, const char **out_dir, const char **out_name,
		 struct cj_error *err)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t size = slash == path ? 1 : (size_t)(name - path) - (slash ? 1 : 0);
	const char *dir = arena_strndup(a, path, size);

	if (!dir)
		return cj_fail(err, ENOMEM, "find the result");
	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return cj_reject(err, "'%s' names no file", path);
	*out_dir = dir;
	*out_name = name;
	return 0;
}

static int open_dir(const char *wanted, const char *result_dir, struct arena *a,
		    struct result_place *out, struct cj_error *err)
{
	const char *base = result_dir ? result_dir : RESULT_DIR_DEFAULT;
	bool is_free = !result_dir && !state_is_root();
	const char *path = is_free ? wanted : path_below(wanted, base);
	const char *dir = NULL;

	if (!path) {
		cj_refuse_as(err, EPERM, "'%s' is not below the directory of results '%s'", wanted,
			     base);
		return cj_hint(err, "name a file below it, or another directory with --result-dir");
	}
	if (is_free && path[0] != '/')
		return cj_reject(err, "'%s' is not absolute", path);
	if (split(path, a, &dir, &out->name, err) < 0)
		return -err->code;
	if (!is_free)
		out->dir_fd = open_below(dir, base, wanted, err);
	else
		out->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (out->dir_fd < 0)
		return err->code ? -err->code : cj_fail(err, errno, "open '%s'", dir);
	return 0;
}

/* A result may be replaced, because an engine starts a container again with the same annotation. */
static int check_old(const struct result_place *f, struct cj_error *err)
{
	char begin[sizeof(OCI_RESULT_BEGIN)] = "";
	struct stat st;
	auto_fd int fd =
	    openat(f->dir_fd, f->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    pread(fd, begin, sizeof(begin) - 1, 0) == (ssize_t)sizeof(begin) - 1 &&
	    strcmp(begin, OCI_RESULT_BEGIN) == 0)
		return 0;
	cj_refuse_as(err, EEXIST, "the file '%s' exists, and is not a result", f->name);
	return cj_hint(err, "remove it, or name another file");
}

int result_place_find(const char *wanted, const char *result_dir, const char *id, struct arena *a,
		      struct result_place *out, struct cj_error *err)
{
	struct result_place f = RESULT_PLACE_NULL;
	struct atomic_file probe = NEWFILE_NULL;
	size_t size = strlen(wanted);
	const char *path =
	    size > 0 && wanted[size - 1] == '/' ? arena_printf(a, "%s%s.json", wanted, id) : wanted;

	if (!path)
		return cj_fail(err, ENOMEM, "find the result");
	int rc = open_dir(path, result_dir, a, &f, err);
	if (rc == 0)
		rc = check_old(&f, err);
	if (rc == 0) {
		rc = atomic_file_open(f.dir_fd, FILE_MODE, &probe);
		atomic_file_fini(&probe);
		if (rc < 0)
			(void)!cj_fail(err, -rc, "write a file '%s'", f.name);
	}
	if (rc < 0) {
		result_place_close(&f);
		return cj_wrap(err, "annotation '" ANNOTATION_RESULT "'");
	}
	*out = f;
	return 0;
}

int result_place_write(const struct result_place *f, const char *text, size_t size,
		       struct cj_error *err)
{
	struct atomic_file made = NEWFILE_NULL;
	int rc = atomic_file_open(f->dir_fd, FILE_MODE, &made);

	if (rc < 0)
		return cj_fail(err, -rc, "make the result '%s'", f->name);
	rc = fd_write_all(made.fd, text, size, f->name, err);
	if (rc == 0) {
		rc = atomic_file_publish(&made, f->dir_fd, f->name);
		if (rc < 0)
			rc = cj_fail(err, -rc, "publish the result '%s'", f->name);
	}
	atomic_file_fini(&made);
	return rc;
}
