/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as text and as JSON lines. */
#include "runtime/container/call/oci_log.h"

#include <fcntl.h>
#include <time.h>

#include "runtime/base/json/json.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#define TIME_MAX 32
#define LOG_MODE 0644

static void write_line(int fd, bool is_json, const char *level, const struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	char message[CJ_ERROR_TEXT_MAX], when[TIME_MAX], line[8 * CJ_ERROR_TEXT_MAX];
	time_t now = time(NULL);
	struct tm utc = { 0 };
	struct cj_error ignored = { 0 };
	struct blob text = { 0 };

	(void)cj_error_text(err, message);
	if (is_json && w) {
		(void)gmtime_r(&now, &utc);
		(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
		json_open_object(w);
		json_member_text(w, "level", level);
		json_member_text(w, "msg", message);
		json_member_text(w, "time", when);
		json_close_object(w);
	}
	if (is_json && (!w || json_writer_take(w, &text, &ignored) < 0))
		return;
	/* one write(2) for a line: several processes append to one log */
	int used = is_json ? snprintf(line, sizeof(line), "%.*s\n", (int)text.size, text.bytes)
			   : snprintf(line, sizeof(line), "%s: %s\n", level, message);
	if (used > 0 && used < (int)sizeof(line))
		(void)sys_write(fd, line, (size_t)used); /* nowhere left to say that it failed */
}

static void write_standard_error(const struct oci_options *o, const char *level,
				 const struct cj_error *err)
{
	if (o->is_log_json && !o->log)
		write_line(STDERR_FILENO, true, level, err);
	else if (strcmp(level, "error") == 0)
		log_error(err);
	else if (strcmp(level, "warning") == 0)
		log_warning("%s", err->msg);
	else
		log_note("%s: %s", level, err->msg);
}

static void append_to_log(const struct oci_options *o, const char *level,
			  const struct cj_error *err)
{
	if (!o->log)
		return;
	auto_fd int fd =
	    open(o->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, LOG_MODE);
	if (fd < 0)
		log_warning("open the log '%s': %s", o->log, strerror(errno));
	else
		write_line(fd, o->is_log_json, level, err);
}

void oci_log_error(const struct oci_options *o, const struct cj_error *err)
{
	write_standard_error(o, "error", err);
	append_to_log(o, "error", err);
}

void oci_log_warning(const struct oci_options *o, const struct cj_error *err)
{
	/* Of these no process of ours stays, and the streams are the container's. */
	bool has_containers_streams = o->verb == OCI_CREATE || o->is_detached;

	if (!has_containers_streams || o->is_debug)
		write_standard_error(o, "warning", err);
	append_to_log(o, "warning", err);
}

void oci_log_info(const struct oci_options *o, const struct cj_error *err)
{
	append_to_log(o, "info", err);
}

void oci_log_debug(const struct oci_options *o, const char *fmt, ...)
{
	struct cj_error line = { 0 };

	if (!o->is_debug)
		return;
	(void)text_format(line.msg, fmt);
	if (o->log)
		append_to_log(o, "debug", &line);
	else
		write_standard_error(o, "debug", &line);
}

void oci_log_warnings(const struct oci_options *o, const struct strings *texts)
{
	for (size_t i = 0; i < texts->count; i++) {
		struct cj_error warning = { 0 };
		cj_refuse(&warning, "%s", texts->items[i]);
		oci_log_warning(o, &warning);
	}
}
