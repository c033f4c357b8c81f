/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launcher that is a fork of a zygote.
 *
 * The supervisor does not rely on what the fork says of itself.  The kernel names the sender of the
 * message "sealed", and /proc says what restricts that process.
 */
#include "runtime/jail/supervise/start.h"

#include <fcntl.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "runtime/base/text.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/zygote/zygote_protocol.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"

/* Asks init for its side; the message owns the descriptors. */
static int ask_init(struct jail *j, struct step_msg *out, struct cj_error *err)
{
	if (!j->plan->uses_zygote)
		return cj_reject(err, "the jail was not prepared for a zygote");
	if (step_say(&j->link, STEP_ADOPT, err) < 0 ||
	    step_await(&j->link, STEP_ADOPTED, out, err) < 0)
		return -err->code;
	const size_t rulesets = j->layers[LAYER_LANDLOCK] == LAYER_ON;
	if (out->nfds != 1 + ZYGOTE_NAMESPACES + rulesets)
		return cj_fail(err, EPROTO, "receive the namespaces of the jail");
	return 0;
}

static int send_request(struct jail *j, int zygote_fd, int report_fd, const int stdio[3],
			int calls_fd, const struct step_msg *adopted, struct cj_error *err)
{
	const struct step_link link = { zygote_fd, "the zygote", zygote_step_names };
	struct zygote_job job = {
		.request = { .uid = j->plan->root.uid,
			     .gid = j->plan->root.gid,
			     .may_setgroups = j->ids.may_setgroups,
			     .pids_by_rlimit = !j->cgroup.enforced[CGROUP_PIDS],
			     .asks_network = j->filter.asks_network,
			     .closes_uncounted = !j->cgroup.enforced[CGROUP_MEMORY],
			     .ninsns = j->filter.ninsns,
			     .limits = j->plan->limits },
		.insns = j->filter.insns,
		.workdir = j->warm.launcher->workdir,
		.fds = { report_fd, adopted->fds[0], stdio[0], stdio[1], stdio[2], calls_fd },
	};
	const size_t rulesets = adopted->nfds - 1 - ZYGOTE_NAMESPACES; /* 0 or 1 */
	memcpy(job.fds + ZYGOTE_FD_NAMESPACES, adopted->fds + 1, ZYGOTE_NAMESPACES * sizeof(int));
	job.fds[ZYGOTE_FD_RULESET] = rulesets ? adopted->fds[1 + ZYGOTE_NAMESPACES] : -1;
	job.fds[ZYGOTE_FD_CGROUP] = cgroup_birth_fd(&j->cgroup);
	return zygote_request_send(&link, &job, err);
}

#define STATUS_BYTES_MAX 8192
#define NO_CAPABILITY    "0000000000000000"

/* A child of init, as the jail's user, without a privilege: proc_pid_status(5). */
static int check_status(const struct jail *j, pid_t pid, struct cj_error *err)
{
	char path[64], text[STATUS_BYTES_MAX], parent[32], uids[64], gids[64];
	const unsigned uid = j->ids.uid, gid = j->ids.gid;
	(void)snprintf(parent, sizeof(parent), "PPid:\t%d", (int)j->init_pid);
	(void)snprintf(uids, sizeof(uids), "Uid:\t%u\t%u\t%u\t%u", uid, uid, uid, uid);
	(void)snprintf(gids, sizeof(gids), "Gid:\t%u\t%u\t%u\t%u", gid, gid, gid, gid);
	const char *const lines[] = {
		parent,
		uids,
		gids,
		"CapInh:\t" NO_CAPABILITY,
		"CapPrm:\t" NO_CAPABILITY,
		"CapEff:\t" NO_CAPABILITY,
		"CapBnd:\t" NO_CAPABILITY,
		"CapAmb:\t" NO_CAPABILITY,
		"NoNewPrivs:\t1",
		"Seccomp:\t2",
		"Threads:\t1",
	};
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	ssize_t size = system_file_read(AT_FDCWD, path, text, sizeof(text));
	if (size < 0)
		return cj_fail(err, (int)-size, "read '%s'", path);
	for (size_t i = 0; i < COUNT_OF(lines); i++)
		if (!text_has_line(text, lines[i]))
			return cj_reject_as(err, EPERM,
					    "the fork of the zygote is not sealed: no '%s' in its "
					    "status",
					    lines[i]);
	return 0;
}

static int check_cgroup(const struct jail *j, pid_t pid, struct cj_error *err)
{
	const pid_t pids[] = { pid, j->init_pid };
	struct cgroup_self its[2];
	if (j->cgroup.dir_fd < 0)
		return 0;
	for (size_t i = 0; i < COUNT_OF(pids); i++) {
		int rc = cgroup_self_read(pids[i], &its[i]);
		if (rc < 0)
			return cj_fail(err, -rc, "read '/proc/%d/cgroup'", (int)pids[i]);
	}
	if (its[1].path[0] == '\0' || strcmp(its[0].path, its[1].path) != 0)
		return cj_reject_as(err, EPERM,
				    "the fork of the zygote is not in the jail's cgroup");
	return 0;
}

/* From here on the watch is the fork's: init refuses none of its own calls. */
static int take_listener(struct jail *j, struct step_msg *sealed, struct cj_error *err)
{
	if (sealed->nfds != (j->watch != NULL))
		return cj_fail(err, EPROTO, "receive the listener of the fork of the zygote");
	if (!j->watch)
		return 0;
	struct filter_watch *watch;
	if (filter_watch_create(take_fd(&sealed->fds[0]), &j->filter, &watch, err) < 0)
		return -err->code;
	filter_watch_destroy(&j->watch);
	j->watch = watch;
	filter_watch_set_proc(j->watch, j->handles.proc_fd);
	return 0;
}

static int await_sealed(struct jail *j, const struct step_link *report, struct cj_error *err)
{
	auto_step_msg struct step_msg sealed = { 0 };
	if (step_await(report, ZYGOTE_SEALED, &sealed, err) < 0)
		return -err->code;
	if (sealed.sender.pid <= 0 || sealed.sender.uid != j->ids.uid)
		return cj_reject_as(err, EPERM,
				    "the fork of the zygote does not run as the jail's user");
	if (check_status(j, sealed.sender.pid, err) < 0 ||
	    check_cgroup(j, sealed.sender.pid, err) < 0)
		return -err->code;
	return take_listener(j, &sealed, err);
}

/*
 * Waits until the zygote's intermediate processes have ended: it closes the report socket after
 * them.  They are in the jail's cgroup, so the end of the jail would kill them, and the zygote ends
 * with them (zygote_enter.c).  An error `rc` ends the jail at once.
 */
static int await_end_of_report(const struct step_link *report, int rc, struct cj_error *err)
{
	struct cj_error second = { 0 };
	if (rc == -ETIMEDOUT)
		return rc; /* this wait would be as long */
	if (rc < 0)
		(void)step_await_end(report, &second);
	else
		rc = step_await_end(report, err);
	return rc;
}

int adopt_launcher(struct jail *j, int zygote_fd, const int stdio[3], int calls_fd,
		   struct cj_error *err)
{
	auto_step_msg struct step_msg adopted = { 0 };
	int ends[2];
	if (ask_init(j, &adopted, err) < 0 || step_pair(ends, 0, err) < 0)
		return -err->code;
	step_limit_wait(ends[0], STEP_TIMEOUT_MS);

	auto_fd int near_fd = ends[0], far_fd = ends[1];
	const struct step_link report = { near_fd, "the zygote", zygote_step_names };
	if (step_ask_sender(&report, err) < 0 ||
	    send_request(j, zygote_fd, far_fd, stdio, calls_fd, &adopted, err) < 0)
		return -err->code;
	cj_close(&far_fd); /* or the end of the fork would not show */
	zygote_message_close(&adopted);
	return await_end_of_report(&report, await_sealed(j, &report, err), err);
}
