/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text - text to numbers and back.
 *
 * Every parser takes the whole text or rejects it, checks the range and writes
 * only on success.  The messages quote the user's text.
 */
#pragma once

#include <stdarg.h>

#include "runtime/base/error.h"

/* Decimal digits only: no sign, blank, prefix; min..max. */
int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out, struct cj_error *err);

/* "64M", "1G", "512k", "4096", "1.5G" is refused; binary units K M G T, any case, "B"/"iB" allowed.
 * At least 1. */
int parse_size(const char *text, uint64_t *out_bytes, struct cj_error *err);
/* The same within min..max. */
int parse_size_within(const char *text, uint64_t min, uint64_t max, uint64_t *out_bytes,
		      struct cj_error *err);

/* "500ms", "10s", "2m", "1h", "1.5s", "30" (seconds).  At least 1 ms, at most a year. */
int parse_duration(const char *text, uint64_t *out_ms, struct cj_error *err);

/* CPU bandwidth "0.5", "2": thousandths of a CPU, at least 0.01, at most 1024. */
int parse_cpus(const char *text, uint64_t *out_millicpus, struct cj_error *err);

/* "true", "false", "yes", "no", "1", "0". */
int parse_bool(const char *text, bool *out, struct cj_error *err);

/* The decimal number at the beginning: where it ends, or NULL if there is none of 64 bits. */
const char *text_take_u64(const char *at, uint64_t *out);

/* Negative: it is no hexadecimal digit. */
int text_hex_digit(char c);
/* Has it a control character other than a tab?  No header's value may: RFC 9110, 5.5. */
bool text_has_control(const char *text, size_t size);

/* What stands behind `prefix` in a text that begins with it; else NULL. */
const char *text_after(const char *text, const char *prefix);

/* What stands behind `ancestor` in a path at or below it, "" or from a '/' on; else NULL. */
const char *text_path_below(const char *path, const char *ancestor);

bool text_begins_with(const char *text, const char *prefix);
bool text_ends_with(const char *text, const char *end);

/* `names` ends in a NULL. */
bool text_is_one_of(const char *text, const char *const *names);

/* Is one of the lines of `text` this one, whole? */
bool text_has_line(const char *text, const char *line);

/* A profile's or jail's name: [a-z0-9][a-z0-9_-]{0,31}. */
bool is_name(const char *text);

/* Strict UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF). */
bool is_utf8(const void *bytes, size_t size);

/* Bytes at the end that may be the beginning of a character still to come: 0 to 3. */
size_t utf8_unfinished(const void *bytes, size_t size);

/* Bytes of the longest prefix that is whole, strict UTF-8. */
size_t utf8_prefix(const void *bytes, size_t size);

/*
 * text_escape - make untrusted bytes safe to show on a terminal or in a log line.
 *
 * Control characters (C0, DEL, C1), and bytes that are not UTF-8, become \xNN;
 * with keep_layout, tab and newline stay, and a carriage return before a newline;
 * without, what reorders a line (U+2028-202E, U+2066-2069) is escaped, too.
 * Writes at most out_size bytes with a NUL (never half an escape), returns the
 * number of *input* bytes consumed; more than none whenever out_size is above 12.
 */
size_t text_escape(const void *bytes, size_t size, bool keep_layout, char *out, size_t out_size);

/*
 * text_unescape_octal - undo how the kernel writes a path in /proc: a blank is \040, a backslash
 * \134 (proc_pid_mountinfo(5)).
 *
 * `out` may be `text`.  False when the path has a NUL, or does not fit into `room` bytes with one.
 */
bool text_unescape_octal(const char *text, size_t size, char *out, size_t room);

/* The place of a mount in a line of /proc/PID/mountinfo, unescaped in the line itself; NULL: it
 * can't be read.  proc_pid_mountinfo(5) */
char *text_mount_place(char *line);

/* In a function that takes `fmt` and what it needs: the text, cut to the array `out`.  Returns as
 * vsnprintf(3). */
#define text_format(out, fmt)                                                                      \
	({                                                                                         \
		va_list all_;                                                                      \
		va_start(all_, fmt);                                                               \
		int size_ = vsnprintf(out, sizeof(out), fmt, all_);                                \
		va_end(all_);                                                                      \
		size_;                                                                             \
	})

/* Adds to the text in `out`, which has `room` bytes; what does not fit is cut. */
void text_append(char *out, size_t room, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Formats for messages and --help: "64M", "1.5G" (largest binary unit that is exact or one
 * decimal). */
const char *text_format_size(uint64_t bytes, char *out, size_t out_size);
const char *text_format_duration(uint64_t ms, char *out, size_t out_size);

/* The RFC 4648 base64 of bytes; `out` needs 4 * ((size + 2) / 3) + 1.  Returns its length. */
size_t text_base64(const void *bytes, size_t size, char *out);

/*
 * text_put_url - a path as a part of a URL: unreserved characters (RFC 3986, 2.3) and '/'
 * unchanged, all other bytes as %XX.
 *
 * `to` has room for 3 * strlen(path) + 1.  Returns where the NUL is.
 */
char *text_put_url(char *to, const char *path);

/* Bytes that `size` characters of base64 stand for, at most. */
#define TEXT_BASE64_ROOM(size) ((size) / 4 * 3)

/*
 * The bytes of a base64 text into `out`, of TEXT_BASE64_ROOM(size).  Strict: RFC 4648, section 4,
 * padded, no blanks, no bits left over, so that one value has one text.  -EINVAL, else 0.
 */
int text_base64_decode(const char *text, size_t size, void *out, size_t *out_size);

/* Edit distance for "did you mean": the nearest of `names` (NULL-terminated) or NULL. */
const char *text_nearest(const char *name, const char *const *names);
