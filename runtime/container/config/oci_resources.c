/* SPDX-License-Identifier: Apache-2.0 */
/* "linux.resources" of a config.json, and the file of `update --resources`. */
#include "runtime/container/config/oci_resources.h"

static const char only_v1[] =
    "cgroup v2 has no such setting; cejail-oci can't enforce it, see cejail-oci(8), REFUSED";

static JSON_SETTER(type)
{
	if (strcmp(text, "") == 0)
		text = "a";
	if (strlen(text) != 1 || !strchr("abc", text[0]))
		return cj_reject(err, "'%.16s' must be a, b or c", text);
	*(char *)json_field(k, record) = text[0];
	return 0;
}

static JSON_SETTER(access)
{
	struct oci_device_rule *rule = record;

	if (text[strspn(text, "rwm")] != '\0')
		return cj_reject(err, "'%.16s' must consist of r, w and m", text);
	rule->may_read = strchr(text, 'r') != NULL;
	rule->may_write = strchr(text, 'w') != NULL;
	rule->may_mknod = strchr(text, 'm') != NULL;
	return 0;
}

static const struct json_key device_keys[] = {
	{ "allow", JSON_TAKES_BOOL, .set = json_set_bool, .is_required = true,
	  AT(oci_device_rule, allow) },
	{ "type", OCI_STRING, .set = json_set_type, AT(oci_device_rule, type) },
	{ "major", OCI_NUMBER, .set = json_set_oci_i64, AT(oci_device_rule, major) },
	{ "minor", OCI_NUMBER, .set = json_set_oci_i64, AT(oci_device_rule, minor) },
	{ "access", OCI_STRING, .set = json_set_access },
};

static bool is_number(const struct oci_i64 *number)
{
	return !number->is_set || (number->value >= -1 && number->value <= UINT32_MAX);
}

static JSON_CHECK(device)
{
	struct oci_device_rule *rule = record;

	if (rule->type == '\0')
		rule->type = 'a';
	if (!is_number(&rule->major) || !is_number(&rule->minor))
		return oci_reject(in, node, err, "major and minor must be from -1 to %u",
				  UINT32_MAX);
	if (!rule->may_read && !rule->may_write && !rule->may_mknod)
		return oci_reject(in, node, err, "access is missing: write r, w, m or several");
	return 0;
}
static const struct json_record device_record =
    OCI_TABLE(device_keys, .size = sizeof(struct oci_device_rule), .check = json_check_device);

#define I64      OCI_NUMBER, .set = json_set_oci_i64
#define U64      OCI_NUMBER, .set = json_set_oci_u64
#define U32      JSON_TAKES_NUMBER, .set = json_set_oci_u32, .max = UINT32_MAX, .is_required = true
#define SWAP_MAX 100 /* percent */

/* Every group of cgroup v2 is hierarchical: "useHierarchy" asks for what is there. */
static const struct json_key memory_keys[] = {
	{ "limit", I64, AT(oci_memory, limit) },
	{ "reservation", I64, AT(oci_memory, reservation) },
	{ "swap", I64, AT(oci_memory, swap) },
	{ "swappiness", U64, .max = SWAP_MAX, AT(oci_memory, swappiness) },
	{ "disableOOMKiller", OCI_FLAG, AT(oci_memory, disable_oom_killer) },
	{ "checkBeforeUpdate", OCI_FLAG, AT(oci_memory, check_before_update) },
	{ "kernel", OCI_REFUSED(only_v1) },
	{ "kernelTCP", OCI_REFUSED(only_v1) },
};
static const struct json_record memory_record = OCI_TABLE(memory_keys);

static const struct json_key cpu_keys[] = {
	{ "shares", U64, AT(oci_cpu, shares) },     { "quota", I64, AT(oci_cpu, quota) },
	{ "burst", U64, AT(oci_cpu, burst) },       { "period", U64, AT(oci_cpu, period) },
	{ "idle", I64, AT(oci_cpu, idle) },         { "cpus", OCI_TEXT, AT(oci_cpu, cpus) },
	{ "mems", OCI_TEXT, AT(oci_cpu, mems) },    { "realtimeRuntime", OCI_REFUSED(only_v1) },
	{ "realtimePeriod", OCI_REFUSED(only_v1) },
};
static const struct json_record cpu_record = OCI_TABLE(cpu_keys);

static const struct json_key pids_keys[] = {
	{ "limit", I64, AT(oci_resources, pids_limit) },
};
static const struct json_record pids_record = OCI_TABLE(pids_keys);

static const struct json_key weight_keys[] = {
	{ "major", U32, AT(oci_block_weight, major) },
	{ "minor", U32, AT(oci_block_weight, minor) },
	{ "weight", U64, .max = UINT16_MAX, AT(oci_block_weight, weight) },
	{ "leafWeight", OCI_REFUSED(only_v1) },
};
static const struct json_record weight_record =
    OCI_TABLE(weight_keys, .size = sizeof(struct oci_block_weight));

static const struct json_key rate_keys[] = {
	{ "major", U32, AT(oci_block_rate, major) },
	{ "minor", U32, AT(oci_block_rate, minor) },
	{ "rate", JSON_TAKES_NUMBER, .set = json_set_u64, .is_required = true,
	  AT(oci_block_rate, rate) },
};
static const struct json_record rate_record =
    OCI_TABLE(rate_keys, .size = sizeof(struct oci_block_rate));

#define RATES(kind) OCI_RECORDS(rate_record), LIST(oci_block_io, rates[OCI_THROTTLE_##kind])
static const struct json_key block_io_keys[] = {
	{ "weight", U64, .max = UINT16_MAX, AT(oci_block_io, weight) },
	{ "leafWeight", OCI_REFUSED(only_v1) },
	{ "weightDevice", OCI_RECORDS(weight_record), ITEMS(oci_block_io, weights, nweights) },
	{ "throttleReadBpsDevice", RATES(READ_BPS) },
	{ "throttleWriteBpsDevice", RATES(WRITE_BPS) },
	{ "throttleReadIOPSDevice", RATES(READ_IOPS) },
	{ "throttleWriteIOPSDevice", RATES(WRITE_IOPS) },
};
static const struct json_record block_io_record = OCI_TABLE(block_io_keys);

static const struct json_key huge_page_keys[] = {
	{ "pageSize", JSON_TAKES_STRING, .set = json_set_string, .min = 1, .is_required = true,
	  AT(oci_huge_page, page_size) },
	{ "limit", JSON_TAKES_NUMBER, .set = json_set_u64, .is_required = true,
	  AT(oci_huge_page, limit) },
};

/* It becomes a part of a file's name. */
static JSON_CHECK(huge_page)
{
	const struct oci_huge_page *page = record;
	size_t digits = strspn(page->page_size, "0123456789");
	const char *unit = page->page_size + digits;

	if (digits > 0 &&
	    (strcmp(unit, "KB") == 0 || strcmp(unit, "MB") == 0 || strcmp(unit, "GB") == 0))
		return 0;
	return oci_reject(in, node, err, "pageSize '%.32s' must be a number with KB, MB or GB",
			  page->page_size);
}
static const struct json_record huge_page_record =
    OCI_TABLE(huge_page_keys, .size = sizeof(struct oci_huge_page), .check = json_check_huge_page);

static const struct json_key rdma_keys[] = {
	{ "hcaHandles", U64, .max = UINT32_MAX, AT(oci_rdma, handles) },
	{ "hcaObjects", U64, .max = UINT32_MAX, AT(oci_rdma, objects) },
};
static const struct json_record rdma_record = OCI_TABLE(rdma_keys, .size = sizeof(struct oci_rdma));

static const char no_network[] =
    "net_cls and net_prio are of cgroup v1; filter by cgroup in nftables instead";

static const struct json_key resources_keys[] = {
	{ "devices", OCI_RECORDS(device_record), ITEMS(oci_resources, devices, ndevices) },
	{ "memory", OCI_RECORD(memory_record), AT(oci_resources, memory) },
	{ "cpu", OCI_RECORD(cpu_record), AT(oci_resources, cpu) },
	{ "pids", OCI_RECORD(pids_record) },
	{ "blockIO", OCI_RECORD(block_io_record), AT(oci_resources, block_io) },
	{ "hugepageLimits", OCI_RECORDS(huge_page_record),
	  ITEMS(oci_resources, huge_pages, nhuge_pages) },
	{ "rdma", OCI_NAMED(rdma_record), ITEMS(oci_resources, rdma, nrdma) },
	{ "unified", OCI_PAIRS, LIST(oci_resources, unified) },
	{ "network", OCI_REFUSED(no_network) },
};

/* Names below the container's cgroup: a path in one would lead elsewhere. */
static JSON_CHECK(resources)
{
	const struct oci_resources *resources = record;

	for (size_t i = 0; i < resources->unified.count; i++) {
		const char *name = resources->unified.items[i].name;
		if (strchr(name, '/') || !strchr(name, '.') || name[0] == '.')
			return oci_reject(in, node, err,
					  "unified: '%.64s' is not the name of a cgroup file",
					  name);
	}
	return 0;
}
const struct json_record oci_resources_record =
    OCI_TABLE(resources_keys, .check = json_check_resources);

int oci_resources_read(const char *name, const char *text, size_t size, struct arena *a,
		       struct oci_resources *out, struct cj_error *err)
{
	return oci_file_read(name, text, size, a, &oci_resources_record, out, sizeof(*out), err);
}
