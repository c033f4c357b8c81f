/* SPDX-License-Identifier: Apache-2.0 */
/* notify_text - the messages of sd_notify(3), from an untrusted program and to the service manager.
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define NOTIFY_TEXT_MAX 4096 /* of a message that is read; a longer one is ignored */
#define NOTIFY_SENT_MAX 64   /* of one that is sent, with its NUL */

/* True if one of the lines is "READY=1".  A message with a NUL byte says nothing. */
bool notify_text_is_ready(const char *text, size_t size);

/* "READY=1", and with a pid above 0 also "MAINPID=PID".  Returns the length. */
size_t notify_text_format(pid_t main_pid, char out[static NOTIFY_SENT_MAX]);
