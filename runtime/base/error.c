/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/error.h"

#include "runtime/base/text.h"

/* Sets the error to a text without strerror(3).  The caller returns. */
#define SET_TEXT(err, errno_code, fmt)                                                             \
	do {                                                                                       \
		*(err) = (struct cj_error){ .code = (errno_code) };                                \
		(void)text_format((err)->msg, fmt);                                                \
	} while (0)

int cj_fail(struct cj_error *err, int code, const char *fmt, ...)
{
	SET_TEXT(err, code, fmt);
	size_t used = strlen(err->msg);
	(void)snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", strerror(code));
	if (code == EMFILE) /* one cause, whatever the call was */
		(void)cj_hint(err, "raise the limit of open files: ulimit -n");
	return -code;
}

int cj_reject(struct cj_error *err, const char *fmt, ...)
{
	SET_TEXT(err, EINVAL, fmt);
	return -EINVAL;
}

int cj_reject_as(struct cj_error *err, int code, const char *fmt, ...)
{
	SET_TEXT(err, code, fmt);
	return -code;
}

void cj_refuse(struct cj_error *err, const char *fmt, ...)
{
	SET_TEXT(err, EINVAL, fmt);
}

void cj_refuse_as(struct cj_error *err, int code, const char *fmt, ...)
{
	SET_TEXT(err, code, fmt);
}

int cj_wrap(struct cj_error *err, const char *fmt, ...)
{
	char inner[sizeof(err->msg)];
	memcpy(inner, err->msg, sizeof(inner));
	(void)text_format(err->msg, fmt);
	size_t used = strlen(err->msg);
	(void)snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", inner);
	return -err->code;
}

int cj_hint(struct cj_error *err, const char *fmt, ...)
{
	if (err->hint[0] == '\0')
		(void)text_format(err->hint, fmt);
	return -err->code;
}

int cj_hint_for(struct cj_error *err, int code, const char *hint)
{
	return err->code == code ? cj_hint(err, "%s", hint) : -err->code;
}

const char *cj_error_text(const struct cj_error *err, char out[static CJ_ERROR_TEXT_MAX])
{
	const bool has_hint = err->hint[0] != '\0';

	(void)snprintf(out, CJ_ERROR_TEXT_MAX, "%s%s%s%s", err->msg, has_hint ? " (" : "",
		       err->hint, has_hint ? ")" : "");
	return out;
}

int cj_stage(struct cj_error *err, const char *stage)
{
	if (err->stage[0] == '\0')
		(void)snprintf(err->stage, sizeof(err->stage), "%s", stage);
	return -err->code;
}

int cj_adopt(struct cj_error *err, const struct cj_error *theirs, const char *peer)
{
	*err = *theirs;
	err->stage[sizeof(err->stage) - 1] = '\0';
	err->msg[sizeof(err->msg) - 1] = '\0';
	err->hint[sizeof(err->hint) - 1] = '\0';
	if (err->code <= 0)
		err->code = EPROTO;
	if (err->msg[0] == '\0')
		(void)snprintf(err->msg, sizeof(err->msg), "%s failed", peer);
	return -err->code;
}
