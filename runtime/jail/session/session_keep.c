/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's loop.  Acts. */
#include "runtime/jail/session/session.h"

const char *const session_end_names[SESSION_END_COUNT] = {
	[SESSION_LIVES] = "lives",
	[SESSION_OOM] = "oom",
	[SESSION_INIT_KILLED] = "killed",
	[SESSION_STUCK] = "stuck",
	[SESSION_REAPER_KILLED] = "reaper killed",
	[SESSION_FAILED] = "failed",
};

int session_begin(struct jail *j, struct session **out, struct cj_error *err)
{
	(void)j, (void)out;
	return cj_fail(err, ENOSYS, "begin a session");
}

enum session_isolation session_isolation(const struct session *s)
{
	(void)s;
	return SESSION_SHARED;
}

int session_serve(struct session *s, struct pollfd *fds, size_t nfds, int timeout_ms,
		  enum session_end *end, struct cj_error *err)
{
	(void)s, (void)fds, (void)nfds, (void)timeout_ms;
	*end = SESSION_FAILED;
	return cj_fail(err, ENOSYS, "serve a session");
}

void session_status(struct session *s, struct session_status *out)
{
	(void)s;
	*out = (struct session_status){ 0 };
}

void session_finish(struct session **s)
{
	*s = NULL;
}
