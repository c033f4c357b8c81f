/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_state - one run at a service, while it takes place.  Internal to remote.c, which reads the
 * service's answer, and to remote_streams.c, which forwards input, output and signals.
 */
#pragma once

#include <poll.h>

#include "runtime/front/client/remote.h"
#include "runtime/front/client/remote_link.h"

/* stdout or stderr of the program, written to ours. */
struct remote_stream {
	int fd;     /* -1: not written */
	int own_fd; /* -1, or `fd` as an open file of this process alone */
	bool escape;
	uint64_t written; /* bytes of the program, before they were escaped */
	int error;        /* the errno that ended it */
};

/*
 * Our standard input, forwarded to an exec of a session while it runs.
 *
 * Each piece is a request of its own: POST /v1/sessions/ID/execs/EXEC/stdin.  One is under way at a
 * time, and nothing is read meanwhile.  So a program that reads slowly slows down our writer.
 */
struct remote_input {
	int fd;        /* read from; -1: nothing is to be forwarded any more */
	int answer_fd; /* the request under way; -1: none */
	struct http_answer answer;
	char *body; /* of it, to send it again when the service had no room */
	size_t size;
	bool is_last;
	uint64_t retry_at_ms; /* call remote_input_serve() then without an event; 0: never */
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
	struct remote_buffer line; /* an unfinished line, or the body of an error */
	struct remote_stream streams[2];
	bool has_gap;      /* events were dropped: later output events are ignored */
	struct arena tree; /* holds `result` */
	const struct json_node *result;
	bool is_cancelled, gave_up;
	uint64_t deadline_ms;  /* for the result of a cancelled run; 0: none */
	uint64_t run_ended_ms; /* when the run ends, or was cancelled; 0: not known */
};

/* For poll(2). */
enum { REMOTE_INPUT_FDS = 2 };
void remote_input_watch(const struct remote_input *in, struct pollfd fds[static REMOTE_INPUT_FDS]);

/*
 * remote_input_serve - read, send, or read an answer.
 *
 * If the exec takes no more input, forwarding ends without an error: its result says how it ended.
 * Fails: the service cannot be reached, or standard input cannot be read.
 */
int remote_input_serve(struct remote *r, const struct pollfd fds[static REMOTE_INPUT_FDS],
		       struct cj_error *err);
void remote_input_stop(struct remote_input *in);

/* `which`: 0 for stdout, 1 for stderr. */
void remote_output_open(struct remote *r);
void remote_output_close(struct remote *r);
void remote_output_write(struct remote *r, size_t which, const char *bytes, size_t size);

/*
 * remote_output_complete - write what dropped events had of a stream, from the result.
 * Returns: false when output is missing; a warning says so.
 */
bool remote_output_complete(struct remote *r, size_t which);

/* The signals that arrived at signal_fd cancel the run; but the first SIGINT goes to the program of
 * an exec. */
void remote_read_signals(struct remote *r);

/* Asks the service to cancel the run.  `signal`: 0 when a reader went away.  The second signal ends
 * the wait. */
void remote_cancel(struct remote *r, int signal);

/* Adds a warning that says why another request, or the end of the session, cancelled the run. */
void remote_explain_cancel(struct remote *r);
