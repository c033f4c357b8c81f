/* SPDX-License-Identifier: Apache-2.0 */
/* Searches for the executable, as execve(2) will see it, and for the home directory. */
#include "runtime/container/process/process_parts.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "rootfs/image/image_passwd.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static const char *path_of(const struct strings *env)
{
	const char **path = strings_find_variable(env, "PATH=");
	return path ? *path + strlen("PATH=") : DEFAULT_PATH;
}

/* 0, or why execve(2) would refuse the file. */
static int why_not(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return errno;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? errno : 0;
}

static int find_in_path(const char *name, const char *dirs, char out_path[static PATH_MAX])
{
	int verdict = ENOENT;
	for (const char *dir = dirs, *end; *dir; dir = *end ? end + 1 : end) {
		end = strchrnul(dir, ':');
		char file[PATH_MAX];
		int size = snprintf(file, sizeof(file), "%.*s/%s", (int)(end - dir), dir, name);
		if (*dir != '/' || size < 0 || (size_t)size >= sizeof(file))
			continue; /* relative to a directory that the container chooses */
		int why = why_not(file);
		if (why == 0) {
			memcpy(out_path, file, (size_t)size + 1);
			return 0;
		}
		if (why == EACCES) {
			verdict = why;
			memcpy(out_path, file, (size_t)size + 1); /* for the message */
		}
	}
	return verdict;
}

static int fail_executable(const char *path, int why, struct cj_error *err)
{
	struct stat st;
	int rc = cj_fail(err, why, "open executable '%s'", path);

	if (why != EACCES || stat(path, &st) < 0)
		return rc;
	if (S_ISDIR(st.st_mode))
		(void)cj_hint(err, "it is a directory");
	else if (!(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
		(void)cj_hint(err, "the file is not executable: chmod +x makes it so");
	return rc;
}

int process_program_find(const char *name, const struct strings *env,
			 char out_path[static PATH_MAX], struct cj_error *err)
{
	if (!strchr(name, '/')) {
		int why = *name ? find_in_path(name, path_of(env), out_path) : ENOENT;
		if (why == ENOENT)
			return cj_reject_as(err, ENOENT, "executable file not found in $PATH: '%s'",
					    name);
		return why == 0 ? 0 : fail_executable(out_path, why, err);
	}

	size_t size = strlen(name);
	int why = size < PATH_MAX ? why_not(name) : ENAMETOOLONG;
	if (why != 0)
		return fail_executable(name, why, err);
	memcpy(out_path, name, size + 1);
	return 0;
}

void process_program_home(uint32_t uid, char out_path[static PATH_MAX])
{
	auto_arena struct arena a = { 0 };
	struct cj_error unread = { 0 };
	struct stat st;
	char *text = NULL;
	size_t size = 0;
	auto_fd int fd = sys_openat2(AT_FDCWD, "/etc/passwd", O_RDONLY | O_NONBLOCK | O_NOCTTY, 0,
				     RESOLVE_NO_MAGICLINKS);
	/* A file of procfs has the size 0: none is read. */
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0 ||
	    fd_read_all(fd, IMAGE_PASSWD_MAX, &a, &text, &size, "/etc/passwd", &unread) < 0)
		text = NULL;
	image_passwd_home(text ? text : "", uid, out_path);
}
