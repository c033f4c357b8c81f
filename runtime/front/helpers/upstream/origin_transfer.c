/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/helpers/upstream/origin_client.h"

#include <stdarg.h>
#include <strings.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define CONNECT_S        30L
#define IDLE_S           30L         /* of a connection to the upstream */
#define ANSWER_LINES_MAX (64u << 10) /* bytes of an answer's head */

__attribute__((format(printf, 2, 3))) static int put(struct client *c, const char *fmt, ...)
{
	char *line = NULL;
	va_list ap;
	va_start(ap, fmt);
	int size = vasprintf(&line, fmt, ap);
	va_end(ap);
	int rc = size < 0 ? -ENOMEM : byte_queue_add(&c->out, line, (size_t)size);
	if (size >= 0)
		free(line);
	return rc;
}

/* Without memory the connection ends without an answer. */
void client_reply(struct client *c, unsigned status, const struct cj_error *err)
{
	char text[CJ_ERROR_TEXT_MAX];
	(void)cj_error_text(err, text);
	const int size =
	    (int)(strlen("cejail: upstream '': .\n") + strlen(c->origin->name) + strlen(text));
	c->keeps_open = false;
	if (put(c,
		"HTTP/1.1 %u %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
		"Content-Length: %d\r\nConnection: close\r\n\r\n",
		status, status >= 500 ? "Upstream Failed" : "Request Refused", size) == 0 &&
	    !c->is_head)
		(void)put(c, "cejail: upstream '%s': %s.\n", c->origin->name, text);
}

/* --- the body of the request --------------------------------------------------------------- */

bool client_body_ended(const struct client *c)
{
	return c->is_chunked ? c->chunks.state == CHUNK_END : c->body_left == 0;
}

static size_t break_off(struct client *c, unsigned status, const char *why, size_t rc)
{
	c->broken = status;
	c->why = why;
	c->is_refused = status < 500;
	return rc;
}

/* The next part of the body; a size of 0: there is none now. */
static int next_part(struct client *c, size_t max, struct blob *out)
{
	struct cj_error ignored = { 0 };
	struct blob in = { c->in.bytes + c->in.start, byte_queue_size(&c->in) };
	*out = (struct blob){ in.bytes, 0 };
	if (in.size == 0 || client_body_ended(c))
		return 0;
	in.size = in.size < max ? in.size : max;
	const size_t given = in.size;
	if (!c->is_chunked) {
		out->size = c->body_left < given ? (size_t)c->body_left : given;
		c->body_left -= out->size;
		in.size -= out->size;
	} else if (http_chunks_next(&c->chunks, &in, out, &ignored) < 0 || c->chunks.rest > 0) {
		return -EINVAL; /* an extension or a trailer would be lost, and its meaning, too */
	}
	byte_queue_take(&c->in, given - in.size);
	return 0;
}

static size_t give_body(char *to, size_t size, size_t count, void *context)
{
	struct client *c = context;
	struct origin *o = c->origin;
	struct blob part;
	if (next_part(c, size * count, &part) < 0)
		return break_off(c, 400,
				 "the body of the request is not plain chunks of HTTP/1.1, without "
				 "extensions and trailers",
				 CURL_READFUNC_ABORT);
	c->send_paused = part.size == 0 && !client_body_ended(c);
	if (c->send_paused)
		return CURL_READFUNC_PAUSE;
	if (part.size == 0)
		return 0;
	if (part.size > o->bytes_max - o->bytes)
		return break_off(c, 429, "the run has moved all of its bytes", CURL_READFUNC_ABORT);
	memcpy(to, part.bytes, part.size);
	o->bytes += part.size;
	atomic_fetch_add(&o->counters->sent_bytes, part.size);
	c->moved_ms = clock_ms();
	c->has_given = true;
	return part.size;
}

/* libcurl sends again on a new connection what the upstream closed an old one on. */
static int rewind_body(void *context, curl_off_t offset, int origin)
{
	const struct client *c = context;
	return offset == 0 && origin == SEEK_SET && !c->has_given ? CURL_SEEKFUNC_OK
								  : CURL_SEEKFUNC_CANTSEEK;
}

/* --- the answer ---------------------------------------------------------------------------- */

/* The next name or value. */
static const char *next_text(const char *text)
{
	return text + strlen(text) + 1;
}

/* The header is for the upstream's connection. */
static bool is_hop(const struct client *c, const char *name)
{
	const char *end = c->lines.bytes + c->lines.end;
	for (const char *n = c->lines.bytes; n < end; n = next_text(next_text(n)))
		if (strcasecmp(n, "Connection") == 0 && origin_is_hop(name, next_text(n)))
			return true;
	return origin_is_hop(name, NULL) || strcasecmp(name, "Content-Length") == 0;
}

static int put_lines(struct client *c)
{
	const char *end = c->lines.bytes + c->lines.end;
	for (const char *n = c->lines.bytes, *value; n < end; n = next_text(value)) {
		value = next_text(n);
		/* A compressed body could hide a secret. */
		if (strcasecmp(n, "Content-Encoding") == 0 && c->mask.count > 0 &&
		    strcasecmp(value, "identity") != 0 && value[0] != '\0' && !c->is_head)
			return -EOPNOTSUPP;
		if (!is_hop(c, n) && put(c, "%s: %s\r\n", n, value) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int begin_answer(struct client *c)
{
	const bool has_body = !c->is_head && c->status != 204 && c->status != 304;
	curl_off_t announced = -1;
	(void)curl_easy_getinfo(c->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced);
	c->announced = has_body ? announced : 0;
	c->sends_chunks = has_body && announced < 0 && c->is_1_1;
	c->keeps_open = c->asks_more && client_body_ended(c);

	const size_t before = byte_queue_size(&c->out);
	int rc = put(c, "HTTP/1.1 %u \r\n", c->status);
	if (rc == 0)
		rc = put_lines(c);
	if (rc == 0 && announced >= 0 && (has_body || c->is_head))
		rc = put(c, "Content-Length: %lld\r\n", (long long)announced);
	if (rc == 0 && c->sends_chunks)
		rc = put(c, "Transfer-Encoding: chunked\r\n");
	if (rc == 0)
		rc = put(c, "%s\r\n", c->keeps_open ? "" : "Connection: close\r\n");
	c->is_answered = rc == 0;
	if (rc < 0) /* its beginning was only queued */
		c->out.end = c->out.start + before;
	return rc;
}

/* Keeps "NAME: VALUE", masked, as two texts. */
static int keep_line(struct client *c, const char *bytes, size_t length)
{
	if (text_has_control(bytes, length))
		return -EINVAL;
	if (byte_queue_size(&c->lines) + length > ANSWER_LINES_MAX)
		return -EFBIG;
	if (byte_queue_add(&c->lines, bytes, length) < 0 || byte_queue_add(&c->lines, "", 1) < 0)
		return -ENOMEM;
	char *line = c->lines.bytes + c->lines.end - length - 1;
	origin_mask_text(&c->mask, line, length);
	char *colon = strchr(line, ':');
	if (!colon || strcspn(line, ": \t") != (size_t)(colon - line) || colon == line)
		return -EINVAL;
	const size_t blanks = strspn(colon + 1, " \t");
	*colon = '\0';
	memmove(colon + 1, colon + 1 + blanks, strlen(colon + 1 + blanks) + 1);
	c->lines.end -= blanks;
	return 0;
}

/* The status line, one header, or the empty line behind them. */
static size_t take_line(char *bytes, size_t size, size_t count, void *context)
{
	struct client *c = context;
	size_t length = size * count;
	long status = 0;
	int rc = 0;
	while (length > 0 && (bytes[length - 1] == '\n' || bytes[length - 1] == '\r'))
		length--;
	c->moved_ms = clock_ms();
	if (c->is_answered) /* a trailer */
		return size * count;
	if (!c->has_status_line) {
		c->has_status_line = true;
	} else if (length > 0) {
		rc = keep_line(c, bytes, length);
	} else if (!curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status) && status >= 200) {
		c->status = (unsigned)status;
		rc = begin_answer(c);
	} else { /* an interim answer */
		c->has_status_line = false;
		byte_queue_take(&c->lines, byte_queue_size(&c->lines));
	}
	if (rc == 0)
		return size * count;
	return break_off(
	    c, 502,
	    rc == -EOPNOTSUPP
		? "its answer is compressed although the request did not permit that, so "
		  "the value of its header can't be masked"
		: "the head of its answer is too large or can't be read",
	    0);
}

/* Queues a part of the masked body. */
static int put_body(struct client *c, const char *bytes, size_t size, bool is_last)
{
	if (!c->sends_chunks)
		return origin_mask_stream(&c->mask, bytes, size, is_last, &c->out);
	struct byte_queue part = { 0 };
	int rc = origin_mask_stream(&c->mask, bytes, size, is_last, &part);
	const size_t masked = byte_queue_size(&part);
	if (rc == 0 && masked > 0 &&
	    (put(c, "%zx\r\n", masked) < 0 ||
	     byte_queue_add(&c->out, part.bytes + part.start, masked) < 0 || put(c, "\r\n") < 0))
		rc = -ENOMEM;
	byte_queue_fini(&part);
	if (rc == 0 && is_last)
		rc = put(c, "0\r\n\r\n");
	return rc;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
	struct client *c = context;
	struct origin *o = c->origin;
	const size_t all = size * count;
	c->recv_paused = byte_queue_size(&c->out) >= CLIENT_QUEUE_MAX;
	if (c->recv_paused)
		return CURL_WRITEFUNC_PAUSE;
	if (all > o->bytes_max - o->bytes)
		return break_off(c, 429, "the run has moved all of its bytes", 0);
	o->bytes += all;
	c->received += all;
	atomic_fetch_add(&o->counters->received_bytes, all);
	c->moved_ms = clock_ms();
	return c->is_answered && put_body(c, bytes, all, false) == 0 ? all : 0;
}

unsigned client_settle(struct client *c, struct cj_error *err)
{
	if (c->result == CURLE_OK && c->is_answered &&
	    (c->announced < 0 || (uint64_t)c->announced == c->received) &&
	    (c->is_head || c->announced == 0 || put_body(c, NULL, 0, true) == 0))
		return 0;
	const bool is_late = c->result == CURLE_OPERATION_TIMEDOUT;
	if (c->broken > 0) {
		cj_refuse(err, "%s", c->why);
		return c->broken;
	}
	cj_refuse(err, "the upstream gives no answer: %s", curl_easy_strerror(c->result));
	if (c->result == CURLE_PEER_FAILED_VERIFICATION || c->result == CURLE_SSL_CACERT_BADFILE)
		cj_hint(err, "its certificate is checked outside the jail; SSL_CERT_FILE of cejail "
			     "may name a file of authorities");
	else
		cj_hint(err, "the caller of cejail can try its URL outside the jail");
	return is_late ? 504 : 502;
}

/* --- libcurl's transfer -------------------------------------------------------------------- */

void client_resume(struct client *c)
{
	const bool recv = c->recv_paused && byte_queue_size(&c->out) < CLIENT_QUEUE_MAX;
	const bool sends = c->send_paused && byte_queue_size(&c->in) > 0;
	if (!recv && !sends)
		return;
	c->recv_paused = c->recv_paused && !recv;
	c->send_paused = c->send_paused && !sends;
	/* an error is the transfer's, whose end is notified */
	(void)curl_easy_pause(c->easy, (c->recv_paused ? CURLPAUSE_RECV : 0) |
					   (c->send_paused ? CURLPAUSE_SEND : 0));
}

__attribute__((format(printf, 2, 3))) static int add_header(struct client *c, const char *fmt, ...)
{
	char *line = NULL;
	va_list ap;
	va_start(ap, fmt);
	int size = vasprintf(&line, fmt, ap);
	va_end(ap);
	if (size < 0)
		return -ENOMEM;
	struct curl_slist *list = curl_slist_append(c->headers, line);
	explicit_bzero(line, (size_t)size);
	free(line);
	if (!list)
		return -ENOMEM;
	c->headers = list;
	return 0;
}

/* Also those by which libcurl adds none of its own; "NAME;" has an empty value. */
static int add_headers(struct client *c, const struct http_head *head, struct cj_error *err)
{
	struct origin *o = c->origin;
	int rc = add_header(c, "Accept-Encoding: identity");
	if (rc == 0)
		rc = add_header(c, "Expect:");
	if (rc == 0 && !http_head_get(head, "Accept"))
		rc = add_header(c, "Accept:");
	for (size_t i = 0; rc == 0 && i < head->count; i++) {
		const struct http_field *f = &head->fields[i];
		if (origin_sends(o, head, f->name))
			rc = add_header(c, f->value[0] ? "%s: %s" : "%s;%s", f->name, f->value);
	}
	for (size_t i = 0; rc == 0 && i < o->nheaders; i++) {
		if (origin_load(&o->headers[i], err) < 0)
			return cj_hint(err, "the caller of cejail repairs the file");
		rc = add_header(c, "%s: %s%s", o->headers[i].name, o->headers[i].prefix,
				o->headers[i].value);
	}
	return rc < 0 || origin_mask_begin(&c->mask, o) < 0
		   ? cj_fail(err, ENOMEM, "prepare a request")
		   : 0;
}

/* No proxy, netrc, cookie, redirect or other protocol, whatever libcurl would take by itself. */
static bool set_options(struct client *c, const struct origin_set *set,
			const struct origin_request *r)
{
	const struct origin *o = c->origin;
	const bool has_body = r->head.is_chunked || r->head.length > 0 ||
			      strcmp(r->head.method, "POST") == 0 ||
			      strcmp(r->head.method, "PUT") == 0;
	const curl_off_t size = r->head.is_chunked ? -1 : (curl_off_t)r->head.length;
	CURL *e = c->easy;
#define SET(option, value) (curl_easy_setopt(e, CURLOPT_##option, value) == CURLE_OK)
	return SET(URL, o->url) && SET(REQUEST_TARGET, r->target) && SET(PROXY, "") &&
	       SET(NETRC, (long)CURL_NETRC_IGNORED) && SET(FOLLOWLOCATION, 0L) &&
#if LIBCURL_VERSION_NUM >= 0x075500
	       SET(PROTOCOLS_STR, "http,https") &&
#endif
	       SET(SSL_VERIFYPEER, 1L) && SET(SSL_VERIFYHOST, 2L) && SET(NOSIGNAL, 1L) &&
	       SET(CONNECTTIMEOUT, CONNECT_S) && SET(MAXAGE_CONN, IDLE_S) &&
	       SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS) &&
	       (!set->ca_file || SET(CAINFO, set->ca_file)) &&
	       (!set->ca_dir || SET(CAPATH, set->ca_dir)) && (!has_body || SET(UPLOAD, 1L)) &&
	       (!has_body || SET(INFILESIZE_LARGE, size)) && (!c->is_head || SET(NOBODY, 1L)) &&
	       SET(CUSTOMREQUEST, r->head.method) && SET(HTTPHEADER, c->headers) &&
	       (!c->addresses || SET(RESOLVE, c->addresses)) && SET(READFUNCTION, give_body) &&
	       SET(READDATA, c) && SET(SEEKFUNCTION, rewind_body) && SET(SEEKDATA, c) &&
	       SET(WRITEFUNCTION, take_body) && SET(WRITEDATA, c) &&
	       SET(HEADERFUNCTION, take_line) && SET(HEADERDATA, c) && SET(PRIVATE, c);
#undef SET
}

int client_begin_transfer(struct client *c, const struct origin_set *set, CURLM *multi,
			  const struct origin_request *r, struct cj_error *err)
{
	const struct origin *o = c->origin;
	c->broken = 0;
	c->is_refused = c->has_given = c->has_status_line = false;
	c->received = 0;
	c->status = 0;
	if (add_headers(c, &r->head, err) < 0)
		return -err->code;
	if (o->host[0]) {
		/* The addresses, as libcurl is to have them; without one it has none, because it
		 * can't look up names. */
		char line[sizeof(o->host) + sizeof(o->addresses) + 16];
		(void)snprintf(line, sizeof(line), o->addresses[0] ? "%s:%u:%s" : "-%s:%u%s",
			       o->host, o->port, o->addresses);
		c->addresses = curl_slist_append(NULL, line);
		if (!c->addresses)
			return cj_fail(err, ENOMEM, "prepare a request");
	}
	c->easy = curl_easy_init();
	if (!c->easy || !set_options(c, set, r) || curl_multi_add_handle(multi, c->easy))
		return cj_fail(err, ENOMEM, "prepare a request");
	return 0;
}

void client_end_transfer(struct client *c, CURLM *multi)
{
	if (c->easy) {
		(void)curl_multi_remove_handle(multi, c->easy); /* it may not be in there */
		curl_easy_cleanup(c->easy);
		c->easy = NULL;
	}
	for (struct curl_slist *line = c->headers; line; line = line->next)
		explicit_bzero(line->data, strlen(line->data));
	curl_slist_free_all(c->headers);
	curl_slist_free_all(c->addresses);
	c->headers = c->addresses = NULL;
	origin_mask_fini(&c->mask);
	byte_queue_fini(&c->lines);
}
