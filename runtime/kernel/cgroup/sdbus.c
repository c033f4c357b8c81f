/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/cgroup/scope_request.h"

#include <dlfcn.h>

/* Each symbol and where its address goes: dlsym(3) knows no types. */
static const struct symbol {
	const char *name;
	size_t offset;
} symbols[] = {
	{ "sd_bus_new", offsetof(struct sdbus, new) },
	{ "sd_bus_set_address", offsetof(struct sdbus, set_address) },
	{ "sd_bus_set_bus_client", offsetof(struct sdbus, set_bus_client) },
	{ "sd_bus_set_method_call_timeout", offsetof(struct sdbus, set_method_call_timeout) },
	{ "sd_bus_start", offsetof(struct sdbus, start) },
	{ "sd_bus_is_ready", offsetof(struct sdbus, is_ready) },
	{ "sd_bus_process", offsetof(struct sdbus, process) },
	{ "sd_bus_wait", offsetof(struct sdbus, wait) },
	{ "sd_bus_call_method", offsetof(struct sdbus, call_method) },
	{ "sd_bus_get_property_trivial", offsetof(struct sdbus, get_property_trivial) },
	{ "sd_bus_error_free", offsetof(struct sdbus, error_free) },
	{ "sd_bus_flush_close_unref", offsetof(struct sdbus, flush_close_unref) },
};

/* Never unloaded: libsystemd is linked with -z nodelete. */
int sdbus_load(struct sdbus *out, struct cj_error *err)
{
	void *handle = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return cj_fail(err, ENOENT, "load 'libsystemd.so.0'");

	for (size_t i = 0; i < COUNT_OF(symbols); i++) {
		void *address = dlsym(handle, symbols[i].name);
		if (!address)
			return cj_fail(err, ENOENT, "find '%s' in 'libsystemd.so.0'",
				       symbols[i].name);
		memcpy((char *)out + symbols[i].offset, &address, sizeof(address));
	}
	return 0;
}
