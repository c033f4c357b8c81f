/* SPDX-License-Identifier: Apache-2.0 */
/* sd_notify(3), sd_listen_fds(3) and the watchdog, by hand. */
#include "runtime/service/operations/notify.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/base/unix.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define NOTIFY_MAX       2048
#define LISTEN_FDS_START 3 /* sd_listen_fds(3) */
#define LISTEN_FDS_MAX   64

void notify_send(const char *fmt, ...)
{
	const char *where = getenv("NOTIFY_SOCKET");
	struct cj_error ignored = { 0 };
	char text[NOTIFY_MAX];
	va_list ap;

	va_start(ap, fmt);
	int size = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	auto_fd int fd = where && size > 0 ? unix_connect_datagram(where, &ignored) : -1;
	/* A failure is ignored: without these messages systemd stops the service and logs why. */
	if (fd >= 0)
		(void)send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void notify_reloading(void)
{
	notify_send("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_us());
}

/* The variable as a number; false: it is missing or not a number. */
static bool number_of(const char *name, uint64_t max, uint64_t *out)
{
	struct cj_error unused = { 0 };
	const char *text = getenv(name);
	return text && parse_u64(text, 0, max, out, &unused) == 0;
}

static bool is_for_us(const char *name)
{
	uint64_t pid;
	return number_of(name, INT_MAX, &pid) && pid == (uint64_t)getpid();
}

static int claim_all(int *out_first, struct cj_error *err)
{
	uint64_t count = 0;
	const char *text = getenv("LISTEN_FDS");
	if (!text || !is_for_us("LISTEN_PID"))
		return 0;
	if (!number_of("LISTEN_FDS", LISTEN_FDS_MAX, &count))
		return cj_reject(err, "LISTEN_FDS='%s' is not a number of sockets up to %d", text,
				 LISTEN_FDS_MAX);
	for (int fd = LISTEN_FDS_START; fd < LISTEN_FDS_START + (int)count; fd++) {
		int flags = fcntl(fd, F_GETFD);
		if (flags < 0 || fcntl(fd, F_SETFD, flags | FD_CLOEXEC) < 0)
			return cj_fail(err, errno, "use descriptor %d, which LISTEN_FDS announces",
				       fd);
	}
	*out_first = LISTEN_FDS_START;
	return (int)count;
}

int notify_listen_fds(int *out_first, struct cj_error *err)
{
	int count = claim_all(out_first, err);
	/* a child process must not use them */
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDNAMES");
	return count;
}

uint64_t notify_watchdog_ms(void)
{
	uint64_t us;
	if (!number_of("WATCHDOG_USEC", UINT64_MAX, &us) || us == 0)
		return 0;
	if (getenv("WATCHDOG_PID") && !is_for_us("WATCHDOG_PID"))
		return 0;
	uint64_t ms = us / 2000;
	return ms > 0 ? ms : 1;
}
