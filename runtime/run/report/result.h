/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result - a struct outcome as the JSON object of profiles/schema/result.json.
 */
#pragma once

#include "runtime/base/json/json.h"
#include "runtime/jail/outcome.h"

/* Bytes of kept results, of a caller and of all: those of detached execs, and as many of tasks. */
#define KEPT_RESULTS_MAX     (32u << 20)
#define KEPT_ALL_RESULTS_MAX (128u << 20)

#define RESULT_SCHEMA "cejail.result/1"

/* Members of the result that are not in the outcome. */
struct result_about {
	const char *profile_name;   /* "": no profile was read */
	const char *profile_sha256; /* "": likewise */
	enum network_mode network;  /* NETWORK_MODE_COUNT: it is the caller's */
	/* For a run over the API of the service; otherwise NULL. */
	const char *request_id, *traceparent;
	const char *session; /* of an exec: its session; else NULL */
};

/*
 * result_write - write one object to `w`.
 * Fails: ENOMEM for the kept output; the object is then not finished.
 */
int result_write(struct json_writer *w, const struct outcome *o, const struct result_about *about,
		 struct cj_error *err);

/* The members "state", "reason" and "uplink" of a public network. */
void result_put_network_state(struct json_writer *w, const struct network_outcome *n);

/* The members "mode", "allow" and "deny" of a session's network. */
void result_put_lists(struct json_writer *w, const struct network_lists *n);
/* The member "rules": these, and whether they have changed. */
void result_put_rules(struct json_writer *w, const struct network_rules *rules);

/* The member "denied" of a network, and a row of it: without an address if the packets were only
 * counted. */
void result_put_denials(struct json_writer *w, const struct denial *items, size_t count);
void result_put_denial(struct json_writer *w, const struct denial *d);

/* The members "artifacts" and "warnings". */
void result_put_artifacts(struct json_writer *w, const struct artifacts *a);
void result_put_warnings(struct json_writer *w, const struct strings *warnings);

/* The member "usage". */
void result_put_usage(struct json_writer *w, const struct usage *u);

/* A member with a time: clock_text(). */
void result_put_ms(struct json_writer *w, const char *key, int64_t epoch_ms);

/* The jail was built, but the command could not be executed (o->exec_errno): sets o->error and its
 * stage, "exec". */
void result_explain_exec(struct outcome *o, const char *command);
