/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in defaults, beneath every profile and option.  Pure. */
#include "profiles/config.h"

void config_init(struct config *c)
{
	*c = (struct config){
		.memory_bytes = 512ull << 20,
		.millicpus = 1000,
		.pids = 64,
		.wall_ms = 30 * 1000,
		.disk_bytes = 64ull << 20,
		.nofile = 1024,
		.output_bytes = 1ull << 20,
		.on_output_limit = OUTPUT_TRUNCATE,
		.rootfs = "host",
		.workdir = "/box",
		.network = NETWORK_NONE,
		.uplink = UPLINK_AUTO,
		.seccomp = "default",
		.result_fd = -1,
		.events_fd = -1,
		.profile_name = "",
	};
}

void config_fini(struct config *c)
{
	arena_fini(&c->arena);
	config_init(c); /* nothing points into freed memory afterwards */
}
