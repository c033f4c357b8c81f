/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/relay.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#define TERMINAL_MAX (128 * 1024) /* more than a terminal holds back: drivers/tty/pty.c */

const char *const relay_names[RELAY_COUNT] = {
	[RELAY_STDIN] = "standard input",
	[RELAY_STDOUT] = "standard output",
	[RELAY_STDERR] = "standard error",
};

void relay_init(struct relay *r)
{
	r->in_fd = r->out_fd = -1;
	r->owns_in = r->owns_out = r->is_caller_in = r->is_caller_out = false;
	r->is_paused = r->is_complete = r->escape = false;
	r->farewell = NULL;
	r->in_error = r->out_error = 0;
	r->left = SIZE_MAX;
	r->carried = r->fresh = r->start = r->end = 0;
}

void relay_fini(struct relay *r)
{
	if (r->owns_in)
		cj_close(&r->in_fd);
	if (r->owns_out)
		cj_close(&r->out_fd);
	relay_init(r);
}

/*
 * Our controlling terminal if it is `device`: what su(1) and sudo(8) hand on can't be opened by its
 * name, which belongs to another user.
 */
static int open_controlling(dev_t device)
{
	unsigned int number = 0;
	auto_fd int fd = open("/dev/tty", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, TIOCGDEV, &number) < 0 || number != device)
		return -1;
	return take_fd(&fd);
}

int relay_open_own(int out_fd)
{
	char self[32];
	struct stat st;
	if (out_fd < 0 || fstat(out_fd, &st) < 0 ||
	    !(S_ISFIFO(st.st_mode) || (S_ISCHR(st.st_mode) && isatty(out_fd))))
		return -1;

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", out_fd);
	int fd = open(self, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 && S_ISCHR(st.st_mode) ? open_controlling(st.st_rdev) : fd;
}

void relay_own_output(struct relay *r)
{
	int fd = relay_open_own(r->out_fd);
	if (fd < 0)
		return;
	r->out_fd = fd;
	r->owns_out = true;
	r->is_caller_out = false; /* it takes what it can at once: nothing to ask first */
}

bool relay_has_pending(const struct relay *r)
{
	return r->start < r->end;
}

bool relay_wants_more(const struct relay *r)
{
	return r->in_fd >= 0 && !r->is_paused && !relay_has_pending(r);
}

/* Bytes at the end whose escape depends on the next ones: a part of a character, a carriage
 * return. */
static size_t undecided(const uint8_t *bytes, size_t size)
{
	return size > 0 && bytes[size - 1] == '\r' ? 1 : utf8_unfinished(bytes, size);
}

/* Puts `size` bytes of r->in into r->out, escaped if asked; carries the undecided over. */
static void pass_on(struct relay *r, size_t size, bool is_last)
{
	r->start = 0;
	if (!r->escape) {
		memcpy(r->out, r->in, size);
		r->end = size;
		return;
	}
	size_t carried = is_last ? 0 : undecided(r->in, size);
	(void)text_escape(r->in, size - carried, true, (char *)r->out, sizeof(r->out));
	r->end = strlen((char *)r->out);
	memmove(r->in, r->in + size - carried, carried);
	r->carried = carried;
}

void relay_pass(struct relay *r)
{
	if (r->out_fd >= 0)
		pass_on(r, r->carried + r->fresh, false);
	r->fresh = 0;
}

static void end_of_input(struct relay *r)
{
	if (r->out_fd < 0)
		return;
	if (r->carried > 0)
		pass_on(r, r->carried, true);
	if (r->farewell && !relay_has_pending(r)) {
		r->start = 0;
		r->end = strlen(r->farewell);
		memcpy(r->out, r->farewell, r->end);
	}
}

void relay_complete(struct relay *r)
{
	int size = r->in_fd < 0 ? -1 : fcntl(r->in_fd, F_GETPIPE_SZ);
	r->is_complete = true;
	r->left = size > 0 ? (size_t)size : TERMINAL_MAX;
}

enum relay_result relay_fill(struct relay *r, const uint8_t **out_bytes, size_t *out_size)
{
	if (r->in_fd < 0)
		return RELAY_END;
	if (r->is_paused || (r->is_caller_in && !fd_await(r->in_fd, POLLIN, 0)))
		return RELAY_AGAIN;

	size_t room = sizeof(r->in) - r->carried;
	ssize_t got = sys_read(r->in_fd, r->in + r->carried, room < r->left ? room : r->left);
	if (got < 0 && errno == EAGAIN && !r->is_complete)
		return RELAY_AGAIN;
	if (got < 0 && errno != EAGAIN)
		r->in_error = errno;
	if (got <= 0) {
		end_of_input(r);
		return RELAY_END;
	}

	r->left -= r->is_complete ? (size_t)got : 0;
	r->fresh = (size_t)got;
	*out_bytes = r->in + r->carried;
	*out_size = r->fresh;
	return RELAY_MOVED;
}

enum relay_result relay_flush(struct relay *r)
{
	enum relay_result result = RELAY_AGAIN;
	while (relay_has_pending(r)) {
		size_t size = r->end - r->start;
		if (r->is_caller_out) {
			if (!fd_await(r->out_fd, POLLOUT, 0))
				return result;
			size = size < PIPE_BUF ? size
					       : PIPE_BUF; /* pipe(7): what POLLOUT promises */
		}
		ssize_t put = sys_write(r->out_fd, r->out + r->start, size);
		if (put < 0 && errno == EAGAIN)
			return result;
		if (put < 0) {
			r->out_error = errno;
			return RELAY_END;
		}
		r->start += (size_t)put;
		result = RELAY_MOVED;
	}
	if (r->in_fd < 0 && r->owns_out)
		cj_close(&r->out_fd); /* all that ever came has been passed on */
	return result;
}

void relay_end_in(struct relay *r)
{
	if (r->owns_in)
		cj_close(&r->in_fd);
	r->in_fd = -1;
	if (r->owns_out && !relay_has_pending(r))
		cj_close(&r->out_fd);
}

void relay_end_out(struct relay *r)
{
	r->start = r->end = 0;
	if (r->owns_out)
		cj_close(&r->out_fd);
	r->out_fd = -1;
}
