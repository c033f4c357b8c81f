/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a container's file tree. */
#include "runtime/container/plan/oci_tree.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include "profiles/paths.h"
#include "runtime/base/text.h"
#include "runtime/container/plan/mount_options.h"

#define ID_MAPS_MAX 340 /* lines; user_namespaces(7) */

/* config-linux.md, "Default Devices"; numbers: Documentation/admin-guide/devices.txt. */
static const struct {
	const char *path;
	unsigned major_number, minor_number;
} default_devices[] = {
	{ "/dev/null", 1, 3 },   { "/dev/zero", 1, 5 },    { "/dev/full", 1, 7 },
	{ "/dev/random", 1, 8 }, { "/dev/urandom", 1, 9 }, { "/dev/tty", 5, 0 },
};

/* runtime-linux.md, "Dev symbolic links"; ptmx is that of the container's own devpts. */
static const struct {
	const char *path, *target;
} default_links[] = {
	{ "/dev/fd", "/proc/self/fd" },       { "/dev/stdin", "/proc/self/fd/0" },
	{ "/dev/stdout", "/proc/self/fd/1" }, { "/dev/stderr", "/proc/self/fd/2" },
	{ "/dev/ptmx", "pts/ptmx" },
};

static const struct mounts_option dev_options[] = {
	{ "source", "tmpfs" },
	{ "mode", "755" },
	{ "size", "65536k" },
};
static const struct tree_op dev_tmpfs = {
	.kind = TREE_FS,
	.path = "/dev",
	.type = "tmpfs",
	.attrs = { .set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_STRICTATIME },
	.options = dev_options,
	.noptions = COUNT_OF(dev_options),
};

struct tree_planner {
	const struct oci_config *config;
	struct arena *arena;
	struct tree_op *ops;
	size_t nops;
	enum { DEV_ABSENT, DEV_FILE_SYSTEM, DEV_BIND } dev; /* the last mount at /dev */
	bool keeps_peers;
	struct strings warnings;
};

static int format_maps(const struct oci_id_maps *maps, struct arena *a, const char **out,
		       struct cj_error *err)
{
	if (maps->count > ID_MAPS_MAX)
		return cj_reject(err, "an id map has more than %d lines", ID_MAPS_MAX);
	*out = oci_id_maps_format(maps, a);
	return *out ? 0 : cj_fail(err, ENOMEM, "format an id map");
}

/* The mount's own maps, or the container's: config.md, "idmap". */
static int plan_ids(const struct tree_planner *p, const struct oci_mount *mount,
		    const struct mount_options *options, struct tree_op *op, struct cj_error *err)
{
	const struct oci_id_maps *uids = &mount->uid_maps, *gids = &mount->gid_maps;
	bool has_maps = uids->count > 0 || gids->count > 0;
	if (!has_maps && !options->has_idmap)
		return 0;
	if (op->kind != TREE_BIND)
		return cj_reject(err, "ids can only be mapped in a bind");
	if (!has_maps) {
		uids = &p->config->on_linux.uid_maps;
		gids = &p->config->on_linux.gid_maps;
	}
	if (uids->count == 0 || gids->count == 0)
		return cj_reject(err, "an ID-mapped mount needs uidMappings and gidMappings");
	op->ids.is_recursive = options->idmap_is_recursive;
	int rc = format_maps(uids, p->arena, &op->ids.uid_map, err);
	return rc < 0 ? rc : format_maps(gids, p->arena, &op->ids.gid_map, err);
}

static int warn(struct tree_planner *p, const char *text, struct cj_error *err)
{
	return strings_add(&p->warnings, p->arena, text) == 0
		   ? 0
		   : cj_fail(err, ENOMEM, "list the mounts");
}

/* The options of a file system have no effect in a bind. */
static int check_bind_data(struct tree_planner *p, const struct mount_options *options,
			   const char *path, struct cj_error *err)
{
	for (size_t i = 0; i < options->ndata; i++) {
		const char *key = options->data[i].key;
		if (!mount_options_is_data(key)) {
			/* It may be a misspelled "nosuid": to ignore it would weaken the mount. */
			const char *nearest = mount_options_nearest(key),
				   *value = options->data[i].value;
			int rc = cj_reject(err, "unknown option '%.64s%s%.64s' of a bind mount",
					   key, value ? "=" : "", value ? value : "");
			if (nearest)
				cj_hint(err, "did you mean '%s'?", nearest);
			return rc;
		}
		const char *text = arena_printf(p->arena,
						"mount '%s': option '%s' is no option of a bind "
						"mount, and has no effect",
						path, key);
		if (warn(p, text, err) < 0)
			return -err->code;
	}
	return 0;
}

static int plan_bind(struct tree_planner *p, const struct oci_mount *mount,
		     const struct mount_options *options, struct tree_op *op, struct cj_error *err)
{
	if (!mount->source || mount->source[0] == '\0')
		return cj_reject(err, "a bind needs a source");
	if (options->copies_up)
		return cj_reject(err, "'tmpcopyup' is for tmpfs, and this is a bind");
	int rc = check_bind_data(p, options, op->path, err);
	if (rc < 0)
		return rc;
	op->kind = TREE_BIND;
	op->source = mount->source;
	op->is_recursive = options->is_recursive;
	/* The host's cgroups come along with its /sys: what is read-only there is so as a whole
	 * (CVE-2023-25809). */
	if (strcmp(op->path, "/sys") == 0 && options->is_read_only)
		op->attrs.set_below |= MOUNT_ATTR_RDONLY;
	return 0;
}

/*
 * Files of a new file system have the label that the container may use.  The kernel labels those
 * of procfs, sysfs and cgroup2, and a "context" of the mount's own stays.  The mqueue of an ipc
 * namespace exists before it is mounted, so its root alone can be labelled.
 */
static int plan_label(const struct tree_planner *p, struct tree_op *op, struct cj_error *err)
{
	static const char *const types[] = { "tmpfs", "ramfs", "devpts", NULL };
	const char *label = p->config->on_linux.mount_label;
	if (!label || op->kind != TREE_FS)
		return 0;
	if (strcmp(op->type, "mqueue") == 0)
		op->label = label;
	if (!text_is_one_of(op->type, types))
		return 0;
	for (size_t i = 0; i < op->noptions; i++)
		if (strcmp(op->options[i].key, TREE_LABEL_OPTION) == 0)
			return 0;
	struct mounts_option *all = arena_array(p->arena, op->noptions + 1, sizeof(*all));
	if (!all)
		return cj_fail(err, ENOMEM, "list the mounts");
	memcpy(all, op->options, op->noptions * sizeof(*all));
	all[op->noptions++] = (struct mounts_option){ TREE_LABEL_OPTION, label };
	op->options = all;
	return 0;
}

static int plan_file_system(const struct oci_mount *mount, struct mount_options *options,
			    struct tree_op *op, struct cj_error *err)
{
	/* Their superblock is shared or always writable: "ro" is the mount's. */
	static const char *const pseudo[] = { "proc",    "sysfs",  "tmpfs", "devpts",
					      "cgroup2", "mqueue", NULL };
	static const char *const paths[] = { "lowerdir", "upperdir", "workdir", NULL };
	if (!mount->type)
		return cj_reject(err, "it has no type and is no bind");
	op->kind = TREE_FS;
	op->type = strcmp(mount->type, "cgroup") == 0 ? "cgroup2" : mount->type;
	if (options->copies_up && strcmp(op->type, "tmpfs") != 0)
		return cj_reject(err, "'tmpcopyup' is for tmpfs, and this is '%s'", mount->type);
	/* The kernel takes no more, but for the paths of an overlay there is another form. */
	for (size_t i = 0; i < options->ndata; i++) {
		const struct mounts_option *item = &options->data[i];
		bool may_be_long = strcmp(op->type, "overlay") == 0 &&
				   text_is_one_of(item->key, paths);
		if (strlen(item->key) > MOUNTS_OPTION_MAX ||
		    (item->value && strlen(item->value) > MOUNTS_OPTION_MAX && !may_be_long))
			return cj_reject(err, "option '%.32s' is longer than %d bytes", item->key,
					 MOUNTS_OPTION_MAX);
	}
	if (strcmp(op->type, "cgroup2") == 0 && !options->is_writable)
		op->attrs.set |= MOUNT_ATTR_RDONLY;
	if (!text_is_one_of(op->type, pseudo) && options->is_read_only)
		options->data[options->ndata++] = (struct mounts_option){ "ro", NULL };
	if (mount->source && mount->source[0] && strlen(mount->source) <= MOUNTS_OPTION_MAX)
		options->data[options->ndata++] = (struct mounts_option){ "source", mount->source };
	op->copies_up = options->copies_up;
	op->options = options->data;
	op->noptions = options->ndata;
	return 0;
}

/*
 * Without a cgroup namespace the mount shows the host's whole hierarchy.  A process with
 * CAP_SYS_ADMIN in the host's user namespace could mount it anyway, so "rw" gives it nothing more;
 * privileged pods ask for it.  A container with a user namespace gets a cgroup namespace from
 * rootfs/tree/tree_mount.c.
 */
static bool may_write_cgroups(const struct oci_config *config)
{
	const struct oci_namespace *spaces = config->on_linux.namespaces;
	return spaces[OCI_NS_CGROUP].is_wanted || spaces[OCI_NS_USER].is_wanted ||
	       strings_has(&config->process.capabilities.bounding, "CAP_SYS_ADMIN");
}

/* Engines that build images ask for "rw" without need. */
static int limit_cgroups(struct tree_planner *p, struct tree_op *op, struct cj_error *err)
{
	if (op->kind != TREE_FS || strcmp(op->type, "cgroup2") != 0 ||
	    op->attrs.set & MOUNT_ATTR_RDONLY || may_write_cgroups(p->config))
		return 0;
	op->attrs.set |= MOUNT_ATTR_RDONLY;
	const char *text = arena_printf(p->arena,
					"mount '%s' is read-only in spite of 'rw': without a "
					"cgroup namespace it shows the host's cgroups",
					op->path);
	return warn(p, text, err);
}

static bool is_bind(const struct oci_mount *mount, const struct mount_options *options)
{
	return options->is_bind || (mount->type && strcmp(mount->type, "bind") == 0);
}

static int plan_mount(struct tree_planner *p, const struct oci_mount *mount, struct cj_error *err)
{
	struct tree_op *op = &p->ops[p->nops];
	struct mount_options options;
	int rc = mount_options_parse(&mount->options, p->arena, &options, err);
	if (rc < 0)
		return rc;
	op->attrs = options.attrs;
	op->path = paths_clean(mount->destination, p->arena);
	if (!op->path)
		return cj_fail(err, ENOMEM, "list the mounts");
	if (strcmp(op->path, "/") == 0)
		return cj_reject(err, "nothing can be mounted on the root itself");
	rc = is_bind(mount, &options) ? plan_bind(p, mount, &options, op, err)
				      : plan_file_system(mount, &options, op, err);
	if (rc == 0)
		rc = plan_ids(p, mount, &options, op, err);
	if (rc == 0)
		rc = limit_cgroups(p, op, err);
	if (rc == 0)
		rc = plan_label(p, op, err);
	if (rc < 0)
		return rc;
	if (strcmp(op->path, "/dev") == 0)
		p->dev = op->kind == TREE_BIND ? DEV_BIND : DEV_FILE_SYSTEM;
	p->keeps_peers = p->keeps_peers ||
			 (op->kind == TREE_BIND && op->attrs.propagation == MS_SHARED);
	p->nops++;
	return 0;
}

/* Is there an operation for this path already? */
static bool has_op(const struct tree_planner *p, const char *path)
{
	for (size_t i = 0; i < p->nops; i++)
		if (strcmp(p->ops[i].path, path) == 0)
			return true;
	return false;
}

static int plan_device(struct tree_planner *p, const struct oci_device *device,
		       struct cj_error *err)
{
	const char *path = paths_clean(device->path, p->arena);
	if (!path)
		return cj_fail(err, ENOMEM, "list the devices");
	/* Of the host's devpts; the container has a link to its own. */
	if (strcmp(path, "/dev/ptmx") == 0)
		return 0;
	mode_t type = device->type == 'b' ? S_IFBLK : device->type == 'p' ? S_IFIFO : S_IFCHR;
	p->ops[p->nops++] = (struct tree_op){
		.kind = TREE_DEVICE,
		.path = path,
		.device = {
			.type = type,
			.mode = device->file_mode.is_set ? device->file_mode.value & 0777 : 0666,
			.major_number = device->major,
			.minor_number = device->minor,
			.uid = (uid_t)device->uid.value,
			.gid = (gid_t)device->gid.value,
			.is_given = p->dev == DEV_BIND,
		},
	};
	return 0;
}

/* After the mounts: the nodes lie in what is mounted at /dev. */
static int plan_dev(struct tree_planner *p, struct cj_error *err)
{
	const struct oci_linux *on_linux = &p->config->on_linux;
	for (size_t i = 0; i < on_linux->ndevices; i++)
		if (plan_device(p, &on_linux->devices[i], err) < 0)
			return cj_wrap(err, "device '%s'", on_linux->devices[i].path);
	if (p->dev == DEV_BIND)
		return 0;
	for (size_t i = 0; i < COUNT_OF(default_devices); i++) {
		if (has_op(p, default_devices[i].path))
			continue;
		p->ops[p->nops++] = (struct tree_op){
			.kind = TREE_DEVICE,
			.path = default_devices[i].path,
			.device = {
				.type = S_IFCHR,
				.mode = 0666,
				.major_number = default_devices[i].major_number,
				.minor_number = default_devices[i].minor_number,
			},
		};
	}
	for (size_t i = 0; i < COUNT_OF(default_links); i++) {
		if (has_op(p, default_links[i].path))
			continue;
		p->ops[p->nops++] = (struct tree_op){
			.kind = TREE_LINK,
			.path = default_links[i].path,
			.source = default_links[i].target,
		};
	}
	return 0;
}

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
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const char *rest = text_after(path, rows[i].path);
		if (rest && (*rest == '\0' || text_ends_with(rows[i].path, "/")))
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

static int plan_sysctl(const struct oci_config *config, const struct oci_pair *pair,
		       struct arena *a, struct sysctl *out, struct cj_error *err)
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
	if (strcmp(path, "kernel/hostname") == 0 &&
	    check_name("hostname", config->hostname, pair, err) < 0)
		return -err->code;
	if (strcmp(path, "kernel/domainname") == 0 &&
	    check_name("domainname", config->domainname, pair, err) < 0)
		return -err->code;
	*out = (struct sysctl){
		.name = pair->name,
		.path = path,
		.value = pair->value,
		.space = row->space,
	};
	return 0;
}

int oci_tree_plan_sysctls(const struct oci_config *config, struct arena *a, struct oci_tree *out,
			  struct cj_error *err)
{
	const struct oci_pairs *pairs = &config->on_linux.sysctl;
	struct sysctl *items = arena_array(a, pairs->count + 1, sizeof(*items));
	if (!items)
		return cj_fail(err, ENOMEM, "list the sysctls");
	for (size_t i = 0; i < pairs->count; i++)
		if (plan_sysctl(config, &pairs->items[i], a, &items[i], err) < 0)
			return -err->code;
	out->sysctls = items;
	out->nsysctls = pairs->count;
	return 0;
}

static int plan_ops(struct tree_planner *p, struct cj_error *err)
{
	const struct oci_config *config = p->config;
	size_t count = 1 + config->nmounts + config->on_linux.ndevices + COUNT_OF(default_devices) +
		       COUNT_OF(default_links);
	/* The first place is for a tmpfs at /dev, which every other mount may lie below. */
	struct tree_op *all = arena_array(p->arena, count, sizeof(*all));
	if (!all)
		return cj_fail(err, ENOMEM, "list the mounts");
	all[0] = dev_tmpfs;
	if (plan_label(p, &all[0], err) < 0)
		return -err->code;
	p->ops = all + 1;
	for (size_t i = 0; i < config->nmounts; i++) {
		const struct oci_mount *mount = &config->mounts[i];
		if (plan_mount(p, mount, err) < 0)
			return cj_wrap(err, "line %u: mount '%s'", mount->line, mount->destination);
	}
	if (plan_dev(p, err) < 0)
		return -err->code;
	if (p->dev == DEV_ABSENT) {
		p->ops--;
		p->nops++;
	}
	return 0;
}

static int clean_all(const struct strings *paths, struct arena *a, struct strings *out,
		     struct cj_error *err)
{
	for (size_t i = 0; i < paths->count; i++) {
		if (strings_add(out, a, paths_clean(paths->items[i], a)) < 0)
			return cj_fail(err, ENOMEM, "list the masked paths");
	}
	return 0;
}

int oci_tree_plan(const struct oci_config *config, struct arena *a, struct oci_tree *out,
		  struct cj_error *err)
{
	const struct oci_linux *on_linux = &config->on_linux;
	struct tree_planner planner = { .config = config, .arena = a };
	struct oci_tree plan = { 0 };
	const struct oci_namespace *space = &on_linux->namespaces[OCI_NS_MOUNT];
	int rc = 0;
	if (!space->is_wanted || space->path)
		rc = cj_reject(err, "linux.namespaces: a new mount namespace is needed");
	if (rc == 0 && on_linux->mount_label && strlen(on_linux->mount_label) > MOUNTS_OPTION_MAX)
		rc = cj_reject(err, "linux.mountLabel is longer than %d bytes", MOUNTS_OPTION_MAX);
	if (rc == 0)
		rc = plan_ops(&planner, err);
	if (rc == 0)
		rc = clean_all(&on_linux->masked_paths, a, &plan.tree.masked, err);
	if (rc == 0)
		rc = clean_all(&on_linux->readonly_paths, a, &plan.tree.read_only, err);
	if (rc == 0)
		rc = oci_tree_plan_sysctls(config, a, &plan, err);
	if (rc < 0)
		return rc;
	plan.tree.root = config->root_path;
	plan.tree.ops = planner.ops;
	plan.tree.nops = planner.nops;
	plan.tree.mount_label = on_linux->mount_label;
	plan.tree.is_read_only = config->root_is_readonly;
	plan.tree.propagation = on_linux->rootfs_propagation & ~(unsigned long)MS_REC;
	plan.tree.keeps_peers = planner.keeps_peers;
	plan.warnings = planner.warnings;
	*out = plan;
	return 0;
}
