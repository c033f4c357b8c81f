/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail - the engine: one program in a jail of its own.  For several in one jail: session.h.
 *
 *	jail_prepare(plan)     build and seal the jail: nothing untrusted is inside yet
 *	jail_warm(launcher)    optional: start an interpreter inside, which waits for its program;
 *	                       faster from a zygote: a fork of an interpreter that runs already
 *	jail_set_up(command)   optional: run a command in it to its end, before the program
 *	jail_start(program)    send the program in and start it
 *	jail_wait(outcome)     watch it until the first terminal event, then kill the jail
 *	jail_destroy()         always; releases everything, in any state
 *
 * prepare/prepare.c opens with the theory of operation.
 */
#pragma once

#include <signal.h>

#include "profiles/plan/plan.h"
#include "runtime/base/error.h"
#include "runtime/jail/outcome.h"

struct jail;
struct denial;
struct network_outcome;

/* What was refused: a packet or a system call; the other is NULL. */
struct jail_denied {
	const struct denial *packet; /* its row, counted so far */
	const char *syscall;         /* its name */
};

enum call_end {
	CALL_ANSWERED,
	CALL_FAILED,
	CALL_TIMED_OUT,
	CALL_CANCELLED,
	CALL_REFUSED, /* it did not begin */
	CALL_END_COUNT
};
extern const char *const call_end_names[CALL_END_COUNT]; /* "answered", "failed", "timeout", ... */

/* One call of the program to a tool begins, ends, or is refused. */
struct jail_call {
	uint64_t id;           /* counted by the supervisor; 0: it is refused */
	const char *name;      /* of a refused call the program's text; NULL: it has none */
	const char *arguments; /* one JSON object, as the program wrote it; NULL: the call ends */
	size_t arguments_size;
	enum call_end end; /* where it ends, after so many ms */
	uint64_t ms;
	const char *reason; /* where it is refused */
};

/* Every callback may be NULL. */
struct jail_io {
	int stdin_fd;  /* the program's input; -1: /dev/null */
	int stdout_fd; /* pass the program's output on to these as it comes; -1: only keep it */
	int stderr_fd;
	bool escape[2]; /* stdout, stderr are terminals: show control characters as \xNN */
	int tty_fd;     /* --tty: the caller's terminal; -1: none */
	/* They become descriptors 3 and 4 of the program: a session's REPL; 0: none. */
	int channel_fd, calls_far_fd;
	/*
	 * A stream socket to the caller, who answers the calls of program->tools (calls.h); 0:
	 * none.  calls_brief: it carries the hash of the arguments, and `called` has them;
	 * arguments of at most calls_quoted bytes are there, too.
	 */
	int calls_fd;
	bool calls_brief;
	uint64_t calls_quoted;
	/* The program has started, and has written to stdout (stream 0) or stderr (1). */
	void (*started)(void *context);
	void (*output)(void *context, size_t stream, const void *bytes, size_t size);
	/* Something was refused; packets at most as often as the kernel logs. */
	void (*denied)(void *context, const struct jail_denied *d);
	/* False: nobody gets to know of this call that begins, so it fails. */
	bool (*called)(void *context, const struct jail_call *call);
	/* The public network became ready, or failed: its state, reason and uplink. */
	void (*network)(void *context, const struct network_outcome *n);
	/*
	 * False: the receiver of events has no room for more.  Then output stays in its pipe and
	 * the program waits, until room_fd can be written.  NULL: events never delay output.
	 */
	bool (*has_room)(void *context);
	void *context;
	int room_fd;   /* with has_room */
	int hangup_fd; /* the run is cancelled when this descriptor's other end closes; -1: none */
	/* The run is cancelled so long after the end of stdin_fd; 0: it is not. */
	uint64_t input_grace_ms;
};

/*
 * jail_prepare - from a plan to a sealed jail.
 *
 * The calling process must have one thread: init is a copy of it, without any other thread.
 * `id` names the cgroup leaf and the record.  Blocks PIPE, XFSZ, TERM and, where they would end
 * the calling process, INT, HUP, QUIT, ALRM and XCPU, with a terminal also WINCH (jail_destroy
 * restores them).  They are read from a descriptor, and any but PIPE, XFSZ and WINCH cancels the
 * run.
 * Fails: with the stage's name in err->stage; nothing is acquired then.
 */
int jail_prepare(const struct plan *plan, const char *id, struct jail **out, struct cj_error *err);

/*
 * jail_prepare_session - the same for a jail that may become a session: STEP_SESSION makes its
 * init call serve(), which returns only on failure.  For session_prepare() (session.h).
 */
int jail_prepare_session(const struct plan *plan, const char *id,
			 int (*serve)(struct jail *j, struct cj_error *err), struct jail **out,
			 struct cj_error *err);

#define JAIL_NO_ZYGOTE (-1)

/*
 * jail_warm - start `launcher` in the sealed jail; returns when the launcher is ready.
 *
 * The launcher is a program of ours (plan_launcher()), so nothing untrusted is inside yet.  It
 * sends a byte on its descriptor 3 when it is ready.  jail_start() sends it the program's arguments
 * there, and the launcher's process becomes the program.  The CPU time until now does not count as
 * the program's; the memory does. A waiting jail has no time limit.  Borrows `launcher` until
 * jail_start(), which refuses (EINVAL) a program with another command before the code, environment
 * or directory.
 *
 * zygote_fd: JAIL_NO_ZYGOTE, or a zygote's socket (zygote/zygote.h).  Then the launcher is a fork
 * of that zygote, which was spawned with `launcher`, and the plan must have uses_zygote.
 *
 * Fails: with the launcher's last line and how it ended; ETIMEDOUT; EBUSY if the zygote has more
 * than one thread, and will never serve.  Then destroy the jail; a new one needs no zygote.
 */
int jail_warm(struct jail *j, int zygote_fd, const struct program *launcher, struct cj_error *err);

/* While a prepared jail has no program: readable when its init or its launcher has ended. */
int jail_waiting_fd(const struct jail *j);

/* Reads the program's code and inputs with the caller's rights, sends them to init, starts
 * the payload.  Once for each jail. */
int jail_start(struct jail *j, const struct program *program, const struct jail_io *io,
	       struct cj_error *err);

/*
 * jail_set_up - before jail_start(): run a first command in the jail to its end.
 *
 * `setup` has the program's copied files and its arguments as data, and no code; jail_start() then
 * sends the code, over a file that the command may have put there.  All processes that the command
 * leaves are killed.  Afterwards the network is what plan->setup says.
 * *out is the command's outcome, also on failure.
 * Fails: when the command could not be executed, or did not exit with 0, and when the network can't
 * be changed.  Then destroy the jail.  ECANCELED: a signal or the caller has ended it.
 */
int jail_set_up(struct jail *j, const struct program *setup, const struct jail_io *io,
		struct outcome *out, struct cj_error *err);

/*
 * jail_wait - exactly one outcome, on success and on failure.
 * Fails only when cejail itself did; *out is then a STATUS_SETUP_ERROR with the same error.
 */
int jail_wait(struct jail *j, struct outcome *out, struct cj_error *err);

/* After jail_wait: copy artefacts into a directory of the caller's, or where dest_fd is -1 into
 * memory, at most max_bytes of them together (artifacts.h); fills out->artifacts. */
int jail_collect(struct jail *j, int dest_fd, uint64_t max_bytes, struct outcome *out,
		 struct cj_error *err);

/* After jail_wait: the program's return value (return_value.h) into out->value, or a warning why it
 * is not used. */
void jail_read_value(const struct jail *j, struct outcome *out);

/* Removes the file of the value; a value that can't be removed may be there again. */
void jail_forget_value(const struct jail *j, const char *path);

/* A signal that would have cancelled the run, and is too late, gets lost in jail_destroy().  Else
 * it then acts on the calling process.  NULL: nothing. */
void jail_discard_signals(struct jail *j);

void jail_destroy(struct jail **j);

/* The signals that cancel a run of this process: TERM, and of the above those that would end it. */
void jail_ending_signals(sigset_t *out);
