/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/log.h"

#include <limits.h>
#include <stdarg.h>

#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#define LOG_TEXT_MAX 2048 /* before escaping */
#define LOG_CUT      " ..."

static const char *log_program = "cejail";
static enum log_level log_level = LOG_NORMAL;
static bool is_line_unfinished;
static bool is_report_hidden;

void log_set_program(const char *name)
{
	log_program = name;
}

void log_set_level(enum log_level level)
{
	log_level = level;
}

void log_on_fresh_line(void)
{
	is_line_unfinished = true;
}

/* A line is at most PIPE_BUF bytes, so that lines of two jails on one pipe do not mix: pipe(7). */
static void put_line(const char *prefix, const char *text)
{
	char line[PIPE_BUF];
	int saved = errno;
	size_t size = strlen(text);
	const char *before = is_line_unfinished ? "\n" : "";
	size_t used = (size_t)snprintf(line, sizeof(line), "%s%s: %s", before, log_program, prefix);
	size_t room = sizeof(line) - used - sizeof(LOG_CUT "\n") + 1;
	size_t taken = text_escape(text, size, false, line + used, room);

	used += strlen(line + used);
	used +=
	    (size_t)snprintf(line + used, sizeof(line) - used, "%s\n", taken < size ? LOG_CUT : "");
	is_line_unfinished = false;
	(void)sys_write(STDERR_FILENO, line, used); /* nowhere left to say that it failed */
	errno = saved;
}

__attribute__((format(printf, 2, 0))) static void put_formatted(const char *prefix, const char *fmt,
								va_list ap)
{
	char text[LOG_TEXT_MAX];

	if (vsnprintf(text, sizeof(text), fmt, ap) >= (int)sizeof(text))
		memcpy(text + sizeof(text) - sizeof(LOG_CUT), LOG_CUT, sizeof(LOG_CUT));
	put_line(prefix, text);
}

void log_error(const struct cj_error *err)
{
	char text[CJ_ERROR_TEXT_MAX];

	put_line("", cj_error_text(err, text));
}

/* The caller is variadic and returns. */
#define PUT_IF(is_shown, prefix, fmt)                                                              \
	do {                                                                                       \
		va_list ap;                                                                        \
		va_start(ap, fmt);                                                                 \
		if (is_shown)                                                                      \
			put_formatted(prefix, fmt, ap);                                            \
		va_end(ap);                                                                        \
	} while (0)

void log_warning(const char *fmt, ...)
{
	PUT_IF(log_level >= LOG_NORMAL, "warning: ", fmt);
}

void log_note(const char *fmt, ...)
{
	PUT_IF(log_level >= LOG_NORMAL, "", fmt);
}

void log_report(const char *fmt, ...)
{
	PUT_IF(!is_report_hidden, "", fmt);
}

void log_hide_report(void)
{
	is_report_hidden = true;
}

void log_debug(const char *fmt, ...)
{
	PUT_IF(log_level >= LOG_VERBOSE, "", fmt);
}
