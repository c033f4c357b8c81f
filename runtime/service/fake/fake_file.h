/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_file - the file of `cejail serve --fake`: conditions and answers.  Pure.
 *
 * Schema: profiles/schema/fake.json.  The first answer whose conditions all hold is given.  If none
 * does, the run exits with 0 and without output.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/service/api/api_error.h"
#include "runtime/run/request/request.h"
#include "runtime/jail/outcome.h"

#define FAKE_FILE_BYTES_MAX (16u << 20)

enum fake_event_kind { FAKE_STDOUT, FAKE_STDERR, FAKE_DENIED, FAKE_EVENT_KIND_COUNT };

/* One event, `after_ms` after the one before. */
struct fake_event {
	enum fake_event_kind kind;
	struct blob bytes; /* FAKE_DENIED: the system call's name */
	uint64_t after_ms;
};

struct fake_answer {
	/* conditions; NULL: none */
	const char *profile, *code_sha256, *code_contains;

	/* it is refused: */
	bool is_refusal;
	enum api_code code;
	const char *message, *hint;
	uint64_t retry_after_ms;

	/* or runs: */
	uint64_t delay_ms; /* after all events */
	const struct fake_event *events;
	size_t nevents;
	enum status status;
	int exit_code, signal;
	struct cj_error error; /* STATUS_SETUP_ERROR */
	const struct artifact *artifacts;
	size_t nartifacts;
	const struct json_node *value; /* NULL: none */
	struct strings warnings;
};

struct fake_file {
	struct arena arena;
	struct fake_answer *answers; /* the last one has no conditions */
	size_t count;
};

/* Fails: "PATH:LINE:COLUMN: ...".  *out is the caller's to end with arena_fini(&out->arena). */
int fake_file_read(struct fake_file *out, const char *path, const char *text, size_t size,
		   struct cj_error *err);

/* Never NULL. */
const struct fake_answer *fake_file_find(const struct fake_file *f, const struct request *r);
