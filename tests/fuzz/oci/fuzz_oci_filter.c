/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_oci_filter - any config.json as seccomp filter and capability sets.
 *
 * Asserted: what is compiled is a program of a length that the kernel takes, and the same twice; a
 * refusal has a message; no set has a capability that is not available, and none is effective or
 * ambient beyond the permitted ones.
 */
#include "runtime/container/process/process_parts.h"

#include "runtime/base/scope.h"
#include "runtime/container/config/oci_config.h"
#include "tests/fuzz/bytes.h"

#define AVAILABLE UINT64_C(0x000000ff00ff00ff)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_filter(const struct oci_seccomp *seccomp, struct arena *a)
{
	struct cj_error err = { 0 };
	struct sock_fprog one = { 0 }, two = { 0 };
	if (!seccomp->is_given)
		return;
	if (process_filter_compile(seccomp, a, &one, &err) < 0) {
		assert(err.msg[0] != '\0' && err.code > 0 && one.len == 0);
		return;
	}
	assert(one.len > 0 && one.len <= BPF_MAXINSNS);
	int rc = process_filter_compile(seccomp, a, &two, &err);
	assert(rc == 0 && one.len == two.len);
	assert(memcmp(one.filter, two.filter, one.len * sizeof(*one.filter)) == 0);
}

static void check_caps(const struct oci_capabilities *wanted, struct arena *a)
{
	struct capabilities caps = { 0 };
	struct strings warnings = { 0 };
	int rc = process_caps_resolve(wanted, AVAILABLE, a, &caps, &warnings);
	assert(rc == 0);
	assert(!((caps.bounding | caps.permitted | caps.inheritable) & ~AVAILABLE));
	assert(!(caps.effective & ~caps.permitted));
	assert(!(caps.ambient & ~(caps.permitted & caps.inheritable)));
	assert(wanted->inheritable.count > 0 || caps.inheritable == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	auto_arena struct arena arena = { 0 };
	struct oci_config config = { 0 };
	struct cj_error err = { 0 };
	if (oci_config_read("config.json", (const char *)bytes, size, &arena, &config, &err) < 0)
		return 0;
	check_filter(&config.on_linux.seccomp, &arena);
	check_caps(&config.process.capabilities, &arena);
	return 0;
}
