/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_calls - calls of a tool over a socket, timed by the program that makes them.  Acts.
 *
 *	tool_calls ping COUNT      calls between two processes that share a socket pair
 *	tool_calls call COUNT      calls in a jail, on the descriptor $CEJAIL_CALLS_FD
 *	tool_calls answer WORD...  runs a command, answers its calls; "{fd}" is the socket
 *
 * The first two print the nanoseconds of each call.  A call is the same line in both, and so is an
 * answer.
 *
 * Stands alone, so that tools/bench compiles it in one command.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COUNT_MAX 100000
#define LINE_ROOM 4096
#define ID_BEGIN  "{\"id\":"

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* One line: the peer waits for the answer before it writes another.  False: the end. */
static int read_line(int fd, char line[LINE_ROOM])
{
	size_t size = 0;
	while (size < LINE_ROOM - 1) {
		ssize_t got = read(fd, line + size, LINE_ROOM - 1 - size);
		if (got <= 0)
			return 0;
		size += (size_t)got;
		if (line[size - 1] == '\n')
			break;
	}
	line[size] = '\0';
	return 1;
}

static int write_line(int fd, const char *line)
{
	const ssize_t size = (ssize_t)strlen(line);
	return write(fd, line, (size_t)size) == size;
}

static int answer_calls(int fd)
{
	char line[LINE_ROOM], answer[64];
	while (read_line(fd, line)) {
		if (strncmp(line, ID_BEGIN, strlen(ID_BEGIN)) != 0 || !strstr(line, "\"name\""))
			continue;
		const unsigned long long id = strtoull(line + strlen(ID_BEGIN), NULL, 10);
		(void)snprintf(answer, sizeof(answer), ID_BEGIN "%llu,\"result\":3}\n", id);
		if (!write_line(fd, answer))
			return 1;
	}
	return 0;
}

static int make_calls(int fd, size_t count)
{
	static uint64_t took_ns[COUNT_MAX];
	char line[LINE_ROOM];
	for (size_t i = 0; i < count; i++) {
		const uint64_t began_ns = now_ns();
		if (!write_line(fd,
				ID_BEGIN "1,\"name\":\"add\",\"arguments\":{\"a\":1,\"b\":2}}\n") ||
		    !read_line(fd, line) || !strstr(line, "\"result\"")) {
			(void)fprintf(stderr, "a call has no result\n");
			return 1;
		}
		took_ns[i] = now_ns() - began_ns;
	}
	for (size_t i = 0; i < count; i++)
		(void)printf("%" PRIu64 "\n", took_ns[i]);
	return 0;
}

static int ping(size_t count)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return fail("socketpair");
	const pid_t pid = fork();
	if (pid < 0)
		return fail("fork");
	if (pid == 0) {
		(void)close(ends[0]);
		_exit(answer_calls(ends[1]));
	}
	(void)close(ends[1]);
	const int status = make_calls(ends[0], count);
	(void)close(ends[0]);
	(void)waitpid(pid, NULL, 0);
	return status;
}

static int answer_command(char **words)
{
	char number[16];
	int ends[2], status = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return fail("socketpair");
	(void)snprintf(number, sizeof(number), "%d", ends[1]);
	const pid_t pid = fork();
	if (pid < 0)
		return fail("fork");
	if (pid == 0) {
		for (char **word = words; *word; word++)
			if (strcmp(*word, "{fd}") == 0)
				*word = number;
		(void)fcntl(ends[1], F_SETFD, 0);
		(void)signal(SIGPIPE, SIG_DFL);
		(void)execv(words[0], words);
		_exit(fail(words[0]));
	}
	(void)close(ends[1]);
	(void)answer_calls(ends[0]);
	(void)close(ends[0]);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 2 ? argv[1] : "", *fd = getenv("CEJAIL_CALLS_FD");
	const size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	(void)signal(SIGPIPE, SIG_IGN);
	if (strcmp(verb, "answer") == 0)
		return answer_command(argv + 2);
	if (count > 0 && count <= COUNT_MAX && strcmp(verb, "ping") == 0)
		return ping(count);
	if (count > 0 && count <= COUNT_MAX && strcmp(verb, "call") == 0 && fd)
		return make_calls((int)strtol(fd, NULL, 10), count);
	(void)fprintf(stderr, "usage: tool_calls ping COUNT | call COUNT | answer WORD...\n");
	return 2;
}
