/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_oci_config - any text as a bundle's config.json.
 *
 * Asserted: a refusal has a message with the file's name; what is taken keeps every bound that
 * oci_config.h, oci_linux.h and oci_process.h promise.
 */
#include "runtime/container/config/oci_config.h"

#include "netns/firewall/firewall.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/container/annotation/annotations.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_strings(const struct strings *list)
{
	for (size_t i = 0; i < list->count; i++)
		assert(list->items[i] && is_utf8(list->items[i], strlen(list->items[i])));
	assert(list->count == 0 || !list->items[list->count]);
}

static bool is_path(const char *path)
{
	return path && path[0] == '/';
}

static bool is_path_or_none(const char *path)
{
	return !path || path[0] == '/';
}

static void check_process(const struct oci_process *p)
{
	assert(p->args.count > 0 && is_path(p->cwd));
	assert(p->user.uid <= OCI_ID_MAX && p->user.gid <= OCI_ID_MAX);
	assert(p->user.umask.value <= 0777);
	for (size_t i = 0; i < p->user.ngroups; i++)
		assert(p->user.groups[i] <= OCI_ID_MAX);
	for (size_t i = 0; i < p->nrlimits; i++)
		assert(p->rlimits[i].soft <= p->rlimits[i].hard);
	assert(p->oom_score_adj.value >= -1000 && p->oom_score_adj.value <= 1000);
	assert(p->io_priority.level < 8);
	check_strings(&p->args);
	check_strings(&p->env);
	check_strings(&p->capabilities.ambient);
}

static void check_seccomp(const struct oci_seccomp *s)
{
	if (!s->is_given)
		return;
	assert(s->default_action <= POLICY_KILL_PROCESS && s->default_action != POLICY_NOTIFY);
	assert(is_path_or_none(s->listener_path) && (!s->notifies || s->listener_path));
	for (size_t i = 0; i < s->nrules; i++) {
		const struct oci_seccomp_rule *rule = &s->rules[i];
		unsigned seen = 0;
		assert(rule->names.count > 0);
		assert(rule->action <= POLICY_KILL_PROCESS);
		for (size_t k = 0; k < rule->nargs; k++) {
			unsigned bit = 1u << rule->args[k].index;
			assert(rule->args[k].index < 6 && !(seen & bit));
			seen |= bit;
		}
	}
}

static void check_maps(const struct oci_id_maps *maps)
{
	for (size_t i = 0; i < maps->count; i++) {
		const struct oci_id_map *map = &maps->items[i];
		assert(map->size > 0 && map->container_id + map->size >= map->container_id);
		assert(map->host_id + map->size >= map->host_id);
	}
}

static void check_linux(const struct oci_linux *l)
{
	for (int i = 0; i < OCI_NS_COUNT; i++)
		assert(is_path_or_none(l->namespaces[i].path));
	assert(l->namespaces[OCI_NS_MOUNT].is_wanted && !l->namespaces[OCI_NS_MOUNT].path);
	assert((l->uid_maps.count > 0) == (l->gid_maps.count > 0));
	assert(l->uid_maps.count == 0 || l->namespaces[OCI_NS_USER].is_wanted);
	check_maps(&l->uid_maps);
	check_maps(&l->gid_maps);
	for (size_t i = 0; i < l->ndevices; i++)
		assert(is_path(l->devices[i].path) && strchr("cubp", l->devices[i].type) &&
		       l->devices[i].type != '\0' && l->devices[i].file_mode.value <= 0777);
	for (size_t i = 0; i < l->masked_paths.count; i++)
		assert(is_path(l->masked_paths.items[i]));
	for (size_t i = 0; i < l->resources.unified.count; i++)
		assert(!strchr(l->resources.unified.items[i].name, '/'));
	check_seccomp(&l->seccomp);
}

static void check_config(const struct oci_config *c)
{
	assert(strncmp(c->oci_version, "1.", 2) == 0 && c->root_path[0] != '\0');
	if (c->has_process)
		check_process(&c->process);
	for (size_t i = 0; i < c->nmounts; i++) {
		assert(is_path(c->mounts[i].destination) && c->mounts[i].line > 0);
		check_strings(&c->mounts[i].options);
		check_maps(&c->mounts[i].uid_maps);
	}
	for (int kind = 0; kind < OCI_HOOK_COUNT; kind++)
		for (size_t i = 0; i < c->hooks[kind].count; i++)
			assert(is_path(c->hooks[kind].items[i].path));
	for (size_t i = 0; i < c->annotations.count; i++)
		assert(c->annotations.items[i].name[0] != '\0' && c->annotations.items[i].value);
	check_linux(&c->on_linux);
}

static void check_annotations(const struct oci_config *c, struct arena *a)
{
	struct annotations read;
	struct cj_error err = { 0 };

	if (annotations_read(&c->annotations, a, &read, &err) < 0) {
		assert(strstr(err.msg, "annotation"));
		return;
	}
	assert(!read.is_list || (read.has_network && read.nallow > 0));
	assert(read.nname_servers <= FIREWALL_NAME_SERVERS_MAX);
	assert(!read.profile || !strchr(read.profile, '/'));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	auto_free char *text = bytes_text((struct bytes){ bytes, size });
	auto_arena struct arena arena = { 0 };
	struct cj_error err = { 0 };
	struct oci_config config;

	int rc = oci_config_read("config.json", text, size, &arena, &config, &err);
	if (rc < 0)
		assert(err.code == -rc && strstr(err.msg, "config.json"));
	else
		check_config(&config);
	if (rc == 0)
		check_annotations(&config, &arena);
	return 0;
}
