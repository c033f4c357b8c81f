/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_state - one run at a service, while it takes place.  Internal to remote.c, which reads the
 * service's answer, to remote_cancel.c, and to remote_output.c, which writes the program's output
 * here.
 */
#pragma once

#include "runtime/base/clock.h"
#include "runtime/front/client/http_answer.h"
#include "runtime/front/client/remote.h"
#include "runtime/front/client/remote_input.h"
#include "runtime/front/client/remote_link.h"

/* stdout or stderr of the program, written to ours. */
struct remote_stream {
	int fd;     /* -1: not written */
	int own_fd; /* -1, or `fd` as an open file of this process alone */
	bool escape;
	uint64_t written; /* bytes of the program, before they were escaped */
	int error;        /* the errno that ended it */
};

struct remote {
	const struct remote_call *call;
	struct outcome *outcome;
	char url[REMOTE_URL_MAX];       /* of this run or exec */
	char stdin_url[REMOTE_URL_MAX]; /* "": standard input is in the request, or not wanted */
	struct remote_input input;
	bool is_interrupted; /* the program of an exec has received SIGINT */
	int sock_fd, signal_fd;
	struct http_answer answer;
	char *line; /* [0, size): an unfinished line, or the body of an error */
	size_t size, room;
	struct remote_stream streams[2];
	bool has_gap;      /* events were dropped: later output events are ignored */
	struct arena tree; /* holds `result` */
	const struct json_node *result;
	bool is_cancelled, gave_up;
	uint64_t deadline_ms;  /* for the result of a cancelled run; 0: none */
	uint64_t run_ended_ms; /* when the run ends, or was cancelled; 0: not known */
};

/* remote_cancel.c: "/v1/runs" or "/v1/sessions/ID/execs". */
int remote_write_list_url(const struct remote_call *call, char url[static REMOTE_URL_MAX],
			  struct cj_error *err);
/* Fills r->url and r->stdin_url. */
int remote_write_urls(struct remote *r, struct cj_error *err);

/* Adds a warning that says why another request, or the end of the session, cancelled the run. */
void remote_explain_cancel(struct remote *r);

/* Asks the service to cancel the run.  `signal`: 0 when a reader went away.  The second signal ends
 * the wait. */
void remote_cancel(struct remote *r, int signal);

/* The signals that arrived at signal_fd cancel the run; but the first SIGINT goes to the program of
 * an exec. */
void remote_read_signals(struct remote *r);

/* remote_output.c: `which` is 0 for stdout, 1 for stderr. */
void remote_output_open(struct remote *r);
void remote_output_close(struct remote *r);
void remote_output_write(struct remote *r, size_t which, const char *bytes, size_t size);

/*
 * remote_output_complete - write what dropped events had of a stream, from the result.
 * Returns: false when output is missing; a warning says so.
 */
bool remote_output_complete(struct remote *r, size_t which);
