/* SPDX-License-Identifier: Apache-2.0 */
/* facts - what /proc shows of a traced process.  Acts. */
#pragma once

#include <ctype.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/* How many pid namespaces it is in: NSpid of /proc/PID/status. */
static inline unsigned pid_depth(pid_t pid)
{
	char path[40], line[256];
	unsigned depth = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, "NSpid:", 6) == 0)
			for (const char *c = line + 6; *c; c++)
				depth += isspace((unsigned char)c[0]) &&
					 isdigit((unsigned char)c[1]);
	if (file)
		(void)fclose(file);
	return depth;
}

/* Where the dynamic loader will jump to.  0: it has no such place. */
static inline uintptr_t entry_point(pid_t pid)
{
	char path[40];
	Elf64_auxv_t pair;
	uintptr_t entry = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	FILE *file = fopen(path, "re");
	while (file && entry == 0 && fread(&pair, sizeof(pair), 1, file) == 1)
		if (pair.a_type == AT_ENTRY)
			entry = pair.a_un.a_val;
	if (file)
		(void)fclose(file);
	return entry;
}

/* The minor page faults of a process so far: minflt of /proc/PID/stat. */
static inline unsigned long page_faults(pid_t pid)
{
	char path[40], line[512] = "";
	unsigned long faults = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *file = fopen(path, "re");
	const char *rest = file && fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	if (rest)
		(void)sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %lu", &faults);
	if (file)
		(void)fclose(file);
	return faults;
}
