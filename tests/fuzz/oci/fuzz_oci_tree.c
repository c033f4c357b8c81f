/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_oci_tree - any text as what config.json says about mounts: options, a path, a sysctl.
 *
 * Asserted: a clean path is absolute, has no ".." and stays as it is; an attribute is not both set
 * and cleared; a sysctl that is taken stays below the directories of its namespace.
 */
#include "runtime/container/plan/oci_tree.h"

#include <sys/mount.h>

#include "profiles/paths.h"
#include "runtime/base/scope.h"
#include "runtime/container/plan/mount_options.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static bool has_component(const char *path, const char *name)
{
	for (const char *part = path; *part; part += strcspn(part, "/"), part += *part == '/')
		if (strcspn(part, "/") == strlen(name) && strncmp(part, name, strlen(name)) == 0)
			return true;
	return false;
}

static void check_path(const char *text, struct arena *a)
{
	const char *path = paths_clean(text, a);
	assert(path && path[0] == '/' && !strstr(path, "//") && strlen(path) <= strlen(text) + 1);
	assert(strcmp(path, "/") == 0 || path[strlen(path) - 1] != '/');
	assert(!has_component(path, ".") && !has_component(path, ".."));
	assert(strcmp(paths_clean(path, a), path) == 0);
}

static void check_attrs(uint64_t set, uint64_t clear)
{
	assert((set & clear & ~(uint64_t)MOUNT_ATTR__ATIME) == 0);
	assert((set & MOUNT_ATTR__ATIME) == 0 || (clear & MOUNT_ATTR__ATIME) == MOUNT_ATTR__ATIME);
	assert((set & MOUNT_ATTR__ATIME) != MOUNT_ATTR__ATIME);
}

static void check_options(const struct strings *list, struct arena *a)
{
	struct mount_options o;
	struct cj_error err = { 0 };
	if (mount_options_parse(list, a, &o, &err) < 0) {
		assert(err.code == EINVAL && err.msg[0] != '\0');
		return;
	}
	check_attrs(o.attrs.set, o.attrs.clear);
	check_attrs(o.attrs.set_below, o.attrs.clear_below);
	assert(!o.is_read_only || !o.is_writable);
	assert(o.ndata <= list->count);
	for (size_t i = 0; i < o.ndata; i++)
		assert(o.data[i].key[0] != '\0' && !strchr(o.data[i].key, '='));
}

static void check_sysctl(const char *text, struct arena *a)
{
	const struct oci_pair pair = { text, "1" };
	struct oci_config config = { .hostname = "1", .on_linux.sysctl = { &pair, 1 } };
	for (size_t i = 0; i < OCI_NS_COUNT; i++)
		config.on_linux.namespaces[i].is_wanted = true;
	struct oci_tree tree = { 0 };
	struct cj_error err = { 0 };
	if (oci_tree_plan_sysctls(&config, a, &tree, &err) < 0) {
		assert(err.code == EINVAL);
		return;
	}
	const struct sysctl *items = tree.sysctls;
	assert(tree.nsysctls == 1 && !has_component(items[0].path, ".."));
	static const char *const places[] = { "net/", "fs/mqueue/", "kernel/", "user/" };
	bool is_below = false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		is_below = is_below || strncmp(items[0].path, places[i], strlen(places[i])) == 0;
	assert(is_below && !has_component(items[0].path, "."));
}

/* A whole mount of these options, at this path, of this type. */
static void check_plan(const char *text, const struct strings *list, struct arena *a)
{
	const struct oci_mount mount = {
		.destination = text,
		.type = list->count % 2 ? "tmpfs" : "bind",
		.source = text,
		.options = *list,
	};
	struct oci_config config = { .mounts = &mount, .nmounts = 1, .root_path = "r" };
	config.on_linux.namespaces[OCI_NS_MOUNT].is_wanted = true;
	struct oci_tree tree;
	struct cj_error err = { 0 };
	if (oci_tree_plan(&config, a, &tree, &err) < 0) {
		assert(err.code == EINVAL);
		return;
	}
	for (size_t i = 0; i < tree.tree.nops; i++)
		assert(tree.tree.ops[i].path[0] == '/' && tree.tree.ops[i].path[1] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	auto_arena struct arena arena = { 0 };
	auto_free char *text = bytes_text((struct bytes){ bytes, size });
	struct strings list = { 0 };

	check_path(text, &arena);
	check_sysctl(text, &arena);
	for (const char *part = text; *part; part += strcspn(part, ","), part += *part == ',')
		assert(strings_add(&list, &arena,
				   arena_strndup(&arena, part, strcspn(part, ","))) == 0);
	check_options(&list, &arena);
	check_plan(text, &list, &arena);
	return 0;
}
