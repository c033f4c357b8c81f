/* SPDX-License-Identifier: Apache-2.0 */
/* Names of signals.  Pure. */
#include "runtime/container/container/container_signal.h"

#include <ctype.h>
#include <signal.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/text.h"

/* Not the kernel's other names of the same numbers, except for those that people use. */
static const struct {
	const char *name;
	int number;
} names[] = {
	{ "ABRT", SIGABRT }, { "ALRM", SIGALRM }, { "BUS", SIGBUS },       { "CHLD", SIGCHLD },
	{ "CLD", SIGCHLD },  { "CONT", SIGCONT }, { "FPE", SIGFPE },       { "HUP", SIGHUP },
	{ "ILL", SIGILL },   { "INT", SIGINT },   { "IO", SIGIO },         { "IOT", SIGABRT },
	{ "KILL", SIGKILL }, { "PIPE", SIGPIPE }, { "POLL", SIGIO },       { "PROF", SIGPROF },
	{ "PWR", SIGPWR },   { "QUIT", SIGQUIT }, { "SEGV", SIGSEGV },     { "STKFLT", SIGSTKFLT },
	{ "STOP", SIGSTOP }, { "SYS", SIGSYS },   { "TERM", SIGTERM },     { "TRAP", SIGTRAP },
	{ "TSTP", SIGTSTP }, { "TTIN", SIGTTIN }, { "TTOU", SIGTTOU },     { "URG", SIGURG },
	{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "VTALRM", SIGVTALRM }, { "WINCH", SIGWINCH },
	{ "XCPU", SIGXCPU }, { "XFSZ", SIGXFSZ },
};

#define RT_FIRST 34 /* what libc leaves to programs: signal(7) */
#define RT_LAST  64

static int reject(const char *text, struct cj_error *err)
{
	return cj_reject(err, "unknown signal '%.32s'", text);
}

/* "RTMIN+N", "RTMAX-N", "RTMIN", "RTMAX". */
static int parse_real_time(const char *name, const char *text, int *out, struct cj_error *err)
{
	struct cj_error ignored = { 0 };
	bool from_min = strncasecmp(name, "RTMIN", 5) == 0;
	const char *rest = name + 5;
	uint64_t distance = 0;

	if (rest[0] != '\0' &&
	    (rest[0] != (from_min ? '+' : '-') ||
	     parse_u64(rest + 1, 0, RT_LAST - RT_FIRST, &distance, &ignored) < 0))
		return reject(text, err);
	*out = from_min ? RT_FIRST + (int)distance : RT_LAST - (int)distance;
	return 0;
}

int container_signal_parse(const char *text, int *out, struct cj_error *err)
{
	struct cj_error ignored = { 0 };
	const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
	uint64_t number;

	if (isdigit((unsigned char)text[0])) {
		if (parse_u64(text, 0, RT_LAST, &number, &ignored) < 0)
			return reject(text, err);
		*out = (int)number;
		return 0;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcasecmp(name, names[i].name) == 0) {
			*out = names[i].number;
			return 0;
		}
	if (strncasecmp(name, "RTMIN", 5) == 0 || strncasecmp(name, "RTMAX", 5) == 0)
		return parse_real_time(name, text, out, err);
	return reject(text, err);
}
