/* SPDX-License-Identifier: Apache-2.0 */
/* The namespaces are created like those of a jail's init; all effects end with the child. */
#include "runtime/front/cli/doctor/doctor.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/ids/idmap.h"
#include "runtime/jail/record.h"

/* From here: the child.  It waits until its ids are mapped. */
_Noreturn static void child_main(int go_fd, int (*run)(void))
{
	char go;

	if (sys_read(go_fd, &go, 1) != 1) /* the parent failed */
		_exit(ECANCELED);
	if (setresgid(IDMAP_INSIDE_GID, IDMAP_INSIDE_GID, IDMAP_INSIDE_GID) < 0 ||
	    setresuid(IDMAP_INSIDE_UID, IDMAP_INSIDE_UID, IDMAP_INSIDE_UID) < 0)
		_exit(errno);
	_exit(run());
}

/* For root, the choice of ids may need the runtime directory, which may be missing. */
static int give_ids(pid_t pid, struct cj_error *err)
{
	struct idmap map = { .lock_fd = -1 };
	struct cj_error dir_error = { 0 };
	auto_fd int dir_fd = geteuid() == 0 ? record_open_dir(&dir_error) : -1;

	if (idmap_choose(dir_fd, &map, err) < 0) {
		if (dir_error.code != 0)
			*err = dir_error;
		return -err->code;
	}
	int rc = idmap_write(&map, pid, err);
	idmap_release(&map);
	return rc;
}

static struct probe_result result_of(enum probe_stage stage, int code, const char *msg)
{
	struct probe_result r = { .stage = stage, .code = code };
	(void)snprintf(r.msg, sizeof(r.msg), "%s", msg);
	return r;
}

static struct probe_result await_child(int pidfd)
{
	siginfo_t info = { 0 };

	if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0)
		return result_of(PROBE_BROKEN, errno, "wait for a child");
	if (info.si_code != CLD_EXITED)
		return result_of(PROBE_BROKEN, EINTR, "the child was killed");
	return result_of(info.si_status == 0 ? PROBE_DONE : PROBE_CALL, info.si_status, "");
}

struct probe_result probe_inside(unsigned namespaces, int (*run)(void))
{
	struct cj_error err = { 0 };
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return result_of(PROBE_BROKEN, errno, "create a pipe");
	auto_fd int read_fd = ends[0];
	auto_fd int write_fd = ends[1];
	auto_child int pidfd = -1;

	const struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_PIDFD | namespaces,
		.pidfd = (uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	pid_t pid = sys_clone3(&args);
	if (pid < 0)
		return result_of(PROBE_CLONE, errno, "");
	if (pid == 0) {
		(void)close(
		    write_fd); /* a copy here would prevent the end of file if the parent fails */
		child_main(read_fd, run);
	}
	if (give_ids(pid, &err) < 0)
		return result_of(PROBE_MAP, err.code, err.msg);
	if (sys_write(write_fd, "g", 1) != 1)
		return result_of(PROBE_BROKEN, errno, "start the child");

	struct probe_result r = await_child(pidfd);
	cj_close(&pidfd); /* the child is reaped: auto_child must not kill it */
	return r;
}

void check_trial(struct finding *f, const void *what)
{
	const struct trial *t = what;
	struct probe_result r = probe_inside(t->namespaces, t->run);

	if (r.stage == PROBE_DONE) {
		finding_set(f, FINDING_OK, "%s", t->good);
	} else if (r.stage != PROBE_CALL) { /* check_user_namespaces() has the reason */
		finding_set(f, FINDING_MISSING, "not tried: it needs a user namespace");
	} else if (!t->refused || !check_refusal(f, t->refused, r.code)) {
		finding_set(f, t->level, "%s%s%s", t->bad,
			    t->if_busy && r.code == EBUSY ? t->if_busy : strerror(r.code),
			    t->rest ? t->rest : "");
		finding_remedy_here(f, t->remedy);
	}
}
