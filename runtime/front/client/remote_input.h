/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_input - forwards our standard input to an exec of a session while it runs.  Acts.
 *
 * Each piece is a request of its own: POST /v1/sessions/ID/execs/EXEC/stdin.  One is under way at a
 * time, and nothing is read meanwhile.  So a program that reads slowly slows down our writer.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/front/client/http_answer.h"

struct remote_input {
	const char *socket, *url; /* borrowed */
	int fd;                   /* read from; -1: nothing is to be forwarded any more */
	int answer_fd;            /* the request under way; -1: none */
	struct http_answer answer;
	char *body; /* of it, to send it again when the service had no room */
	size_t size;
	bool is_last;
	uint64_t retry_at_ms; /* 0: no request waits to be sent again */
};

#define REMOTE_INPUT_NULL                                                                          \
	{                                                                                          \
		.fd = -1, .answer_fd = -1                                                          \
	}

enum { REMOTE_INPUT_FDS = 2 };

/* For poll(2). */
void remote_input_watch(const struct remote_input *in, struct pollfd fds[static REMOTE_INPUT_FDS]);

/* When to call remote_input_serve() without an event; 0: never. */
uint64_t remote_input_due_ms(const struct remote_input *in);

/*
 * remote_input_serve - read, send, or read an answer.
 *
 * If the exec takes no more input, forwarding ends without an error: its result says how it ended.
 * Fails: the service cannot be reached, or standard input cannot be read.
 */
int remote_input_serve(struct remote_input *in, const struct pollfd fds[static REMOTE_INPUT_FDS],
		       struct cj_error *err);

void remote_input_fini(struct remote_input *in);
