/* SPDX-License-Identifier: Apache-2.0 */
/* api_session_body - the small bodies of the routes of sessions.  Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json_record.h"

/* {"lease": "10m"}.  These fail with EINVAL, and EFBIG above `max`. */
int session_body_lease(struct blob body, uint64_t *out_ms, struct cj_error *err);

/* {"mkdir": true} or {"rename": "/box/b"}: one of them. */
struct session_change_order {
	bool is_mkdir;
	const char *to; /* in the arena; NULL: no rename */
};
int session_body_change(struct blob body, struct arena *a, struct session_change_order *out,
			struct cj_error *err);

/* {"signal": "INT"}, also "SIGINT". */
int session_body_signal(struct blob body, int *out_signo, struct cj_error *err);

/* {"text": "..."} or {"base64": "..."}, and "eof": true, or this alone. */
struct session_stdin {
	struct blob text, base64;
	bool is_end;
	struct blob bytes; /* one of the two, in the arena */
};
int session_body_stdin(struct blob body, size_t max, struct arena *a, struct session_stdin *out,
		       struct cj_error *err);
