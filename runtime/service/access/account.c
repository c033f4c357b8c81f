/* SPDX-License-Identifier: Apache-2.0 */
/* Callers, their rights and their counters. */
#include "runtime/service/access/account.h"

#include <inttypes.h>

#define TOKEN_DISTINCT_MIN 8 /* 32 random hexadecimal digits have fewer once in 10^12 times */

void callers_init(struct callers *c)
{
	*c = (struct callers){
		.standard = { .concurrent = CONCURRENT_HALF,
			      .queued = 64,
			      .sessions = 8,
			      .rate_per_minute = 600,
			      .burst = 100 },
		.own = { .ceilings = { CEILING_NONE, CEILING_NONE, CEILING_NONE, CEILING_NONE,
				       CEILING_NONE, CEILING_NONE },
			 .network = NETWORK_ANY,
			 .sessions = UINT_MAX,
			 .host_paths = true },
	};
}

static void settle(struct rights *r, unsigned concurrency)
{
	if (r->concurrent == CONCURRENT_HALF)
		r->concurrent = concurrency > 1 ? concurrency / 2 : 1;
}

void callers_settle(struct callers *c, unsigned concurrency)
{
	settle(&c->standard, concurrency);
	for (size_t i = 0; i < c->count; i++)
		settle(&c->rows[i].rights, concurrency);
}

size_t callers_find(const struct callers *c, const char *name)
{
	size_t i = 0;

	while (i < c->count && strcmp(c->rows[i].name, name) != 0)
		i++;
	return i;
}

static void name_uid(char out[static CALLER_NAME_MAX], uid_t uid)
{
	(void)snprintf(out, CALLER_NAME_MAX, "uid:%" PRIu32, (uint32_t)uid);
}

static const struct rights *rights_of(const struct callers *c, const char *name, uid_t own_uid)
{
	char own[CALLER_NAME_MAX];
	const size_t row = callers_find(c, name);
	if (row < c->count)
		return &c->rows[row].rights;
	name_uid(own, own_uid);
	bool is_own = strcmp(name, own) == 0 || strcmp(name, "uid:0") == 0;
	return is_own ? &c->own : &c->standard;
}

static uint64_t full_credit(const struct rights *r)
{
	return (uint64_t)r->burst * CREDIT_OF_REQUEST;
}

static void refill(struct account *a, uint64_t now_ms)
{
	const struct rights *r = a->rights;
	uint64_t full = full_credit(r);
	uint64_t elapsed_ms = now_ms > a->refilled_ms ? now_ms - a->refilled_ms : 0;

	/* a full bucket is not computed, so the product below can't overflow */
	if (r->rate_per_minute == 0 || elapsed_ms >= full / r->rate_per_minute + 1)
		a->credit = full;
	else
		a->credit += elapsed_ms * r->rate_per_minute;
	if (a->credit > full)
		a->credit = full;
	if (elapsed_ms > 0)
		a->refilled_ms = now_ms;
}

bool account_take(struct account *a, size_t body_bytes, uint64_t now_ms, uint64_t *out_retry_ms)
{
	uint64_t rate = a->rights->rate_per_minute, full = full_credit(a->rights);
	/* parsing a large body takes the server's time from all callers */
	uint64_t price = CREDIT_OF_REQUEST * (1 + (uint64_t)body_bytes / ACCOUNT_BODY_UNIT);

	if (price > full)
		price = full;
	*out_retry_ms = 0;
	refill(a, now_ms);
	if (rate == 0)
		return true;
	if (a->credit >= price) {
		a->credit -= price;
		return true;
	}
	*out_retry_ms = (price - a->credit + rate - 1) / rate;
	return false;
}

bool account_may_run(const struct account *a)
{
	return a->rights->concurrent == 0 || a->running < a->rights->concurrent;
}

bool account_may_wait(const struct account *a)
{
	return a->rights->queued == 0 || a->queued < a->rights->queued;
}

void accounts_adopt(struct accounts *a, const struct callers *callers, uid_t own_uid)
{
	for (size_t i = 0; i < a->count; i++) {
		struct account *item = &a->items[i];
		item->rights = rights_of(callers, item->name, own_uid);
		if (item->credit > full_credit(item->rights))
			item->credit = full_credit(item->rights);
	}
}

/* An idle account has the same state as a new one, so it can be dropped. */
static bool is_idle(struct account *a, uint64_t now_ms)
{
	if (a->running > 0 || a->queued > 0 || a->sessions > 0)
		return false;
	refill(a, now_ms);
	return a->credit == full_credit(a->rights);
}

/* A free entry, else the one that has been idle for the longest time. */
static struct account *find_place(struct accounts *a, uint64_t now_ms)
{
	struct account *found = NULL;

	if (a->count < ACCOUNTS_MAX)
		return &a->items[a->count++];
	for (size_t i = 0; i < a->count; i++) {
		struct account *item = &a->items[i];
		if (is_idle(item, now_ms) && (!found || item->seen_ms < found->seen_ms))
			found = item;
	}
	return found;
}

static struct account *find_account(struct accounts *a, const char *name,
				    const struct rights *rights, uint64_t now_ms)
{
	for (size_t i = 0; i < a->count; i++) {
		if (strcmp(a->items[i].name, name) != 0)
			continue;
		a->items[i].seen_ms = now_ms;
		return &a->items[i];
	}

	struct account *place = find_place(a, now_ms);
	if (!place)
		return NULL;
	*place = (struct account){
		.rights = rights,
		.credit = full_credit(rights),
		.refilled_ms = now_ms,
		.seen_ms = now_ms,
	};
	(void)snprintf(place->name, sizeof(place->name), "%s", name); /* rows' names fit */
	return place;
}

struct account *account_of_uid(struct accounts *a, const struct callers *c, uid_t uid,
			       uid_t own_uid, uint64_t now_ms)
{
	char name[CALLER_NAME_MAX];
	name_uid(name, uid);
	return find_account(a, name, rights_of(c, name, own_uid), now_ms);
}

static int check_bytes(const char *token, size_t size, struct cj_error *err)
{
	bool seen[256] = { false };
	unsigned distinct = 0;

	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)token[i];
		if (c <= ' ' || c >= 0x7f)
			return cj_reject(
			    err, "the token has a byte that a header can't contain, at %zu of %zu",
			    i + 1, size);
		distinct += !seen[c];
		seen[c] = true;
	}
	if (size < TOKEN_MIN)
		return cj_reject(err, "the token has %zu characters, the minimum is %d", size,
				 TOKEN_MIN);
	if (size > TOKEN_MAX)
		return cj_reject(err, "the token has %zu characters, the maximum is %d", size,
				 TOKEN_MAX);
	if (distinct < TOKEN_DISTINCT_MIN)
		return cj_reject(err, "the token has only %u different characters", distinct);
	return 0;
}

int token_check(const char *token, size_t size, struct cj_error *err)
{
	if (check_bytes(token, size, err) == 0)
		return 0;
	return cj_hint(err, "make one with: head -c 32 /dev/urandom | base64 -w 0");
}

/* In constant time, so that it does not reveal where two digests differ. */
static bool is_same_digest(const char a[static SHA256_HEX_MAX], const char b[static SHA256_HEX_MAX])
{
	volatile unsigned char differs = 0;
	for (size_t i = 0; i < SHA256_HEX_MAX - 1; i++)
		differs = (unsigned char)(differs | (a[i] ^ b[i]));
	return differs == 0;
}

const struct caller_row *callers_find_token(const struct callers *c, const char *token, size_t size)
{
	const struct caller_row *found = NULL;
	char digest[SHA256_HEX_MAX];

	sha256_hex(token, size, digest);
	for (size_t i = 0; i < c->count; i++) {
		const struct caller_row *row = &c->rows[i];
		bool is_same = is_same_digest(digest, row->token_sha256);
		if (is_same && row->has_token)
			found = row;
	}
	return found;
}

struct account *account_of_row(struct accounts *a, const struct caller_row *row, uint64_t now_ms)
{
	return find_account(a, row->name, &row->rights, now_ms);
}
