/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/zygote/zygote_protocol.h"

#include <assert.h>
#include <stdalign.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

const char *const zygote_step_names[ZYGOTE_STEP_COUNT] = {
	[ZYGOTE_READY] = "ready",
	[ZYGOTE_REQUEST] = "request",
	[ZYGOTE_SEALED] = "sealed",
};

int zygote_request_send(const struct step_link *link, const struct zygote_job *job,
			struct cj_error *err)
{
	uint8_t data[STEP_DATA_MAX];
	struct zygote_request request = job->request;
	const size_t insns_size = request.ninsns * sizeof(*job->insns);
	const size_t workdir_size = strlen(job->workdir) + 1;
	const size_t size = sizeof(request) + insns_size + workdir_size;
	if (request.ninsns > ZYGOTE_INSNS_MAX || workdir_size > ZYGOTE_WORKDIR_MAX ||
	    size > sizeof(data))
		return cj_fail(err, EMSGSIZE, "send the seccomp filter to the zygote");

	request.has_ruleset = job->fds[ZYGOTE_FD_RULESET] >= 0;
	request.has_cgroup = job->fds[ZYGOTE_FD_CGROUP] >= 0;
	memcpy(data, &request, sizeof(request));
	memcpy(data + sizeof(request), job->insns, insns_size);
	memcpy(data + sizeof(request) + insns_size, job->workdir, workdir_size);

	int fds[ZYGOTE_FDS_MAX];
	size_t count = 0;
	for (size_t i = 0; i < ZYGOTE_FDS_MAX; i++)
		if (job->fds[i] >= 0)
			fds[count++] = job->fds[i];
	return step_tell(link, ZYGOTE_REQUEST, data, size, fds, count, err);
}

static_assert((offsetof(struct step_msg, data) + sizeof(struct zygote_request)) %
		      alignof(struct sock_filter) ==
		  0,
	      "the instructions can be used where they are in the message");

/* The rest of the message is exactly the instructions and one string. */
static int take_rest(const uint8_t *rest, size_t size, struct zygote_job *out)
{
	const size_t count = out->request.ninsns, insns_size = count * sizeof(*out->insns);
	if (count == 0 || count > ZYGOTE_INSNS_MAX || insns_size >= size)
		return -EPROTO;

	const size_t workdir_size = size - insns_size;
	const char *workdir = (const char *)rest + insns_size;
	if (workdir_size > ZYGOTE_WORKDIR_MAX || strnlen(workdir, workdir_size) + 1 != workdir_size)
		return -EPROTO;
	out->insns = (const void *)rest;
	out->workdir = workdir;
	return 0;
}

int zygote_request_read(const struct step_msg *msg, struct zygote_job *out, struct cj_error *err)
{
	struct zygote_request *request = &out->request;
	if (msg->step != ZYGOTE_REQUEST || msg->size <= sizeof(*request))
		return cj_fail(err, EPROTO, "read a request");
	memcpy(request, msg->data, sizeof(*request));

	size_t nfds = ZYGOTE_FD_RULESET + (request->has_ruleset != 0) + (request->has_cgroup != 0);
	if (msg->nfds != nfds ||
	    take_rest(msg->data + sizeof(*request), msg->size - sizeof(*request), out) < 0)
		return cj_fail(err, EPROTO, "read a request");
	memcpy(out->fds, msg->fds, ZYGOTE_FD_RULESET * sizeof(int));
	out->fds[ZYGOTE_FD_RULESET] = request->has_ruleset ? msg->fds[ZYGOTE_FD_RULESET] : -1;
	out->fds[ZYGOTE_FD_CGROUP] = request->has_cgroup ? msg->fds[nfds - 1] : -1;
	return 0;
}

void zygote_message_close(struct step_msg *msg)
{
	auto_fd_bag struct fd_bag all = { 0 };
	for (size_t i = 0; i < msg->nfds; i++)
		fd_bag_add(&all, take_fd(&msg->fds[i]));
	msg->nfds = 0;
}
