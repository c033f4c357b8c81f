/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account - who calls, what that caller may ask for, and how much of it.  Pure: time is an
 * argument.
 *
 * A caller is a uid at the other end of the Unix socket (SO_PEERCRED), or the name of a token.
 * Rights come from the row of that name in "callers", else from "default".  The counters live as
 * long as the service, in a table with a bound: at its bound, idle callers are forgotten.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiles/config.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"

#define CALLERS_MAX     256 /* rows of the configuration */
#define ACCOUNTS_MAX    1024
#define CALLER_NAME_MAX 64 /* "uid:1000", "token:ci" */

/* What a caller may do.  A ceiling of 0: none but the profile's own value. */
struct rights {
	struct strings profiles; /* count 0: all there are */
	uint64_t memory_bytes, millicpus, pids, wall_ms, disk_bytes, output_bytes;
	bool network;    /* may have a network at all */
	bool host_paths; /* may name paths and end points of the host */
	unsigned concurrent, queued;
	unsigned rate_per_minute, burst; /* 0: not limited */
};

struct caller_row {
	const char *name;
	const char *token_file; /* of "token:NAME" rows */
	uint8_t token_sha256[32];
	bool has_token;
	struct rights rights;
};
struct callers {
	struct caller_row rows[CALLERS_MAX];
	size_t count;
	struct rights standard; /* who has no row */
};

/* Who calls, with its counters. */
struct account {
	char name[CALLER_NAME_MAX];
	const struct rights *rights; /* of the configuration in force */
	unsigned running, queued;
	uint64_t tokens_milli, refilled_ms; /* the token bucket */
};

struct accounts {
	struct account *items;
	size_t count;
};
void accounts_init(struct accounts *a);
void accounts_fini(struct accounts *a);
/* After a new configuration: every account's rights are looked up again. */
void accounts_adopt(struct accounts *a, const struct callers *callers);

/* The account of a uid (`own_uid` is the service's: it and root get host_paths by default), or of a
 * token; NULL: the table is full of busy ones. */
struct account *account_of_uid(struct accounts *a, const struct callers *c, uid_t uid,
			       uid_t own_uid, uint64_t now_ms);
/* NULL: no such token.  Compares SHA-256 digests in constant time, all rows, always. */
struct account *account_of_token(struct accounts *a, const struct callers *c, const char *token,
				 size_t size, uint64_t now_ms);
/* At least 32 bytes, not all alike, printable; fails with what to do. */
int token_check(const char *token, size_t size, struct cj_error *err);

/* Why a request is not taken, or not now. */
enum refusal {
	REFUSAL_NONE,
	REFUSAL_RATE,     /* 429 */
	REFUSAL_CALLER,   /* 429: this caller has enough waiting */
	REFUSAL_QUEUE,    /* 503: everybody's queue is full */
	REFUSAL_DRAINING, /* 503 */
	REFUSAL_AUDIT,    /* 503 */
	REFUSAL_PROFILE,  /* 403 */
	REFUSAL_CEILING,  /* 403 */
	REFUSAL_COUNT
};
extern const char *const refusal_names[REFUSAL_COUNT]; /* metrics' reason, the error's code */

/* Takes one from the bucket; *out_retry_ms says when there is one again. */
enum refusal account_take(struct account *a, uint64_t now_ms, uint64_t *out_retry_ms);

/*
 * account_judge - the effective config of a request against the caller's rights.
 *
 * `asked` is the config with the request's settings applied, `profile` without.  What the request
 * itself asks above a ceiling is refused (EACCES, the setting named); where only the profile gives
 * more, *lower gets the ceiling, else 0.
 */
struct lower {
	uint64_t memory_bytes, millicpus, pids, wall_ms, disk_bytes, output_bytes;
};
int account_judge(const struct rights *r, const struct config *asked, const struct config *profile,
		  struct lower *lower, struct cj_error *err);
