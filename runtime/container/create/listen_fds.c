/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of systemd's socket activation.  Reads the environment; makes no system call but
 * getpid(2). */
#include "runtime/container/create/listen_fds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/text.h"

#define PID_MAX_DIGITS 10
#define PID_NAME       "LISTEN_PID="
#define PID_ENTRY_MAX  (sizeof(PID_NAME) + PID_MAX_DIGITS)

static const char *const passed[] = { "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES" };

static bool is_for_us(void)
{
	struct cj_error ignored = { 0 };
	const char *text = getenv("LISTEN_PID");
	uint64_t pid = 0;

	return text && parse_u64(text, 1, INT32_MAX, &pid, &ignored) == 0 &&
	       (pid == 1 || pid == (uint64_t)getpid());
}

int listen_fds_read(unsigned max, struct listen_fds *out, struct cj_error *err)
{
	const char *text = getenv("LISTEN_FDS");
	uint64_t count = 0;

	*out = (struct listen_fds){ 0 };
	if (!text || !is_for_us())
		return 0;
	if (parse_u64(text, 0, max, &count, err) < 0)
		return cj_wrap(err, "the variable LISTEN_FDS");
	out->count = (unsigned)count;
	return 0;
}

static bool is_passed(const char *entry)
{
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
		size_t size = strlen(passed[i]);
		if (strncmp(entry, passed[i], size) == 0 && entry[size] == '=')
			return true;
	}
	return false;
}

static int add(struct strings *env, struct arena *a, const char *entry)
{
	return entry ? strings_add(env, a, entry) : -ENOMEM;
}

int listen_fds_pass(struct listen_fds *l, struct strings *env, struct arena *a,
		    struct cj_error *err)
{
	const char *names = getenv("LISTEN_FDNAMES");
	struct strings merged = { 0 };
	int rc = 0;

	if (l->count == 0)
		return 0;
	for (size_t i = 0; rc == 0 && i < env->count; i++)
		if (!is_passed(env->items[i]))
			rc = add(&merged, a, env->items[i]);
	l->pid_entry = arena_alloc(a, PID_ENTRY_MAX);
	if (l->pid_entry)
		l->pid_entry[0] = '\0'; /* until listen_fds_name_self() */
	if (rc == 0)
		rc = add(&merged, a, l->pid_entry);
	if (rc == 0)
		rc = add(&merged, a, arena_printf(a, "LISTEN_FDS=%u", l->count));
	if (rc == 0 && names)
		rc = add(&merged, a, arena_printf(a, "LISTEN_FDNAMES=%s", names));
	if (rc < 0)
		return cj_fail(err, ENOMEM, "pass LISTEN_FDS on");
	*env = merged;
	return 0;
}

void listen_fds_name_self(const struct listen_fds *l)
{
	if (l->pid_entry)
		(void)snprintf(l->pid_entry, PID_ENTRY_MAX, PID_NAME "%d", (int)getpid());
}
