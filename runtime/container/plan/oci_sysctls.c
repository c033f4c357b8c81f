/* SPDX-License-Identifier: Apache-2.0 */
/* Sysctls of config.json: a closed list for each namespace. */
#include "runtime/container/plan/oci_tree.h"

#include <string.h>

/* Parameters of namespaces: ipc_namespaces(7), uts_namespaces(7), user_namespaces(7), and
 * Documentation/admin-guide/sysctl/.  A path that ends in '/' stands for all below it. */
static const struct row {
	const char *path;
	enum sysctl_namespace space;
} rows[] = {
	{ "net/", SYSCTL_NET },
	{ "fs/mqueue/", SYSCTL_IPC },
	{ "kernel/auto_msgmni", SYSCTL_IPC },
	{ "kernel/msg_next_id", SYSCTL_IPC },
	{ "kernel/msgmax", SYSCTL_IPC },
	{ "kernel/msgmnb", SYSCTL_IPC },
	{ "kernel/msgmni", SYSCTL_IPC },
	{ "kernel/sem", SYSCTL_IPC },
	{ "kernel/sem_next_id", SYSCTL_IPC },
	{ "kernel/shm_next_id", SYSCTL_IPC },
	{ "kernel/shm_rmid_forced", SYSCTL_IPC },
	{ "kernel/shmall", SYSCTL_IPC },
	{ "kernel/shmmax", SYSCTL_IPC },
	{ "kernel/shmmni", SYSCTL_IPC },
	{ "kernel/domainname", SYSCTL_UTS },
	{ "kernel/hostname", SYSCTL_UTS },
	{ "user/", SYSCTL_USER },
};

static const enum oci_namespace_type oci_spaces[SYSCTL_NAMESPACES] = {
	[SYSCTL_IPC] = OCI_NS_IPC,
	[SYSCTL_NET] = OCI_NS_NETWORK,
	[SYSCTL_USER] = OCI_NS_USER,
	[SYSCTL_UTS] = OCI_NS_UTS,
};

/* The first separator decides; with slashes, a dot is a dot and the other way round. */
static void turn_separators(char *path)
{
	char *first = strpbrk(path, "./");
	if (!first || *first == '/')
		return;
	for (char *c = path; *c; c++)
		*c = *c == '.' ? '/' : *c == '/' ? '.' : *c;
}

static bool is_clean(const char *path)
{
	for (const char *part = path;;) {
		const char *end = strchrnul(part, '/');
		size_t length = (size_t)(end - part);
		bool is_dots = (length == 1 && part[0] == '.') ||
			       (length == 2 && part[0] == '.' && part[1] == '.');
		if (length == 0 || is_dots)
			return false;
		if (*end == '\0')
			return true;
		part = end + 1;
	}
}

static const struct row *find_row(const char *path)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t length = strlen(rows[i].path);
		bool is_prefix = rows[i].path[length - 1] == '/';
		if (is_prefix ? strncmp(path, rows[i].path, length) == 0
			      : strcmp(path, rows[i].path) == 0)
			return &rows[i];
	}
	return NULL;
}

/* Two parts of the file would name the host, and the later one would win. */
static int check_name(const char *field, const char *value, const struct oci_pair *pair,
		      struct cj_error *err)
{
	if (!value || strcmp(value, pair->value) == 0)
		return 0;
	return cj_reject(err, "sysctl '%s' is '%.64s', but %s is '%.64s'; leave one of them out",
			 pair->name, pair->value, field, value);
}

static int check_names(const struct oci_config *config, const char *path,
		       const struct oci_pair *pair, struct cj_error *err)
{
	if (strcmp(path, "kernel/hostname") == 0)
		return check_name("hostname", config->hostname, pair, err);
	if (strcmp(path, "kernel/domainname") == 0)
		return check_name("domainname", config->domainname, pair, err);
	return 0;
}

static int plan_one(const struct oci_config *config, const struct oci_pair *pair, struct arena *a,
		    struct sysctl *out, struct cj_error *err)
{
	char *path = arena_strdup(a, pair->name);
	if (!path)
		return cj_fail(err, ENOMEM, "sysctl '%s'", pair->name);
	turn_separators(path);
	const struct row *row = is_clean(path) ? find_row(path) : NULL;
	if (!row)
		return cj_reject(err,
				 "sysctl '%s' belongs to no namespace: it would change the host",
				 pair->name);
	enum oci_namespace_type type = oci_spaces[row->space];
	if (!config->on_linux.namespaces[type].is_wanted)
		return cj_reject(err, "sysctl '%s' needs a %s namespace of the container's own",
				 pair->name, oci_namespace_names[type]);
	if (check_names(config, path, pair, err) < 0)
		return -err->code;
	*out = (struct sysctl){
		.name = pair->name,
		.path = path,
		.value = pair->value,
		.space = row->space,
	};
	return 0;
}

int oci_sysctls_plan(const struct oci_config *config, struct arena *a, const struct sysctl **out,
		     size_t *out_count, struct cj_error *err)
{
	const struct oci_linux *on_linux = &config->on_linux;
	size_t count = on_linux->sysctl.count;
	struct sysctl *items = arena_array(a, count + 1, sizeof(*items));
	if (!items)
		return cj_fail(err, ENOMEM, "list the sysctls");
	for (size_t i = 0; i < count; i++) {
		int rc = plan_one(config, &on_linux->sysctl.items[i], a, &items[i], err);
		if (rc < 0)
			return rc;
	}
	*out = items;
	*out_count = count;
	return 0;
}
