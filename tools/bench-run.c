/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-run - start commands again and again, in turns, and say what each costs.  Acts.
 *
 *	bench-run turns ROUNDS @ NAME CMD [ARG...] [@ NAME CMD [ARG...]]...
 *	bench-run pairs ROUNDS @ ...
 *	bench-run crowd COUNT @ ...
 *
 * Each round runs every command, and starts with another one than the round before, so
 * that noise, caches and a busy neighbour hit all alike.  "turns" runs one at a time and
 * prints "NAME WALL_US CPU_US" (medians); "pairs" keeps two running, in slices of 20, and
 * prints "NAME RUNS_PER_SECOND"; "crowd" starts COUNT of each at once, and prints "NAME WALL_US"
 * when the last has ended.  CPU is what wait4(2) says of a command, of all it waited for
 * and of all it left to us (bwrap doesn't wait for its pid 1).  A command that fails ends
 * the benchmark: its time would mean nothing.
 *
 * Stands alone, so that tools/bench can compile it in one line.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMMANDS_MAX 16
#define ROUNDS_MAX   100000
#define WARM_UP      3 /* rounds that nobody counts: page cache, ids, directories */
#define SLICE        20
#define WORKERS      2

struct command {
	const char *name;
	char **argv;
	uint64_t *wall_us, *cpu_us; /* one per round */
	uint64_t slices_us, runs;
};

struct bench {
	struct command commands[COMMANDS_MAX];
	size_t count, rounds;
	posix_spawn_file_actions_t actions;
};

static uint64_t now_us(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t microseconds(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static int fail(const char *name, const char *what, int number)
{
	(void)fprintf(stderr, "bench-run: %s: %s %d\n", name, what, number);
	return -1;
}

static int start(struct bench *b, const struct command *c)
{
	pid_t pid;
	int code = posix_spawnp(&pid, c->argv[0], &b->actions, NULL, c->argv, environ);
	return code == 0 ? 0 : fail(c->name, "can't be started: errno", code);
}

/* Waits for any one child. */
static int finish(const struct command *c, struct rusage *out_usage)
{
	int status;
	if (wait4(-1, &status, 0, out_usage) < 0)
		return fail(c->name, "can't be waited for: errno", errno);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return fail(c->name, "ended with wait status", status);
	return 0;
}

/* What the command left behind, ours to reap as a subreaper; not part of its wall time. */
static uint64_t reap_rest(void)
{
	struct rusage usage;
	uint64_t cpu_us = 0;
	while (wait4(-1, NULL, 0, &usage) > 0)
		cpu_us += microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
	return cpu_us;
}

static int run_once(struct bench *b, struct command *c, size_t at)
{
	struct rusage usage;
	uint64_t began = now_us();
	if (start(b, c) < 0 || finish(c, &usage) < 0)
		return -1;
	c->wall_us[at] = now_us() - began;
	c->cpu_us[at] = microseconds(usage.ru_utime) + microseconds(usage.ru_stime) + reap_rest();
	return 0;
}

/* SLICE runs, never more than WORKERS of them at a time. */
static int run_slice(struct bench *b, struct command *c, size_t unused)
{
	(void)unused;
	struct rusage usage;
	uint64_t began = now_us();
	for (size_t started = 0, ended = 0; ended < SLICE; ended++) {
		for (; started < SLICE && started - ended < WORKERS; started++)
			if (start(b, c) < 0)
				return -1;
		if (finish(c, &usage) < 0)
			return -1;
	}
	c->slices_us += now_us() - began;
	c->runs += SLICE;
	return 0;
}

static int run_rounds(struct bench *b, size_t rounds,
		      int (*one)(struct bench *, struct command *, size_t))
{
	for (size_t round = 0; round < rounds; round++)
		for (size_t i = 0; i < b->count; i++)
			if (one(b, &b->commands[(round + i) % b->count], round) < 0)
				return -1;
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

static int take_turns(struct bench *b)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return fail("turns", "can't become a subreaper: errno", errno);
	if (run_rounds(b, WARM_UP, run_once) < 0 || run_rounds(b, b->rounds, run_once) < 0)
		return -1;
	for (size_t i = 0; i < b->count; i++) {
		struct command *c = &b->commands[i];
		(void)printf("%s %llu %llu\n", c->name,
			     (unsigned long long)median(c->wall_us, b->rounds),
			     (unsigned long long)median(c->cpu_us, b->rounds));
	}
	return 0;
}

static int take_pairs(struct bench *b)
{
	if (run_rounds(b, 1, run_slice) < 0)
		return -1;
	for (size_t i = 0; i < b->count; i++)
		b->commands[i].slices_us = b->commands[i].runs = 0;
	if (run_rounds(b, b->rounds, run_slice) < 0)
		return -1;
	for (size_t i = 0; i < b->count; i++) {
		const struct command *c = &b->commands[i];
		(void)printf("%s %.1f\n", c->name, (double)c->runs * 1e6 / (double)c->slices_us);
	}
	return 0;
}

/* COUNT runs at once; nobody is left when it returns, even if one failed. */
static int run_crowd(struct bench *b, struct command *c, size_t *out_failed)
{
	struct rusage usage;
	size_t started = 0;
	while (started < b->rounds && start(b, c) == 0)
		started++;
	*out_failed = b->rounds - started;
	for (size_t i = 0; i < started; i++)
		if (finish(c, &usage) < 0)
			(*out_failed)++;
	return *out_failed == 0 ? 0 : -1;
}

static int take_crowd(struct bench *b)
{
	for (size_t i = 0; i < b->count; i++) {
		size_t failed;
		uint64_t began = now_us();
		if (run_crowd(b, &b->commands[i], &failed) < 0)
			return fail(b->commands[i].name, "failed of all that ran:", (int)failed);
		(void)printf("%s %llu\n", b->commands[i].name,
			     (unsigned long long)(now_us() - began));
	}
	return 0;
}

/* The words after each "@", cut apart in place. */
static int read_commands(struct bench *b, char **words)
{
	while (*words) {
		if (strcmp(*words, "@") != 0 || !words[1] || !words[2] || b->count == COMMANDS_MAX)
			return -1;
		*words = NULL;
		size_t samples = b->rounds > WARM_UP ? b->rounds : WARM_UP;
		struct command *c = &b->commands[b->count++];
		*c = (struct command){ .name = words[1], .argv = words + 2 };
		c->wall_us = calloc(samples, sizeof(*c->wall_us));
		c->cpu_us = calloc(samples, sizeof(*c->cpu_us));
		if (!c->wall_us || !c->cpu_us)
			return -1;
		for (words += 2; *words && strcmp(*words, "@") != 0;)
			words++;
	}
	return b->count > 0 ? 0 : -1;
}

static int open_nowhere(posix_spawn_file_actions_t *actions)
{
	if (posix_spawn_file_actions_init(actions) != 0)
		return -1;
	for (int fd = 0; fd < 3; fd++)
		if (posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_RDWR, 0) != 0)
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	static struct bench bench;
	char *end = NULL;
	if (argc > 3)
		bench.rounds = strtoul(argv[2], &end, 10);
	if (!end || *end || bench.rounds == 0 || bench.rounds > ROUNDS_MAX ||
	    read_commands(&bench, argv + 3) < 0 || open_nowhere(&bench.actions) < 0) {
		(void)fprintf(stderr,
			      "usage: bench-run turns|pairs|crowd ROUNDS @ NAME CMD [ARG...]"
			      " [@ NAME CMD [ARG...]]...\n");
		return EXIT_FAILURE;
	}
	int (*take)(struct bench *) = strcmp(argv[1], "pairs") == 0   ? take_pairs
				      : strcmp(argv[1], "crowd") == 0 ? take_crowd
								      : take_turns;
	return take(&bench) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
