/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/process/process_usage_text.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include "runtime/base/text.h"

/* Fields of stat by their number in proc_pid_stat(5), behind the name. */
enum {
	FIELD_STATE = 3,
	FIELD_PARENT,
	FIELD_FLAGS = 9,
	FIELD_UTIME = 14,
	FIELD_STIME,
	FIELD_CUTIME,
	FIELD_CSTIME,
	FIELD_THREADS = 20,
	FIELD_START = 22,
	FIELD_END
};

/* PF_EXITING and PF_FORKNOEXEC of include/linux/sched.h */
#define FLAG_EXITING      0x4u
#define FLAG_NOT_EXECUTED 0x40u

bool process_usage_text_stat(const char *text, struct sample_stat *out)
{
	static const bool is_number[FIELD_END] = {
		[FIELD_PARENT] = true,  [FIELD_FLAGS] = true,  [FIELD_UTIME] = true,
		[FIELD_STIME] = true,   [FIELD_CUTIME] = true, [FIELD_CSTIME] = true,
		[FIELD_THREADS] = true, [FIELD_START] = true,
	};
	uint64_t fields[FIELD_END] = { 0 };
	const char *at = strrchr(text, ')');
	if (!at || at[1] != ' ')
		return false;
	char state = at[2];

	for (size_t i = FIELD_STATE; i < FIELD_END; i++) {
		at = strchr(at, ' ');
		if (!at)
			return false;
		at++;
		/* Those in between may be negative or a letter. */
		if (is_number[i] && !text_take_u64(at, &fields[i]))
			return false;
	}
	*out = (struct sample_stat){
		.state = state,
		.parent_pid = fields[FIELD_PARENT],
		.has_executed = (fields[FIELD_FLAGS] & FLAG_NOT_EXECUTED) == 0,
		.is_ending = (fields[FIELD_FLAGS] & FLAG_EXITING) != 0,
		.own_system_ticks = fields[FIELD_STIME],
		.children_system_ticks = fields[FIELD_CSTIME],
		.threads = fields[FIELD_THREADS],
		.start_ticks = fields[FIELD_START],
	};
	return !__builtin_add_overflow(fields[FIELD_UTIME], fields[FIELD_STIME], &out->own_ticks) &&
	       !__builtin_add_overflow(fields[FIELD_CUTIME], fields[FIELD_CSTIME],
				       &out->children_ticks);
}

uint64_t process_usage_text_schedstat(const char *text)
{
	uint64_t nanoseconds = 0;
	return text_take_u64(text, &nanoseconds) ? nanoseconds : 0;
}

/* "RssAnon:	    1234 kB": adds to *bytes.  False: it is another line. */
static bool add_line(const char *line, const char *key, uint64_t *bytes)
{
	const char *value = text_after(line, key);
	uint64_t kilobytes = 0, one = 0;
	if (!value || !text_take_u64(value + strspn(value, " \t"), &kilobytes))
		return false;
	if (__builtin_mul_overflow(kilobytes, 1024u, &one) ||
	    __builtin_add_overflow(*bytes, one, bytes))
		*bytes = UINT64_MAX;
	return true;
}

/* The sum of the lines with these keys; *out_lines: how many there are. */
static uint64_t sum_lines(const char *text, const char *const *keys, size_t nkeys,
			  size_t *out_lines)
{
	uint64_t bytes = 0;
	*out_lines = 0;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		for (size_t i = 0; i < nkeys; i++)
			*out_lines += add_line(line, keys[i], &bytes);
	}
	return bytes;
}

uint64_t process_usage_text_memory(const char *text)
{
	static const char *const keys[] = { "RssAnon:", "RssShmem:", "VmPTE:", "VmSwap:",
					    "HugetlbPages:" };
	size_t lines;
	return sum_lines(text, keys, COUNT_OF(keys), &lines);
}

uint64_t process_usage_text_shared(const char *status, const char *rollup)
{
	static const char *const mapped_keys[] = { "RssAnon:", "RssShmem:" };
	static const char *const part_keys[] = { "Pss_Anon:", "Pss_Shmem:" };
	size_t nmapped, nparts;
	uint64_t mapped = sum_lines(status, mapped_keys, 2, &nmapped);
	uint64_t part = sum_lines(rollup, part_keys, 2, &nparts);
	return nmapped == 2 && nparts == 2 && mapped > part ? mapped - part : 0;
}

/* Signal N is bit N-1 of the hexadecimal number. */
static bool awaits_kill(const char *text, const char *key)
{
	const char *line = strstr(text, key);
	return line && (strtoull(line + strlen(key), NULL, 16) >> (SIGKILL - 1) & 1) != 0;
}

/* The kernel takes it off the thread when it begins to end, and leaves it to the process. */
bool process_usage_text_is_killed(const char *text)
{
	return awaits_kill(text, "\nSigPnd:\t") || awaits_kill(text, "\nShdPnd:\t");
}

/* "NSpid:	4711	12": in each pid namespace, the innermost last. */
static bool line_ends_with(const char *line, const char *key, uint64_t value)
{
	uint64_t last = 0;
	const char *at = text_after(line, key);
	while (at && *at == '\t')
		at = text_take_u64(at + 1, &last);
	return at && *at == '\n' && last == value;
}

bool process_usage_text_is(const char *text, uint64_t named)
{
	bool is_named = false;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		is_named |= line_ends_with(line, "NStgid:", named) ||
			    line_ends_with(line, "NSpid:", named);
	}
	return is_named;
}

/* "56 0x4111 0x7ffd..." of a call that blocks: its number, its arguments. */
bool process_usage_text_in_vfork(const char *text)
{
	const unsigned long asked = CLONE_VM | CLONE_VFORK | CLONE_THREAD;
	uint64_t number = 0;
	const char *at = text_take_u64(text, &number);
	if (!at || *at != ' ')
		return false;
#ifdef SYS_vfork
	if (number == SYS_vfork)
		return true;
#endif
	return number == SYS_clone && (strtoul(at, NULL, 16) & asked) == (CLONE_VM | CLONE_VFORK);
}
