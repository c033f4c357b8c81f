/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error - one value that says what failed.
 *
 * A struct cj_error lives on the caller's stack, is one fixed block (it crosses
 * from init to the supervisor as one message) and speaks only of cejail's own
 * failures; how the payload ended is a struct outcome.
 *
 * A function that can fail for more than one reason takes `err` last, fills it
 * on every failure and returns a negative errno.  What fills it keeps errno.
 */
#pragma once

#define CJ_ERROR_MSG_MAX   512
#define CJ_ERROR_HINT_MAX  256
#define CJ_ERROR_STAGE_MAX 24

struct cj_error {
	int code;                       /* positive errno; 0: no error yet */
	char stage[CJ_ERROR_STAGE_MAX]; /* row of the stage table that failed, or "" */
	char msg[CJ_ERROR_MSG_MAX];     /* the whole message, outermost context first */
	char hint[CJ_ERROR_HINT_MAX];   /* what the user can do about it, or "" */
};

/* A call failed with errno `code`: "TEXT: STRERROR".  Returns -code. */
int cj_fail(struct cj_error *err, int code, const char *fmt, ...)
    __attribute__((warn_unused_result, format(printf, 3, 4)));

/* We refuse an input: "TEXT".  Returns -EINVAL. */
int cj_reject(struct cj_error *err, const char *fmt, ...)
    __attribute__((warn_unused_result, format(printf, 2, 3)));

/* The same with another code, where the text says more than strerror(3).  Returns -code. */
int cj_reject_as(struct cj_error *err, int code, const char *fmt, ...)
    __attribute__((warn_unused_result, format(printf, 3, 4)));

/*
 * cj_refuse - cj_reject() with a hint: the next statement is `return cj_hint(err, ...);`.
 * cj_refuse_as() is the same of cj_reject_as().
 */
void cj_refuse(struct cj_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cj_refuse_as(struct cj_error *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "TEXT: " before the message already in *err.  Returns -err->code. */
int cj_wrap(struct cj_error *err, const char *fmt, ...)
    __attribute__((warn_unused_result, format(printf, 2, 3)));

/*
 * Says what the user can do about the error in *err; the first hint given stays,
 * because the place nearest to the cause knows best.  Returns -err->code.
 */
int cj_hint(struct cj_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for one code: any other error in *err gets no hint by it. */
int cj_hint_for(struct cj_error *err, int code, const char *hint);

/* "MSG (HINT)", or "MSG" without a hint.  Returns `out`. */
#define CJ_ERROR_TEXT_MAX (CJ_ERROR_MSG_MAX + CJ_ERROR_HINT_MAX + 3)
const char *cj_error_text(const struct cj_error *err, char out[static CJ_ERROR_TEXT_MAX]);

/*
 * cj_adopt - the error of another process, which may be anything: its strings are ended, and it has
 * a code and a text of ours ("PEER failed") where it had none.  Returns -err->code.
 */
int cj_adopt(struct cj_error *err, const struct cj_error *theirs, const char *peer);

/* Names the stage (the first name given stays).  Returns -err->code. */
int cj_stage(struct cj_error *err, const char *stage);
