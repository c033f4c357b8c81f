/* SPDX-License-Identifier: Apache-2.0 */
/* Acts: prints through log.h; examines standard input without reading it. */
#include "runtime/run/options/call_notes.h"

#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/run/options/operands.h"

bool call_notes_has_input(int fd)
{
	struct stat st;
	int pending = 0;

	if (fstat(fd, &st) < 0)
		return false;
	if (S_ISFIFO(st.st_mode))
		return ioctl(fd, FIONREAD, &pending) == 0 && pending > 0;
	if (!S_ISREG(st.st_mode))
		return false;
	off_t at = lseek(fd, 0, SEEK_CUR);
	return at >= 0 && at < st.st_size;
}

void call_notes_print(const char *const *args, bool reads_input)
{
	const char *stray = args ? operands_stray(args) : NULL;

	if (stray)
		log_note("'%.*s' follows FILE, so the program received it: write the options of "
			 "cejail before FILE",
			 (int)strcspn(stray, "="), stray);
	if (!reads_input && call_notes_has_input(STDIN_FILENO))
		log_note("standard input has data that was not read: add -i to pass it to the "
			 "program, or write '-' for FILE if it is the code");
}
