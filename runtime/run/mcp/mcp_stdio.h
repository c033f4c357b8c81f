/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_stdio - lines from a peer, and lines to it: the client of this server on standard input and
 * output, or a server that this process started.
 *
 * Nothing here blocks.  Lines to the peer wait in a queue; while the queue is long, no further line
 * is read, unless reads_on is set, and the owner starts nothing.  So a peer that does not read
 * cannot fill the memory.  The end of the input is still seen then; a cancellation is not.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/base/json/json_record.h"
#include "runtime/base/loop.h"

#define MCP_LINE_EDGE   (4u << 10)  /* kept of each end of a line that is too long */
#define MCP_QUEUE_FULL  (8u << 20)  /* above: no line is read */
#define MCP_QUEUE_SHORT (64u << 10) /* above: lines that may be lost are dropped */

struct mcp_stdio {
	struct loop *loop;
	struct watch in, out;
	int in_fd, out_fd;
	int own_out_fd;          /* out_fd as a non-blocking file of our own; -1: none */
	bool owns_fds;           /* the first two, which are non-blocking */
	bool is_socket;          /* out_fd */
	bool reads_on;           /* set by the caller: a long queue does not stop the reading */
	struct byte_queue input; /* an incomplete line, or lines that wait */
	size_t searched;
	struct byte_queue queue; /* to be written */
	bool is_cut;             /* the input has both ends of a line that is too long */
	bool is_paused;          /* the queue is long */
	bool is_held;            /* mcp_stdio_hold() */
	bool is_over;            /* the peer closed its end, or: */
	struct cj_error failure; /* code 0: none */

	void *owner;
	/* A line without its newline, with a NUL.  It must not close the stream. */
	void (*line)(struct mcp_stdio *s, const char *text, size_t size);
	/* A line longer than MCP_LINE_MAX, of which only both ends were kept. */
	void (*cut)(struct mcp_stdio *s, struct blob head, struct blob tail);
};

/* Standard input and output.  The caller has set `loop`, `owner`, `line` and `cut`, all else is
 * zero. */
int mcp_stdio_open(struct mcp_stdio *s, struct cj_error *err);

/* The same with these descriptors, of pipes or of one socket: takes them, also when it fails. */
int mcp_stdio_open_fds(struct mcp_stdio *s, int in_fd, int out_fd, struct cj_error *err);

void mcp_stdio_close(struct mcp_stdio *s);

/* `line` calls it with true to get its line again, and all later ones, after a call with false. */
void mcp_stdio_hold(struct mcp_stdio *s, bool is_held);

/* Queues a line.  `may_drop`: not while the queue is longer than MCP_QUEUE_SHORT. */
void mcp_stdio_put(struct mcp_stdio *s, const char *text, size_t size, bool may_drop);
