/* SPDX-License-Identifier: Apache-2.0 */
/* How a helper ended.  Pure. */
#include "netns/uplink/uplink_exit.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/text.h"

void uplink_exit_add_output(struct uplink_exit *w, const char *bytes, size_t size)
{
	if (size > sizeof(w->tail)) {
		bytes += size - sizeof(w->tail);
		size = sizeof(w->tail);
	}
	size_t keep = w->size;
	if (keep > sizeof(w->tail) - size)
		keep = sizeof(w->tail) - size;
	memmove(w->tail, w->tail + (w->size - keep), keep);
	memcpy(w->tail + keep, bytes, size);
	w->size = keep + size;
}

/* No use in a message: pasta without a syslog writes the first, slirp4netns always the second. */
static bool is_noise(const char *line, size_t length)
{
	static const char *const noise[] = { "Failed to send ", "WARNING: Support for seccomp" };
	for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++) {
		size_t size = strlen(noise[i]);
		if (length >= size && memcmp(line, noise[i], size) == 0)
			return true;
	}
	return length == 0;
}

/* The last line that is no noise.  Returns its length; 0: there is none. */
static size_t last_line(const char *text, size_t size, const char **out)
{
	for (size_t end = size; end > 0;) {
		size_t start = end;
		while (start > 0 && text[start - 1] != '\n')
			start--;
		if (!is_noise(text + start, end - start)) {
			*out = text + start;
			return end - start;
		}
		end = start > 0 ? start - 1 : 0;
	}
	return 0;
}

void uplink_exit_format(const struct uplink_exit *w, char *out, size_t size)
{
	const char *line = NULL;
	char shown[256] = "";
	size_t kept = w->size < sizeof(w->tail) ? w->size : sizeof(w->tail);
	size_t length = last_line(w->tail, kept, &line);
	if (length > 0)
		(void)text_escape(line, length, false, shown, sizeof(shown));

	const char *how = w->code == CLD_EXITED ? "exit status" : "signal";
	(void)snprintf(out, size, "%s %d%s%s%s", how, w->status, length > 0 ? ": '" : "", shown,
		       length > 0 ? "'" : "");
}
