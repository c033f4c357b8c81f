/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/jail_state.h"

#include <stdarg.h>

#include "profiles/setting_types.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"

struct jail *jail_state_create(const struct plan *plan, const char *id)
{
	struct jail *j = calloc(1, sizeof(*j));
	if (!j)
		return NULL;
	j->plan = plan;
	j->root = plan->root;
	(void)snprintf(j->id, sizeof(j->id), "%s", id);
	j->signal_fd = j->runtime_dir_fd = j->init_pidfd = j->record_fd = -1;
	j->ids.lock_fd = j->link.sock_fd = -1;
	j->cgroup = CGROUP_NULL;
	j->handles.box_fd = j->handles.root_fd = j->handles.proc_fd = -1;
	j->init.oom_fd = j->run.master_fd = j->warm.calls_fd = -1;
	j->init.adoption = ADOPTION_NULL;
	j->init.root_fd = j->init.domain_fd = j->init.files_fd = -1;
	j->parent_pid = INIT_PID;
	for (size_t i = 0; i < RELAY_COUNT; i++)
		relay_init(&j->run.relays[i]);
	return j;
}

void jail_state_free(struct jail **j)
{
	arena_fini(&(*j)->arena);
	cj_free(j);
}

void jail_close_handles(struct jail *j, int listener_fd)
{
	auto_fd_bag struct fd_bag all = { 0 };
	fd_bag_add(&all, listener_fd);
	fd_bag_add(&all, take_fd(&j->handles.box_fd));
	fd_bag_add(&all, take_fd(&j->handles.root_fd));
	fd_bag_add(&all, take_fd(&j->handles.proc_fd));
	while (j->handles.noverlays > 0)
		fd_bag_add(&all, j->handles.overlay_fds[--j->handles.noverlays]);
}

void jail_degrade(struct jail *j, enum degraded what, const char *fmt, ...)
{
	char sentence[1024];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(sentence, sizeof(sentence), fmt, ap); /* a longer one is cut */
	va_end(ap);
	jail_warn(j, "%s: %s", degraded_names[what], sentence);
}

void jail_warn(struct jail *j, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	/* Without memory the result lacks this sentence; the layer's state is reported anyway. */
	(void)!strings_vprintf(&j->warnings, &j->arena, fmt, ap);
	va_end(ap);
}

/* It changes only what 'cejail ps' shows, so a failure does not end the run. */
void jail_record_started(struct jail *j)
{
	struct cj_error ignored;
	if (j->record_fd < 0 || !j->record.is_ready)
		return;
	j->record.is_ready = false;
	j->record.started_ms = clock_epoch_ms();
	(void)record_complete(j->record_fd, &j->record, &ignored);
}

bool jail_network_is_wanted(const struct jail *j)
{
	return j->plan->network.mode != NETWORK_NONE ||
	       j->plan->network.nports + j->plan->network.nupstreams > 0;
}

bool jail_network_starts_late(const struct jail *j)
{
	return j->filter.asks_network;
}

uint64_t jail_program_cpu_us(const struct jail *j, uint64_t all_us)
{
	const struct cgroup_usage *before = &j->warm.before;
	uint64_t before_us = before->has_cpu ? before->cpu_user_us + before->cpu_system_us
					     : j->warm.cpu_us;
	return all_us > before_us ? all_us - before_us : 0;
}
