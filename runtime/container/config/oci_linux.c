/* SPDX-License-Identifier: Apache-2.0 */
/* "linux" of a config.json as plain data. */
#include "runtime/container/config/oci_linux.h"

#include <limits.h>
#include <linux/audit.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sys/mount.h>
#include <sys/personality.h>

#include "runtime/base/text.h"

#define NANOSECS_MAX    999999999
#define FILE_MODE_MAX   0177777 /* containerd 1.6 writes the file's type, too */
#define ID_MAP_LINE     33      /* three numbers of ten digits, two blanks, newline */
#define PERMISSION_BITS 0777
#define ARGS_MAX        6
#define ACTION_DATA_MAX UINT16_MAX /* seccomp(2), SECCOMP_RET_DATA */

const char *const oci_namespace_names[OCI_NS_COUNT] = {
	[OCI_NS_USER] = "user", [OCI_NS_CGROUP] = "cgroup",   [OCI_NS_IPC] = "ipc",
	[OCI_NS_UTS] = "uts",   [OCI_NS_NETWORK] = "network", [OCI_NS_PID] = "pid",
	[OCI_NS_TIME] = "time", [OCI_NS_MOUNT] = "mount",
};

struct namespace_item {
	enum oci_namespace_type type;
	const char *path;
};
static const struct json_key namespace_keys[] = {
	{ "type", JSON_TAKES_STRING, .set = json_set_name, .detail = oci_namespace_names,
	  .max = OCI_NS_COUNT, .is_required = true, AT(namespace_item, type) },
	{ "path", OCI_PATH, AT(namespace_item, path) },
};
static const struct json_record namespace_record = OCI_TABLE(namespace_keys);

static JSON_READER(namespace)
{
	const struct json_reader below = json_below(in, k->name);
	struct namespace_item item = { 0 };
	struct oci_linux *on_linux = record;

	if (json_record_read(&below, node, &namespace_record, &item, err) < 0)
		return -err->code;
	struct oci_namespace *namespace = &on_linux->namespaces[item.type];
	if (namespace->is_wanted)
		return oci_reject(&below, node, err, "the type '%s' stands here twice",
				  oci_namespace_names[item.type]);
	*namespace = (struct oci_namespace){ true, item.path };
	return 0;
}

static const struct json_key id_map_keys[] = {
	{ "containerID", OCI_ID, .is_required = true, AT(oci_id_map, container_id) },
	{ "hostID", OCI_ID, .is_required = true, AT(oci_id_map, host_id) },
	{ "size", JSON_TAKES_NUMBER, .set = json_set_oci_u32, .min = 1, .max = UINT32_MAX,
	  .is_required = true, AT(oci_id_map, size) },
};

static JSON_CHECK(id_map)
{
	const struct oci_id_map *map = record;

	if (map->size > UINT32_MAX - map->container_id || map->size > UINT32_MAX - map->host_id)
		return oci_reject(in, node, err, "the range ends above the largest id");
	return 0;
}
const struct json_record oci_id_map_record =
    OCI_TABLE(id_map_keys, .size = sizeof(struct oci_id_map), .check = json_check_id_map);

const char *oci_id_maps_format(const struct oci_id_maps *maps, struct arena *a)
{
	size_t size = maps->count * ID_MAP_LINE + 1, used = 0;
	char *text = arena_alloc(a, size);

	if (!text)
		return NULL;
	text[0] = '\0';
	for (size_t i = 0; i < maps->count; i++) {
		const struct oci_id_map *map = &maps->items[i];
		used += (size_t)snprintf(text + used, size - used, "%u %u %u\n", map->container_id,
					 map->host_id, map->size);
	}
	return text;
}

static const struct json_key offset_keys[] = {
	{ "secs", OCI_NUMBER, .set = json_set_oci_s64, AT(oci_time_offset, secs) },
	{ "nanosecs", OCI_NUMBER, .set = json_set_oci_u32, .max = NANOSECS_MAX,
	  AT(oci_time_offset, nanosecs) },
};
static const struct json_record offset_record =
    OCI_TABLE(offset_keys, .check = json_check_oci_given);

static const struct json_key offsets_keys[] = {
	{ "monotonic", OCI_RECORD(offset_record), AT(oci_linux, monotonic) },
	{ "boottime", OCI_RECORD(offset_record), AT(oci_linux, boottime) },
};
/* A clock that is not shifted would be a silent skip. */
static const struct json_record offsets_record = { offsets_keys, COUNT_OF(offsets_keys), "the file",
						   .ignores_unknown = false };

#define MPOL_WEIGHTED 6 /* MPOL_WEIGHTED_INTERLEAVE of Linux 6.9 */
static const struct oci_name memory_mode_names[] = {
	{ "MPOL_DEFAULT", MPOL_DEFAULT },       { "MPOL_BIND", MPOL_BIND },
	{ "MPOL_INTERLEAVE", MPOL_INTERLEAVE }, { "MPOL_WEIGHTED_INTERLEAVE", MPOL_WEIGHTED },
	{ "MPOL_PREFERRED", MPOL_PREFERRED },   { "MPOL_PREFERRED_MANY", MPOL_PREFERRED_MANY },
	{ "MPOL_LOCAL", MPOL_LOCAL },
};
static const struct oci_name memory_flag_names[] = {
	{ "MPOL_F_NUMA_BALANCING", MPOL_F_NUMA_BALANCING },
	{ "MPOL_F_RELATIVE_NODES", MPOL_F_RELATIVE_NODES },
	{ "MPOL_F_STATIC_NODES", MPOL_F_STATIC_NODES },
};
const struct oci_names oci_memory_modes = NAMES(memory_mode_names);
const struct oci_names oci_memory_flags = NAMES(memory_flag_names);

static const struct json_key memory_policy_keys[] = {
	{ "mode", OCI_NAME(oci_memory_modes), .is_required = true, AT(oci_memory_policy, mode) },
	{ "nodes", OCI_STRING, .set = json_set_oci_set, AT(oci_memory_policy, nodes) },
	{ "flags", OCI_BITS(oci_memory_flags), AT(oci_memory_policy, flags) },
};
static const struct json_record memory_policy_record =
    OCI_TABLE(memory_policy_keys, .check = json_check_oci_given);

static const struct oci_name domain_names[] = {
	{ "LINUX", PER_LINUX },
	{ "LINUX32", PER_LINUX32 },
};
static const struct oci_names domains = NAMES(domain_names);
static const char no_flags[] = "the specification has no flags of a personality yet";

static const struct json_key personality_keys[] = {
	{ "domain", OCI_NAME(domains), .is_required = true, AT(oci_personality, domain) },
	{ "flags", OCI_REFUSED(no_flags) },
};
static const struct json_record personality_record =
    OCI_TABLE(personality_keys, .check = json_check_oci_given);

static JSON_SETTER(type)
{
	if (strlen(text) != 1 || !strchr("cubp", text[0]))
		return cj_reject(err, "'%.16s' must be c, u, b or p", text);
	*(char *)json_field(k, record) = text[0];
	return 0;
}

#define NUMBER OCI_NUMBER, .set = json_set_oci_u32, .max = UINT32_MAX
static const struct json_key device_keys[] = {
	{ "path", OCI_PATH, .is_required = true, AT(oci_device, path) },
	{ "type", JSON_TAKES_STRING, .set = json_set_type, .is_required = true,
	  AT(oci_device, type) },
	{ "major", NUMBER, AT(oci_device, major) },
	{ "minor", NUMBER, AT(oci_device, minor) },
	{ "fileMode", OCI_NUMBER, .set = json_set_oci_u64, .max = FILE_MODE_MAX,
	  AT(oci_device, file_mode) },
	{ "uid", OCI_NUMBER, .set = json_set_oci_u64, .max = OCI_ID_MAX, AT(oci_device, uid) },
	{ "gid", OCI_NUMBER, .set = json_set_oci_u64, .max = OCI_ID_MAX, AT(oci_device, gid) },
};

static JSON_CHECK(device)
{
	struct oci_device *device = record;

	if (!device->path)
		return oci_reject(in, node, err, "path is empty");
	if (device->type != 'p' && !(json_get(node, "major") && json_get(node, "minor")))
		return oci_reject(in, node, err, "'%.64s' needs major and minor", device->path);
	device->file_mode.value &= PERMISSION_BITS;
	return 0;
}
static const struct json_record device_record =
    OCI_TABLE(device_keys, .size = sizeof(struct oci_device), .check = json_check_device);

static JSON_SETTER(line)
{
	if (strchr(text, '\n'))
		return cj_reject(err, "the value has more than one line");
	return k->is_list ? json_set_strings(in, k, text, record, err)
			  : json_set_oci_text(in, k, text, record, err);
}

/* Those that the file system has itself, and those that lead elsewhere. */
static JSON_SETTER(class)
{
	static const char *const taken[] = { "info", "mon_data", "mon_groups", NULL };

	if (text[0] == '.' || strchr(text, '/') || strlen(text) > NAME_MAX ||
	    text_is_one_of(text, taken))
		return cj_reject(err, "'%.64s' is no name of a class", text);
	return json_set_oci_text(in, k, text, record, err);
}

static const char no_switches[] = "version 1.3 has enableMonitoring instead";
static const struct json_key rdt_keys[] = {
	{ "closID", OCI_STRING, .set = json_set_class, AT(oci_rdt, clos_id) },
	{ "l3CacheSchema", OCI_TEXT, AT(oci_rdt, l3_schema) },
	{ "memBwSchema", OCI_STRING, .set = json_set_line, AT(oci_rdt, memory_schema) },
	{ "schemata", OCI_STRING, .is_list = true, .set = json_set_line, AT(oci_rdt, schemata) },
	{ "enableMonitoring", OCI_FLAG, AT(oci_rdt, has_monitoring) },
	{ "enableCMT", OCI_REFUSED(no_switches) },
	{ "enableMBM", OCI_REFUSED(no_switches) },
};

static JSON_CHECK(rdt)
{
	struct oci_rdt *rdt = record;

	rdt->is_given = true;
	if (rdt->memory_schema && !text_begins_with(rdt->memory_schema, "MB:"))
		return oci_reject(in, node, err, "memBwSchema must begin with 'MB:'");
	return 0;
}
static const struct json_record rdt_record = OCI_TABLE(rdt_keys, .check = json_check_rdt);

static const struct json_key net_device_keys[] = {
	{ "name", OCI_TEXT, AT(oci_net_device, name) },
};

/* dev_valid_name() of the kernel. */
static bool is_device_name(const char *name)
{
	return name[0] != '\0' && strlen(name) < IFNAMSIZ && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0 && !strpbrk(name, "/: \t\n\v\f\r");
}

static JSON_CHECK(net_device)
{
	struct oci_net_device *device = record;

	device->name = device->name ? device->name : device->host_name;
	if (is_device_name(device->host_name) && is_device_name(device->name))
		return 0;
	return oci_reject(in, node, err, "'%.64s' is no name of a device",
			  is_device_name(device->host_name) ? device->name : device->host_name);
}
static const struct json_record net_device_record = OCI_TABLE(
    net_device_keys, .size = sizeof(struct oci_net_device), .check = json_check_net_device);

static const struct oci_name action_names[] = {
	{ "SCMP_ACT_KILL", POLICY_KILL_THREAD },
	{ "SCMP_ACT_KILL_PROCESS", POLICY_KILL_PROCESS },
	{ "SCMP_ACT_KILL_THREAD", POLICY_KILL_THREAD },
	{ "SCMP_ACT_TRAP", POLICY_TRAP },
	{ "SCMP_ACT_ERRNO", POLICY_ERRNO },
	{ "SCMP_ACT_TRACE", POLICY_TRACE },
	{ "SCMP_ACT_ALLOW", POLICY_ALLOW },
	{ "SCMP_ACT_LOG", POLICY_LOG },
	{ "SCMP_ACT_NOTIFY", POLICY_NOTIFY },
};
const struct oci_names oci_seccomp_actions = NAMES(action_names);

/* libseccomp's numbers: the kernel's, but for x32, which shares that of x86_64. */
#define ARCH_X32 (EM_X86_64 | __AUDIT_ARCH_LE)
static const struct oci_name arch_names[] = {
	{ "SCMP_ARCH_X86", AUDIT_ARCH_I386 },
	{ "SCMP_ARCH_X86_64", AUDIT_ARCH_X86_64 },
	{ "SCMP_ARCH_X32", ARCH_X32 },
	{ "SCMP_ARCH_ARM", AUDIT_ARCH_ARM },
	{ "SCMP_ARCH_AARCH64", AUDIT_ARCH_AARCH64 },
	{ "SCMP_ARCH_MIPS", AUDIT_ARCH_MIPS },
	{ "SCMP_ARCH_MIPS64", AUDIT_ARCH_MIPS64 },
	{ "SCMP_ARCH_MIPS64N32", AUDIT_ARCH_MIPS64N32 },
	{ "SCMP_ARCH_MIPSEL", AUDIT_ARCH_MIPSEL },
	{ "SCMP_ARCH_MIPSEL64", AUDIT_ARCH_MIPSEL64 },
	{ "SCMP_ARCH_MIPSEL64N32", AUDIT_ARCH_MIPSEL64N32 },
	{ "SCMP_ARCH_PPC", AUDIT_ARCH_PPC },
	{ "SCMP_ARCH_PPC64", AUDIT_ARCH_PPC64 },
	{ "SCMP_ARCH_PPC64LE", AUDIT_ARCH_PPC64LE },
	{ "SCMP_ARCH_S390", AUDIT_ARCH_S390 },
	{ "SCMP_ARCH_S390X", AUDIT_ARCH_S390X },
	{ "SCMP_ARCH_PARISC", AUDIT_ARCH_PARISC },
	{ "SCMP_ARCH_PARISC64", AUDIT_ARCH_PARISC64 },
	{ "SCMP_ARCH_RISCV64", AUDIT_ARCH_RISCV64 },
};
const struct oci_names oci_seccomp_archs = NAMES(arch_names);

static const struct oci_name flag_names[] = {
	{ "SECCOMP_FILTER_FLAG_TSYNC", SECCOMP_FILTER_FLAG_TSYNC },
	{ "SECCOMP_FILTER_FLAG_LOG", SECCOMP_FILTER_FLAG_LOG },
	{ "SECCOMP_FILTER_FLAG_SPEC_ALLOW", SECCOMP_FILTER_FLAG_SPEC_ALLOW },
	{ "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV },
};
const struct oci_names oci_seccomp_flags = NAMES(flag_names);

static const struct json_key arg_keys[] = {
	{ "index", JSON_TAKES_NUMBER, .set = json_set_oci_u32, .max = ARGS_MAX - 1,
	  .is_required = true, AT(policy_arg, index) },
	{ "value", JSON_TAKES_NUMBER, .set = json_set_u64, .is_required = true,
	  AT(policy_arg, value) },
	{ "valueTwo", OCI_NUMBER, .set = json_set_u64, AT(policy_arg, value_two) },
	{ "op", JSON_TAKES_STRING, .set = json_set_name, .detail = policy_op_names,
	  .max = POLICY_OP_COUNT, .is_required = true, AT(policy_arg, op) },
};
static const struct json_record arg_record = OCI_TABLE(arg_keys, .size = sizeof(struct policy_arg));

#define ACTION OCI_NAME(oci_seccomp_actions), .is_required = true
#define DATA   OCI_NUMBER, .set = json_set_oci_u64, .max = ACTION_DATA_MAX
static const struct json_key rule_keys[] = {
	{ "names", OCI_TEXTS, .is_required = true, AT(oci_seccomp_rule, names) },
	{ "action", ACTION, AT(oci_seccomp_rule, action) },
	{ "errnoRet", DATA, AT(oci_seccomp_rule, errno_ret) },
	{ "args", OCI_RECORDS(arg_record), ITEMS(oci_seccomp_rule, args, nargs) },
};

static JSON_CHECK(rule)
{
	const struct oci_seccomp_rule *rule = record;

	if (rule->names.count == 0)
		return oci_reject(in, node, err, "a rule needs names of system calls");
	return 0;
}
static const struct json_record rule_record =
    OCI_TABLE(rule_keys, .size = sizeof(struct oci_seccomp_rule), .check = json_check_rule);

static const struct json_key seccomp_keys[] = {
	{ "defaultAction", ACTION, AT(oci_seccomp, default_action) },
	{ "defaultErrnoRet", DATA, AT(oci_seccomp, default_errno_ret) },
	{ "architectures", OCI_STRING, .is_list = true, .set = json_set_oci_values,
	  .detail = &oci_seccomp_archs, ITEMS(oci_seccomp, architectures, narchitectures) },
	{ "flags", OCI_BITS(oci_seccomp_flags), AT(oci_seccomp, flags) },
	{ "listenerPath", OCI_PATH, AT(oci_seccomp, listener_path) },
	{ "listenerMetadata", OCI_TEXT, AT(oci_seccomp, listener_metadata) },
	{ "syscalls", OCI_RECORDS(rule_record), ITEMS(oci_seccomp, rules, nrules) },
};

static JSON_CHECK(seccomp)
{
	struct oci_seccomp *seccomp = record;

	seccomp->is_given = true;
	if (seccomp->default_action == POLICY_NOTIFY)
		return oci_reject(in, node, err,
				  "defaultAction must not be SCMP_ACT_NOTIFY: nobody could answer "
				  "for the calls that pass the listener on");
	for (size_t i = 0; i < seccomp->nrules; i++)
		seccomp->notifies |= seccomp->rules[i].action == POLICY_NOTIFY;
	if (seccomp->notifies && !seccomp->listener_path)
		return oci_reject(in, node, err, "SCMP_ACT_NOTIFY needs listenerPath");
	return 0;
}
static const struct json_record seccomp_record =
    OCI_TABLE(seccomp_keys, .check = json_check_seccomp);

static const struct oci_name propagation_names[] = {
	{ "private", MS_PRIVATE },       { "rprivate", MS_PRIVATE | MS_REC },
	{ "slave", MS_SLAVE },           { "rslave", MS_SLAVE | MS_REC },
	{ "shared", MS_SHARED },         { "rshared", MS_SHARED | MS_REC },
	{ "unbindable", MS_UNBINDABLE }, { "runbindable", MS_UNBINDABLE | MS_REC },
};
static const struct oci_names propagations = NAMES(propagation_names);

static JSON_SETTER(propagation)
{
	return text[0] != '\0' ? json_set_oci_name(in, k, text, record, err) : 0;
}

static const struct json_key linux_keys[] = {
	{ "namespaces", JSON_TAKES_OBJECT | JSON_NULL_IS_ABSENT, .is_list = true,
	  .read = json_read_namespace },
	{ "uidMappings", OCI_RECORDS(oci_id_map_record), LIST(oci_linux, uid_maps) },
	{ "gidMappings", OCI_RECORDS(oci_id_map_record), LIST(oci_linux, gid_maps) },
	{ "timeOffsets", OCI_RECORD(offsets_record) },
	{ "sysctl", OCI_PAIRS, LIST(oci_linux, sysctl) },
	{ "cgroupsPath", OCI_TEXT, AT(oci_linux, cgroups_path) },
	{ "resources", OCI_RECORD(oci_resources_record), AT(oci_linux, resources) },
	{ "devices", OCI_RECORDS(device_record), ITEMS(oci_linux, devices, ndevices) },
	{ "seccomp", OCI_RECORD(seccomp_record), AT(oci_linux, seccomp) },
	{ "rootfsPropagation", OCI_STRING, .set = json_set_propagation, .detail = &propagations,
	  AT(oci_linux, rootfs_propagation) },
	{ "maskedPaths", OCI_PATHS, AT(oci_linux, masked_paths) },
	{ "readonlyPaths", OCI_PATHS, AT(oci_linux, readonly_paths) },
	{ "personality", OCI_RECORD(personality_record), AT(oci_linux, personality) },
	{ "mountLabel", OCI_TEXT, AT(oci_linux, mount_label) },
	{ "intelRdt", OCI_RECORD(rdt_record), AT(oci_linux, rdt) },
	{ "netDevices", OCI_NAMED(net_device_record), ITEMS(oci_linux, net_devices, nnet_devices) },
	{ "memoryPolicy", OCI_RECORD(memory_policy_record), AT(oci_linux, memory_policy) },
};

static int check_maps(const struct json_reader *in, const struct json_node *node,
		      const struct oci_linux *l, struct cj_error *err)
{
	const struct oci_namespace *user = &l->namespaces[OCI_NS_USER];
	bool has_maps = l->uid_maps.count > 0 || l->gid_maps.count > 0;

	if (has_maps && (!user->is_wanted || user->path))
		return oci_reject(in, node, err,
				  "uidMappings and gidMappings need a new user "
				  "namespace in namespaces");
	if (has_maps && (l->uid_maps.count == 0 || l->gid_maps.count == 0))
		return oci_reject(in, node, err, "uidMappings and gidMappings go together");
	return 0;
}

static JSON_CHECK(linux)
{
	const struct oci_linux *l = record;
	const struct oci_namespace *time = &l->namespaces[OCI_NS_TIME];

	if (l->namespaces[OCI_NS_MOUNT].path)
		return oci_reject(in, node, err,
				  "cejail-oci builds the root in a mount namespace "
				  "of its own and joins none");
	if ((l->monotonic.is_given || l->boottime.is_given) && (!time->is_wanted || time->path))
		return oci_reject(in, node, err, "timeOffsets needs a new time namespace");
	if (l->nnet_devices > 0 && !l->namespaces[OCI_NS_NETWORK].is_wanted)
		return oci_reject(in, node, err, "netDevices needs a network namespace");
	return check_maps(in, node, l, err);
}
const struct json_record oci_linux_record = OCI_TABLE(linux_keys, .check = json_check_linux);
