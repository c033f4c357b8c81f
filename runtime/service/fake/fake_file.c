/* SPDX-License-Identifier: Apache-2.0 */
/* Answers from a file: objects are tables of keys.  Pure. */
#include "runtime/service/fake/fake_file.h"

#include <string.h>

#include "rootfs/files/return_value.h"
#include "rootfs/files/types.h"
#include "runtime/base/files/sha256.h"
#include "runtime/base/json/json_record.h"
#include "runtime/base/text.h"

#define DURATION (JSON_TAKES_STRING | JSON_TAKES_NUMBER), .set = json_set_duration
#define TEXT     JSON_TAKES_STRING, .set = json_set_string, .min = 1
#define BYTES    .read = json_read_blob, .max = FAKE_FILE_BYTES_MAX
#define OBJECT   JSON_TAKES_OBJECT, .read = json_read_record
#define OBJECTS  JSON_TAKES_OBJECT, .is_list = true

static int no_memory(struct cj_error *err)
{
	return cj_fail(err, ENOMEM, "read the answers");
}

/* --- events ----------------------------------------------------------------- */

/* An object of "events": bytes of one kind, the others NULL. */
struct event_draft {
	struct blob bytes[FAKE_EVENT_KIND_COUNT];
	uint64_t after_ms;
};

#define AT(field) .offset = offsetof(struct event_draft, field)
static const struct json_key event_keys[] = {
	{ "stdout", BYTES, AT(bytes[FAKE_STDOUT]) },
	{ "stderr", BYTES, AT(bytes[FAKE_STDERR]) },
	{ "denied", JSON_TAKES_STRING, BYTES, AT(bytes[FAKE_DENIED]), .min = 1 },
	{ "after", DURATION, AT(after_ms) },
};
#undef AT
static const struct json_record event_record = JSON_RECORD(event_keys, "an event");

static bool make_event(const struct event_draft *draft, struct fake_event *out)
{
	unsigned kinds = 0;
	for (unsigned i = 0; i < FAKE_EVENT_KIND_COUNT; i++) {
		if (!draft->bytes[i].bytes)
			continue;
		*out = (struct fake_event){ i, draft->bytes[i], draft->after_ms };
		kinds++;
	}
	return kinds == 1;
}

static int read_event(const struct json_reader *in, const struct json_key *k,
		      const struct json_node *node, void *record, struct cj_error *err)
{
	struct fake_answer *a = record;
	struct event_draft draft = { .after_ms = 0 };
	const struct json_reader below = json_below(in, k->name);

	if (json_record_read(&below, node, &event_record, &draft, err) < 0)
		return -err->code;
	struct fake_event *events = arena_grow(in->arena, a->events, a->nevents, sizeof(*events));
	if (!events)
		return no_memory(err);
	a->events = events;
	if (!make_event(&draft, &events[a->nevents++]))
		return json_reject(in->file, node, err,
				   "an event is one of \"stdout\", \"stderr\" and \"denied\"");
	return 0;
}

/* --- artefacts -------------------------------------------------------------- */

struct artifact_draft {
	const char *path;
	struct blob content;
};

#define AT(field) .offset = offsetof(struct artifact_draft, field)
static const struct json_key artifact_keys[] = {
	{ "path", TEXT, .is_required = true, AT(path) },
	{ "content", BYTES, .is_required = true, AT(content) },
};
#undef AT
static const struct json_record artifact_record = JSON_RECORD(artifact_keys, "an artefact");

static int read_artifact(const struct json_reader *in, const struct json_key *k,
			 const struct json_node *node, void *record, struct cj_error *err)
{
	struct fake_answer *a = record;
	struct artifact_draft draft = { .path = NULL };
	const struct json_reader below = json_below(in, k->name);

	if (json_record_read(&below, node, &artifact_record, &draft, err) < 0)
		return -err->code;
	struct artifact *items = arena_grow(in->arena, a->artifacts, a->nartifacts, sizeof(*items));
	if (!items)
		return no_memory(err);
	a->artifacts = items;
	struct artifact *item = &items[a->nartifacts++];
	item->path = draft.path;
	item->content = draft.content.bytes;
	item->bytes = draft.content.size;
	item->type = type_of(item->path, item->content, item->bytes, true);
	sha256_hex(draft.content.bytes, draft.content.size, item->sha256);
	return 0;
}

/* Within the limits of a program's value. */
static int read_result_value(const struct json_reader *in, const struct json_key *k,
			     const struct json_node *node, void *record, struct cj_error *err)
{
	struct fake_answer *a = record;
	(void)k;
	if (value_check(node, err) < 0)
		return cj_wrap(err, "%s:%u:%u: value", in->file, node->line, node->column);
	a->value = node;
	return 0;
}

/* --- an answer -------------------------------------------------------------- */

static int set_failure(const struct json_reader *in, const struct json_key *k, const char *text,
		       void *record, struct cj_error *err)
{
	(void)in;
	if (text[0] == '\0')
		return cj_reject(err, "the value is empty");
	(void)!cj_reject(json_field(k, record), "%s", text);
	return 0;
}

static int set_hash(const struct json_reader *in, const struct json_key *k, const char *text,
		    void *record, struct cj_error *err)
{
	if (strlen(text) != SHA256_HEX_MAX - 1 ||
	    strspn(text, "0123456789abcdef") != SHA256_HEX_MAX - 1)
		return cj_reject(err, "'%.80s' is not 64 digits, 0-9 and a-f", text);
	return json_set_string(in, k, text, record, err);
}

static int set_code(const struct json_reader *in, const struct json_key *k, const char *text,
		    void *record, struct cj_error *err)
{
	struct fake_answer *a = record;
	(void)in;
	(void)k;
	for (unsigned i = API_OK + 1; i < API_CODE_COUNT; i++) {
		if (strcmp(api_rows[i].code, text) == 0) {
			a->code = i;
			a->is_refusal = true;
			return 0;
		}
	}
	return cj_reject(err, "there is no '%s'", text);
}

#define AT(field) .offset = offsetof(struct fake_answer, field)
static const struct json_key when_keys[] = {
	{ "profile", TEXT, AT(profile) },
	{ "code_sha256", JSON_TAKES_STRING, .set = set_hash, AT(code_sha256) },
	{ "code_contains", TEXT, AT(code_contains) },
};
static const struct json_record when_record = JSON_RECORD(when_keys, "conditions");

static const struct json_key result_keys[] = {
	{ "status", JSON_TAKES_STRING, .set = json_set_name, AT(status), .detail = status_names,
	  .max = STATUS_COUNT },
	{ "exit_code", JSON_TAKES_NUMBER, .set = json_set_int, AT(exit_code), .max = 255 },
	{ "signal", JSON_TAKES_NUMBER, .set = json_set_int, AT(signal), .min = 1, .max = 64 },
	{ "message", JSON_TAKES_STRING, .set = set_failure, AT(error) },
	{ "value", .read = read_result_value },
	{ "artifacts", OBJECTS, .read = read_artifact },
	{ "warnings", JSON_TAKES_STRING, .is_list = true, .set = json_set_strings, AT(warnings),
	  .min = 1 },
};
static const struct json_record result_record = JSON_RECORD(result_keys, "a result");

static const struct json_key error_keys[] = {
	{ "code", JSON_TAKES_STRING, .is_required = true, .set = set_code },
	{ "message", TEXT, AT(message) },
	{ "hint", TEXT, AT(hint) },
	{ "retry_after", DURATION, AT(retry_after_ms) },
};
static const struct json_record error_record = JSON_RECORD(error_keys, "an error");

static const struct json_key answer_keys[] = {
	{ "when", OBJECT, .detail = &when_record },
	{ "events", OBJECTS, .read = read_event },
	{ "delay", DURATION, AT(delay_ms) },
	{ "result", OBJECT, .detail = &result_record },
	{ "error", OBJECT, .detail = &error_record },
};
#undef AT
static const struct json_record answer_record = JSON_RECORD(answer_keys, "an answer");

/* What only makes sense together. */
static int check_answer(const struct json_reader *in, const struct json_node *node,
			const struct fake_answer *a, struct cj_error *err)
{
	bool has_failed = a->status == STATUS_SETUP_ERROR;

	if (a->is_refusal && (json_get(node, "result") || json_get(node, "events")))
		return json_reject(in->file, node, err,
				   "an answer with an error has neither result nor events");
	if (has_failed != (a->error.code != 0))
		return json_reject(in->file, node, err,
				   "\"message\" and the status 'setup_error' belong together");
	if ((a->status == STATUS_SIGNALED) != (a->signal != 0))
		return json_reject(in->file, node, err,
				   "\"signal\" and the status 'signaled' belong together");
	if (has_failed && a->nevents > 0)
		return json_reject(in->file, node, err,
				   "nothing happens in a run that could not be started");
	return 0;
}

static int read_answer(const struct json_reader *in, const struct json_key *k,
		       const struct json_node *node, void *record, struct cj_error *err)
{
	struct fake_file *f = record;
	const struct json_reader below = json_below(in, k->name);
	struct fake_answer *answers = arena_grow(in->arena, f->answers, f->count, sizeof(*answers));

	if (!answers)
		return no_memory(err);
	f->answers = answers;
	struct fake_answer *a = &answers[f->count++];
	int rc = json_record_read(&below, node, &answer_record, a, err);
	return rc < 0 ? rc : check_answer(in, node, a, err);
}

/* The answer where no other one fits: all zeros. */
static int add_last_resort(struct fake_file *f, struct cj_error *err)
{
	struct fake_answer *answers = arena_grow(&f->arena, f->answers, f->count, sizeof(*answers));
	if (!answers)
		return no_memory(err);
	f->answers = answers;
	f->count++;
	return 0;
}

int fake_file_read(struct fake_file *out, const char *path, const char *text, size_t size,
		   struct cj_error *err)
{
	static const struct json_key keys[] = {
		{ "answers", OBJECTS, .is_required = true, .read = read_answer },
	};
	static const struct json_record record = JSON_RECORD(keys, "the file");
	const struct json_reader in = { .file = path, .arena = &out->arena };
	const struct json_node *root = NULL;

	if (size > FAKE_FILE_BYTES_MAX)
		return cj_reject_as(err, EFBIG, "%s: more than %u MiB", path,
				    FAKE_FILE_BYTES_MAX >> 20);
	if (json_parse_capped(path, text, size, &out->arena, &root, err) < 0 ||
	    json_record_read(&in, root, &record, out, err) < 0)
		return -err->code;
	return add_last_resort(out, err);
}

/* --- choosing --------------------------------------------------------------- */

static bool fits(const struct fake_answer *a, const struct request *r, const char *hash)
{
	if (a->profile && strcmp(a->profile, r->profile) != 0)
		return false;
	if (a->code_sha256 && (!r->has_code || strcmp(a->code_sha256, hash) != 0))
		return false;
	return !a->code_contains ||
	       (r->has_code &&
		memmem(r->code.bytes, r->code.size, a->code_contains, strlen(a->code_contains)));
}

const struct fake_answer *fake_file_find(const struct fake_file *f, const struct request *r)
{
	char hash[SHA256_HEX_MAX] = "";

	if (r->has_code)
		sha256_hex(r->code.bytes, r->code.size, hash);
	size_t i = 0;
	while (i + 1 < f->count && !fits(&f->answers[i], r, hash))
		i++;
	return &f->answers[i];
}
