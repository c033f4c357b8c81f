/* SPDX-License-Identifier: Apache-2.0 */
/* The verb update: limits by option, a row each, or from a file. */
#include "runtime/container/container/container.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
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

int container_update_read(const struct oci_options *o, struct oci_resources *out, bool *out_any,
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

/* "-" is standard input; any other file that can be read will do, a pipe as well. */
static int read_resources(const char *path, struct arena *a, struct oci_resources *out,
			  struct cj_error *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	const char *name = is_stdin ? "standard input" : path;
	auto_fd int file_fd = is_stdin ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	char *text;
	size_t size;
	if (!is_stdin && file_fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	int rc = fd_read_all(is_stdin ? STDIN_FILENO : file_fd, JSON_BYTES_MAX, a, &text, &size,
			     name, err);
	return rc < 0 ? rc : oci_resources_read(name, text, size, a, out, err);
}

int container_update(struct oci_call *call, struct cj_error *err)
{
	auto_container_target struct container_target t = CONTAINER_TARGET_NULL;
	struct oci_resources resources = { 0 };
	struct oci_config config;
	const struct oci_options *o = call->options;
	bool has_flags = false;
	int rc = container_update_read(o, &resources, &has_flags, err);
	if (rc < 0)
		return rc;
	if (o->resources && has_flags)
		return cj_reject(err, "update takes --resources or limits by option, not both");
	if (!o->resources && !has_flags)
		return cj_reject(err, "update: no limit is given: use --resources FILE or an "
				      "option such as --memory");
	if (o->resources)
		rc = read_resources(o->resources, call->arena, &resources, err);
	if (rc == 0)
		rc = container_target_open(call, true, &t, err);
	if (rc == 0 && o->resources)
		rc = container_config_stored(&t.state, call->arena, &config, err);
	if (rc < 0)
		return rc;
	if (o->resources)
		oci_config_settle_pids(&config, &resources);
	return container_cgroup_update(&t.cgroup, &resources, err);
}
