/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_path - a path of a session's files: is it one, and how it is opened.
 * session_files.h has the rules.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

struct jail;

struct session_path {
	const char *path;   /* absolute, normalised; for messages and results */
	const char *inside; /* below root_fd */
	int root_fd;        /* borrowed: the jail's handle of "/" */
	bool is_top;        /* it is /box, /tmp, or where the caller has mounted something */
};

/* Fails: EXDEV when `path` is not below one of the tops; EINVAL when it has "..". */
int session_path_parse(const struct jail *j, const char *path, struct arena *a,
		       struct session_path *out, struct cj_error *err);

/*
 * session_path_enter - open a path below dir_fd: across no symbolic link, into no procfs.
 * Returns: a descriptor, or a negative errno.
 */
int session_path_enter(int dir_fd, const char *inside, int flags);

/* Opens the path itself.  Returns: a descriptor, the caller's to close. */
int session_path_open(const struct session_path *at, int flags, struct cj_error *err);

/*
 * Opens its parent directory (O_PATH); *out_name is the last component, in the arena.  Each missing
 * directory is made with `mode`; 0: none is.  Fails: EACCES of a top.
 */
int session_path_open_parent(const struct session_path *at, mode_t mode, struct arena *a,
			     const char **out_name, struct cj_error *err);

/*
 * A mount point of the jail is none in our mount namespace.  There the kernel would remove or
 * replace the directory below the mount, and with it the mount: mount_namespaces(7).  Programs of
 * the jail can't mount, so the answer stays true.
 */
bool session_path_is_mount(int dir_fd, const char *name);

/*
 * session_path_check_free - fail with EBUSY if the caller has mounted something below the path, so
 * that removing or renaming it would take the mount along.  The check is by name: it does not see a
 * mount whose ancestor a program has renamed.
 */
int session_path_check_free(const struct jail *j, const struct session_path *at, const char *doing,
			    struct cj_error *err);

/* "DOING 'PATH': WHY", with a hint where the errno has a known cause.  Returns -code. */
int session_path_fail(const char *path, int code, const char *doing, struct cj_error *err)
    __attribute__((warn_unused_result));
