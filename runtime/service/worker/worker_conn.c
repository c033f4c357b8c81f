/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines from a worker's socket. */
#include "runtime/service/worker/worker_conn.h"

#include "runtime/base/scope.h"
#include "runtime/run/report/events.h"

#define READ_MIN 4096
#define LINE_MIN (64u << 10) /* until the run sets the limit for its result */

static void end(struct worker_conn *w, const char *why)
{
	loop_unwatch(w->loop, &w->watch);
	w->ended(w, why);
}

static void on_ready(struct watch *watch, uint32_t events)
{
	struct worker_conn *w = watch_owner(watch, struct worker_conn, watch);
	(void)events; /* recv(2) reports everything */

	/* An idle worker holds little memory, a long line comes in few reads. */
	size_t most = byte_queue_size(&w->in) > 0 ? LINE_MIN : READ_MIN;
	ssize_t got = byte_queue_receive(&w->in, w->worker.sock_fd, most);
	if (got == -EAGAIN)
		return;
	if (got <= 0) {
		end(w, got == -ENOMEM                   ? "no memory for its line"
		       : got == 0 || got == -ECONNRESET ? ""
							: strerror((int)-got));
		return;
	}
	/* Calls back for every whole line and keeps the rest. */
	size_t size;
	while (!w->broken && (size = byte_queue_find_line(&w->in, &w->searched)) != SIZE_MAX) {
		char *line = w->in.bytes + w->in.start;
		line[size] = '\0';
		w->line(w, line, size);
		byte_queue_take(&w->in, size + 1);
	}
	if (w->broken)
		end(w, w->broken);
	else if (byte_queue_size(&w->in) > w->line_max)
		end(w, "its line is too long");
}

struct worker_conn *worker_conn_create(struct loop *loop, struct worker *worker,
				       struct cj_error *err)
{
	struct worker_conn *w = calloc(1, sizeof(*w));
	if (!w) {
		worker_close(worker);
		(void)!cj_fail(err, ENOMEM, "connect to a worker");
		return NULL;
	}
	*w = (struct worker_conn){ .loop = loop, .worker = *worker, .line_max = LINE_MIN };
	*worker = (struct worker)WORKER_NULL;
	if (loop_watch(loop, &w->watch, w->worker.sock_fd, on_ready, err) < 0)
		worker_conn_destroy(&w);
	return w;
}

void worker_conn_destroy(struct worker_conn **w)
{
	if (!*w)
		return;
	loop_unwatch((*w)->loop, &(*w)->watch);
	worker_close(&(*w)->worker);
	byte_queue_fini(&(*w)->in);
	cj_free(w);
}

void worker_conn_pause(struct worker_conn *w, bool is_paused)
{
	if (w->is_paused == is_paused)
		return;
	w->is_paused = is_paused;
	loop_rewatch(w->loop, &w->watch, is_paused ? 0 : EPOLLIN);
}

void worker_conn_close_control(struct worker_conn *w)
{
	cj_close(&w->worker.control_fd);
}

void worker_conn_break(struct worker_conn *w, const char *why)
{
	w->broken = why;
}

enum worker_line worker_conn_line(const char *line)
{
	static const char *const names[WORKER_LINE_COUNT] = {
		[WORKER_READY] = "ready",   [WORKER_UNREADY] = "unready",
		[WORKER_STALE] = "stale",   [WORKER_SUMMARY] = "summary",
		[WORKER_RESULT] = "result",
	};
	char type[16];

	worker_conn_line_type(line, type);
	for (size_t i = 0; i < WORKER_LINE_COUNT; i++)
		if (names[i] && strcmp(type, names[i]) == 0)
			return (enum worker_line)i;
	for (size_t i = 0; i < EVENT_TYPE_COUNT; i++)
		if (strcmp(type, event_type_names[i]) == 0)
			return WORKER_EVENT;
	return WORKER_OTHER;
}

void worker_conn_line_type(const char *line, char out[static 16])
{
	static const char before[] = "{\"type\":\"";
	size_t size = 0;

	if (strncmp(line, before, sizeof(before) - 1) == 0) {
		const char *name = line + sizeof(before) - 1;
		size_t length = strcspn(name, "\"");
		size = length < 16 && name[length] == '"' ? length : 0;
		memcpy(out, name, size);
	}
	out[size] = '\0';
}

/* Nothing of the program stands before its number, so the first one is that. */
uint64_t worker_conn_line_call(const char *line)
{
	static const char before[] = "\"call\":";
	const char *at = strstr(line, before);

	return at ? strtoull(at + sizeof(before) - 1, NULL, 10) : 0;
}
