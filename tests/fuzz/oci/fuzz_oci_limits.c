/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_oci_limits - any first line as cgroupsPath, and the rest as linux.resources.
 *
 * Asserted: a clean path has no "..", no empty component and keeps its kind; a unit's name leads
 * nowhere; writes name files in the cgroup itself and are whole lines; a device program only jumps
 * forward to its own instructions, and ends.
 */
#include <assert.h>

#include "runtime/container/cgroup/container_cgroup.h"
#include "runtime/container/cgroup/device_rules.h"
#include "runtime/container/cgroup/resource_limits.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_path(const char *text)
{
	char path[CGROUP_PATH_MAX], framed[CGROUP_PATH_MAX + 4];
	struct cj_error err = { 0 };
	if (cgroup_path_clean(text, path, &err) < 0) {
		assert(err.msg[0] != '\0');
		return;
	}
	assert((path[0] == '/') == (text[0] == '/'));
	(void)snprintf(framed, sizeof(framed), "/%s/", path[0] == '/' ? path + 1 : path);
	assert(!strstr(framed, "/../") && !strstr(framed, "/./") && !strstr(framed, "//"));
}

static void check_scope(const char *text)
{
	struct cgroup_scope_name name;
	struct cj_error err = { 0 };
	if (cgroup_path_scope(text, "id", &name, &err) < 0)
		return;
	assert(!strchr(name.unit, '/') && !strchr(name.slice, '/'));
	assert(strlen(name.unit) > strlen(".scope") && name.unit[0] != '.');
}

static void check_writes(const struct oci_resources *r, const struct resource_current *current,
			 struct arena *a)
{
	struct resource_writes writes;
	struct cj_error err = { 0 };
	if (resource_writes_plan(r, current, a, &writes, &err) < 0) {
		assert(err.code == EINVAL && strstr(err.msg, "linux.resources."));
		return;
	}
	for (size_t i = 0; i < writes.count; i++) {
		const struct resource_write *w = &writes.items[i];
		assert(!strchr(w->file, '/') && strchr(w->file, '.') && w->file[0] != '.');
		assert(w->value[0] != '\0' && !strchr(w->value, '\n'));
		assert(strncmp(w->file, w->controller, strlen(w->controller)) == 0);
		assert(!w->other_file == !w->other_value);
	}
}

static void check_devices(const struct oci_resources *r, struct arena *a)
{
	struct device_program p;
	struct cj_error err = { 0 };
	if (device_rules_compile(r->devices, r->ndevices, a, &p, &err) < 0) {
		assert(r->ndevices > DEVICE_RULES_MAX);
		return;
	}
	assert(p.count > 0 && p.insns[p.count - 1].code == (BPF_JMP | BPF_EXIT));
	for (size_t i = 0; i < p.count; i++) {
		uint8_t class = BPF_CLASS(p.insns[i].code);
		bool jumps = (class == BPF_JMP || class == BPF_JMP32) &&
			     p.insns[i].code != (BPF_JMP | BPF_EXIT);
		assert(!jumps || (p.insns[i].off >= 0 && i + 1 + (size_t)p.insns[i].off < p.count));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct bytes b = { bytes, size };
	struct arena a = { 0 };
	struct oci_resources resources = { 0 };
	struct cj_error err = { 0 };
	char *path = bytes_text(bytes_until(&b, '\n')), *now = bytes_text(bytes_until(&b, '\n'));
	check_path(path);
	check_scope(path);
	if (oci_resources_read("fuzz", (const char *)b.at, b.left, &a, &resources, &err) == 0) {
		const struct resource_current current = { now, now };
		check_writes(&resources, NULL, &a);
		check_writes(&resources, &current, &a);
		check_devices(&resources, &a);
	}
	arena_fini(&a);
	free(path);
	free(now);
	return 0;
}
