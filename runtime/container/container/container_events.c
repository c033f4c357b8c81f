/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb events: counters as lines of JSON, once or at intervals, and a line when the kernel has
 * killed for lack of memory.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/container/container/container.h"

#define INTERVAL_MS   5000 /* of other runtimes, too */
#define POLL_SLICE_MS 1000 /* in case a notification is missed */

struct watch {
	const char *id;
	const struct container_cgroup *cgroup;
	int events_fd, memory_fd; /* cgroup.events, memory.events (-1: no controller) */
	uint64_t oom_kills;
};

/* {"type":"stats","id":"ID","data":{...}}; other types have no data. */
static int print_line(const struct watch *watch, const char *type, bool has_data,
		      struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	if (!w)
		return cj_fail(err, ENOMEM, "print an event");
	json_open_object(w);
	json_member_text(w, "type", type);
	json_member_text(w, "id", watch->id);
	if (has_data) {
		json_put_key(w, "data");
		container_cgroup_stats_write(watch->cgroup, w);
	}
	json_close_object(w);
	int rc = json_print(w, err);
	if (rc == 0 && fflush(stdout) != 0)
		rc = cj_fail(err, errno, "write to standard output");
	return rc;
}

static uint64_t read_key(int fd, const char *key)
{
	char text[SYSTEM_FILE_SMALL];
	uint64_t value = 0;
	if (fd >= 0 && system_file_reread(fd, text, sizeof(text)) > 0)
		(void)cgroup_text_value(text, key, &value); /* absent: stays 0 */
	return value;
}

static int note_oom(struct watch *watch, struct cj_error *err)
{
	uint64_t kills = read_key(watch->memory_fd, "oom_kill");
	bool is_new = kills > watch->oom_kills;
	watch->oom_kills = kills;
	return is_new ? print_line(watch, "oom", false, err) : 0;
}

/* Until the next line is due or the container has ended: 1, 0, or -errno. */
static int await(struct watch *watch, uint64_t until, struct cj_error *err)
{
	for (;;) {
		/* Read first: it also arms the notifications. */
		int rc = note_oom(watch, err);
		if (rc < 0)
			return rc;
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

static int run(struct watch *watch, uint64_t interval, struct cj_error *err)
{
	int rc = 1;
	while (rc > 0) {
		rc = print_line(watch, "stats", true, err);
		if (rc == 0)
			rc = await(watch, clock_ms() + interval, err);
	}
	return rc;
}

int container_events(struct oci_call *call, struct cj_error *err)
{
	auto_container_target struct container_target t = CONTAINER_TARGET_NULL;
	const struct oci_options *o = call->options;
	uint64_t interval = INTERVAL_MS;
	if (o->interval && parse_duration(o->interval, &interval, err) < 0)
		return cj_wrap(err, "--interval");
	int rc = container_target_open(call, false, &t, err);
	if (rc == 0)
		rc = container_cgroup_need(&t.cgroup, "events", err);
	if (rc < 0)
		return rc;

	struct watch watch = { .id = o->id, .cgroup = &t.cgroup, .events_fd = -1, .memory_fd = -1 };
	if (o->stats_once)
		return print_line(&watch, "stats", true, err);
	auto_fd int events_fd = openat(t.cgroup.dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	auto_fd int memory_fd = openat(t.cgroup.dir_fd, "memory.events", O_RDONLY | O_CLOEXEC);
	if (events_fd < 0)
		return cj_fail(err, errno, "open 'cgroup.events' of the container");
	watch.events_fd = events_fd;
	watch.memory_fd = memory_fd;
	watch.oom_kills = read_key(memory_fd, "oom_kill");
	return run(&watch, interval, err);
}
