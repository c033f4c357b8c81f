/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs that act through the cgroup of a container: pause, resume, ps, update, events. */
#include "runtime/container/container/container.h"

#include <fcntl.h>
#include <poll.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

/* The container that a verb names, with its cgroup. */
struct verb_target {
	struct state state;
	struct container_cgroup cgroup;
};
#define VERB_TARGET_NULL                                                                           \
	((struct verb_target){ .state = STATE_NULL, .cgroup = CONTAINER_CGROUP_NULL })

static void close_target(struct verb_target *t)
{
	container_cgroup_close(&t->cgroup);
	state_close(&t->state);
}
#define auto_verb_target __attribute__((cleanup(close_target)))

/* `is_locked`: the verb changes it. */
static int open_target(const struct oci_call *call, bool is_locked, struct verb_target *out,
		       struct cj_error *err)
{
	if (state_open(call->options, is_locked, call->arena, &out->state, err) < 0)
		return -err->code;
	enum state_status status = state_status_of(&out->state);
	if (status == STATE_STOPPED)
		return cj_reject_as(err, ESRCH, "container not running");
	if (status == STATE_CREATING)
		return cj_reject_as(err, EBUSY, "container '%s' is not created yet",
				    call->options->id);
	return container_cgroup_open(&out->state.record.cgroup, &out->cgroup, err);
}

static int freeze(const struct oci_call *call, bool frozen, struct cj_error *err)
{
	auto_verb_target struct verb_target t = VERB_TARGET_NULL;

	if (open_target(call, true, &t, err) < 0)
		return -err->code;
	return container_cgroup_freeze(&t.cgroup, frozen, err);
}

int container_pause(struct oci_call *call, struct cj_error *err)
{
	return freeze(call, true, err);
}

int container_resume(struct oci_call *call, struct cj_error *err)
{
	return freeze(call, false, err);
}

int container_ps(struct oci_call *call, struct cj_error *err)
{
	auto_verb_target struct verb_target t = VERB_TARGET_NULL;
	pid_t *pids = NULL;
	size_t count = 0;
	if (call->options->operands.count > 0)
		return cj_reject(err, "ps takes no options of ps(1): print the pids and give them "
				      "to 'ps -p'");
	int rc = open_target(call, false, &t, err);
	if (rc == 0)
		rc = container_cgroup_pids(&t.cgroup, call->arena, &pids, &count, err);
	if (rc < 0)
		return rc;
	auto_json_writer struct json_writer *w = json_writer_create(false);
	if (!call->options->is_json)
		(void)printf("PID\n");
	json_open_array(w);
	for (size_t i = 0; i < count; i++) {
		json_put_u64(w, (uint64_t)pids[i]);
		if (!call->options->is_json)
			(void)printf("%d\n", (int)pids[i]);
	}
	json_close_array(w);
	return call->options->is_json ? json_print(w, err) : 0;
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
	auto_verb_target struct verb_target t = VERB_TARGET_NULL;
	const struct oci_options *o = call->options;
	struct oci_resources resources = o->limits;
	struct oci_config config;
	if (o->resources && o->has_limits)
		return cj_reject(err, "update takes --resources or limits by option, not both");
	if (!o->resources && !o->has_limits)
		return cj_reject(err, "update: no limit is given: use --resources FILE or an "
				      "option such as --memory");
	if ((o->resources && read_resources(o->resources, call->arena, &resources, err) < 0) ||
	    open_target(call, true, &t, err) < 0 ||
	    (o->resources && container_config_stored(&t.state, call->arena, &config, err) < 0))
		return -err->code;
	if (o->resources)
		oci_config_settle_pids(&config, &resources);
	return container_cgroup_update(&t.cgroup, &resources, err);
}

/* Events: counters as JSON, and a line when the kernel has killed for lack of memory. */

#define INTERVAL_MS   5000 /* of other runtimes, too */
#define POLL_SLICE_MS 1000 /* in case a notification is missed */

struct events_watch {
	const char *id;
	const struct container_cgroup *cgroup;
	int events_fd, memory_fd; /* cgroup.events, memory.events (-1: no controller) */
	uint64_t oom_kills;
};

/* {"type":"stats","id":"ID","data":{...}}; other types have no data. */
static int print_line(const struct events_watch *watch, const char *type, bool has_data,
		      struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	json_open_object(w);
	json_member_text(w, "type", type);
	json_member_text(w, "id", watch->id);
	if (has_data) {
		json_put_key(w, "data");
		container_cgroup_stats_write(watch->cgroup, w);
	}
	json_close_object(w);
	int rc = json_print(w, err);
	return rc < 0 ? rc : fd_flush_stdout(err);
}

static uint64_t read_key(int fd, const char *key)
{
	char text[SYSTEM_FILE_SMALL];
	uint64_t value = 0;
	if (fd >= 0 && system_file_reread(fd, text, sizeof(text)) > 0)
		(void)cgroup_text_value(text, key, &value); /* absent: stays 0 */
	return value;
}

/* Until the next line is due or the container has ended: 1, 0, or -errno. */
static int await(struct events_watch *watch, uint64_t until, struct cj_error *err)
{
	for (;;) {
		/* Read first: it also arms the notifications. */
		uint64_t kills = read_key(watch->memory_fd, "oom_kill");
		bool is_new = kills > watch->oom_kills;
		watch->oom_kills = kills;
		if (is_new && print_line(watch, "oom", false, err) < 0)
			return -err->code;
		if (read_key(watch->events_fd, "populated") == 0)
			return 0;
		int64_t left = (int64_t)(until - clock_ms());
		if (left <= 0)
			return 1;
		struct pollfd changes[] = { { .fd = watch->events_fd, .events = POLLPRI },
					    { .fd = watch->memory_fd, .events = POLLPRI } };
		(void)poll(changes, 2, left < POLL_SLICE_MS ? (int)left : POLL_SLICE_MS);
	}
}

int container_events(struct oci_call *call, struct cj_error *err)
{
	auto_verb_target struct verb_target t = VERB_TARGET_NULL;
	const struct oci_options *o = call->options;
	uint64_t interval = INTERVAL_MS;
	if (o->interval && parse_duration(o->interval, &interval, err) < 0)
		return cj_wrap(err, "--interval");
	int rc = open_target(call, false, &t, err);
	if (rc == 0)
		rc = container_cgroup_need(&t.cgroup, "events", err);
	if (rc < 0)
		return rc;

	struct events_watch watch = {
		.id = o->id, .cgroup = &t.cgroup, .events_fd = -1, .memory_fd = -1
	};
	if (o->stats_once)
		return print_line(&watch, "stats", true, err);
	auto_fd int events_fd = openat(t.cgroup.dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	auto_fd int memory_fd = openat(t.cgroup.dir_fd, "memory.events", O_RDONLY | O_CLOEXEC);
	if (events_fd < 0)
		return cj_fail(err, errno, "open 'cgroup.events' of the container");
	watch.events_fd = events_fd;
	watch.memory_fd = memory_fd;
	watch.oom_kills = read_key(memory_fd, "oom_kill");
	for (rc = 1; rc > 0;) {
		rc = print_line(&watch, "stats", true, err);
		if (rc == 0)
			rc = await(&watch, clock_ms() + interval, err);
	}
	return rc;
}
