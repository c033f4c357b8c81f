/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_config - a bundle's config.json as plain data.
 *
 * runtime-spec 1.3; every 1.x is accepted, with suffixes ("1.0.2-dev").  Unknown fields are
 * ignored, as the specification wants.  A known field that cejail-oci can't honour is an error that
 * names it.  The file is trusted: engines write it.  What it names inside the root file system is
 * not.
 */
#pragma once

#include "runtime/container/config/oci_linux.h"
#include "runtime/container/config/oci_process.h"

#define OCI_VERSION_MIN "1.0.0"
#define OCI_VERSION_MAX "1.3.0"

struct oci_mount {
	const char *destination;               /* absolute */
	const char *type, *source;             /* NULL: not given */
	struct strings options;                /* as written: "rbind", "size=64m" */
	struct oci_id_maps uid_maps, gid_maps; /* of an ID-mapped mount; both or none */
	unsigned line;                         /* in the file, for messages */
};

/* In the order in which they run. */
enum oci_hook_kind {
	OCI_HOOK_PRESTART,
	OCI_HOOK_CREATE_RUNTIME,
	OCI_HOOK_CREATE_CONTAINER,
	OCI_HOOK_START_CONTAINER,
	OCI_HOOK_POSTSTART,
	OCI_HOOK_POSTSTOP,
	OCI_HOOK_COUNT
};
/* As config.json calls them: "createRuntime". */
extern const char *const oci_hook_names[OCI_HOOK_COUNT];

struct oci_hook {
	const char *path;    /* absolute */
	struct strings args; /* empty: argv is the path alone */
	struct strings env;
	bool has_env;          /* none given: the hook inherits one, container.h */
	uint32_t timeout_secs; /* 0: none */
};
struct oci_hooks {
	const struct oci_hook *items;
	size_t count;
};

struct oci_config {
	const char *oci_version;
	const char *root_path; /* relative: to the bundle */
	bool root_is_readonly;
	const char *hostname, *domainname; /* NULL: not given */
	bool has_process;                  /* none: create works, start is an error */
	struct oci_process process;
	const struct oci_mount *mounts; /* in the order in which they are mounted */
	size_t nmounts;
	struct oci_hooks hooks[OCI_HOOK_COUNT];
	struct oci_pairs annotations;
	struct oci_linux on_linux;
};

/* Is ociVersion 1.3 or later? */
bool oci_config_is_since_1_3(const struct oci_config *c);

/*
 * oci_config_settle_pids - from version 1.3 on a pids.limit of 0 is a limit.  Before, engines write
 * it where no limit is wanted: podman 4 for 0 and -1.
 */
void oci_config_settle_pids(const struct oci_config *c, struct oci_resources *resources);

/*
 * oci_config_read - the text of a config.json.  `name` is the file in messages; all that *out
 * points to lives in the arena.
 *
 * Fails: EINVAL with name:line:column and the field's full name; EFBIG, ENOMEM.
 */
int oci_config_read(const char *name, const char *text, size_t size, struct arena *a,
		    struct oci_config *out, struct cj_error *err);
