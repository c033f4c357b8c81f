/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run/mcp/mcp_message.h"

#include "runtime/base/text.h"

#define INTEGER_DIGITS_MAX 19 /* so that any client can hold it in 64 bits */
#define META_SERVER_INFO   "io.modelcontextprotocol/serverInfo"

const struct json_node *mcp_member(const struct json_node *object, const char *key)
{
	return object && object->type == JSON_OBJECT ? json_get(object, key) : NULL;
}

const char *mcp_text(const struct json_node *object, const char *key)
{
	const char *text = json_get_text(object, key);
	return text ? text : "";
}

/* "-12", without a fraction or an exponent. */
static bool is_integer(const char *text)
{
	size_t digits = strspn(text + (text[0] == '-'), "0123456789");

	return digits > 0 && digits <= INTEGER_DIGITS_MAX &&
	       text[digits + (text[0] == '-')] == '\0';
}

bool mcp_id_read(const struct json_node *node, struct mcp_id *out)
{
	enum mcp_id_kind kind = MCP_ID_NONE;

	if (!node)
		return false;
	if (node->type == JSON_NUMBER && is_integer(node->text))
		kind = MCP_ID_NUMBER;
	else if (node->type == JSON_STRING && strlen(node->text) <= MCP_ID_MAX)
		kind = MCP_ID_STRING;
	if (kind == MCP_ID_NONE)
		return false;
	*out = (struct mcp_id){ .kind = kind };
	memcpy(out->text, node->text, strlen(node->text));
	return true;
}

bool mcp_id_equals(const struct mcp_id *a, const struct mcp_id *b)
{
	return a->kind == b->kind && strcmp(a->text, b->text) == 0;
}

static void mcp_id_put(struct json_writer *w, const char *key, const struct mcp_id *id)
{
	const struct json_node number = { .type = JSON_NUMBER, .text = id->text };

	json_put_key(w, key);
	if (id->kind == MCP_ID_NUMBER)
		json_put_node(w, &number);
	else
		json_put_string(w, id->text);
}

#define ID_TEXT_MAX (6 * MCP_ID_MAX + 2) /* each byte may be written as \uXXXX */

/* Members of an object, found by their quotes, brackets, colons and commas alone. */
struct message_scan {
	const char *at, *limit;
	struct blob id; /* the value as it is written; size 0: none */
	bool is_doubtful;
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool equals(struct blob text, const char *name)
{
	return text.size == strlen(name) && memcmp(text.bytes, name, text.size) == 0;
}

static void skip_space(struct message_scan *s)
{
	while (s->at < s->limit && is_space(*s->at))
		s->at++;
}

static bool take_byte(struct message_scan *s, char wanted)
{
	skip_space(s);
	if (s->at == s->limit || *s->at != wanted)
		return false;
	s->at++;
	return true;
}

/* Behind the opening quote; *out is what is between the quotes. */
static bool take_string(struct message_scan *s, struct blob *out)
{
	out->bytes = s->at;
	while (s->at < s->limit && *s->at != '"')
		s->at += *s->at == '\\' && s->at + 1 < s->limit ? 2 : 1;
	if (s->at >= s->limit)
		return false;
	out->size = (size_t)(s->at++ - out->bytes);
	return true;
}

/* A value with all that is in it, up to the byte that follows.  False: it is not complete. */
static bool take_value(struct message_scan *s, struct blob *out)
{
	struct blob ignored;
	size_t depth = 0;

	skip_space(s);
	for (out->bytes = s->at; s->at < s->limit;) {
		char c = *s->at;
		if (depth == 0 && (c == ',' || c == '}' || c == ']' || is_space(c)))
			break;
		s->at++;
		if (c == '"' && !take_string(s, &ignored))
			return false;
		depth += c == '{' || c == '[';
		depth -= c == '}' || c == ']';
	}
	out->size = (size_t)(s->at - out->bytes);
	return s->at < s->limit;
}

/* The members from s->at on, with `before` in front of the first.  True: they and their object end
 * with the text. */
static bool scan_members(struct message_scan *s, char before)
{
	struct blob key, value;

	while (take_byte(s, before) && take_byte(s, '"') && take_string(s, &key)) {
		/* A key of the message, without its quotes. */
		if (memchr(key.bytes, '\\', key.size) || equals(key, "result") ||
		    equals(key, "error") || (equals(key, "id") && s->id.size > 0))
			s->is_doubtful = true;
		if (!take_byte(s, ':') || !take_value(s, &value))
			return false;
		if (equals(key, "id"))
			s->id = value;
		before = ',';
	}
	if (!take_byte(s, '}'))
		return false;
	skip_space(s);
	return s->at == s->limit;
}

/*
 * The last members: those behind the first comma after which all are complete up to the end.  That
 * comma is not in a string, because an odd number of quotes follows such a comma, and not in an
 * inner object, because more brackets follow the end of that.
 */
static void scan_tail(struct message_scan *s, struct blob tail)
{
	const char *limit = tail.bytes + tail.size, *comma = tail.bytes;

	for (; (comma = memchr(comma, ',', (size_t)(limit - comma))); comma++) {
		struct message_scan last = *s;
		last.at = comma;
		last.limit = limit;
		if (scan_members(&last, ',')) {
			*s = last;
			return;
		}
	}
}

void mcp_id_find(struct blob head, struct blob tail, struct mcp_id *out)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *node = NULL;
	struct cj_error ignored = { 0 };
	struct message_scan s = { .at = head.bytes, .limit = head.bytes + head.size };

	*out = (struct mcp_id){ .kind = MCP_ID_NONE };
	(void)scan_members(&s, '{');
	if (tail.size > 0)
		scan_tail(&s, tail);
	if (!s.is_doubtful && s.id.size > 0 && s.id.size <= ID_TEXT_MAX &&
	    json_parse("id", s.id.bytes, s.id.size, &a, &node, &ignored) == 0)
		(void)mcp_id_read(node, out);
}

int mcp_refuse(struct mcp_fault *fault, enum mcp_code code, const char *fmt, ...)
{
	fault->code = code;
	(void)text_format(fault->text, fmt);
	return -EINVAL;
}

int mcp_refuse_size(struct mcp_fault *fault)
{
	return mcp_refuse(fault, MCP_INVALID_REQUEST, "the message is larger than %u bytes",
			  MCP_LINE_MAX);
}

static int parse(const char *line, size_t size, struct arena *a, const struct json_node **root,
		 struct mcp_fault *fault)
{
	struct cj_error err = { 0 };

	if (size > MCP_LINE_MAX)
		return mcp_refuse_size(fault);
	int rc = json_parse_capped("message", line, size, a, root, &err);
	if (rc == -ENOMEM)
		return mcp_refuse(fault, MCP_INTERNAL_ERROR, "no memory for the message");
	if (rc < 0)
		return mcp_refuse(fault, MCP_PARSE_ERROR, "%s", err.msg);
	return 0;
}

int mcp_message_read(const char *line, size_t size, struct arena *a, struct mcp_message *out,
		     struct mcp_fault *fault)
{
	static const struct blob no_tail = { .size = 0 };
	const struct json_node *root = NULL;

	*out = (struct mcp_message){ .kind = MCP_NOTIFICATION };
	if (parse(line, size, a, &root, fault) < 0) {
		mcp_id_find((struct blob){ line, size }, no_tail, &out->id);
		return -EINVAL;
	}
	if (root->type == JSON_ARRAY)
		return mcp_refuse(fault, MCP_INVALID_REQUEST,
				  "batches are not supported: send one message at a time");
	if (root->type != JSON_OBJECT)
		return mcp_refuse(fault, MCP_INVALID_REQUEST, "a message is an object");
	const char *version = json_get_text(root, "jsonrpc");
	const struct json_node *id = mcp_member(root, "id");
	out->result = mcp_member(root, "result");
	out->error = mcp_member(root, "error");
	bool is_unknown = id && id->type == JSON_NULL && out->error; /* JSON-RPC 2.0, 5 */
	if (id && !is_unknown && !mcp_id_read(id, &out->id))
		return mcp_refuse(fault, MCP_INVALID_REQUEST,
				  "\"id\" must be an integer, or a string of at most %d bytes",
				  MCP_ID_MAX);
	if (!version || strcmp(version, "2.0") != 0)
		return mcp_refuse(fault, MCP_INVALID_REQUEST, "\"jsonrpc\" must be \"2.0\"");
	const struct json_node *method = mcp_member(root, "method");
	if (!method && (out->result || out->error)) {
		out->kind = MCP_RESPONSE;
		return 0;
	}
	if (!method || method->type != JSON_STRING)
		return mcp_refuse(fault, MCP_INVALID_REQUEST, "\"method\" must be a string");
	out->method = method->text;
	out->kind = out->id.kind == MCP_ID_NONE ? MCP_NOTIFICATION : MCP_REQUEST;
	const struct json_node *params = mcp_member(root, "params");
	const struct json_node *meta = mcp_member(params, "_meta");
	if (params && params->type != JSON_OBJECT)
		return mcp_refuse(fault, MCP_INVALID_PARAMS, "\"params\" must be an object");
	if (meta && meta->type != JSON_OBJECT)
		return mcp_refuse(fault, MCP_INVALID_PARAMS, "\"_meta\" must be an object");
	out->params = params;
	out->meta = meta;
	return 0;
}

static void begin(struct json_writer *w)
{
	json_open_object(w);
	json_member_text(w, "jsonrpc", "2.0");
}

void mcp_put_implementation(struct json_writer *w, const char *key)
{
	json_member_object(w, key);
	json_member_text(w, "name", "cejail");
	json_member_text(w, "version", CJ_VERSION);
	json_close_object(w);
}

static void begin_result(struct json_writer *w, const struct mcp_id *id)
{
	begin(w);
	mcp_id_put(w, "id", id);
	json_member_object(w, "result");
}

void mcp_begin_result(struct json_writer *w, const struct mcp_id *id, enum mcp_era era)
{
	if (era == MCP_ERA_MODERN)
		mcp_begin_typed_result(w, id, "complete");
	else
		begin_result(w, id);
}

void mcp_begin_typed_result(struct json_writer *w, const struct mcp_id *id, const char *type)
{
	begin_result(w, id);
	json_member_text(w, "resultType", type);
	json_member_object(w, "_meta");
	mcp_put_implementation(w, META_SERVER_INFO);
	json_close_object(w);
}

void mcp_begin_notification(struct json_writer *w, const char *method)
{
	begin(w);
	json_member_text(w, "method", method);
	json_member_object(w, "params");
}

void mcp_end(struct json_writer *w)
{
	json_close_object(w);
	json_close_object(w);
}

static void begin_error(struct json_writer *w, const struct mcp_id *id, enum mcp_code code,
			const char *text)
{
	begin(w);
	if (id->kind != MCP_ID_NONE)
		mcp_id_put(w, "id", id);
	json_member_object(w, "error");
	json_put_key(w, "code");
	json_put_i64(w, code);
	json_member_text(w, "message", text);
}

void mcp_put_fault(struct json_writer *w, const struct mcp_id *id, const struct mcp_fault *fault)
{
	begin_error(w, id, fault->code, fault->text);
	mcp_end(w);
}

void mcp_put_extensions(struct json_writer *w)
{
	json_member_object(w, "extensions");
	json_member_object(w, MCP_TASKS);
	json_close_object(w);
	json_close_object(w);
}

void mcp_put_capability_fault(struct json_writer *w, const struct mcp_id *id)
{
	begin_error(w, id, MCP_MISSING_CAPABILITY,
		    "the client has not declared the extension " MCP_TASKS);
	json_member_object(w, "data");
	json_member_object(w, "requiredCapabilities");
	mcp_put_extensions(w);
	json_close_object(w);
	json_close_object(w);
	mcp_end(w);
}

void mcp_put_version_fault(struct json_writer *w, const struct mcp_id *id,
			   const char *const *supported, const char *requested)
{
	begin_error(w, id, MCP_UNSUPPORTED_VERSION, "the protocol version is not supported");
	json_member_object(w, "data");
	json_member_array(w, "supported");
	for (; *supported; supported++)
		json_put_string(w, *supported);
	json_close_array(w);
	json_member_text(w, "requested", requested);
	json_close_object(w);
	mcp_end(w);
}

void mcp_progress_init(struct mcp_progress *p, const struct mcp_id *token, uint64_t total_ms,
		       uint64_t now_ms)
{
	*p = (struct mcp_progress){
		.token = *token, .begun_ms = now_ms, .total_ms = total_ms, .sent_ms = now_ms
	};
}

/* The last line with something in it; it ends the text.  NULL: there is none. */
static char *last_line(char *text)
{
	size_t size = strlen(text);

	while (size > 0 && strchr("\r\n\t ", text[size - 1]))
		size--;
	if (size == 0)
		return NULL;
	text[size] = '\0';
	char *newline = strrchr(text, '\n');
	return newline ? newline + 1 : text;
}

void mcp_progress_note(struct mcp_progress *p, const char *line, size_t size)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *event = NULL;
	struct cj_error ignored = { 0 };

	if (p->token.kind == MCP_ID_NONE ||
	    json_parse_capped("event", line, size, &a, &event, &ignored) < 0)
		return;
	const char *text = json_get_text(event, "text");
	char *copy = text ? arena_strdup(&a, text) : NULL;
	const char *message = copy ? last_line(copy) : NULL;
	if (message) /* cut: half a character becomes U+FFFD */
		(void)snprintf(p->message, sizeof(p->message), "%s", message);
}

/* The first lines of a program often come within the pause: nothing else would send them. */
static uint64_t next_at_ms(const struct mcp_progress *p)
{
	return p->sent_ms + (p->message[0] ? MCP_PROGRESS_PAUSE_MS : MCP_PROGRESS_BEAT_MS);
}

bool mcp_progress_beat(struct mcp_progress *p, uint64_t now_ms, struct json_writer *w)
{
	uint64_t passed_ms = now_ms - p->begun_ms;

	if (p->token.kind == MCP_ID_NONE || now_ms < next_at_ms(p))
		return false;
	p->last = passed_ms > p->last ? passed_ms : p->last + 1;
	p->sent_ms = now_ms;
	mcp_begin_notification(w, "notifications/progress");
	mcp_id_put(w, "progressToken", &p->token);
	json_member_u64(w, "progress", p->last);
	if (p->total_ms > p->last)
		json_member_u64(w, "total", p->total_ms);
	if (p->message[0])
		json_member_text(w, "message", p->message);
	mcp_end(w);
	p->message[0] = '\0';
	return true;
}

int mcp_progress_wait(const struct mcp_progress *p, uint64_t now_ms)
{
	const uint64_t at_ms = next_at_ms(p);

	return at_ms > now_ms ? (int)(at_ms - now_ms) : 0;
}
