/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repl_channel - what the worker of a cell and a session's interpreter send each other.
 *
 * A stream of frames in both directions: one byte for the kind, four bytes for the size of the data
 * (little endian), the data.  To the interpreter, for one cell:
 *
 *	'a'  one argument
 *	'f'  a file to write: its path, NUL, its bytes; 'F': one that can be executed
 *	'i'  the whole standard input; without it there is none
 *	'c'  the number of the cell (4 bytes, little endian), its code; the last frame of a cell
 *
 * From the interpreter:
 *
 *	'R'  it is ready for its first cell; no data
 *	'B'  the number of the cell (4 bytes): it begins, and SIGINT interrupts it from now on
 *	'D'  a display: its media type, NUL, its bytes
 *	'V'  the value of the last expression, as text
 *	'X'  the exception: its type, NUL, its message, NUL, the whole traceback
 *	'E'  the end: the number of the cell, a byte with its exit status, which is 1 after an
 *	     exception, a byte with the number of displays that were left out
 *
 * The code of a cell runs in the same process and may write any byte here.  So the reader limits
 * each frame before it allocates.  What it reads decides only that the cell has ended, with which
 * exit status, and whether the interpreter stays: never a limit, a signal or another process.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/byte_queue.h"

struct program;

#define CELL_DISPLAYS_MAX       32
#define CELL_DISPLAY_BYTES_MAX  ((4u << 20) + 256) /* with its type */
#define CELL_DISPLAYS_BYTES_MAX (9u << 20)         /* of all together */
#define CELL_VALUE_MAX          (64u << 10)
#define CELL_EXCEPTION_MAX      (160u << 10)
#define CELL_FRAMES_MAX         64 /* of one cell */

struct cell_display {
	const char *type; /* one of a closed set, such as "image/png" */
	const uint8_t *bytes;
	size_t size;
};

/* What a cell showed.  Untrusted; the texts may be no UTF-8. */
struct cell_outcome {
	uint32_t number;
	bool has_begun;    /* its interpreter said so */
	uint8_t exit_code; /* which its interpreter gave with the end */
	bool is_claimed;   /* nothing but its interpreter's word says that it ended, and how */
	bool is_new; /* its interpreter replaced another one: variables of earlier cells are gone */
	bool is_lost;      /* its interpreter has ended: so are its own */
	const char *value; /* NULL: none */
	struct cell_display displays[CELL_DISPLAYS_MAX];
	size_t ndisplays;
	unsigned left_out;                                          /* displays beyond the limits */
	const char *exception_type, *exception_message, *traceback; /* NULL: none was sent */
};

enum repl_progress {
	REPL_GOES_ON,
	REPL_READY, /* the interpreter has started */
	REPL_ENDED, /* the cell has */
};

struct repl_reader {
	struct arena *arena; /* borrowed: the data of frames */
	struct cell_outcome *cell;
	uint8_t head[5];
	size_t head_size;
	uint8_t *data; /* of the current frame, with a NUL behind it */
	size_t size, filled;
	size_t frames, display_bytes;
};

/* Of a cell with this number.  cell NULL: only 'R' is expected. */
void repl_reader_init(struct repl_reader *r, struct arena *a, struct cell_outcome *cell);

/*
 * repl_reader_take - the next bytes that were read.  Bytes behind the end of a cell are refused.
 * Returns an enum repl_progress.  Fails: EPROTO for anything that our REPLs do not send; ENOMEM.
 */
int repl_reader_take(struct repl_reader *r, const void *bytes, size_t size, struct cj_error *err);

/*
 * All frames of the cell, malloc'ed: the arguments behind the code's file, the files, the input,
 * the code.  input.bytes NULL: none.  NULL: no memory, or more than CELL_REQUEST_MAX bytes.
 */
#define CELL_REQUEST_MAX (128u << 20)
uint8_t *repl_request_write(uint32_t number, const struct program *p, struct blob input,
			    size_t *out_size);
