/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lifecycle - one container's life as an engine drives it, for tools/bench.  Acts.
 *
 *	lifecycle BUNDLE PIDFILE ID RUNTIME [OPTION...]
 *		RUNTIME OPTION... create --bundle BUNDLE --pid-file PIDFILE ID, then start ID, the
 *		wait for the process of the pid file, and delete ID
 *
 * It is the subreaper, as conmon and containerd's shim are.  Exit status: 0, or 1 when a command or
 * the container has failed.  Stands alone, so that tools/bench compiles it in one command.
 */
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 32

static bool ends_well(pid_t pid)
{
	int status = 1;

	return waitpid(pid, &status, 0) == pid && status == 0;
}

/* RUNTIME OPTION... WORD...; both lists end with NULL. */
static bool command(char **runtime, char *const words[])
{
	char *argv[WORDS_MAX + 1];
	size_t n = 0;
	pid_t pid;

	for (size_t i = 0; runtime[i] && n < WORDS_MAX; i++)
		argv[n++] = runtime[i];
	for (size_t i = 0; words[i] && n < WORDS_MAX; i++)
		argv[n++] = words[i];
	argv[n] = NULL;
	return posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) == 0 && ends_well(pid);
}

static pid_t read_pid(const char *path)
{
	char text[16] = "";
	FILE *file = fopen(path, "re");

	if (!file)
		return -1;
	size_t size = fread(text, 1, sizeof(text) - 1, file);
	(void)fclose(file); /* it was read only */
	return size > 0 ? (pid_t)strtol(text, NULL, 10) : -1;
}

int main(int argc, char **argv)
{
	if (argc < 5 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) {
		(void)fprintf(stderr, "usage: lifecycle BUNDLE PIDFILE ID RUNTIME [OPTION...]\n");
		return EXIT_FAILURE;
	}
	char *id = argv[3], **runtime = argv + 4;
	char *create[] = { "create", "--bundle", argv[1], "--pid-file", argv[2], id, NULL };
	char *start[] = { "start", id, NULL }, *delete[] = { "delete", id, NULL };

	if (!command(runtime, create) || !command(runtime, start) ||
	    !ends_well(read_pid(argv[2])) || !command(runtime, delete))
		return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
