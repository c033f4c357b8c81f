/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of create that read and plan.  They leave nothing that outlives this process. */
#include "runtime/container/create/creation.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

#define CONFIG "config.json"

/*
 * Descriptors that the engine leaked are neither ours nor the container's (conmon leaks its pipes).
 * Before one of ours stays open, so that none gets the number of a preserved one; and after the
 * configuration is read, which may be one: --config /dev/fd/N.
 */
int creation_plan_streams(struct creation *c, struct cj_error *err)
{
	if (inherit_fds_read(PRESERVED_FDS_MAX, &c->listen, err) < 0)
		return -err->code;
	c->preserved_fds = c->listen.count + (unsigned)c->options->preserve_fds;
	return process_keep_fds(c->preserved_fds, err);
}

/* Reads o->bundle, or the working directory.  Everything lives in `a`. */
static int read_bundle(const struct oci_options *o, struct arena *a, struct container_bundle *out,
		       struct cj_error *err)
{
	struct container_bundle b = { 0 };
	char resolved[PATH_MAX], *text;
	const char *given = o->bundle && o->bundle[0] != '\0' ? o->bundle : ".";
	const char *config = o->config ? o->config : CONFIG;

	if (!realpath(given, resolved))
		return cj_fail(err, errno, "open the bundle '%s'", given);
	b.path = arena_strdup(a, resolved);
	if (!b.path)
		return cj_fail(err, ENOMEM, "read the bundle");

	auto_fd int dir_fd = open(b.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return cj_fail(err, errno, "open the bundle '%s'", b.path);
	auto_fd int fd = openat(dir_fd, config, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return cj_fail(err, errno, "open '%s' of the bundle '%s'", config, b.path);
	if (fd_read_all(fd, OCI_CONFIG_BYTES_MAX, a, &text, &b.size, config, err) < 0)
		return -err->code;
	b.text = text;
	if (oci_config_read(config, b.text, b.size, a, &b.config, err) < 0)
		return -err->code;
	const char *root = b.config.root_path;
	b.rootfs = root[0] == '/' ? root : arena_printf(a, "%s/%s", b.path, root);
	if (!b.rootfs)
		return cj_fail(err, ENOMEM, "read the bundle");
	*out = b;
	return 0;
}

/* What the caller may make; what config.json may ask for, its parser has checked. */
static int check_namespaces(const struct creation *c, struct cj_error *err)
{
	const struct oci_namespace *ns = creation_namespaces(c);

	if (geteuid() != 0 && !ns[OCI_NS_USER].is_wanted) {
		cj_refuse_as(err, EPERM, "linux.namespaces has no user namespace");
		return cj_hint(err,
			       "an ordinary user needs one; cejail-oci spec --rootless writes it");
	}
	/* Init is dumpable until its id map is written, and a process of the same user could
	 * attach to it: ptrace(2). */
	if (geteuid() != 0 && !ns[OCI_NS_USER].path && ns[OCI_NS_PID].path)
		return cj_reject(err, "an ordinary user can't join a pid namespace with a new user "
				      "namespace");
	return ns[OCI_NS_USER].path ? process_check_dumpable(err) : 0;
}

int creation_plan_bundle(struct creation *c, struct cj_error *err)
{
	struct stat ours, theirs;

	if (read_bundle(c->options, c->arena, &c->bundle, err) < 0 || check_namespaces(c, err) < 0)
		return -err->code;
	/* The plan of the mounts asks for a cgroup namespace that is not the caller's. */
	struct oci_namespace *ns = &c->bundle.config.on_linux.namespaces[OCI_NS_CGROUP];
	if (!ns->path)
		return 0;
	if (stat("/proc/self/ns/cgroup", &ours) < 0 || stat(ns->path, &theirs) < 0)
		return cj_fail(err, errno, "look at the cgroup namespace '%s'", ns->path);
	if (ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino)
		*ns = (struct oci_namespace){ 0 };
	return 0;
}

int creation_plan_annotations(struct creation *c, struct cj_error *err)
{
	const struct oci_config *config = &c->bundle.config;
	struct strings warnings = { 0 };

	if (annotations_read(&config->annotations, c->arena, &c->annotations, err) < 0)
		return -err->code;
	if (c->annotations.has_network) {
		bool is_checked = config->has_process && !c->annotations.is_sandbox;
		if (annotations_check_network(config, is_checked ? &config->process : NULL, err) <
			0 ||
		    annotations_prepare_network(&c->annotations, c->arena, &c->rules, &warnings,
						err) < 0)
			return -err->code;
		oci_log_warnings(c->options, &warnings);
	}
	if (!c->annotations.result)
		return 0;
	if (state_check_id(c->options->id, err) < 0) /* it may be a part of the path */
		return -err->code;
	return oci_result_find(c->annotations.result, c->options->result_dir, c->options->id,
			       c->arena, &c->result, err);
}

int creation_plan_tree(struct creation *c, struct cj_error *err)
{
	struct oci_config *config = &c->bundle.config;

	/* The first adds a mount, and a variable of the process. */
	if (notify_relay_plan(&c->notify, c->options, config, c->arena, err) < 0 ||
	    oci_tree_plan(config, c->arena, &c->tree, err) < 0 ||
	    sysctls_look_at_host(&c->host_spaces, err) < 0)
		return -err->code;
	oci_log_warnings(c->options, &c->tree.warnings);
	return tree_open_outside(&c->tree.tree, c->bundle.path, &c->sources, err);
}

int creation_plan_process(struct creation *c, struct cj_error *err)
{
	const struct oci_config *config = &c->bundle.config;
	const struct process_context context = {
		.has_user_namespace = creation_namespaces(c)[OCI_NS_USER].is_wanted,
		.keeps_keyring = c->options->no_new_keyring,
		.profile = c->annotations.profile,
		.preserved_fds = c->preserved_fds,
	};

	if (!config->has_process)
		return 0;
	if (inherit_fds_pass(&c->listen, &c->bundle.config.process.env, c->arena, err) < 0)
		return -err->code;
	if (process_prepare(config, &config->process, &context, c->arena, &c->process, err) < 0)
		return -err->code;
	oci_log_warnings(c->options, process_warnings(c->process));
	return 0;
}
