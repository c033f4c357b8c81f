/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs state, list, kill and delete. */
#include "runtime/container/container/container.h"

#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <strings.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

int container_config_stored(const struct state *s, struct arena *a, struct oci_config *out,
			    struct cj_error *err)
{
	char *text;
	size_t size;

	if (state_get_file(s, STATE_CONFIG, a, &text, &size, err) < 0)
		return cj_wrap(err, "container '%s'", s->id);
	return oci_config_read(STATE_CONFIG, text, size, a, out, err);
}

/* A container whose configuration is lost still has a state. */
static void write_state(struct json_writer *w, const struct state *s, struct arena *a,
			bool with_owner)
{
	struct cj_error lost = { 0 };
	struct oci_config config;
	bool is_known = container_config_stored(s, a, &config, &lost) == 0;

	state_status_write(w, s, state_status_of(s), is_known ? &config.annotations : NULL,
			   with_owner);
}

int container_state(struct oci_call *call, struct cj_error *err)
{
	auto_state struct state s = STATE_NULL;
	auto_json_writer struct json_writer *w = json_writer_create(true);

	if (state_open(call->options, false, call->arena, &s, err) < 0)
		return -err->code;
	write_state(w, &s, call->arena, false);
	return json_print(w, err);
}

static void list_one(const struct oci_options *o, const char *id, struct json_writer *w)
{
	auto_arena struct arena arena = { 0 };
	auto_state struct state s = STATE_NULL;
	struct cj_error ended = { 0 };
	struct oci_options of_one = { .root = o->root, .id = id };

	if (o->is_quiet) {
		(void)printf("%s\n", id);
		return;
	}
	/* deleted meanwhile, or half made */
	if (state_open(&of_one, false, &arena, &s, &ended) < 0)
		return;
	if (o->is_json) {
		write_state(w, &s, &arena, true);
		return;
	}
	enum state_status status = state_status_of(&s);
	char created[CLOCK_TEXT_MAX];
	clock_text(s.record.created_ms, created);
	(void)printf("%-24s %-8d %-9s %-24s %-40s %u\n", s.record.id,
		     status == STATE_STOPPED ? 0 : (int)s.record.pid, state_status_name(status),
		     created, s.record.bundle, (unsigned)s.record.owner_uid);
}

int container_list(struct oci_call *call, struct cj_error *err)
{
	const struct oci_options *o = call->options;
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct strings ids = { 0 };

	if (state_list(o, call->arena, &ids, err) < 0)
		return -err->code;
	if (!o->is_json && !o->is_quiet)
		(void)printf("%-24s %-8s %-9s %-24s %-40s %s\n", "ID", "PID", "STATUS", "CREATED",
			     "BUNDLE", "OWNER");
	json_open_array(w);
	for (size_t i = 0; i < ids.count; i++)
		list_one(o, ids.items[i], w);
	json_close_array(w);
	return o->is_json && !o->is_quiet ? json_print(w, err) : 0;
}

/* What people use besides the names of sigabbrev_np(3). */
static const struct {
	const char *name;
	int number;
} aliases[] = { { "CLD", SIGCHLD }, { "IO", SIGIO }, { "IOT", SIGABRT } };

#define RT_FIRST 34 /* what libc leaves to programs: signal(7) */
#define RT_LAST  64

/* "RTMIN+N", "RTMAX-N", "RTMIN", "RTMAX". */
static bool parse_real_time(const char *name, int *out)
{
	struct cj_error ignored = { 0 };
	bool from_min = strncasecmp(name, "RTMIN", 5) == 0;
	const char *rest = name + 5;
	uint64_t distance = 0;

	if (!from_min && strncasecmp(name, "RTMAX", 5) != 0)
		return false;
	if (rest[0] != '\0' &&
	    (rest[0] != (from_min ? '+' : '-') ||
	     parse_u64(rest + 1, 0, RT_LAST - RT_FIRST, &distance, &ignored) < 0))
		return false;
	*out = from_min ? RT_FIRST + (int)distance : RT_LAST - (int)distance;
	return true;
}

int container_signal_parse(const char *text, int *out, struct cj_error *err)
{
	struct cj_error ignored = { 0 };
	const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
	uint64_t number;

	if (isdigit((unsigned char)text[0]) &&
	    parse_u64(text, 0, RT_LAST, &number, &ignored) == 0) {
		*out = (int)number;
		return 0;
	}
	for (int i = 1; i < RT_FIRST; i++) {
		const char *own = sigabbrev_np(i);
		if (own && strcasecmp(name, own) == 0) {
			*out = i;
			return 0;
		}
	}
	for (size_t i = 0; i < COUNT_OF(aliases); i++)
		if (strcasecmp(name, aliases[i].name) == 0) {
			*out = aliases[i].number;
			return 0;
		}
	return parse_real_time(name, out) ? 0 : cj_reject(err, "unknown signal '%.32s'", text);
}

/* Without the lock: a hook of create or start may call it. */
static int signal_init(const struct state *s, int number, struct cj_error *err)
{
	auto_fd int pidfd = state_open_init(s, err);

	if (pidfd < 0)
		return pidfd;
	if (sys_pidfd_send_signal(pidfd, number) == 0)
		return 0;
	if (errno == ESRCH)
		return state_reject_stopped(s, err);
	return cj_fail(err, errno, "send signal %d to the container '%s'", number, s->id);
}

/* By the cgroup, also when init has died and others live, in a shared pid namespace. */
static int signal_all(const struct state *s, int number, struct cj_error *err)
{
	auto_container_cgroup struct container_cgroup cgroup = CONTAINER_CGROUP_NULL;

	if (container_cgroup_open(&s->record.cgroup, &cgroup, err) < 0)
		return -err->code;
	if (cgroup.dir_fd < 0) /* no cgroup: what init is not the parent of can't be found */
		return signal_init(s, number, err);
	if (!container_cgroup_is_populated(&cgroup))
		return state_reject_stopped(s, err);
	return container_cgroup_kill(&cgroup, number, err);
}

int container_kill(struct oci_call *call, struct cj_error *err)
{
	const struct oci_options *o = call->options;
	auto_state struct state s = STATE_NULL;
	int number = SIGTERM;

	if (o->operands.count > 0 && container_signal_parse(o->operands.items[0], &number, err) < 0)
		return -err->code;
	if (state_open(o, false, call->arena, &s, err) < 0)
		return -err->code;
	return o->all ? signal_all(&s, number, err) : signal_init(&s, number, err);
}

#define END_WAIT_MS 10000 /* a process that can't be killed sits in the kernel */

/* Zombies count as ended: their parent is the engine. */
static int end_init(const struct state *s, struct cj_error *err)
{
	struct cj_error ended = { 0 };
	auto_fd int pidfd = state_open_init(s, &ended);

	if (pidfd < 0) {
		if (ended.code == ESRCH)
			return 0;
		*err = ended;
		return -err->code;
	}
	if (sys_pidfd_send_signal(pidfd, SIGKILL) < 0 && errno != ESRCH)
		return cj_fail(err, errno, "kill the container '%s'", s->id);
	if (!fd_await(pidfd, POLLIN, END_WAIT_MS))
		return cj_fail(err, ETIMEDOUT, "wait for the end of the container '%s'", s->id);
	return 0;
}

int container_delete_all(const struct oci_options *o, struct state *s, struct arena *a,
			 struct cj_error *err)
{
	auto_container_cgroup struct container_cgroup cgroup = CONTAINER_CGROUP_NULL;
	struct cj_error failed = { 0 };
	struct oci_config config;

	if (s->is_lost)
		return state_remove(s, err);
	if (end_init(s, err) < 0)
		return -err->code;
	/* Who writes it reads the cgroup.  It must not keep a container from being removed. */
	if (state_await_result(s, &failed) < 0)
		oci_log_warning(o, &failed);
	if (container_cgroup_open(&s->record.cgroup, &cgroup, err) < 0 ||
	    container_cgroup_remove(&cgroup, err) < 0 ||
	    rdt_remove_recorded(&s->record.rdt, err) < 0)
		return -err->code;
	/* Hooks of create may have run, also if it was killed.  The container is gone: a failure of
	 * poststop is a warning, as the specification says. */
	if (s->record.pid > 0) {
		if (container_config_stored(s, a, &config, &failed) < 0)
			oci_log_warning(o, &failed);
		else
			container_hooks_run_each(o, &config, OCI_HOOK_POSTSTOP, s, STATE_STOPPED);
	}
	return state_remove(s, err);
}

/*
 * Before the lock: a command that waits for init, or init itself, may be stopped while it has it.
 * What can't be read or killed here is reported under the lock.
 */
static void kill_unlocked(const struct oci_options *o, struct arena *a)
{
	struct cj_error later = { 0 };
	auto_state struct state s = STATE_NULL;
	auto_container_cgroup struct container_cgroup cgroup = CONTAINER_CGROUP_NULL;

	if (state_open(o, false, a, &s, &later) < 0)
		return;
	state_kill_init(&s);
	if (container_cgroup_open(&s.record.cgroup, &cgroup, &later) == 0 && cgroup.dir_fd >= 0)
		(void)!container_cgroup_kill(&cgroup, SIGKILL, &later);
}

int container_delete(struct oci_call *call, struct cj_error *err)
{
	const struct oci_options *o = call->options;
	auto_state struct state s = STATE_NULL;

	if (o->force)
		kill_unlocked(o, call->arena);
	int rc = o->force ? state_open_any(o, call->arena, &s, err)
			  : state_open(o, true, call->arena, &s, err);

	if (rc == -ENOENT && o->force) {
		*err = (struct cj_error){ 0 };
		return 0;
	}
	if (rc < 0)
		return rc;
	enum state_status status = state_status_of(&s);
	if (!o->force && status != STATE_STOPPED && status != STATE_CREATED) {
		cj_refuse(err, "cannot delete container '%s' that is not stopped: %s", s.id,
			  state_status_name(status));
		return cj_hint(err, "delete --force kills it");
	}
	return container_delete_all(o, &s, call->arena, err);
}
