/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_state - one run at a service, while it takes place.  Internal to remote.c, which reads the
 * service's answer, to remote_streams.c, which forwards input, output and signals, and to
 * remote_calls.c, which forwards the calls of tools and their answers.
 */
#pragma once

#include "runtime/front/client/remote.h"
#include "runtime/front/client/remote_link.h"
#include "runtime/front/client/service_calls.h"

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
	struct watch watch; /* of standard input */
	struct remote_exchange post;
	char *body; /* of the request under way; NULL: none is */
	size_t size;
	uint64_t retry_at_ms; /* it is to be sent again then; 0: never */
	bool is_last;
};

/*
 * Calls of the program to tools of our caller: cejail-tools(7).
 *
 *	service                        here                                caller
 *	event "call" ----------------> {"id":7,"name":...} --------------->
 *	POST /v1/runs/ID/calls/7 <---- <--------------- {"id":7,"result":...}
 *	event "answer" --------------> {"id":7,"ended":...} -------------->
 *
 * While the caller does not read its calls, the events of the run are not read.
 */
struct remote_calls {
	struct tool_list tools;
	struct watch caller; /* its descriptor is borrowed; fd -1: it answers no call */
	const char *no_more; /* why it answers none any more; NULL: it does */
	struct byte_queue in, out;
	size_t searched; /* of `in`: no newline is in these bytes */
	struct remote_open_call {
		uint64_t id; /* 0: the slot is free */
		uint64_t began_ms;
	} open[CALLS_OUTSTANDING_MAX]; /* calls that the caller has not answered */
	uint64_t last_id;
	struct call_answers answers;
	uint64_t read_ms; /* when the caller last read something */
};

/* A reader of our output.  It takes nothing from the loop but that it has gone. */
struct remote_reader {
	struct watch watch;
	struct remote *of;
};

struct remote {
	const struct remote_call *call;
	struct outcome *outcome;
	char url[REMOTE_URL_MAX];       /* of this run or exec */
	char stdin_url[REMOTE_URL_MAX]; /* "": standard input is in the request, or not wanted */
	struct loop loop;
	struct cj_error failure; /* code 0: none; else it ends the loop */
	struct remote_exchange request;
	bool is_answered;
	struct remote_input input;
	struct remote_calls calls;
	bool is_interrupted; /* the program of an exec has received SIGINT */
	int signal_fd;
	struct watch signals;
	struct remote_buffer line; /* an unfinished line, or the body of an error */
	struct remote_stream streams[2];
	struct remote_reader readers[3]; /* of the streams, and of the result or the events */
	bool has_gap;                    /* events were dropped: later output events are ignored */
	struct arena tree;               /* holds `result` */
	const struct json_node *result;
	bool is_cancelled, gave_up;
	uint64_t deadline_ms;  /* for the result of a cancelled run; 0: none */
	uint64_t run_ended_ms; /* when the run ends, or was cancelled; 0: not known */
};

/*
 * remote_input_start - forward standard input from now on.
 *
 * If the exec takes no more input, forwarding ends without an error: its result says how it ended.
 * r->failure: the service cannot be reached, or standard input cannot be read.
 */
void remote_input_start(struct remote *r);
/* Returns the time in ms until there is more to do; -1: never. */
int remote_input_tick(struct remote *r);
void remote_input_stop(struct remote *r);

/* Reads --tools.  Without it, the functions below do nothing. */
int remote_calls_open(struct remote *r, struct cj_error *err);
/* The caller reads the end of the calls that have none. */
void remote_calls_close(struct remote *r);

/* The caller is to read its calls before more events of the service are read. */
bool remote_calls_are_behind(const struct remote_calls *c);
/* Returns the time in ms until there is more to do; -1: never. */
int remote_calls_tick(struct remote *r);

/* Takes the call in r->line.  Fails: it cannot be read, or is none that the program may make. */
int remote_calls_take(struct remote *r, struct cj_error *err);
/* The event "answer". */
void remote_calls_end(struct remote *r, const struct json_node *event);

/* `which`: 0 for stdout, 1 for stderr. */
void remote_output_open(struct remote *r);
void remote_output_close(struct remote *r);
void remote_output_write(struct remote *r, size_t which, const char *bytes, size_t size);

/*
 * remote_output_complete - write what dropped events had of a stream, from the result.
 * Returns: false when output is missing; a warning says so.
 */
bool remote_output_complete(struct remote *r, size_t which);

/* Readers that go away from now on cancel the run. */
void remote_watch_readers(struct remote *r);

/* The signals that arrived at signal_fd cancel the run; but the first SIGINT goes to the program of
 * an exec. */
void remote_read_signals(struct remote *r);

/* Adds a warning that says why another request, or the end of the session, cancelled the run. */
void remote_explain_cancel(struct remote *r);
