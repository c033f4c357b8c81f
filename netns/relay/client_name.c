/* SPDX-License-Identifier: Apache-2.0 */
#include "netns/relay/client_name.h"

#include <strings.h>

#define RECORD_HEAD      5
#define RECORD_HANDSHAKE 22
#define CLIENT_HELLO     1
#define SERVER_NAME      0  /* the extension, and the only type of a name in it */
#define RANDOM_BYTES     34 /* with the version before it */

#define LABEL_MAX  63
#define DIGITS_MAX 15 /* of a Content-Length: no sum of such numbers overflows */
#define HEX_MAX    8  /* of a chunk's size */

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

enum reading { READ_MORE, READ_WHOLE, READ_BAD };

/* Bytes that are there. */
struct client_span {
	const uint8_t *at;
	size_t size;
};

/* Cuts the first `size` bytes off.  False: there are fewer. */
static bool cut(struct client_span *from, size_t size, struct client_span *out)
{
	if (from->size < size)
		return false;
	*out = (struct client_span){ from->at, size };
	from->at += size;
	from->size -= size;
	return true;
}

/* A number of so many bytes. */
static bool cut_number(struct client_span *from, size_t bytes, size_t *out)
{
	struct client_span number;
	if (!cut(from, bytes, &number))
		return false;
	*out = 0;
	for (size_t i = 0; i < bytes; i++)
		*out = *out << 8 | number.at[i];
	return true;
}

/* A length of so many bytes, and as many bytes behind it. */
static bool cut_vector(struct client_span *from, size_t length_bytes, struct client_span *out)
{
	size_t size;
	return cut_number(from, length_bytes, &size) && cut(from, size, out);
}

/* A host name in lower case, without the dot of the root. */
static bool take_name(struct client_span text, char out[static CLIENT_NAME_MAX])
{
	size_t label = 0;
	if (text.size > 0 && text.at[text.size - 1] == '.')
		text.size--;
	if (text.size == 0 || text.size >= CLIENT_NAME_MAX)
		return false;
	for (size_t i = 0; i < text.size; i++) {
		const char c = (char)text.at[i];
		if (c == '\0' || !strchr(LOWER UPPER DIGITS "-_.", c))
			return false;
		label = c == '.' ? 0 : label + 1;
		if (label > LABEL_MAX || (label == 0 && (i == 0 || out[i - 1] == '.')))
			return false;
		out[i] = c;
		if (strchr(UPPER, c))
			out[i] = (char)(c + ('a' - 'A'));
	}
	out[text.size] = '\0';
	return label > 0;
}

/* --- TLS ----------------------------------------------------------------------------------- */

/* One name, of the type that there is. */
static bool read_server_name(struct client_span extension, char name[static CLIENT_NAME_MAX])
{
	struct client_span list, text;
	size_t type;
	return cut_vector(&extension, 2, &list) && extension.size == 0 &&
	       cut_number(&list, 1, &type) && type == SERVER_NAME && cut_vector(&list, 2, &text) &&
	       list.size == 0 && take_name(text, name);
}

/* The body of a ClientHello. */
static bool read_hello(struct client_span hello, char name[static CLIENT_NAME_MAX])
{
	struct client_span skipped, extensions, extension;
	size_t type;
	bool has_name = false;
	if (!cut(&hello, RANDOM_BYTES, &skipped) || !cut_vector(&hello, 1, &skipped) ||
	    !cut_vector(&hello, 2, &skipped) || !cut_vector(&hello, 1, &skipped) ||
	    !cut_vector(&hello, 2, &extensions) || hello.size > 0)
		return false;
	while (extensions.size > 0) {
		if (!cut_number(&extensions, 2, &type) || !cut_vector(&extensions, 2, &extension))
			return false;
		if (type != SERVER_NAME)
			continue;
		if (has_name || !read_server_name(extension, name))
			return false;
		has_name = true;
	}
	return has_name;
}

/*
 * A ClientHello may be spread over records, and they over segments.  Each record of it holds
 * nothing else.
 */
static enum reading read_tls(const uint8_t *bytes, size_t size, char name[static CLIENT_NAME_MAX])
{
	uint8_t joined[CLIENT_FIRST_MAX];
	struct client_span left = { bytes, size }, head, part;
	size_t count = 0, kind, length;
	while (cut(&left, RECORD_HEAD, &head)) {
		struct client_span fields = head;
		if (!cut_number(&fields, 1, &kind) || kind != RECORD_HANDSHAKE || head.at[1] != 3 ||
		    head.at[3] >= 0x40)
			return READ_BAD;
		length = (size_t)head.at[3] << 8 | head.at[4];
		const bool is_whole = cut(&left, length, &part);
		if (!is_whole)
			part = left;
		if (length == 0 || count + part.size > sizeof(joined))
			return READ_BAD;
		if (part.size > 0)
			memcpy(joined + count, part.at, part.size);
		count += part.size;
		if (count > 0 && joined[0] != CLIENT_HELLO)
			return READ_BAD;

		struct client_span message = { joined, count }, hello;
		size_t announced = 0;
		if (cut(&message, 1, &hello) && cut_number(&message, 3, &announced) &&
		    (announced > sizeof(joined) || message.size > announced))
			return READ_BAD;
		if (!is_whole)
			return READ_MORE;
		message = (struct client_span){ joined + 1, count - 1 };
		if (cut_vector(&message, 3, &hello))
			return size - left.size <= CLIENT_FIRST_MAX && read_hello(hello, name)
				   ? READ_WHOLE
				   : READ_BAD;
	}
	return left.size > 0 && left.at[0] != RECORD_HANDSHAKE ? READ_BAD : READ_MORE;
}

/* --- HTTP ---------------------------------------------------------------------------------- */

struct client_head {
	char name[CLIENT_NAME_MAX];
	struct client_span target; /* of the request */
	bool is_old;               /* HTTP/1.0, which has no chunks */
	bool has_host, has_length, is_chunked;
	uint64_t length;
};

static bool is_text(struct client_span s, const char *text)
{
	return s.size == strlen(text) && strncasecmp((const char *)s.at, text, s.size) == 0;
}

/* A method, or the name of a field: RFC 9110 5.6.2. */
static bool is_token(struct client_span s)
{
	for (size_t i = 0; i < s.size; i++)
		if (s.at[i] == '\0' || !strchr(LOWER UPPER DIGITS "!#$%&'*+-.^_`|~", s.at[i]))
			return false;
	return s.size > 0;
}

/* Without the blanks around it. */
static struct client_span trim(struct client_span s)
{
	while (s.size > 0 && (s.at[0] == ' ' || s.at[0] == '\t')) {
		s.at++;
		s.size--;
	}
	while (s.size > 0 && (s.at[s.size - 1] == ' ' || s.at[s.size - 1] == '\t'))
		s.size--;
	return s;
}

/* What is before the first `end`, which is cut off, too. */
static bool cut_until(struct client_span *from, char end, struct client_span *out)
{
	const uint8_t *found = from->size > 0 ? memchr(from->at, end, from->size) : NULL;
	struct client_span skipped;
	return found && cut(from, (size_t)(found - from->at), out) && cut(from, 1, &skipped);
}

/* A name, and perhaps a port. */
static bool read_authority(struct client_span authority, char name[static CLIENT_NAME_MAX])
{
	struct client_span host;
	if (!cut_until(&authority, ':', &host))
		return take_name(authority, name);
	for (size_t i = 0; i < authority.size; i++)
		if (authority.at[i] < '0' || authority.at[i] > '9')
			return false;
	return take_name(host, name);
}

/* "METHOD TARGET HTTP/1.x".  In CONNECT the target is another server. */
static bool read_request_line(struct client_span line, struct client_head *out)
{
	struct client_span method;
	if (!cut_until(&line, ' ', &method) || !cut_until(&line, ' ', &out->target) ||
	    !is_token(method) || is_text(method, "CONNECT") || out->target.size == 0)
		return false;
	if (line.size != 8 || memcmp(line.at, "HTTP/1.", 7) != 0)
		return false;
	out->is_old = line.at[7] == '0';
	return out->is_old || line.at[7] == '1';
}

static bool read_number(struct client_span digits, uint64_t *out)
{
	*out = 0;
	for (size_t i = 0; i < digits.size; i++) {
		if (digits.at[i] < '0' || digits.at[i] > '9')
			return false;
		*out = *out * 10 + (digits.at[i] - '0');
	}
	return digits.size > 0 && digits.size <= DIGITS_MAX;
}

static bool read_field(struct client_span line, struct client_head *out)
{
	struct client_span name;
	if (!cut_until(&line, ':', &name) || !is_token(name))
		return false;
	const struct client_span value = trim(line);
	if (is_text(name, "Host")) {
		const bool is_second = out->has_host;
		out->has_host = true;
		return !is_second && read_authority(value, out->name);
	}
	if (is_text(name, "Content-Length")) {
		const bool is_second = out->has_length;
		out->has_length = true;
		return !is_second && read_number(value, &out->length);
	}
	if (is_text(name, "Transfer-Encoding")) {
		const bool is_second = out->is_chunked;
		out->is_chunked = true;
		return !is_second && is_text(value, "chunked");
	}
	return true;
}

/* "/...", "*", or "http://AUTHORITY/...", whose authority must be the Host. */
static bool does_target_agree(const struct client_head *h)
{
	char name[CLIENT_NAME_MAX];
	struct client_span rest = h->target, scheme, authority;
	if (rest.at[0] == '/' || is_text(rest, "*"))
		return true;
	if (!cut_until(&rest, ':', &scheme) ||
	    (!is_text(scheme, "http") && !is_text(scheme, "https")))
		return false;
	if (rest.size < 2 || rest.at[0] != '/' || rest.at[1] != '/')
		return false;
	authority = (struct client_span){ rest.at + 2, 0 };
	while (authority.size < rest.size - 2 && !strchr("/?#", rest.at[2 + authority.size]))
		authority.size++;
	return read_authority(authority, name) && strcmp(name, h->name) == 0;
}

/* The end of a body is known in one way at most. */
static bool is_head(const struct client_head *h)
{
	return h->has_host && does_target_agree(h) &&
	       !(h->is_chunked && (h->has_length || h->is_old));
}

/*
 * The next line, without its CR LF.  It has no other control byte than a tab.  *out_size: of all
 * lines so far.
 */
static enum reading read_line(const uint8_t *bytes, size_t size, size_t *out_size,
			      struct client_span *out)
{
	size_t at = *out_size;
	while (at < size && (bytes[at] >= ' ' || bytes[at] == '\t') && bytes[at] != 0x7f)
		at++;
	if (at < size && bytes[at] != '\r')
		return READ_BAD;
	if (at + 1 < size && bytes[at + 1] != '\n')
		return READ_BAD;
	if (at + 1 >= size)
		return READ_MORE;
	*out = (struct client_span){ bytes + *out_size, at - *out_size };
	*out_size = at + 2;
	return READ_WHOLE;
}

/* *out_size: of the whole head. */
static enum reading read_head(const uint8_t *bytes, size_t size, struct client_head *out,
			      size_t *out_size)
{
	struct client_span line;
	*out = (struct client_head){ 0 };
	*out_size = 0;
	enum reading rc = read_line(bytes, size, out_size, &line);
	if (rc == READ_WHOLE && !read_request_line(line, out))
		return READ_BAD;
	while (rc == READ_WHOLE) {
		rc = read_line(bytes, size, out_size, &line);
		if (rc == READ_WHOLE && line.size == 0)
			return is_head(out) ? READ_WHOLE : READ_BAD;
		if (rc == READ_WHOLE && !read_field(line, out))
			return READ_BAD;
	}
	return rc;
}

/* "SIZE" in hexadecimal digits.  A chunk with extensions is refused. */
static bool read_chunk_size(struct client_span line, uint64_t *out)
{
	*out = 0;
	for (size_t i = 0; i < line.size; i++) {
		const char c = (char)line.at[i];
		const char *digits = DIGITS "abcdef"
					    "ABCDEF",
			   *digit = strchr(digits, c);
		if (c == '\0' || !digit)
			return false;
		const uint64_t value = (uint64_t)(digit - digits);
		*out = *out << 4 | (value < 16 ? value : value - 6);
	}
	return line.size > 0 && line.size <= HEX_MAX;
}

/* --- the stream ---------------------------------------------------------------------------- */

static bool is_allowed(struct client_stream *s, const char *name)
{
	memmove(s->name, name, strlen(name) + 1);
	s->is_denied = !s->may(s->context, s->name);
	return !s->is_denied;
}

static enum reading step_tls(struct client_stream *s, const uint8_t *bytes, size_t size,
			     size_t *out_size)
{
	char name[CLIENT_NAME_MAX];
	enum reading rc = read_tls(bytes, size, name);
	if (rc == READ_WHOLE && !is_allowed(s, name))
		return READ_BAD;
	if (rc == READ_WHOLE)
		s->stage = CLIENT_TLS;
	*out_size = size;
	return rc;
}

static enum reading step_head(struct client_stream *s, const uint8_t *bytes, size_t size,
			      size_t *out_size)
{
	struct client_head head;
	enum reading rc = read_head(bytes, size, &head, out_size);
	if (rc != READ_WHOLE)
		return rc;
	if (*out_size > CLIENT_FIRST_MAX)
		return READ_BAD;
	if (strcmp(head.name, s->name) != 0 && !is_allowed(s, head.name))
		return READ_BAD;
	s->left = head.length;
	s->stage = head.is_chunked ? CLIENT_CHUNK : CLIENT_BODY;
	return READ_WHOLE;
}

static enum reading step_line(struct client_stream *s, const uint8_t *bytes, size_t size,
			      size_t *out_size)
{
	struct client_span line;
	*out_size = 0;
	enum reading rc = read_line(bytes, size, out_size, &line);
	if (rc != READ_WHOLE)
		return rc == READ_MORE && size > HEX_MAX + 2 ? READ_BAD : rc;
	if (s->stage != CLIENT_CHUNK) { /* behind data, or in place of a trailer */
		s->stage = s->stage == CLIENT_DATA_END ? CLIENT_CHUNK : CLIENT_HEAD;
		return line.size == 0 ? READ_WHOLE : READ_BAD;
	}
	if (!read_chunk_size(line, &s->left))
		return READ_BAD;
	s->stage = s->left > 0 ? CLIENT_DATA : CLIENT_LAST;
	return READ_WHOLE;
}

/* Passes what is left of a body or chunk. */
static enum reading step_bytes(struct client_stream *s, size_t size, size_t *out_size)
{
	*out_size = s->left < size ? (size_t)s->left : size;
	s->left -= *out_size;
	if (s->left == 0)
		s->stage = s->stage == CLIENT_DATA ? CLIENT_DATA_END : CLIENT_HEAD;
	return READ_WHOLE;
}

static enum reading step(struct client_stream *s, const uint8_t *bytes, size_t size,
			 size_t *out_size)
{
	switch (s->stage) {
	case CLIENT_BEGIN:
		if (bytes[0] == RECORD_HANDSHAKE)
			return step_tls(s, bytes, size, out_size);
		return step_head(s, bytes, size, out_size);
	case CLIENT_HEAD:
		return step_head(s, bytes, size, out_size);
	case CLIENT_BODY:
	case CLIENT_DATA:
		return step_bytes(s, size, out_size);
	case CLIENT_CHUNK:
	case CLIENT_DATA_END:
	case CLIENT_LAST:
		return step_line(s, bytes, size, out_size);
	case CLIENT_TLS:
		break;
	}
	*out_size = size;
	return READ_WHOLE;
}

ssize_t client_stream_read(struct client_stream *s, const uint8_t *bytes, size_t size)
{
	size_t passed = 0, step_size = 0;
	while (passed < size) {
		switch (step(s, bytes + passed, size - passed, &step_size)) {
		case READ_WHOLE:
			passed += step_size;
			break;
		case READ_MORE:
			return size - passed < CLIENT_FIRST_MAX ? (ssize_t)passed : -1;
		case READ_BAD:
			return -1;
		}
	}
	return (ssize_t)passed;
}
