/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_config - /etc/cejail/serve.json and the options of `cejail serve`.  Pure.
 *
 * One table: a row is a key, an option, an entry of cejail-serve(8).  Unknown keys, duplicates,
 * values that can't work are errors with file, line and column; a bad file at SIGHUP changes
 * nothing.  Schema: profiles/schema/serve.json.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/front/serve/account.h"
#include "runtime/front/serve/request.h"

#define POOLS_MAX 16

struct pool_config {
	const char *profile;
	unsigned jails, interpreters; /* prepared ahead, each */
};

struct audit_config {
	const char *file; /* NULL: none */
	bool journal;
	bool sync; /* fdatasync(2) each line */
};

struct service_config {
	struct arena arena;
	const char *socket; /* NULL: the default of who runs us; ignored with socket activation */
	unsigned socket_mode;
	const char *socket_group; /* NULL: leave it */
	const char *tcp;          /* "127.0.0.1:PORT" or "[::1]:PORT"; NULL: none */
	const char *token_file;   /* of the caller "token"; NULL: the credential "token", or none */
	unsigned concurrency;     /* runs at once; 0: four for each CPU */
	unsigned queue;           /* that wait; more are refused */
	uint64_t queue_ms;        /* nobody waits longer */
	uint64_t receive_ms;      /* for a whole request to arrive */
	struct request_caps caps;
	struct pool_config pools[POOLS_MAX];
	size_t npools;
	uint64_t pool_age_ms; /* no prepared jail is used after that */
	struct callers callers;
	struct audit_config audit;
	uint64_t drain_ms; /* after SIGTERM, running ones may go on for so long */
	uint64_t probe_ms; /* between two probe runs */
	const char *probe_profile;
};

void service_config_init(struct service_config *c); /* the defaults */
void service_config_fini(struct service_config *c);
/* Onto the defaults. `path` is for messages. */
int service_config_read(struct service_config *c, const char *path, const char *text, size_t size,
			struct cj_error *err);
/* The words behind `cejail serve`: --socket PATH, --tcp ADDR, --config FILE, --fake FILE, ... */
struct serve_options {
	const char *config; /* NULL: /etc/cejail/serve.json, or the user's, if there is one */
	const char *fake;
	bool wants_help, check_only;
};
int serve_options_parse(const char *const *words, struct service_config *c,
			struct serve_options *out, struct cj_error *err);
