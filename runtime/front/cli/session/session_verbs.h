/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_verbs - the verbs of `cejail session`; session.c has their table.
 *
 * Each returns 0, or a negative errno with *err.  `exec` and `wait` report by themselves and return
 * an exit status.
 */
#pragma once

#include "runtime/front/cli/session/session_call.h"

/* session_verb_jail.c */
int session_create(struct session_call *c, struct cj_error *err);
int session_list(struct session_call *c, struct cj_error *err);
int session_lease(struct session_call *c, struct cj_error *err);
int session_end(struct session_call *c, struct cj_error *err);
int session_socket(struct session_call *c, struct cj_error *err);

/* session_verb_files.c */
int session_put(struct session_call *c, struct cj_error *err);
int session_get(struct session_call *c, struct cj_error *err);
int session_ls(struct session_call *c, struct cj_error *err);
int session_stat(struct session_call *c, struct cj_error *err);
int session_mkdir(struct session_call *c, struct cj_error *err);
int session_mv(struct session_call *c, struct cj_error *err);
int session_watch(struct session_call *c, struct cj_error *err);
int session_rm(struct session_call *c, struct cj_error *err);

/* session_verb_exec.c */
int session_exec(struct session_call *c);
int session_wait(struct session_call *c);
int session_kill(struct session_call *c, struct cj_error *err);
