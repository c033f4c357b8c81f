/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/config.h"

void config_init(struct config *c)
{
	static const char box[] = "/box";

	*c = (struct config){
		.limits.memory_bytes = 512ull << 20,
		.limits.millicpus = 1000,
		.limits.pids = 64,
		.run_limits.wall_ms = 30 * 1000,
		.limits.disk_bytes = 64ull << 20,
		.limits.nofile = 1024,
		.run_limits.output_bytes = 1ull << 20,
		.run_limits.on_output_limit = OUTPUT_TRUNCATE,
		.run_limits.calls = 50,
		.run_limits.calls_outstanding = 10,
		.run_limits.calls_per_second = 100,
		.run_limits.call_ms = 60 * 1000,
		.rootfs = "host",
		.hostname = "cejail",
		.setup_ms = 5 * 60 * 1000,
		.workdir = box,
		.base_workdir = box,
		.value_path = "/box/out/result.json",
		.zygote = true,
		.network = NETWORK_NONE,
		.uplink = UPLINK_AUTO,
		.network_start = NETWORK_START_FIRST_USE,
		.allow_by = NETWORK_ALLOW_BY_AUTO,
		.network_names = NETWORK_NAMES_AUTO,
		.seccomp = "default",
		.request_fd = -1,
		.result_fd = -1,
		.events_fd = -1,
		.calls_fd = -1,
		.profile_name = "",
	};
}

void config_fini(struct config *c)
{
	arena_fini(&c->arena);
	config_init(c); /* nothing points into freed memory afterwards */
}

/* Every list: a copy must not grow into its original's room. */
static const size_t lists[] = {
#define AT(field) offsetof(struct config, field)
	AT(ro_binds),      AT(binds),       AT(connects),   AT(files),          AT(file_texts),
	AT(command),       AT(shell),       AT(extensions), AT(preload),        AT(env),
	AT(allow),         AT(overlays),    AT(tmpfs),      AT(artifact_paths), AT(base_env),
	AT(accept_weaker), AT(setup_allow), AT(deny),       AT(upstreams),
#undef AT
};

int config_copy(struct config *c, const struct config *from, struct cj_error *err)
{
	*c = *from;
	c->arena = (struct arena){ 0 };
	for (size_t i = 0; i < COUNT_OF(lists); i++) {
		struct strings *list = (struct strings *)((char *)c + lists[i]), old = *list;

		*list = (struct strings){ 0 };
		for (size_t k = 0; k < old.count; k++) {
			if (strings_add(list, &c->arena, old.items[k]) == 0)
				continue;
			config_fini(c);
			return cj_fail(err, ENOMEM, "copy a profile's settings");
		}
	}
	return 0;
}
