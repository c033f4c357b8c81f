/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the options of `update`: a row each.  Pure. */
#include "runtime/container/control/update_flags.h"

#include <string.h>

#include "runtime/base/text.h"

static int set_size(const char *text, void *field, struct cj_error *err)
{
	struct oci_i64 *out = field;
	uint64_t bytes = 0;
	if (strcmp(text, "-1") != 0 && parse_size_within(text, 1, INT64_MAX, &bytes, err) < 0)
		return -err->code;
	*out = (struct oci_i64){ true, strcmp(text, "-1") == 0 ? -1 : (int64_t)bytes };
	return 0;
}

static int set_signed(const char *text, void *field, struct cj_error *err)
{
	struct oci_i64 *out = field;
	uint64_t value = 0;
	if (strcmp(text, "-1") != 0 && parse_u64(text, 0, INT64_MAX, &value, err) < 0)
		return -err->code;
	*out = (struct oci_i64){ true, strcmp(text, "-1") == 0 ? -1 : (int64_t)value };
	return 0;
}

static int set_number(const char *text, void *field, struct cj_error *err)
{
	struct oci_u64 *out = field;
	uint64_t value;
	if (parse_u64(text, 0, UINT64_MAX, &value, err) < 0)
		return -err->code;
	*out = (struct oci_u64){ true, value };
	return 0;
}

static int set_list(const char *text, void *field, struct cj_error *err)
{
	if (text[0] == '\0')
		return cj_reject(err, "the list is empty");
	*(const char **)field = text;
	return 0;
}

static int refuse(const char *text, void *field, struct cj_error *err)
{
	(void)text, (void)field;
	return cj_reject(err, "cgroup v2 has no such setting: leave it out");
}

static const struct flag {
	const char *name;
	size_t option; /* offset of the text in struct oci_options */
	int (*set)(const char *text, void *field, struct cj_error *err);
	size_t field; /* offset in struct oci_resources */
} flags[] = {
#define ROW(name, option, set, field)                                                              \
	{                                                                                          \
		name, offsetof(struct oci_options, option), set,                                   \
		    offsetof(struct oci_resources, field)                                          \
	}
	ROW("memory", memory, set_size, memory.limit),
	ROW("memory-reservation", memory_reservation, set_size, memory.reservation),
	ROW("memory-swap", memory_swap, set_size, memory.swap),
	ROW("pids-limit", pids_limit, set_signed, pids_limit),
	ROW("cpu-quota", cpu_quota, set_signed, cpu.quota),
	ROW("cpu-period", cpu_period, set_number, cpu.period),
	ROW("cpu-share", cpu_share, set_number, cpu.shares),
	ROW("cpu-burst", cpu_burst, set_number, cpu.burst),
	ROW("cpu-idle", cpu_idle, set_signed, cpu.idle),
	ROW("cpu-rt-period", cpu_rt_period, refuse, cpu),
	ROW("cpu-rt-runtime", cpu_rt_runtime, refuse, cpu),
	ROW("cpuset-cpus", cpuset_cpus, set_list, cpu.cpus),
	ROW("cpuset-mems", cpuset_mems, set_list, cpu.mems),
	ROW("blkio-weight", blkio_weight, set_number, block_io.weight),
};

int update_flags_read(const struct oci_options *o, struct oci_resources *out, bool *out_any,
		      struct cj_error *err)
{
	*out_any = false;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		const struct flag *f = &flags[i];
		const char *text = *(const char *const *)((const char *)o + f->option);
		if (!text)
			continue;
		if (f->set(text, (char *)out + f->field, err) < 0)
			return cj_wrap(err, "--%s '%.64s'", f->name, text);
		*out_any = true;
	}
	return 0;
}
