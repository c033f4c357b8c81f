/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/container/process/process_parts.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "runtime/base/files/unix.h"
#include "runtime/base/scope.h"

#define MESSAGE_MAX (64u << 10) /* annotations are most of it */

struct agent_message {
	size_t size;
	char text[MESSAGE_MAX];
};

int seccomp_agent_connect(const char *socket_path, struct seccomp_agent *out, struct cj_error *err)
{
	auto_fd int sock_fd = unix_connect(socket_path, err);
	if (sock_fd < 0)
		return cj_wrap(err, "seccomp agent");
	struct agent_message *message =
	    mmap(NULL, sizeof(*message), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (message == MAP_FAILED)
		return cj_fail(err, errno, "get memory for the message to the seccomp agent");

	out->sock_fd = take_fd(&sock_fd);
	out->message = message;
	return 0;
}

void seccomp_agent_close(struct seccomp_agent *agent)
{
	cj_close(&agent->sock_fd);
	if (agent->message)
		(void)munmap(agent->message, sizeof(*agent->message)); /* only memory */
	agent->message = NULL;
}

int seccomp_agent_describe(const struct seccomp_agent *agent, const char *text, size_t size,
			   struct cj_error *err)
{
	if (size > MESSAGE_MAX)
		return cj_reject_as(err, EMSGSIZE,
				    "the message to the seccomp agent has %zu bytes, "
				    "more than %u",
				    size, MESSAGE_MAX);
	memcpy(agent->message->text, text, size);
	agent->message->size = size;
	return 0;
}

/* What the two threads share. */
struct sending {
	const struct seccomp_agent *agent;
	atomic_int listener; /* LISTENER_AWAITED; then the descriptor, or LISTENER_FAILED */
	atomic_int result;   /* RESULT_AWAITED; then 0 or an errno */
};
#define LISTENER_AWAITED (-1)
#define LISTENER_FAILED  (-2)
#define RESULT_AWAITED   (-1)

static void *send_listener(void *context)
{
	struct sending *s = context;
	int listener = LISTENER_AWAITED;
	while ((listener = atomic_load(&s->listener)) == LISTENER_AWAITED)
		(void)sched_yield(); /* only a hint */
	if (listener >= 0) {
		const struct agent_message *m = s->agent->message;
		atomic_store(&s->result, unix_send(s->agent->sock_fd, m->text, m->size, listener));
	}
	return NULL;
}

int seccomp_agent_load(const struct seccomp_agent *agent, int (*load)(const void *context),
		       const void *context, struct cj_error *err)
{
	pthread_t thread;
	struct sending sending = { .agent = agent };
	atomic_init(&sending.listener, LISTENER_AWAITED);
	atomic_init(&sending.result, RESULT_AWAITED);
	if (agent->message->size == 0)
		return cj_reject(err, "the seccomp agent would receive no message");
	int rc = pthread_create(&thread, NULL, send_listener, &sending);
	if (rc != 0)
		return cj_fail(err, rc, "start the thread that sends the seccomp listener");

	int listener = load(context);
	if (listener < 0) {
		int why = errno;
		atomic_store(&sending.listener, LISTENER_FAILED);
		(void)pthread_join(thread, NULL); /* it ends at once */
		return cj_fail(err, why, "load the seccomp filter");
	}
	/* From here on any call may be notified, and the agent does not have the listener. */
	atomic_store(&sending.listener, listener);
	int result = RESULT_AWAITED;
	while (result == RESULT_AWAITED)
		result = atomic_load(&sending.result);
	return result == 0 ? 0 : cj_fail(err, result, "send the listener to the seccomp agent");
}
