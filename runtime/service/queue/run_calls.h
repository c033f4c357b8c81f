/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_calls - the server's end of a run's calls: which are open, and answers on their way.
 *
 *	worker                                      server
 *	{"id":7,"name":N,"bytes":B,"sha256":H} --->  the call is open; "arguments", if asked for
 *	                                       <---  {"id":7,"result":ANY}
 *	{"id":7,"ended":END,"ms":M} -------------->  it is not
 *	{"id":0,"name":N,"ended":"refused"} ------>  it never was
 *
 * The arguments are in the events of the run.  Each call is reported once, when it has ended.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/base/json/json_record.h"
#include "runtime/base/loop.h"
#include "runtime/service/log/api_error.h"
#include "runtime/service/worker/job.h"

/* `ended` receives each call that has ended.  It must not end the run's calls. */
struct run_calls_ops {
	void (*ended)(void *context, const struct call_record *call);
	void *context;
};

struct pending_calls;

/* Takes fd, also when it fails. */
int run_calls_begin(struct loop *loop, int fd, const struct run_calls_ops *ops,
		    struct pending_calls **out, struct cj_error *err);
/*
 * run_calls_end - the run has ended: reads what its worker has sent, and reports open calls as
 * cancelled.
 *
 * *out_last is the highest id of a call; ids are counted from 1.  Nothing happens with *c NULL.
 */
void run_calls_end(struct pending_calls **c, uint64_t *out_last);

/*
 * run_calls_answer - pass an answer on.  `value` is valid JSON for the member "result" or "error".
 *
 * API_NOT_FOUND: the run has made no such call; API_CALL_ENDED: it has an answer, or has ended;
 * API_TOO_MANY_WAITING: the program has not read earlier answers.
 */
enum api_code run_calls_answer(struct pending_calls *c, uint64_t id, const char *member,
			       struct blob value);

/* The call will have no other answer; without memory for this one all calls of the run fail. */
void run_calls_fail(struct pending_calls *c, uint64_t id, const char *message);
