/* SPDX-License-Identifier: Apache-2.0 */
/* The execs of a session, from outside.  Acts. */
#include "runtime/jail/session/session_exec.h"

#include "runtime/jail/session/session_state.h"

int session_exec_reserve(struct session *s, unsigned *out_slot, struct cj_error *err)
{
	(void)s, (void)out_slot;
	return cj_fail(err, ENOSYS, "reserve an exec");
}

int session_exec_open(struct session *s, unsigned slot, const char *id, struct jail **out,
		      struct cj_error *err)
{
	(void)s, (void)slot, (void)id, (void)out;
	return cj_fail(err, ENOSYS, "open an exec");
}

void session_exec_channel(struct jail *view, int fd)
{
	(void)view, (void)fd;
}

int session_exec_signal(struct session *s, unsigned slot, int signo, struct cj_error *err)
{
	(void)s, (void)slot, (void)signo;
	return cj_fail(err, ENOSYS, "signal an exec");
}

void session_exec_done(struct session *s, unsigned slot)
{
	(void)s, (void)slot;
}

bool session_exec_lives(const struct session *s, unsigned slot)
{
	return s->slots[slot].is_used;
}

int session_ask_init(struct jail *j, enum session_isolation *out_isolation, struct cj_error *err)
{
	(void)j, (void)out_isolation;
	return cj_fail(err, ENOSYS, "ask init for a session");
}

void session_slots_watch(const struct session *s, struct pollfd fds[static SESSION_EXECS_MAX])
{
	(void)s;
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		fds[i] = (struct pollfd){ .fd = -1 };
}

int session_slots_timeout_ms(const struct session *s)
{
	(void)s;
	return -1;
}

enum session_end session_slots_turn(struct session *s,
				    const struct pollfd fds[static SESSION_EXECS_MAX],
				    struct cj_error *err)
{
	(void)s, (void)fds, (void)err;
	return SESSION_LIVES;
}

void session_slots_fini(struct session *s)
{
	(void)s;
}
