/* SPDX-License-Identifier: Apache-2.0 */
/* How a container is. */
#include "runtime/container/state/state.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>

#include "runtime/base/scope.h"
#include "runtime/container/config/oci_config.h"

static const char *const names[] = { "creating", "created", "running", "paused", "stopped" };
_Static_assert(sizeof(names) / sizeof(names[0]) == STATE_STATUS_COUNT, "a name for each status");

const char *state_status_name(enum state_status status)
{
	return names[status];
}

/* Init has the lock until its execve(2). */
static bool is_waiting(const struct state *s)
{
	auto_fd int fd = openat(s->dir_fd, STATE_WAITING, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

static bool is_frozen(const struct state *s)
{
	struct cj_error err = { 0 };
	auto_container_cgroup struct container_cgroup cgroup = CONTAINER_CGROUP_NULL;

	return container_cgroup_open(&s->record.cgroup, &cgroup, &err) == 0 &&
	       container_cgroup_is_frozen(&cgroup);
}

enum state_status state_status_of(const struct state *s)
{
	struct cj_error err = { 0 };

	if (s->is_lost)
		return STATE_STOPPED;
	auto_fd int pidfd = state_open_init(s, &err);
	if (!s->record.is_created)
		return pidfd >= 0 || s->record.pid == 0 ? STATE_CREATING : STATE_STOPPED;
	if (pidfd < 0)
		return STATE_STOPPED;
	if (is_frozen(s))
		return STATE_PAUSED;
	return is_waiting(s) ? STATE_CREATED : STATE_RUNNING;
}

/* --- as JSON ---------------------------------------------------------------------------- */

void state_status_time(uint64_t epoch_ms, char out[static STATE_TIME_MAX])
{
	time_t seconds = (time_t)(epoch_ms / 1000);
	struct tm utc = { 0 };
	size_t used;

	(void)gmtime_r(&seconds, &utc);
	used = strftime(out, STATE_TIME_MAX, "%Y-%m-%dT%H:%M:%S", &utc);
	(void)snprintf(out + used, STATE_TIME_MAX - used, ".%03uZ", (unsigned)(epoch_ms % 1000));
}

void state_status_write(struct json_writer *w, const struct state *s, enum state_status status,
			const struct oci_pairs *annotations, bool with_owner)
{
	char created[STATE_TIME_MAX], owner[16];

	state_status_time(s->record.created_ms, created);
	json_open_object(w);
	json_member_text(w, "ociVersion", OCI_VERSION_MAX);
	json_member_text(w, "id", s->record.id);
	json_member_u64(w, "pid", status == STATE_STOPPED ? 0 : (uint64_t)s->record.pid);
	json_member_text(w, "status", state_status_name(status));
	json_member_text(w, "bundle", s->record.bundle);
	json_member_text(w, "rootfs", s->record.rootfs);
	json_member_text(w, "created", created);
	if (with_owner) {
		/* the number: names come from plug-ins that a static program can't load */
		(void)snprintf(owner, sizeof(owner), "%u", (unsigned)s->record.owner_uid);
		json_member_text(w, "owner", s->record.owner_uid == 0 ? "root" : owner);
	}
	json_member_object(w, "annotations");
	for (size_t i = 0; annotations && i < annotations->count; i++)
		json_member_text(w, annotations->items[i].name, annotations->items[i].value);
	json_close_object(w);
	json_close_object(w);
}
