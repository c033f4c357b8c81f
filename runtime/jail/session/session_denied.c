/* SPDX-License-Identifier: Apache-2.0 */
/* Which exec a refused call belongs to.  Acts. */
#include "runtime/jail/session/session_state.h"

int session_denied_read(const struct session_row *row, struct outcome *out, struct cj_error *err)
{
	(void)row, (void)out, (void)err;
	return 0;
}
