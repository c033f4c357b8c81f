/* SPDX-License-Identifier: Apache-2.0 */
/* From the rules of config.json to BPF, by libseccomp; and into the process. */
#include "runtime/container/process/process_parts.h"

#include <assert.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/unix.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define FILTER_BYTES_MAX (BPF_MAXINSNS * sizeof(struct sock_filter)) /* more the kernel refuses */
#define ARGS_MAX         6                                           /* of a system call */

static void release_filter(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
	*ctx = NULL;
}
#define auto_filter __attribute__((cleanup(release_filter)))

/* Only ERRNO and TRACE carry a number; check_errno() refuses errnoRet for the others. */
static uint32_t to_action(enum policy_action action, const struct oci_u64 *errno_ret)
{
	static const uint32_t actions[] = {
		[POLICY_ALLOW] = SCMP_ACT_ALLOW,
		[POLICY_LOG] = SCMP_ACT_LOG,
		[POLICY_TRACE] = SCMP_ACT_TRACE(0),
		[POLICY_NOTIFY] = SCMP_ACT_NOTIFY,
		[POLICY_ERRNO] = SCMP_ACT_ERRNO(0),
		[POLICY_TRAP] = SCMP_ACT_TRAP,
		[POLICY_KILL_THREAD] = SCMP_ACT_KILL_THREAD,
		[POLICY_KILL_PROCESS] = SCMP_ACT_KILL_PROCESS,
	};
	uint16_t number = (uint16_t)(errno_ret->is_set ? errno_ret->value : EPERM);
	bool has_number = action == POLICY_ERRNO || action == POLICY_TRACE;
	return actions[action] | (has_number ? number : 0u);
}

static int check_errno(enum policy_action action, const struct oci_u64 *errno_ret, const char *key,
		       struct cj_error *err)
{
	if (!errno_ret->is_set || action == POLICY_ERRNO || action == POLICY_TRACE)
		return 0;
	return cj_reject(err, "seccomp: %s is for SCMP_ACT_ERRNO and SCMP_ACT_TRACE only", key);
}

/* MASKED_EQ has the mask first in both formats. */
static struct scmp_arg_cmp to_condition(const struct policy_arg *arg)
{
	static const enum scmp_compare ops[] = {
		[POLICY_NE] = SCMP_CMP_NE,
		[POLICY_LT] = SCMP_CMP_LT,
		[POLICY_LE] = SCMP_CMP_LE,
		[POLICY_EQ] = SCMP_CMP_EQ,
		[POLICY_GE] = SCMP_CMP_GE,
		[POLICY_GT] = SCMP_CMP_GT,
		[POLICY_MASKED_EQ] = SCMP_CMP_MASKED_EQ,
	};
	return (struct scmp_arg_cmp){
		.arg = arg->index,
		.op = ops[arg->op],
		.datum_a = arg->value,
		.datum_b = arg->value_two,
	};
}

/* libseccomp refuses two conditions on one argument. */
static bool has_alternatives(const struct oci_seccomp_rule *rule)
{
	unsigned seen = 0;
	for (size_t i = 0; i < rule->nargs; i++) {
		unsigned bit = 1u << rule->args[i].index;
		if (seen & bit)
			return true;
		seen |= bit;
	}
	return false;
}

static int add_name(scmp_filter_ctx ctx, const char *name, uint32_t action,
		    const struct oci_seccomp_rule *rule, struct cj_error *err)
{
	struct scmp_arg_cmp conditions[ARGS_MAX];
	size_t at = 0, count = has_alternatives(rule) ? 1 : rule->nargs;
	int nr = seccomp_syscall_resolve_name(name);
	if (nr == __NR_SCMP_ERROR)
		return 0;
	assert(count <= ARGS_MAX);
	do {
		for (size_t i = 0; i < count; i++)
			conditions[i] = to_condition(&rule->args[at + i]);
		int rc = seccomp_rule_add_array(ctx, action, nr, (unsigned)count, conditions);
		if (rc < 0 && rc != -EEXIST) /* the same rule again */
			return cj_fail(err, -rc, "seccomp: add a rule for '%s'", name);
		at += count;
	} while (at < rule->nargs);
	return 0;
}

/* A rule's name. */
struct action_use {
	const char *name;
	uint32_t action;
	enum policy_action strictness;
	bool has_conditions;
};
struct uses {
	struct action_use
	    *items; /* by name; those without conditions first, the strictest of them before */
	size_t count;
};

static int compare_uses(const void *one, const void *other)
{
	const struct action_use *a = one, *b = other;
	int order = strcmp(a->name, b->name);

	if (order == 0)
		order = (int)a->has_conditions - (int)b->has_conditions;
	if (order == 0)
		order = (int)b->strictness - (int)a->strictness;
	return order != 0 ? order : (a->action > b->action) - (a->action < b->action);
}

static int list_uses(const struct oci_seccomp *seccomp, struct arena *a, struct uses *out,
		     struct cj_error *err)
{
	size_t most = 0;

	for (size_t i = 0; i < seccomp->nrules; i++)
		most += seccomp->rules[i].names.count;
	*out = (struct uses){ .items = arena_array(a, most + 1, sizeof(*out->items)) };
	if (!out->items)
		return cj_fail(err, ENOMEM, "compile the seccomp filter");
	for (size_t i = 0; i < seccomp->nrules; i++) {
		const struct oci_seccomp_rule *rule = &seccomp->rules[i];
		for (size_t n = 0; n < rule->names.count; n++)
			out->items[out->count++] = (struct action_use){
				.name = rule->names.items[n],
				.action = to_action(rule->action, &rule->errno_ret),
				.strictness = rule->action,
				.has_conditions = rule->nargs > 0,
			};
	}
	qsort(out->items, out->count, sizeof(*out->items), compare_uses);
	return 0;
}

/* The strictest rule without conditions for this call, or NULL. */
static const struct action_use *find_plain(const struct uses *uses, const char *name)
{
	size_t low = 0, high = uses->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(uses->items[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	const struct action_use *first = low < uses->count ? &uses->items[low] : NULL;
	return first && strcmp(first->name, name) == 0 && !first->has_conditions ? first : NULL;
}

/*
 * Beside a rule without conditions libseccomp drops all others for that call, and says nothing.  An
 * engine whose profile refuses one ioctl(2) and allows the rest would believe that it is refused.
 */
static int refuse_ignored(const struct uses *uses, uint32_t by_default, struct cj_error *err)
{
	for (size_t i = 0; i < uses->count; i++) {
		const struct action_use *use = &uses->items[i];
		const struct action_use *plain = find_plain(uses, use->name);
		if (!use->has_conditions || !plain || plain->action == use->action ||
		    plain->action == by_default) /* add_rules() leaves that one out */
			continue;
		cj_refuse(err,
			  "seccomp: '%.64s' has a rule without args, and another rule "
			  "with another action",
			  use->name);
		return cj_hint(err,
			       "libseccomp would ignore the other rule; write args that exclude "
			       "each other, or remove one of them");
	}
	return 0;
}

/*
 * Of two rules without conditions the stricter one counts: podman's default profile allows setns(2)
 * and refuses it, without CAP_SYS_ADMIN, some rules later.  libseccomp would take the first one.
 * It refuses a rule that does what the default does anyway.
 */
static int add_rules(scmp_filter_ctx ctx, const struct oci_seccomp *seccomp,
		     const struct uses *uses, uint32_t by_default, struct cj_error *err)
{
	for (size_t i = 0; i < seccomp->nrules; i++) {
		const struct oci_seccomp_rule *rule = &seccomp->rules[i];
		uint32_t action = to_action(rule->action, &rule->errno_ret);
		if (check_errno(rule->action, &rule->errno_ret, "errnoRet", err) < 0)
			return -err->code;
		for (size_t n = 0; action != by_default && n < rule->names.count; n++) {
			const char *name = rule->names.items[n];
			const struct action_use *plain = find_plain(uses, name);
			if (rule->nargs == 0 && plain && plain->action != action)
				continue;
			if (add_name(ctx, name, action, rule, err) < 0)
				return -err->code;
		}
	}
	return 0;
}

/* libseccomp 2.5 exports to a descriptor only. */
static int export(scmp_filter_ctx ctx, struct arena *a, struct sock_fprog *out,
		  struct cj_error *err)
{
	char *bytes = NULL;
	size_t size = 0;
	auto_fd int fd = memfd_create("cejail-seccomp", MFD_CLOEXEC);
	if (fd < 0)
		return cj_fail(err, errno, "create a memfd for the seccomp filter");
	int rc = seccomp_export_bpf(ctx, fd);
	if (rc < 0)
		return cj_fail(err, -rc, "compile the seccomp filter");
	if (lseek(fd, 0, SEEK_SET) < 0)
		return cj_fail(err, errno, "read the seccomp filter");
	if (fd_read_all(fd, FILTER_BYTES_MAX, a, &bytes, &size, "the seccomp filter", err) < 0)
		return -err->code;

	out->filter = (struct sock_filter *)(void *)bytes; /* an arena aligns for any type */
	out->len = (unsigned short)(size / sizeof(struct sock_filter));
	return 0;
}

int process_filter_compile(const struct oci_seccomp *seccomp, struct arena *a,
			   struct sock_fprog *out, struct cj_error *err)
{
	uint32_t by_default = to_action(seccomp->default_action, &seccomp->default_errno_ret);
	struct uses uses;

	if (check_errno(seccomp->default_action, &seccomp->default_errno_ret, "defaultErrnoRet",
			err) < 0 ||
	    list_uses(seccomp, a, &uses, err) < 0 || refuse_ignored(&uses, by_default, err) < 0)
		return -err->code;

	auto_filter scmp_filter_ctx ctx = seccomp_init(by_default);
	if (!ctx)
		return cj_fail(err, ENOMEM, "compile the seccomp filter");
	for (size_t i = 0; i < seccomp->narchitectures; i++) {
		int rc = seccomp_arch_add(ctx, seccomp->architectures[i]);
		if (rc < 0 && rc != -EEXIST)
			return cj_fail(err, -rc, "seccomp: add architecture 0x%x",
				       seccomp->architectures[i]);
	}
	if (add_rules(ctx, seccomp, &uses, by_default, err) < 0)
		return -err->code;
	return export(ctx, a, out, err);
}

#define MESSAGE_MAX (64u << 10) /* annotations are most of it */

struct agent_message {
	size_t size;
	char text[MESSAGE_MAX];
};

void seccomp_agent_close(struct seccomp_agent *agent)
{
	cj_close(&agent->sock_fd);
	if (agent->message)
		(void)munmap(agent->message, sizeof(*agent->message)); /* only memory */
	agent->message = NULL;
}

/* TSYNC is for other threads, and there are none with this filter. */
int process_filter_prepare(struct process *p, const struct oci_seccomp *seccomp, struct arena *a,
			   struct cj_error *err)
{
	if (!seccomp->is_given)
		return 0;
	if (process_filter_compile(seccomp, a, &p->filter, err) < 0)
		return -err->code;
	p->filter_flags = seccomp->flags &
			  ~(uint32_t)(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH);
	if (!p->no_new_privileges)
		p->kept_caps = UINT64_C(1) << CAP_SYS_ADMIN;

	if (!seccomp->notifies)
		return 0;
	p->filter_flags |= SECCOMP_FILTER_FLAG_NEW_LISTENER;
	auto_fd int sock_fd = unix_connect(seccomp->listener_path, err);
	if (sock_fd < 0)
		return cj_wrap(err, "seccomp agent");
	struct agent_message *message =
	    mmap(NULL, sizeof(*message), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (message == MAP_FAILED)
		return cj_fail(err, errno, "get memory for the message to the seccomp agent");
	p->agent.sock_fd = take_fd(&sock_fd);
	p->agent.message = message;
	return 0;
}

int process_describe(struct process *p, const struct process_state *state, pid_t pid,
		     struct cj_error *err)
{
	struct blob text;
	if (p->agent.sock_fd < 0)
		return 0;
	auto_json_writer struct json_writer *w = json_writer_create(false);
	/* The "container process state" of config-linux.md. */
	const char *version = p->config->oci_version;
	const char *metadata = p->config->on_linux.seccomp.listener_metadata;
	json_open_object(w);
	json_member_text(w, "ociVersion", version);
	json_member_array(w, "fds");
	json_put_string(w, "seccompFd");
	json_close_array(w);
	json_member_u64(w, "pid", (uint64_t)pid);
	json_member_given(w, "metadata", metadata);
	json_member_object(w, "state");
	json_member_text(w, "ociVersion", version);
	json_member_text(w, "id", state->id);
	json_member_text(w, "status", state->status);
	json_member_u64(w, "pid", (uint64_t)state->container_pid);
	json_member_text(w, "bundle", state->bundle);
	if (state->annotations && state->annotations->count > 0) {
		json_member_object(w, "annotations");
		for (size_t i = 0; i < state->annotations->count; i++)
			json_member_text(w, state->annotations->items[i].name,
					 state->annotations->items[i].value);
		json_close_object(w);
	}
	json_close_object(w);
	json_close_object(w);
	if (json_writer_take(w, &text, err) < 0)
		return -err->code;
	if (text.size > MESSAGE_MAX)
		return cj_reject_as(err, EMSGSIZE,
				    "the message to the seccomp agent has %zu bytes, "
				    "more than %u",
				    text.size, MESSAGE_MAX);
	memcpy(p->agent.message->text, text.bytes, text.size);
	p->agent.message->size = text.size;
	return 0;
}

static int load_with(const struct process *p, uint32_t flags)
{
	struct sock_fprog filter = p->filter;
	return sys_seccomp(SECCOMP_SET_MODE_FILTER, flags, &filter);
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

/*
 * Loads the filter, and sends its listener: returns when the agent's socket has the message.  This
 * process makes no system call in between.
 */
static int load_with_agent(const struct process *p, struct cj_error *err)
{
	pthread_t thread;
	struct sending sending = { .agent = &p->agent };
	atomic_init(&sending.listener, LISTENER_AWAITED);
	atomic_init(&sending.result, RESULT_AWAITED);
	if (p->agent.message->size == 0)
		return cj_reject(err, "the seccomp agent would receive no message");
	int rc = pthread_create(&thread, NULL, send_listener, &sending);
	if (rc != 0)
		return cj_fail(err, rc, "start the thread that sends the seccomp listener");

	int listener = load_with(p, p->filter_flags);
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

#define AGENT_FLAGS (SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)

int process_filter_load(const struct process *p, bool is_hook, struct cj_error *err)
{
	if (p->filter.len == 0)
		return 0;
	if (p->kept_caps && capabilities_raise(&p->caps, p->kept_caps, err) < 0) {
		(void)cj_hint(err, "without noNewPrivileges a seccomp filter needs CAP_SYS_ADMIN: "
				   "seccomp(2)");
		return cj_wrap(err, "load the seccomp filter");
	}
	if (p->agent.sock_fd >= 0 && !is_hook)
		return load_with_agent(p, err);
	if (load_with(p, p->filter_flags & ~(uint32_t)AGENT_FLAGS) < 0)
		return cj_fail(err, errno, "load the seccomp filter");
	return 0;
}
