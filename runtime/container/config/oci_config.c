/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle's config.json as plain data. */
#include "runtime/container/config/oci_config.h"

#include "runtime/base/text.h"

const char *const oci_hook_names[OCI_HOOK_COUNT] = {
	[OCI_HOOK_PRESTART] = "prestart",
	[OCI_HOOK_CREATE_RUNTIME] = "createRuntime",
	[OCI_HOOK_CREATE_CONTAINER] = "createContainer",
	[OCI_HOOK_START_CONTAINER] = "startContainer",
	[OCI_HOOK_POSTSTART] = "poststart",
	[OCI_HOOK_POSTSTOP] = "poststop",
};

#define WORD JSON_TAKES_STRING, .set = json_set_string, .min = 1, .is_required = true

static const char *skip_number(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	return digits > 0 && (text[0] != '0' || digits == 1) ? text + digits : NULL;
}

/* Semantic Versioning 2.0.0: 1.MINOR.PATCH with "-dev" or "+build" behind. */
static JSON_SETTER(version)
{
	const char *rest = text_after(text, "1.");

	rest = rest ? skip_number(rest) : NULL;
	if (rest)
		rest = rest[0] == '.' ? skip_number(rest + 1) : NULL;
	if (!rest || !(rest[0] == '\0' || rest[0] == '-' || rest[0] == '+'))
		return cj_reject(err, "'%.32s' is not a version 1.x.y of the specification", text);
	*(const char **)json_field(k, record) = text;
	return 0;
}

static const struct json_key root_keys[] = {
	{ "path", WORD, AT(oci_config, root_path) },
	{ "readonly", OCI_FLAG, AT(oci_config, root_is_readonly) },
};
static const struct json_record root_record = OCI_TABLE(root_keys);

/* A relative one is deprecated, and relative to the container's root. */
static JSON_SETTER(destination)
{
	const char *absolute = text[0] == '/' ? text : arena_printf(in->arena, "/%s", text);

	if (text[0] == '\0')
		return cj_reject(err, "the value is empty");
	if (!absolute)
		return cj_fail(err, ENOMEM, "read '%s'", in->file);
	*(const char **)json_field(k, record) = absolute;
	return 0;
}

static const struct json_key mount_keys[] = {
	{ "destination", JSON_TAKES_STRING, .set = json_set_destination, .is_required = true,
	  AT(oci_mount, destination) },
	{ "type", OCI_TEXT, AT(oci_mount, type) },
	{ "source", OCI_TEXT, AT(oci_mount, source) },
	{ "options", OCI_TEXTS, AT(oci_mount, options) },
	{ "uidMappings", OCI_RECORDS(oci_id_map_record), LIST(oci_mount, uid_maps) },
	{ "gidMappings", OCI_RECORDS(oci_id_map_record), LIST(oci_mount, gid_maps) },
};

static JSON_CHECK(mount)
{
	struct oci_mount *mount = record;

	if ((mount->uid_maps.count > 0) != (mount->gid_maps.count > 0))
		return oci_reject(in, node, err,
				  "'%.128s' needs both or none of uidMappings and gidMappings",
				  mount->destination);
	mount->line = node->line;
	return 0;
}
static const struct json_record mount_record =
    OCI_TABLE(mount_keys, .size = sizeof(struct oci_mount), .check = json_check_mount);

static const struct json_key hook_keys[] = {
	{ "path", OCI_PATH, .is_required = true, AT(oci_hook, path) },
	{ "args", OCI_TEXTS, AT(oci_hook, args) },
	{ "env", OCI_TEXTS, AT(oci_hook, env) },
	{ "timeout", OCI_NUMBER, .set = json_set_oci_u32, .min = 1, .max = INT32_MAX,
	  AT(oci_hook, timeout_secs) },
};

static JSON_CHECK(hook)
{
	struct oci_hook *hook = record;
	const struct json_node *env = json_get(node, "env");

	hook->has_env = env && env->type != JSON_NULL;
	return hook->path ? 0 : oci_reject(in, node, err, "path is empty");
}
static const struct json_record hook_record =
    OCI_TABLE(hook_keys, .size = sizeof(struct oci_hook), .check = json_check_hook);

#define HOOKS(kind) OCI_RECORDS(hook_record), LIST(oci_config, hooks[OCI_HOOK_##kind])
static const struct json_key hooks_keys[] = {
	{ "prestart", HOOKS(PRESTART) },
	{ "createRuntime", HOOKS(CREATE_RUNTIME) },
	{ "createContainer", HOOKS(CREATE_CONTAINER) },
	{ "startContainer", HOOKS(START_CONTAINER) },
	{ "poststart", HOOKS(POSTSTART) },
	{ "poststop", HOOKS(POSTSTOP) },
};
static const struct json_record hooks_record = OCI_TABLE(hooks_keys);

static JSON_READER(process)
{
	struct oci_config *config = record;

	config->has_process = true;
	return json_read_record(in, k, node, record, err);
}

static const char no_vm[] = "cejail-oci starts no virtual machine";
static const char no_system[] = "cejail-oci makes containers of Linux only";

static const struct json_key config_keys[] = {
	{ "ociVersion", JSON_TAKES_STRING, .set = json_set_version, .is_required = true,
	  AT(oci_config, oci_version) },
	{ "root", OCI_RECORD(root_record), .is_required = true },
	{ "process", OCI_OBJECT, .read = json_read_process, .detail = &oci_process_record,
	  AT(oci_config, process) },
	{ "hostname", OCI_TEXT, AT(oci_config, hostname) },
	{ "domainname", OCI_TEXT, AT(oci_config, domainname) },
	{ "mounts", OCI_RECORDS(mount_record), ITEMS(oci_config, mounts, nmounts) },
	{ "hooks", OCI_RECORD(hooks_record) },
	{ "annotations", OCI_PAIRS, LIST(oci_config, annotations) },
	{ "linux", OCI_RECORD(oci_linux_record), AT(oci_config, on_linux) },
	{ "vm", OCI_REFUSED(no_vm) },
	{ "windows", OCI_REFUSED(no_system) },
	{ "solaris", OCI_REFUSED(no_system) },
	{ "zos", OCI_REFUSED(no_system) },
	{ "freebsd", OCI_REFUSED(no_system) },
};

bool oci_config_is_since_1_3(const struct oci_config *c)
{
	return strtoul(c->oci_version + strlen("1."), NULL, 10) >= 3;
}

void oci_config_settle_pids(const struct oci_config *c, struct oci_resources *resources)
{
	if (resources->pids_limit.is_set && resources->pids_limit.value == 0 &&
	    !oci_config_is_since_1_3(c))
		resources->pids_limit.value = -1;
}

/* What two parts of the file say together. */
static JSON_CHECK(config)
{
	struct oci_config *config = record;
	const struct oci_namespace *namespaces = config->on_linux.namespaces;

	oci_config_settle_pids(config, &config->on_linux.resources);
	if (!config->root_path)
		return oci_reject(in, node, err, "root.path is missing");
	if (!namespaces[OCI_NS_MOUNT].is_wanted)
		return oci_reject(in, node, err, "linux.namespaces must have a mount namespace");
	if ((config->hostname || config->domainname) && !namespaces[OCI_NS_UTS].is_wanted)
		return oci_reject(in, node, err,
				  "hostname and domainname need a uts namespace in "
				  "linux.namespaces");
	return 0;
}
static const struct json_record config_record = OCI_TABLE(config_keys, .check = json_check_config);

int oci_config_read(const char *name, const char *text, size_t size, struct arena *a,
		    struct oci_config *out, struct cj_error *err)
{
	return oci_file_read(name, text, size, a, &config_record, out, sizeof(*out), err);
}
