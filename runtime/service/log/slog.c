/* SPDX-License-Identifier: Apache-2.0 */
/* The service's log lines. */
#include "runtime/service/log/slog.h"

#include <inttypes.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "runtime/base/json/json.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#define SLOG_TEXT_MAX 1536 /* before escaping */
#define SLOG_LINE_MAX 4096

/* Both are set once, in main(). */
static bool is_journal;
static enum slog_level least_serious = SLOG_INFO;

/* systemd.exec(5): $JOURNAL_STREAM is "DEVICE:INODE" of the stream, to be compared with ours. */
void slog_init(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uintmax_t device = 0, inode = 0;
	struct stat st;

	is_journal = stream && sscanf(stream, "%ju:%ju", &device, &inode) == 2 &&
		     fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

static void put_member(struct json_writer *w, const char *key, const char *text)
{
	if (text[0] != '\0')
		json_member_text(w, key, text);
}

static void put_json(enum slog_level level, const char *request_id, const struct cj_error *err,
		     const char *text)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error ignored = { 0 };
	struct blob json = { 0 };
	char line[2 * SLOG_LINE_MAX];

	json_open_object(w);
	put_member(w, "message", text);
	put_member(w, "request_id", request_id);
	if (err) {
		put_member(w, "stage", err->stage);
		put_member(w, "hint", err->hint);
		json_put_key(w, "errno");
		json_put_i64(w, err->code);
	}
	json_close_object(w);
	if (json_writer_take(w, &json, &ignored) < 0 || json.size + 8 > sizeof(line))
		return; /* without memory there is no line */
	int used = snprintf(line, sizeof(line), "<%u>%s\n", (unsigned)level, json.bytes);
	(void)sys_write(STDERR_FILENO, line,
			(size_t)used); /* a failure can't be reported anywhere */
}

static void put_plain(enum slog_level level, const char *request_id, const struct cj_error *err,
		      const char *text)
{
	char whole[SLOG_LINE_MAX], line[SLOG_LINE_MAX];
	bool has_hint = err && err->hint[0] != '\0';

	(void)snprintf(whole, sizeof(whole), "%s%s%s%s%s%s%s%s",
		       level == SLOG_WARNING ? "warning: " : "", text, has_hint ? " (" : "",
		       has_hint ? err->hint : "", has_hint ? ")" : "",
		       request_id[0] ? " [request " : "", request_id, request_id[0] ? "]" : "");
	size_t used = (size_t)snprintf(line, sizeof(line), "cejail: ");
	(void)text_escape(whole, strlen(whole), false, line + used, sizeof(line) - used - 1);
	used += strlen(line + used);
	line[used++] = '\n';
	(void)sys_write(STDERR_FILENO, line, used); /* a failure can't be reported anywhere */
}

void slog_limit(enum slog_level least)
{
	least_serious = least;
}

static void put(enum slog_level level, const char *request_id, const struct cj_error *err,
		const char *text)
{
	int saved = errno;

	if (level > least_serious)
		return;
	if (is_journal)
		put_json(level, request_id, err, text);
	else
		put_plain(level, request_id, err, text);
	errno = saved;
}

void slog(enum slog_level level, const char *request_id, const char *fmt, ...)
{
	char text[SLOG_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	put(level, request_id, NULL, text);
}

void slog_failure(enum slog_level level, const char *request_id, const struct cj_error *err,
		  const char *what)
{
	char text[SLOG_TEXT_MAX];

	(void)snprintf(text, sizeof(text), "%s: %s", what, err->msg);
	put(level, request_id, err, text);
}
