/* SPDX-License-Identifier: Apache-2.0 */
/*
 * landlock - a Landlock ruleset as a second layer after the mounts.
 *
 * Even if a mount were wrong, the payload could write only below the writable places, and could
 * reach no abstract socket and no process outside its domain.
 */
#pragma once

#include "runtime/base/error.h"

/* The kernel's Landlock ABI; 0: absent, or too old to be of use. */
int landlock_abi(void);

/* A place that is open already. */
struct landlock_place {
	const char *path;
	int fd;
};

/* What a jail may change, besides the places that every jail has. */
struct landlock_jail {
	bool is_writable; /* all of it */
	const char *const *places;
	size_t nplaces;
	const struct landlock_place *opened; /* "/" and places that need not be opened again */
	size_t nopened;
};

/*
 * landlock_apply - restrict the calling process, for good.
 *
 * *out_ruleset_fd is the ruleset, for a process that joins the jail later: -1 where landlock_abi()
 * is 0; NULL: nobody needs it.
 * Runs in:  init, inside the new root, after no_new_privs.
 * Returns 1, or 0 when landlock_abi() is 0.
 * Follows:  landlock(7).
 */
int landlock_apply(const struct landlock_jail *jail, int *out_ruleset_fd, struct cj_error *err);

/* The kernel's Landlock keeps signals and abstract sockets in a domain: ABI 6, Linux 6.12. */
#define LANDLOCK_ABI_SCOPES 6

/* A path of the host that a jail without a mount namespace shows. */
struct landlock_view {
	const char *path;
	enum landlock_use { LANDLOCK_READ, LANDLOCK_DEVICE, LANDLOCK_CHANGE } use;
};

/*
 * landlock_apply_views - the same for a jail without a mount namespace: only these paths can be
 * opened, and what is below them.
 *
 * READ also executes, for what all users may read; a view that is missing, a symbolic link or not
 * public is left out.  CHANGE must be there.  A file of /proc is opened and stays open: the rule is
 * about its inode, which the kernel could forget.
 * Runs in:  init, after no_new_privs.
 * Fails:    ENOSYS below LANDLOCK_ABI_SCOPES.
 */
int landlock_apply_views(const struct landlock_view *views, size_t count, struct cj_error *err);

/* Restricts the calling process with a ruleset of landlock_apply() or landlock_domain_ruleset(). */
int landlock_restrict(int ruleset_fd, struct cj_error *err);

/*
 * landlock_domain_ruleset - a ruleset that restricts no file, for a domain of its own.
 *
 * A process in a domain can trace, and open the /proc files of, only processes in that domain;
 * *out_has_scopes: and signal only these (Linux 6.12).
 * Runs in:  init, inside the root.
 * Returns the descriptor; -ENOSYS where landlock_abi() is 0.
 */
int landlock_domain_ruleset(bool *out_has_scopes, struct cj_error *err);

/*
 * landlock_apply_tree - restrict the calling process, whose root is the container's: no program
 * from outside of that tree is executed, such as a memfd, and no device node is created.
 *
 * Needs no_new_privs.  Returns 1, or 0 when landlock_abi() is 0.
 */
int landlock_apply_tree(struct cj_error *err);

/* A file that may be read, or a directory whose files may be read; or also created, changed and
 * removed, overlayfs's whiteouts included (character device 0:0). */
struct landlock_rule {
	int fd;
	bool may_change;
};

/*
 * landlock_allow_only - for a helper that reads hostile data: no other file can be opened or
 * changed, no program executed, no TCP port reached, as far as this kernel's Landlock restricts it.
 *
 * Descriptors that are open stay usable.  A right that this kernel does not know is not restricted.
 * Must not: be called before no_new_privs.
 * Fails:    ENOSYS when landlock_abi() is 0.
 */
int landlock_allow_only(const struct landlock_rule *rules, size_t count, struct cj_error *err);

/* The same without any directory, for a helper that may connect to TCP ports. */
int landlock_allow_connecting(struct cj_error *err);

/* The same with directories, for a helper that may connect to these TCP ports. */
int landlock_allow_client(const struct landlock_rule *rules, size_t count, const uint16_t *ports,
			  size_t nports, struct cj_error *err);
