/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of POST .../lease, .../signal, .../stdin and .../files/PATH.  Pure. */
#include "runtime/service/api/api_session_body.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "runtime/base/text.h"

#define NAME       "request"
#define AT(member) .offset = offsetof(struct small, member)

/* What the four bodies have. */
struct small {
	uint64_t lease_ms;
	int signo;
	size_t stdin_max;
	struct session_stdin in;
	struct session_change_order change;
};

static int set_lease(const struct json_reader *in, const struct json_key *k, const char *text,
		     void *record, struct cj_error *err)
{
	(void)in;
	return parse_duration(text, json_field(k, record), err);
}

static int set_signal(const struct json_reader *in, const struct json_key *k, const char *text,
		      void *record, struct cj_error *err)
{
	static const struct {
		const char *name;
		int signo;
	} rows[] = {
		{ "HUP", SIGHUP },     { "INT", SIGINT },   { "QUIT", SIGQUIT },
		{ "KILL", SIGKILL },   { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 },
		{ "TERM", SIGTERM },   { "CONT", SIGCONT }, { "STOP", SIGSTOP },
		{ "WINCH", SIGWINCH },
	};
	const char *name = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;
	(void)in;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].name, name) != 0)
			continue;
		*(int *)json_field(k, record) = rows[i].signo;
		return 0;
	}
	int rc = cj_reject(err, "'%.32s' is not a signal that can be sent", text);
	cj_hint(err, "HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT, STOP or WINCH");
	return rc;
}

static int read_bytes(const struct json_reader *in, const struct json_key *k,
		      const struct json_node *node, void *record, struct cj_error *err)
{
	struct json_key capped = *k;

	capped.max = ((const struct small *)record)->stdin_max;
	return k->detail ? json_read_base64(in, &capped, node, record, err)
			 : json_read_blob(in, &capped, node, record, err);
}

static const struct json_key lease_keys[] = {
	{ "lease", JSON_TAKES_STRING | JSON_TAKES_NUMBER, .is_required = true, .set = set_lease,
	  AT(lease_ms) },
};
static const struct json_key signal_keys[] = {
	{ "signal", JSON_TAKES_STRING, .is_required = true, .set = set_signal, AT(signo) },
};
static const struct json_key stdin_keys[] = {
	{ "text", JSON_TAKES_STRING, .read = read_bytes, AT(in.text) },
	{ "base64", JSON_TAKES_STRING, .read = read_bytes, AT(in.base64), .detail = "base64" },
	{ "eof", JSON_TAKES_BOOL, .set = json_set_bool, AT(in.is_end) },
};
static const struct json_key change_keys[] = {
	{ "mkdir", JSON_TAKES_BOOL, .set = json_set_bool, AT(change.is_mkdir) },
	{ "rename", JSON_TAKES_STRING, .set = json_set_string, AT(change.to) },
};
static const struct json_record change_record = JSON_RECORD(change_keys, NAME);
static const struct json_record lease_record = JSON_RECORD(lease_keys, NAME);
static const struct json_record signal_record = JSON_RECORD(signal_keys, NAME);
static const struct json_record stdin_record = JSON_RECORD(stdin_keys, NAME);

static int read_small(struct blob body, const struct json_record *record, struct arena *a,
		      struct small *out, struct cj_error *err)
{
	const struct json_node *root = NULL;
	const struct json_reader in = { .file = NAME, .arena = a };

	if (json_parse_capped(NAME, body.bytes ? body.bytes : "", body.size, a, &root, err) < 0)
		return -err->code;
	return json_record_read(&in, root, record, out, err);
}

int session_body_lease(struct blob body, uint64_t *out_ms, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct small got = { 0 };

	if (read_small(body, &lease_record, &a, &got, err) < 0)
		return -err->code;
	*out_ms = got.lease_ms;
	return 0;
}

int session_body_change(struct blob body, struct arena *a, struct session_change_order *out,
			struct cj_error *err)
{
	struct small got = { 0 };

	if (read_small(body, &change_record, a, &got, err) < 0)
		return -err->code;
	if (got.change.is_mkdir == (got.change.to != NULL))
		return cj_reject(err, NAME ": either \"mkdir\": true or rename must be there");
	*out = got.change;
	return 0;
}

int session_body_signal(struct blob body, int *out_signo, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct small got = { 0 };

	if (read_small(body, &signal_record, &a, &got, err) < 0)
		return -err->code;
	*out_signo = got.signo;
	return 0;
}

int session_body_stdin(struct blob body, size_t max, struct arena *a, struct session_stdin *out,
		       struct cj_error *err)
{
	struct small got = { .stdin_max = max };

	if (read_small(body, &stdin_record, a, &got, err) < 0)
		return -err->code;
	if (got.in.text.bytes && got.in.base64.bytes)
		return cj_reject(err, NAME ": text and base64 exclude each other");
	if (!got.in.text.bytes && !got.in.base64.bytes && !got.in.is_end)
		return cj_reject(err, NAME ": text, base64 or eof is missing");
	*out = got.in;
	out->bytes = got.in.text.bytes ? got.in.text : got.in.base64;
	return 0;
}
