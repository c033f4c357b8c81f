/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of sd_notify(3).  Pure. */
#include "runtime/container/notify/notify_text.h"

#include <stdio.h>
#include <string.h>

static const char ready[] = "READY=1";

bool notify_text_is_ready(const char *text, size_t size)
{
	bool is_ready = false;

	if (size == 0 || size > NOTIFY_TEXT_MAX || memchr(text, '\0', size))
		return false;
	for (const char *line = text, *end = text + size; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t length = (size_t)((stop ? stop : end) - line);
		is_ready = is_ready ||
			   (length == strlen(ready) && memcmp(line, ready, length) == 0);
		line += length + 1;
	}
	return is_ready;
}

size_t notify_text_format(pid_t main_pid, char out[static NOTIFY_SENT_MAX])
{
	int size = main_pid > 0
		       ? snprintf(out, NOTIFY_SENT_MAX, "%s\nMAINPID=%d", ready, (int)main_pid)
		       : snprintf(out, NOTIFY_SENT_MAX, "%s", ready);

	return (size_t)size;
}
