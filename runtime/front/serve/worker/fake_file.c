/* SPDX-License-Identifier: Apache-2.0 */
/* Answers from a file: objects are tables of keys.  Pure. */
#include "runtime/front/serve/worker/fake_file.h"

#include <string.h>

#include "rootfs/files/types.h"
#include "runtime/base/json/json.h"
#include "runtime/base/files/sha256.h"
#include "runtime/base/text.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

struct reader {
	struct arena *arena;
	const char *path; /* of the file */
};

/* A key of an object, and who reads its value into the record at `out`. */
struct key {
	const char *name;
	int (*read)(const struct reader *r, const struct json_node *node, void *out,
		    struct cj_error *err);
};

static int no_memory(struct cj_error *err)
{
	return cj_fail(err, ENOMEM, "read the answers");
}

static int read_object(const struct reader *r, const struct json_node *node, const struct key *keys,
		       size_t count, void *out, struct cj_error *err)
{
	if (node->type != JSON_OBJECT)
		return json_reject(r->path, node, err, "this must be an object, not %s",
				   json_type_name(node->type));
	for (const struct json_node *m = node->child; m; m = m->next) {
		const struct key *key = NULL;
		for (size_t i = 0; i < count; i++)
			if (strcmp(keys[i].name, m->key) == 0)
				key = &keys[i];
		if (!key)
			return json_reject_key(r->path, m, err, "unknown key '%s'", m->key);
		if (key->read(r, m, out, err) < 0)
			return -err->code;
	}
	return 0;
}

/* --- values ----------------------------------------------------------------- */

static int read_text(const struct reader *r, const struct json_node *node, const char **out,
		     struct cj_error *err)
{
	if (node->type != JSON_STRING || node->text[0] == '\0')
		return json_reject(r->path, node, err, "%s must be a string with something in it",
				   node->key);
	*out = node->text;
	return 0;
}

static int read_name(const struct reader *r, const struct json_node *node, const char *const *names,
		     size_t count, unsigned *out, struct cj_error *err)
{
	const char *text = "";
	if (read_text(r, node, &text, err) < 0)
		return -err->code;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(names[i], text) == 0) {
			*out = (unsigned)i;
			return 0;
		}
	}
	return json_reject(r->path, node, err, "there is no %s '%s'", node->key, text);
}

static int read_number(const struct reader *r, const struct json_node *node, uint64_t min,
		       uint64_t max, uint64_t *out, struct cj_error *err)
{
	struct cj_error why = { 0 };
	if (node->type != JSON_NUMBER)
		return json_reject(r->path, node, err, "%s must be a number, not %s", node->key,
				   json_type_name(node->type));
	if (parse_u64(node->text, min, max, out, &why) < 0)
		return json_reject(r->path, node, err, "%s: %s", node->key, why.msg);
	return 0;
}

/* "500ms", "2s"; a number is seconds. */
static int read_duration(const struct reader *r, const struct json_node *node, uint64_t *out,
			 struct cj_error *err)
{
	struct cj_error why = { 0 };
	if (node->type != JSON_STRING && node->type != JSON_NUMBER)
		return json_reject(r->path, node, err, "%s must be a duration, not %s", node->key,
				   json_type_name(node->type));
	if (parse_duration(node->text, out, &why) < 0)
		return json_reject(r->path, node, err, "%s: %s", node->key, why.msg);
	return 0;
}

/* "text" or {"base64": "..."}. */
static int read_blob(const struct reader *r, const struct json_node *node, struct blob *out,
		     struct cj_error *err)
{
	const struct json_node *inner = node->type == JSON_OBJECT ? node->child : NULL;

	if (node->type == JSON_STRING) {
		*out = (struct blob){ node->text, strlen(node->text) };
		return 0;
	}
	if (!inner || inner->next || strcmp(inner->key, "base64") != 0 ||
	    inner->type != JSON_STRING)
		return json_reject(r->path, node, err,
				   "%s must be a string, or {\"base64\": \"...\"}", node->key);
	size_t size = strlen(inner->text);
	char *bytes = arena_alloc(r->arena, size + 1);
	if (!bytes)
		return no_memory(err);
	if (text_base64_decode(inner->text, size, bytes, &out->size) < 0)
		return json_reject(r->path, inner, err, "%s: this is no base64", node->key);
	out->bytes = bytes;
	return 0;
}

/* Room for what a list holds; `each` fills it. */
static int read_list(const struct reader *r, const struct json_node *node, size_t item_size,
		     int (*each)(const struct reader *r, const struct json_node *node, void *item,
				 struct cj_error *err),
		     void **out, size_t *out_count, struct cj_error *err)
{
	if (node->type != JSON_ARRAY)
		return json_reject(r->path, node, err, "%s must be an array, not %s", node->key,
				   json_type_name(node->type));
	char *items = arena_array(r->arena, node->count + 1, item_size);
	size_t count = 0;
	if (!items)
		return no_memory(err);
	for (const struct json_node *m = node->child; m; m = m->next, count++) {
		if (each(r, m, items + count * item_size, err) < 0)
			return -err->code;
	}
	*out = items;
	*out_count = count;
	return 0;
}

/* --- events ----------------------------------------------------------------- */

struct one_event {
	struct fake_event event;
	unsigned kinds;
};

static int set_event(const struct reader *r, const struct json_node *node, void *out,
		     enum fake_event_kind kind, struct cj_error *err)
{
	struct one_event *e = out;
	e->event.kind = kind;
	e->kinds++;
	return read_blob(r, node, &e->event.bytes, err);
}

static int read_event_stdout(const struct reader *r, const struct json_node *node, void *out,
			     struct cj_error *err)
{
	return set_event(r, node, out, FAKE_STDOUT, err);
}

static int read_event_stderr(const struct reader *r, const struct json_node *node, void *out,
			     struct cj_error *err)
{
	return set_event(r, node, out, FAKE_STDERR, err);
}

static int read_event_denied(const struct reader *r, const struct json_node *node, void *out,
			     struct cj_error *err)
{
	const char *name;
	return read_text(r, node, &name, err) < 0 ? -err->code
						  : set_event(r, node, out, FAKE_DENIED, err);
}

static int read_event_after(const struct reader *r, const struct json_node *node, void *out,
			    struct cj_error *err)
{
	return read_duration(r, node, &((struct one_event *)out)->event.after_ms, err);
}

static int read_event(const struct reader *r, const struct json_node *node, void *item,
		      struct cj_error *err)
{
	static const struct key keys[] = {
		{ "stdout", read_event_stdout },
		{ "stderr", read_event_stderr },
		{ "denied", read_event_denied },
		{ "after", read_event_after },
	};
	struct one_event one = { .kinds = 0 };

	if (read_object(r, node, keys, COUNT(keys), &one, err) < 0)
		return -err->code;
	if (one.kinds != 1)
		return json_reject(r->path, node, err,
				   "an event is one of \"stdout\", \"stderr\" and \"denied\"");
	*(struct fake_event *)item = one.event;
	return 0;
}

static int read_events(const struct reader *r, const struct json_node *node, void *out,
		       struct cj_error *err)
{
	struct fake_answer *a = out;
	void *items = NULL;
	int rc = read_list(r, node, sizeof(*a->events), read_event, &items, &a->nevents, err);
	a->events = items;
	return rc;
}

/* --- artefacts -------------------------------------------------------------- */

static int read_artifact_path(const struct reader *r, const struct json_node *node, void *out,
			      struct cj_error *err)
{
	return read_text(r, node, &((struct artifact *)out)->path, err);
}

static int read_artifact_content(const struct reader *r, const struct json_node *node, void *out,
				 struct cj_error *err)
{
	struct artifact *a = out;
	struct blob bytes = { .size = 0 };

	if (read_blob(r, node, &bytes, err) < 0)
		return -err->code;
	sha256_hex(bytes.bytes, bytes.size, a->sha256);
	a->content = bytes.bytes;
	a->bytes = bytes.size;
	return 0;
}

static int read_artifact(const struct reader *r, const struct json_node *node, void *item,
			 struct cj_error *err)
{
	static const struct key keys[] = {
		{ "path", read_artifact_path },
		{ "content", read_artifact_content },
	};
	struct artifact *a = item;

	if (read_object(r, node, keys, COUNT(keys), a, err) < 0)
		return -err->code;
	if (!a->path || !a->content)
		return json_reject(r->path, node, err,
				   "an artefact is {\"path\": \"...\", \"content\": \"...\"}");
	const char *slash = strrchr(a->path, '/');
	a->type = type_of_name(slash ? slash + 1 : a->path);
	return 0;
}

static int read_artifacts(const struct reader *r, const struct json_node *node, void *out,
			  struct cj_error *err)
{
	struct fake_answer *a = out;
	void *items = NULL;
	int rc =
	    read_list(r, node, sizeof(*a->artifacts), read_artifact, &items, &a->nartifacts, err);
	a->artifacts = items;
	return rc;
}

/* --- how it ends ------------------------------------------------------------ */

static int read_status(const struct reader *r, const struct json_node *node, void *out,
		       struct cj_error *err)
{
	unsigned status = 0;
	int rc = read_name(r, node, status_names, STATUS_COUNT, &status, err);
	((struct fake_answer *)out)->status = (enum status)status;
	return rc;
}

static int read_exit_code(const struct reader *r, const struct json_node *node, void *out,
			  struct cj_error *err)
{
	uint64_t value = 0;
	int rc = read_number(r, node, 0, 255, &value, err);
	((struct fake_answer *)out)->exit_code = (int)value;
	return rc;
}

static int read_signal(const struct reader *r, const struct json_node *node, void *out,
		       struct cj_error *err)
{
	struct fake_answer *a = out;
	uint64_t value = 0;
	int rc = read_number(r, node, 1, 64, &value, err);
	a->signal = (int)value;
	return rc;
}

static int read_failure(const struct reader *r, const struct json_node *node, void *out,
			struct cj_error *err)
{
	struct fake_answer *a = out;
	const char *message = NULL;
	if (read_text(r, node, &message, err) < 0)
		return -err->code;
	(void)!cj_reject(&a->error, "%s", message);
	return 0;
}

static int read_warning(const struct reader *r, const struct json_node *node, void *item,
			struct cj_error *err)
{
	return read_text(r, node, item, err);
}

static int read_warnings(const struct reader *r, const struct json_node *node, void *out,
			 struct cj_error *err)
{
	struct strings *list = &((struct fake_answer *)out)->warnings;
	void *items = NULL;
	int rc = read_list(r, node, sizeof(*list->items), read_warning, &items, &list->count, err);
	list->items = items;
	return rc;
}

static int read_delay(const struct reader *r, const struct json_node *node, void *out,
		      struct cj_error *err)
{
	return read_duration(r, node, &((struct fake_answer *)out)->delay_ms, err);
}

/* --- refusals --------------------------------------------------------------- */

static int read_code(const struct reader *r, const struct json_node *node, void *out,
		     struct cj_error *err)
{
	const char *names[API_CODE_COUNT];
	unsigned code = 0;
	for (size_t i = 0; i < API_CODE_COUNT; i++)
		names[i] = api_rows[i].code;
	int rc = read_name(r, node, names, API_CODE_COUNT, &code, err);
	((struct fake_answer *)out)->code = (enum api_code)code;
	((struct fake_answer *)out)->is_refusal = true;
	return rc;
}

static int read_message(const struct reader *r, const struct json_node *node, void *out,
			struct cj_error *err)
{
	return read_text(r, node, &((struct fake_answer *)out)->message, err);
}

static int read_hint(const struct reader *r, const struct json_node *node, void *out,
		     struct cj_error *err)
{
	return read_text(r, node, &((struct fake_answer *)out)->hint, err);
}

static int read_retry(const struct reader *r, const struct json_node *node, void *out,
		      struct cj_error *err)
{
	return read_duration(r, node, &((struct fake_answer *)out)->retry_after_ms, err);
}

static int read_error(const struct reader *r, const struct json_node *node, void *out,
		      struct cj_error *err)
{
	static const struct key keys[] = {
		{ "code", read_code },
		{ "message", read_message },
		{ "hint", read_hint },
		{ "retry_after", read_retry },
	};
	if (read_object(r, node, keys, COUNT(keys), out, err) < 0)
		return -err->code;
	if (!((struct fake_answer *)out)->is_refusal)
		return json_reject(r->path, node, err, "an error has a code");
	return 0;
}

static int read_result(const struct reader *r, const struct json_node *node, void *out,
		       struct cj_error *err)
{
	static const struct key keys[] = {
		{ "status", read_status },       { "exit_code", read_exit_code },
		{ "signal", read_signal },       { "message", read_failure },
		{ "artifacts", read_artifacts }, { "warnings", read_warnings },
	};
	return read_object(r, node, keys, COUNT(keys), out, err);
}

/* --- answers ---------------------------------------------------------------- */

static int read_profile(const struct reader *r, const struct json_node *node, void *out,
			struct cj_error *err)
{
	return read_text(r, node, &((struct fake_answer *)out)->profile, err);
}

static int read_hash(const struct reader *r, const struct json_node *node, void *out,
		     struct cj_error *err)
{
	struct fake_answer *a = out;
	if (read_text(r, node, &a->code_sha256, err) < 0)
		return -err->code;
	if (strlen(a->code_sha256) != SHA256_HEX_MAX - 1 ||
	    strspn(a->code_sha256, "0123456789abcdef") != SHA256_HEX_MAX - 1)
		return json_reject(r->path, node, err,
				   "code_sha256 must be 64 digits, 0-9 and a-f");
	return 0;
}

static int read_part(const struct reader *r, const struct json_node *node, void *out,
		     struct cj_error *err)
{
	return read_text(r, node, &((struct fake_answer *)out)->code_contains, err);
}

static int read_conditions(const struct reader *r, const struct json_node *node, void *out,
			   struct cj_error *err)
{
	static const struct key keys[] = {
		{ "profile", read_profile },
		{ "code_sha256", read_hash },
		{ "code_contains", read_part },
	};
	return read_object(r, node, keys, COUNT(keys), out, err);
}

/* What only makes sense together. */
static int check_answer(const struct reader *r, const struct json_node *node,
			const struct fake_answer *a, struct cj_error *err)
{
	bool has_failed = a->status == STATUS_SETUP_ERROR;

	if (a->is_refusal && (json_get(node, "result") || json_get(node, "events")))
		return json_reject(r->path, node, err,
				   "an answer with an error has neither result nor events");
	if (has_failed != (a->error.code != 0))
		return json_reject(r->path, node, err,
				   "\"message\" and the status 'setup_error' belong together");
	if ((a->status == STATUS_SIGNALED) != (a->signal != 0))
		return json_reject(r->path, node, err,
				   "\"signal\" and the status 'signaled' belong together");
	if (has_failed && a->nevents > 0)
		return json_reject(r->path, node, err,
				   "nothing happens in a run that could not be started");
	return 0;
}

static int read_answer(const struct reader *r, const struct json_node *node, void *item,
		       struct cj_error *err)
{
	static const struct key keys[] = {
		{ "when", read_conditions }, { "events", read_events }, { "delay", read_delay },
		{ "result", read_result },   { "error", read_error },
	};
	struct fake_answer *a = item;
	int rc = read_object(r, node, keys, COUNT(keys), a, err);
	return rc < 0 ? rc : check_answer(r, node, a, err);
}

static int read_answers(const struct reader *r, const struct json_node *node, void *out,
			struct cj_error *err)
{
	struct fake_file *f = out;
	void *items = NULL; /* with one zeroed more than there are: the last resort */
	int rc = read_list(r, node, sizeof(*f->answers), read_answer, &items, &f->count, err);
	f->answers = items;
	return rc;
}

int fake_file_read(struct fake_file *out, const char *path, const char *text, size_t size,
		   struct cj_error *err)
{
	static const struct key keys[] = { { "answers", read_answers } };
	const struct reader r = { .arena = &out->arena, .path = path };
	const struct json_node *root = NULL;

	if (size > FAKE_FILE_BYTES_MAX)
		return cj_reject_as(err, EFBIG, "%s: more than %u MiB", path,
				    FAKE_FILE_BYTES_MAX >> 20);
	if (json_parse_capped(path, text, size, &out->arena, &root, err) < 0 ||
	    read_object(&r, root, keys, COUNT(keys), out, err) < 0)
		return -err->code;
	if (!out->answers)
		return json_reject(path, root, err, "there are no \"answers\"");
	out->count++;
	return 0;
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
