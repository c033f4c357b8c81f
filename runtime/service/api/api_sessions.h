/* SPDX-License-Identifier: Apache-2.0 */
/* api_sessions - the handlers of /v1/sessions, for the table of routes.  Act: reply. */
#pragma once

#include "runtime/service/api/api.h"

struct session_entry;

/* The session that the path names.  NULL: the caller has none; it was answered. */
struct session_entry *api_find_session(struct api_call *c);
/* Likewise, and something can be done with it. */
struct session_entry *api_find_live_session(struct api_call *c);

void api_post_session(struct api_call *c);
void api_list_sessions(struct api_call *c);
void api_show_session(struct api_call *c);
void api_end_session(struct api_call *c);
void api_renew_session(struct api_call *c);

/* api_session_execs.c */
void api_post_exec(struct api_call *c);
void api_list_execs(struct api_call *c);
void api_show_exec(struct api_call *c);
void api_cancel_exec(struct api_call *c);
void api_signal_exec(struct api_call *c);
void api_feed_exec(struct api_call *c);
void api_begin_stdin(struct api_call *c);
void api_put_stdin(struct api_call *c);

/* api_session_files.c */
void api_get_file(struct api_call *c);
void api_begin_put(struct api_call *c);
void api_put_file(struct api_call *c);
void api_change_file(struct api_call *c);
void api_remove_file(struct api_call *c);
