/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result - a struct outcome as the JSON object of profiles/schema/result.json.  Pure.
 */
#pragma once

#include "runtime/base/json/json.h"
#include "runtime/jail/outcome.h"

#define RESULT_SCHEMA "cejail.result/1"

/* What the result says that is not the outcome's. */
struct result_about {
	const char *profile_name;   /* "": none was read */
	const char *profile_sha256; /* "": likewise */
	enum network_mode network;
	/* Of a run that was asked for over the API; NULL: it was not. */
	const char *request_id, *traceparent;
};

/*
 * result_write - one object into `w`.
 * Fails: ENOMEM for the kept output (nothing else can); the object is then not finished.
 */
int result_write(struct json_writer *w, const struct outcome *o, const struct result_about *about,
		 struct cj_error *err);

/* A row of network.denied; null where a refusal is only counted. */
void result_put_denial(struct json_writer *w, const struct denial *d);

/* "artifacts": and "warnings": with their lists. */
void result_put_artifacts(struct json_writer *w, const struct artifacts *a);
void result_put_warnings(struct json_writer *w, const struct strings *warnings);

/* "usage": with its numbers. */
void result_put_usage(struct json_writer *w, const struct usage *u);

/* "key": RFC 3339 in UTC, milliseconds always there. */
void result_put_time(struct json_writer *w, const char *key, const struct timespec *t);
