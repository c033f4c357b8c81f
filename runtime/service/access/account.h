/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account - the callers and their counters.
 *
 * A caller is a uid at the other end of the Unix socket (SO_PEERCRED), or the name of a token.
 * Rights come from the row of that name in "callers", else from "default".  The service's own uid
 * and root could do everything without the service, so only a row of their own limits them.  The
 * counters live as long as the service.  When the table of accounts is full, an idle one is
 * dropped.
 */
#pragma once

#include <limits.h>
#include <sys/queue.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/files/sha256.h"
#include "runtime/run/request/rights.h"

#define CALLERS_MAX  256 /* rows of the configuration */
#define ACCOUNTS_MAX 1024

#define TOKEN_MIN 32
#define TOKEN_MAX 1024

/* Until callers_settle(): half of the concurrency, so that no caller can use all of it. */
#define CONCURRENT_HALF UINT_MAX

struct caller_row {
	const char *name;       /* "uid:N", "token:NAME" */
	const char *token_file; /* of "token:NAME" rows */
	char token_sha256[SHA256_HEX_MAX];
	bool has_token;
	struct rights rights;
};
struct callers {
	struct caller_row rows[CALLERS_MAX];
	size_t count;
	struct rights standard; /* of callers without a row */
	struct rights own;      /* of the service's uid and root, without a row */
};
/* No rows, and the built-in rights. */
void callers_init(struct callers *c);
/* Call it when the concurrency is known. */
void callers_settle(struct callers *c, unsigned concurrency);
/* Which row has the name; c->count: none has. */
size_t callers_find(const struct callers *c, const char *name);

/* A caller with its counters. */
struct account {
	char name[CALLER_NAME_MAX];
	const struct rights *rights; /* of the configuration in force */
	unsigned running, queued;
	unsigned sessions;            /* that have not ended */
	uint64_t credit, refilled_ms; /* the token bucket: CREDIT_OF_REQUEST is one request */
	uint64_t seen_ms;
	uint64_t turn; /* when one of its runs was started last: runs.h counts */
	/* Its queued runs, oldest first, and its place among the accounts that have any: runs.h. */
	TAILQ_HEAD(, run) queue;
	TAILQ_ENTRY(account) turn_link;
};
TAILQ_HEAD(account_list, account);
#define CREDIT_OF_REQUEST 60000 /* so that a millisecond gives exactly rate_per_minute */
#define ACCOUNT_BODY_UNIT (1u << 20)

struct accounts {
	struct account items[ACCOUNTS_MAX];
	size_t count;
};
/* After a new configuration: every account's rights are looked up again, its counters stay. */
void accounts_adopt(struct accounts *a, const struct callers *callers, uid_t own_uid);

/*
 * The account of a uid (`own_uid` is the service's), or of a row; NULL: the table is full of busy
 * ones.  The pointer holds as long as something of it runs or is queued or a session
 * of it lives, else until the next call:
 * keep its name for longer.
 */
struct account *account_of_uid(struct accounts *a, const struct callers *c, uid_t uid,
			       uid_t own_uid, uint64_t now_ms);
struct account *account_of_row(struct accounts *a, const struct caller_row *row, uint64_t now_ms);
/*
 * NULL: no caller has this token.  Compares SHA-256 digests of all rows, always, in constant time.
 */
const struct caller_row *callers_find_token(const struct callers *c, const char *token,
					    size_t size);
/* 32 to 1024 printable characters, and enough different ones. */
int token_check(const char *token, size_t size, struct cj_error *err);

/*
 * Takes a request from the bucket.  False: *out_retry_ms is the time until it has enough again, at
 * least 1.  Each ACCOUNT_BODY_UNIT of the body counts as one more, up to the size of the bucket.
 */
bool account_take(struct account *a, size_t body_bytes, uint64_t now_ms, uint64_t *out_retry_ms);
bool account_may_run(const struct account *a);
bool account_may_wait(const struct account *a);
