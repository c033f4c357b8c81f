/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote_protocol - the messages between supervisor, zygote and its children (step.h sends them).
 */
#pragma once

#include <linux/filter.h>

#include "profiles/plan/plan.h"
#include "runtime/base/error.h"
#include "runtime/base/step.h"
#include "runtime/jail/protocol.h"

enum zygote_step {
	ZYGOTE_READY,   /* zygote -> the process that spawned it, once: it serves requests */
	ZYGOTE_REQUEST, /* supervisor -> zygote: struct zygote_request, descriptors */
	ZYGOTE_SEALED,  /* child -> supervisor, on the request's report socket: the listener */
	ZYGOTE_STEP_COUNT
};

extern const char *const zygote_step_names[ZYGOTE_STEP_COUNT];

/* The descriptors of a request, in this order; the last ones only where there are any. */
enum zygote_fd {
	ZYGOTE_FD_REPORT,
	ZYGOTE_FD_LINK, /* to init: descriptor 3 of the launcher */
	ZYGOTE_FD_STDIN,
	ZYGOTE_FD_STDOUT,
	ZYGOTE_FD_STDERR,
	ZYGOTE_FD_CALLS, /* descriptor 4 of the launcher */
	ZYGOTE_FD_NAMESPACES,
	ZYGOTE_FD_RULESET = ZYGOTE_FD_NAMESPACES + ZYGOTE_NAMESPACES,
	ZYGOTE_FD_CGROUP,
	ZYGOTE_FDS_MAX
};

/* Behind it: the filter's instructions, then the working directory with its NUL. */
struct zygote_request {
	uint32_t uid, gid; /* inside */
	uint32_t may_setgroups, pids_by_rlimit;
	uint32_t has_ruleset, has_cgroup;
	uint32_t asks_network, closes_uncounted; /* as in struct filter */
	uint32_t ninsns;
	struct limits_spec limits;
};

#define ZYGOTE_INSNS_MAX                                                                           \
	((STEP_DATA_MAX - sizeof(struct zygote_request)) / sizeof(struct sock_filter))
#define ZYGOTE_WORKDIR_MAX 1024

/* A request as it is sent, or as the zygote has read it: then it points into the message, and the
 * descriptors are the message's. */
struct zygote_job {
	struct zygote_request request;
	const struct sock_filter *insns;
	const char *workdir;
	int fds[ZYGOTE_FDS_MAX]; /* -1: no ruleset, no cgroup */
};

/* Sends a job.  Fails: EMSGSIZE for a filter that is too long; as step_tell(). */
int zygote_request_send(const struct step_link *link, const struct zygote_job *job,
			struct cj_error *err);

/* Reads a job from a message, which keeps its descriptors and must outlive it.  Fails: EPROTO. */
int zygote_request_read(const struct step_msg *msg, struct zygote_job *out, struct cj_error *err);

/* As step_msg_fini(), for the many descriptors of a jail: one call closes those in a row. */
void zygote_message_close(struct step_msg *msg);
