/* SPDX-License-Identifier: Apache-2.0 */
/* Acts: reads standard input, sends requests. */
#include "runtime/front/client/remote_input.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/front/client/remote_link.h"

#define PIECE      (32u << 10)
#define ANSWER_MAX 4096
#define RETRY_MS   50
#define TOO_MANY   429 /* the service's buffer for this exec is full */

enum { ON_STDIN, ON_ANSWER };

/* --- a request ---------------------------------------------------------------------- */

static void forget_request(struct remote_input *in)
{
	cj_close(&in->answer_fd);
	free(in->body);
	in->body = NULL;
	in->size = 0;
	in->retry_at_ms = 0;
}

static void stop(struct remote_input *in)
{
	forget_request(in);
	in->fd = -1;
}

static int send_piece(struct remote_input *in, struct cj_error *err)
{
	const struct remote_message message = {
		.method = "POST",
		.path = in->url,
		.accept = "application/json",
		.body = in->body,
		.size = in->size,
	};

	http_answer_init(&in->answer);
	in->retry_at_ms = 0;
	in->answer_fd = remote_link_ask(in->socket, &message, err);
	return in->answer_fd < 0 ? in->answer_fd : 0;
}

/* A size of 0 is the end of the input. */
static int write_body(struct remote_input *in, const char *bytes, size_t size, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const char *text = NULL;

	if (!w)
		return cj_fail(err, ENOMEM, "send standard input");
	in->is_last = size == 0;
	json_open_object(w);
	json_put_bytes(w, bytes, size);
	if (in->is_last)
		json_member_bool(w, "eof", true);
	json_close_object(w);
	if (json_writer_take(w, &text, &in->size, err) < 0)
		return -err->code;
	in->body = strndup(text, in->size);
	return in->body ? 0 : cj_fail(err, ENOMEM, "send standard input");
}

/* --- events ------------------------------------------------------------------------- */

static int read_piece(struct remote_input *in, struct cj_error *err)
{
	char bytes[PIECE];
	ssize_t got = sys_read(in->fd, bytes, sizeof(bytes));

	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got < 0)
		return cj_fail(err, errno, "read standard input");
	if (write_body(in, bytes, (size_t)got, err) < 0)
		return -err->code;
	return send_piece(in, err);
}

/* The exec has ended, or has closed its input: then the rest of ours is not wanted. */
static void end_request(struct remote_input *in)
{
	bool is_accepted = in->answer.status >= 200 && in->answer.status <= 299;

	if (in->answer.status == TOO_MANY) {
		cj_close(&in->answer_fd);
		in->retry_at_ms = clock_ms() + RETRY_MS;
	} else if (is_accepted && !in->is_last) {
		forget_request(in);
	} else {
		stop(in);
	}
}

static int read_answer(struct remote_input *in, struct cj_error *err)
{
	char buf[ANSWER_MAX];
	ssize_t got = sys_read(in->answer_fd, buf, sizeof(buf));

	if (got < 0 && errno != ECONNRESET)
		return cj_fail(err, errno, "send standard input: read the service's answer");
	if (got <= 0 && http_answer_end(&in->answer, err) < 0)
		return -err->code;
	if (got > 0 && http_answer_feed(&in->answer, buf, (size_t)got, http_ignore, NULL, err) < 0)
		return -err->code;
	if (got <= 0 || in->answer.part == HTTP_DONE)
		end_request(in);
	return 0;
}

/* --- the interface ------------------------------------------------------------------ */

void remote_input_watch(const struct remote_input *in, struct pollfd fds[static REMOTE_INPUT_FDS])
{
	fds[ON_STDIN] = (struct pollfd){ .fd = in->body ? -1 : in->fd, .events = POLLIN };
	fds[ON_ANSWER] = (struct pollfd){ .fd = in->answer_fd, .events = POLLIN };
}

uint64_t remote_input_due_ms(const struct remote_input *in)
{
	return in->retry_at_ms;
}

int remote_input_serve(struct remote_input *in, const struct pollfd fds[static REMOTE_INPUT_FDS],
		       struct cj_error *err)
{
	if (in->retry_at_ms > 0 && clock_ms() >= in->retry_at_ms)
		return send_piece(in, err);
	if (fds[ON_ANSWER].revents)
		return read_answer(in, err);
	return fds[ON_STDIN].revents ? read_piece(in, err) : 0;
}

void remote_input_fini(struct remote_input *in)
{
	stop(in);
}
