/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in defaults, beneath every profile and option.  Pure. */
#include "profiles/config.h"

#include <string.h>

void config_init(struct config *c)
{
	static const char box[] = "/box";

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
		.hostname = "cejail",
		.workdir = box,
		.base_workdir = box,
		.value_path = "/box/out/result.json",
		.zygote = true,
		.network = NETWORK_NONE,
		.uplink = UPLINK_AUTO,
		.network_start = NETWORK_START_FIRST_USE,
		.seccomp = "default",
		.request_fd = -1,
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

/* Every list: a copy must not grow into its original's room. */
static const size_t lists[] = {
#define AT(field) offsetof(struct config, field)
	AT(ro_binds),      AT(binds),    AT(connects),   AT(files),          AT(file_texts),
	AT(command),       AT(shell),    AT(extensions), AT(preload),        AT(env),
	AT(allow),         AT(overlays), AT(tmpfs),      AT(artifact_paths), AT(base_env),
	AT(accept_weaker),
#undef AT
};

static int copy_list(struct strings *list, struct arena *a)
{
	struct strings old = *list;

	*list = (struct strings){ 0 };
	for (size_t i = 0; i < old.count; i++)
		if (strings_add(list, a, old.items[i]) < 0)
			return -ENOMEM;
	return 0;
}

int config_copy(struct config *c, const struct config *from, struct cj_error *err)
{
	int rc = 0;

	*c = *from;
	c->arena = (struct arena){ 0 };
	for (size_t i = 0; rc == 0 && i < sizeof(lists) / sizeof(lists[0]); i++)
		rc = copy_list((struct strings *)((char *)c + lists[i]), &c->arena);
	if (rc == 0)
		return 0;
	config_fini(c);
	return cj_fail(err, ENOMEM, "copy a profile's settings");
}
