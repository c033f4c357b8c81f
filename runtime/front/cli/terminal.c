/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/cli/run_state.h"

void terminal_make_raw(struct terminal *t, int fd)
{
	t->fd = -1;
	if (tcgetattr(fd, &t->before) < 0)
		return;
	struct termios raw = t->before;
	cfmakeraw(&raw);
	if (tcsetattr(fd, TCSADRAIN, &raw) == 0)
		t->fd = fd;
}

void terminal_restore(struct terminal *t)
{
	int saved = errno;
	if (t->fd >= 0)
		(void)tcsetattr(t->fd, TCSADRAIN,
				&t->before); /* cannot fail: raw mode could be set */
	t->fd = -1;
	errno = saved;
}
