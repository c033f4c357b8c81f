/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/process/process_start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "runtime/base/files/system_file.h"
#include "runtime/kernel/process/process_usage_text.h"

int process_start_ticks(pid_t pid, uint64_t *out)
{
	char path[32], text[SYSTEM_FILE_SMALL];
	struct sample_stat stat;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	ssize_t size = system_file_read(AT_FDCWD, path, text, sizeof(text));
	if (size < 0)
		return (int)size;
	if (!process_usage_text_stat(text, &stat))
		return -EPROTO;
	*out = stat.start_ticks;
	return 0;
}
