/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject - runs cejail under ptrace(2) and makes one system call of one of its processes fail, or
 * kills one of them there.
 *
 *	inject REPORT list -- CEJAIL ARG...
 *	inject REPORT fail ROLE CALL ERRNO -- CEJAIL ARG...
 *	inject REPORT kill ROLE CALL VICTIM -- CEJAIL ARG...
 *
 *	ROLE, VICTIM  supervisor, init, netns-maker (of init), payload (until it is executed),
 *	              gateway (the program that opens it, or that of --upstream), loader (which it
 *	              forks, of rules and links),
 *	              intermediate, keeper, helper (pasta or slirp4netns until it is executed),
 *	              scope-helper; "intermediate2" is the second intermediate of a run; a helper of
 *	              libexec is a "scope-helper", and what it leaves behind a "holder" (of the
 *	              table that runs share on the host)
 *	              Of the keeper of a session (keeper.c), which is the supervisor: worker,
 *	              worker2, ... (of files and execs), reaper, reaper2, ... (of init)
 *	              Of `cejail mcp`, which is the supervisor: spawner, and its children: worker,
 *	              worker2, ... (of runs and of sessions), and theirs: init, init2, ..., and
 *	              "exec" (of a keeper); reaper (of any init), payload
 *	              Of `mcp broker`, which is the supervisor: keeper, keeper2, ... (of a
 *	              server), and payload, payload2, ... (the server, until it is executed)
 *	              Of bwrap, which is the supervisor: init, payload (until it is executed)
 *	CALL          the number of the role's call, or openat#3, the third of that name.  A role's
 *	              first call is the first after the dynamic loader has given up control: the
 *	              calls counted are ours and the libraries'.
 *	              openat#2.3 is the third in the second sample of the jail's processes, or in
 *	              the first sample after it that has so many: a clock decides how many samples
 *	              there are, and what they find, so their calls are counted apart
 *	ERRNO         a number.  The call is not carried out and returns it; close(2) is carried out
 *	              all the same, as Linux does it
 *
 * VICTIM gets its SIGKILL at the entry of the call.
 *
 * REPORT is a file for lines of words:
 *
 *	call ROLE NUMBER NAME#NTH PHASE RETURN ARGUMENT   (list) PHASE: before, or after the payload
 *	                                                  is executed
 *	done ROLE NUMBER NAME#NTH PHASE ARGUMENT          it was injected here
 *	miss VICTIM                                       there was no such process to kill
 *	end ROLE exited|killed NUMBER MS                  how a role ended, so long after `done`
 *	left ROLE                                         it outlived the supervisor by
 *	                                                  LINGER_SECONDS
 *	faults ROLE NUMBER                                (list) minor page faults, until it ended
 *	                                                  or executed a program of others
 *
 * Standard streams, descriptors and environment are the caller's.  Exit status: the supervisor's,
 * 128+N for signal N; 99 when inject itself has failed, which it says on standard error.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "facts.h"
#include "tests/patience.h"

#ifndef __x86_64__
#error "registers and the breakpoint instruction are x86-64's"
#endif

#define LINGER_SECONDS 10
#define TASKS_MAX      64
#define BREAKPOINT     0xcc
#define STATUS_BROKEN  99
#define OPTIONS                                                                                    \
	(PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |     \
	 PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD)
#define OPTIONS_LIST (OPTIONS | PTRACE_O_TRACEEXIT)

enum mode { MODE_LIST, MODE_FAIL, MODE_KILL };

struct task {
	pid_t pid;
	char role[16];               /* "": its parent's event has not come yet */
	bool waits_for_event;        /* it has stopped at its birth, and we don't know its role */
	bool is_over;                /* it has ended, and its parent's event has not come yet */
	bool is_counted;             /* its calls are ours */
	bool is_entered;             /* between entry and exit of a call */
	bool is_chosen;              /* the call it is in is the one */
	unsigned calls, call_nr;     /* how many so far; of the last, the kernel's number */
	unsigned nth[CALLS_MAX];     /* and of each name */
	bool is_sampling, is_listed; /* a sample goes on; its directory is closed */
	int sample_fd, closed_fd; /* that directory, -1: not opened yet; the call's, of close(2) */
	unsigned samples;         /* how many so far */
	unsigned sample_nth[CALLS_MAX]; /* as nth, in this sample */
	char argument[96];
	unsigned long long wanted_break; /* of brk(2) */
	uintptr_t entry;                 /* where the breakpoint is */
	long entry_word;                 /* what it hides */
};

static struct {
	enum mode mode;
	const char *role, *call_name, *victim;
	unsigned call_number, call_sample, call_nth; /* a number; or of a name, sample 0: in none */
	int error;
	bool is_done, is_after; /* injected; the payload has been executed */
	bool is_session;        /* the program is tests/system/pressure/keeper.c */
	bool is_mcp;            /* the program is `cejail mcp` */
	bool is_broker;         /* it is `mcp broker` */
	bool is_bwrap;          /* it is `cejail bwrap`, by its own name */
	bool is_reduced;        /* it is `cejail run --reduced` */
	long done_at_ms;
	FILE *report;
	struct task tasks[TASKS_MAX]; /* pid 0: free */
	pid_t supervisor;
	int status;
} the;

static void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void fail(const char *fmt, ...)
{
	int code = errno;
	va_list ap;
	va_start(ap, fmt);
	(void)fprintf(stderr, "inject: ");
	(void)vfprintf(stderr, fmt, ap);
	(void)fprintf(stderr, ": %s\n", strerror(code));
	va_end(ap);
	exit(STATUS_BROKEN);
}

/* --- tasks ------------------------------------------------------------------------------ */

static struct task *find_task(pid_t pid)
{
	for (size_t i = 0; i < TASKS_MAX; i++)
		if (the.tasks[i].pid == pid)
			return &the.tasks[i];
	return NULL;
}

static struct task *add_task(pid_t pid)
{
	struct task *t = find_task(0);
	if (!t) {
		errno = ENOSPC;
		fail("more than %d processes", TASKS_MAX);
	}
	*t = (struct task){ .pid = pid };
	return t;
}

static struct task *find_role(const char *role)
{
	for (size_t i = 0; i < TASKS_MAX; i++)
		if (the.tasks[i].pid != 0 && strcmp(the.tasks[i].role, role) == 0)
			return &the.tasks[i];
	return NULL;
}

/* Of the keeper of a session, whose first child is its server. */
static const char *role_in_session(const struct task *parent, pid_t pid, int event)
{
	static bool has_server;
	if (strcmp(parent->role, "init") == 0)
		return "reaper";
	if (strncmp(parent->role, "reaper", 6) == 0)
		return "payload";
	if (event == PTRACE_EVENT_VFORK)
		return "scope-helper";
	if (pid_depth(pid) > pid_depth(parent->pid))
		return "init";
	const char *role = has_server ? "worker" : "server";
	has_server = true;
	return role;
}

/* Of the MCP server: each of its jails has a worker, a child of the spawner. */
static const char *role_in_mcp(const struct task *parent, pid_t pid, int event)
{
	if (strcmp(parent->role, "supervisor") == 0)
		return event == PTRACE_EVENT_VFORK ? "scope-helper" : "spawner";
	if (strcmp(parent->role, "spawner") == 0)
		return "worker";
	if (strncmp(parent->role, "init", 4) == 0)
		return event == PTRACE_EVENT_VFORK ? "payload" : "reaper";
	if (strncmp(parent->role, "reaper", 6) == 0)
		return "payload";
	if (event == PTRACE_EVENT_VFORK)
		return "scope-helper";
	return pid_depth(pid) > pid_depth(parent->pid) ? "init" : "exec";
}

/* Of bwrap, whose init may have no pid namespace; with a network it has. */
static const char *role_in_bwrap(const struct task *parent, pid_t pid, int event)
{
	static bool has_init;
	if (strcmp(parent->role, "supervisor") != 0)
		return strcmp(parent->role, "scope-helper") == 0 ? "holder" : "payload";
	if (event == PTRACE_EVENT_VFORK)
		return "scope-helper";
	const bool is_init = !has_init || pid_depth(pid) > pid_depth(parent->pid);
	has_init = true;
	return is_init ? "init" : "intermediate";
}

/* Of a reduced run: its init has no pid namespace, and forks a guard before the program. */
static const char *role_in_reduced(const struct task *parent, int event)
{
	if (strcmp(parent->role, "supervisor") == 0)
		return event == PTRACE_EVENT_VFORK ? "scope-helper" : "init";
	if (strcmp(parent->role, "scope-helper") == 0)
		return "holder";
	return event == PTRACE_EVENT_VFORK         ? "payload"
	       : strcmp(parent->role, "init") == 0 ? "guard"
						   : "other";
}

static bool is_gateway(pid_t pid)
{
	static const char name[] = "/libexec/cejail/gateway";
	char path[64], exe[4096];
	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	ssize_t size = readlink(path, exe, sizeof(exe) - 1);
	exe[size > 0 ? size : 0] = '\0';
	const char *at = strstr(exe, name);
	return at && at[sizeof(name) - 1] == '\0';
}

/* The loader first; with names that are checked, then the dialer. */
static const char *role_of_gateway(void)
{
	static bool has_loader;
	const char *role = has_loader ? "other" : "loader";
	has_loader = true;
	return role;
}

/* One that stays comes with a pidfd: libexec_start().  Others are posix_spawn(3)'s. */
static bool begins_helper_that_stays(pid_t parent, int event)
{
	struct user_regs_struct regs;
	return event == PTRACE_EVENT_VFORK && ptrace(PTRACE_GETREGS, parent, NULL, &regs) == 0 &&
	       regs.orig_rax == SYS_clone && regs.rdi & CLONE_PIDFD;
}

static const char *role_of_child(const struct task *parent, pid_t pid, int event)
{
	if (strcmp(parent->role, "gateway") == 0 && is_gateway(parent->pid))
		return role_of_gateway();
	if (begins_helper_that_stays(parent->pid, event))
		return "gateway";
	if (the.is_session)
		return role_in_session(parent, pid, event);
	if (the.is_mcp)
		return role_in_mcp(parent, pid, event);
	if (the.is_bwrap)
		return role_in_bwrap(parent, pid, event);
	if (the.is_reduced)
		return role_in_reduced(parent, event);
	if (the.is_broker)
		return strcmp(parent->role, "supervisor") == 0 ? "keeper" : "payload";
	if (strcmp(parent->role, "init") == 0)
		return event == PTRACE_EVENT_VFORK ? "payload" : "netns-maker";
	if (strcmp(parent->role, "keeper") == 0)
		return "helper";
	if (strcmp(parent->role, "intermediate") == 0 || strcmp(parent->role, "intermediate2") == 0)
		return "keeper";
	if (strcmp(parent->role, "scope-helper") == 0)
		return "holder";
	if (strcmp(parent->role, "supervisor") != 0)
		return "other";
	if (event == PTRACE_EVENT_VFORK)
		return "scope-helper";
	if (pid_depth(pid) > pid_depth(parent->pid))
		return "init";
	return "intermediate";
}

/* The second of a kind is "intermediate2". */
static void name_task(struct task *t, const char *role)
{
	static struct {
		const char *role;
		unsigned count;
	} seen[16];
	size_t i = 0;
	while (seen[i].role && strcmp(seen[i].role, role) != 0)
		i++;
	seen[i].role = role;
	if (++seen[i].count == 1)
		(void)snprintf(t->role, sizeof(t->role), "%s", role);
	else
		(void)snprintf(t->role, sizeof(t->role), "%.10s%u", role, seen[i].count % 1000);
}

/* A stop costs as much as ten calls: only where a call is still looked for. */
static bool is_watched(const struct task *t)
{
	if (!t->is_counted || the.mode == MODE_LIST)
		return t->is_counted;
	return t->is_chosen || (!the.is_done && strcmp(t->role, the.role) == 0);
}

static void go_on(struct task *t, int signal)
{
	int how = is_watched(t) ? PTRACE_SYSCALL : PTRACE_CONT;
	if (ptrace(how, t->pid, NULL, (void *)(intptr_t)signal) < 0 && errno != ESRCH)
		fail("continue %s", t->role);
}

/* --- the report ---------------------------------------------------------------------------- */

static const char *phase(void)
{
	return the.is_after ? "after" : "before";
}

static const char *name_of(unsigned nr)
{
	static char number[24];
	if (nr < CALLS_MAX && call_names[nr])
		return call_names[nr];
	(void)snprintf(number, sizeof(number), "call%u", nr);
	return number;
}

/* "3", or "2.3" in the second sample. */
static const char *number_of(const struct task *t)
{
	static char number[32];
	if (t->is_sampling)
		(void)snprintf(number, sizeof(number), "%u.%u", t->samples,
			       t->sample_nth[t->call_nr % CALLS_MAX]);
	else
		(void)snprintf(number, sizeof(number), "%u", t->nth[t->call_nr % CALLS_MAX]);
	return number;
}

static void tell_call(const char *word, const struct task *t, const char *result)
{
	(void)fprintf(the.report, "%s %s %u %s#%s %s %s%s%s\n", word, t->role, t->calls,
		      name_of(t->call_nr), number_of(t), phase(), result, result[0] ? " " : "",
		      t->argument);
}

static void tell_faults(const struct task *t)
{
	if (the.mode == MODE_LIST)
		(void)fprintf(the.report, "faults %s %lu\n", t->role, page_faults(t->pid));
}

static long now_ms(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- arguments ------------------------------------------------------------------------------ */

static size_t read_memory(pid_t pid, uint64_t from, void *to, size_t room)
{
	size_t page = 4096 - from % 4096; /* the next page may not be there */
	struct iovec into = { to, room }, out = { (void *)from, room < page ? room : page };
	ssize_t got = process_vm_readv(pid, &into, 1, &out, 1, 0);
	return got < 0 ? 0 : (size_t)got;
}

/* A request of netlink(7) whose failure has a meaning of its own in trial.py; NULL: another. */
static const char *netlink_request(const struct task *t, const struct __ptrace_syscall_info *info)
{
	struct {
		struct nlmsghdr first;
		struct nfgenmsg header;
		struct nlmsghdr second;
	} sent = { 0 };
	(void)read_memory(t->pid, info->entry.args[1], &sent, sizeof(sent));
	if (sent.first.nlmsg_type == RTM_GETLINK)
		return "getlink";
	if (sent.first.nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETTABLE))
		return "get-table";
	bool is_batch = sent.first.nlmsg_type == NFNL_MSG_BATCH_BEGIN &&
			sent.first.nlmsg_len == sizeof(sent.first) + sizeof(sent.header);
	if (is_batch && sent.second.nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE))
		return "delete-table";
	return NULL;
}

/* One word.  A process that may not be read (it is not dumpable, and we are not root) has "?". */
static void read_argument(struct task *t, const struct __ptrace_syscall_info *info)
{
	int at = text_argument(t->call_nr);
	const char *request = t->call_nr == SYS_sendto ? netlink_request(t, info) : NULL;
	if (request) {
		(void)snprintf(t->argument, sizeof(t->argument), "%s", request);
		return;
	}
	if (t->call_nr == SYS_close_range) { /* "3-" to the last one, "3-7" to the seventh */
		const unsigned last = (unsigned)info->entry.args[1];
		int size = snprintf(t->argument, sizeof(t->argument), "%u-",
				    (unsigned)info->entry.args[0]);
		if (last != ~0u)
			(void)snprintf(t->argument + size, sizeof(t->argument) - (size_t)size, "%u",
				       last);
		return;
	}
	if (at < 0) {
		(void)snprintf(t->argument, sizeof(t->argument), "%lld",
			       (long long)(int)info->entry.args[0]);
		return;
	}
	char bytes[sizeof(t->argument)] = "";
	size_t room = sizeof(bytes) - 1;
	if (t->call_nr == SYS_write && info->entry.args[2] < room)
		room = info->entry.args[2];
	if (read_memory(t->pid, info->entry.args[at], bytes, room) == 0)
		bytes[0] = '?';
	for (char *c = bytes; *c; c++)
		if (!isgraph((unsigned char)*c))
			*c = '_';
	(void)snprintf(t->argument, sizeof(t->argument), "%s", bytes[0] ? bytes : "''");
}

/* --- calls ------------------------------------------------------------------------------------ */

static bool is_the_one(const struct task *t)
{
	if (the.mode == MODE_LIST || the.is_done || strcmp(t->role, the.role) != 0)
		return false;
	if (!the.call_name)
		return t->calls == the.call_number;
	if (strcmp(name_of(t->call_nr), the.call_name) != 0 ||
	    t->is_sampling != (the.call_sample > 0))
		return false;
	if (t->is_sampling && t->samples < the.call_sample)
		return false;
	const unsigned *nth = t->is_sampling ? t->sample_nth : t->nth;
	return nth[t->call_nr % CALLS_MAX] == the.call_nth;
}

static struct user_regs_struct registers(const struct task *t)
{
	struct user_regs_struct regs = { 0 };
	if (ptrace(PTRACE_GETREGS, t->pid, NULL, &regs) < 0)
		fail("read the registers of %s", t->role);
	return regs;
}

static void set_registers(const struct task *t, struct user_regs_struct regs)
{
	if (ptrace(PTRACE_SETREGS, t->pid, NULL, &regs) < 0)
		fail("write the registers of %s", t->role);
}

/* brk(2) of the kernel has no error: it stays and says where it is, as for brk(0). */
static void skip_call(struct task *t)
{
	struct user_regs_struct regs = registers(t);
	t->wanted_break = regs.rdi;
	if (t->call_nr == SYS_brk)
		regs.rdi = 0;
	else
		regs.orig_rax = (unsigned long long)-1; /* no such call: nothing is carried out */
	set_registers(t, regs);
}

static void answer_call(const struct task *t)
{
	struct user_regs_struct regs = registers(t);
	if (t->call_nr == SYS_brk)
		regs.rdi = t->wanted_break; /* callers rely on their arguments staying */
	else
		regs.rax = (unsigned long long)-the.error;
	set_registers(t, regs);
}

static void kill_victim(void)
{
	struct task *victim = find_role(the.victim);
	if (!victim || kill(victim->pid, SIGKILL) < 0)
		(void)fprintf(the.report, "miss %s\n", the.victim);
}

#define WALK_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static bool is_of_process(const struct task *t, const struct __ptrace_syscall_info *info)
{
	char letter = 0;
	if (t->call_nr != SYS_openat)
		return t->call_nr == SYS_pread64 || t->call_nr == SYS_close;
	(void)read_memory(t->pid, info->entry.args[1], &letter, 1);
	return isdigit((unsigned char)letter);
}

/* Only /proc is opened so: other "." are without O_NOFOLLOW. */
static bool opens_walk(const struct task *t, const struct __ptrace_syscall_info *info)
{
	char path[2] = "";
	return t->call_nr == SYS_openat && info->entry.args[2] == WALK_FLAGS &&
	       read_memory(t->pid, info->entry.args[1], path, sizeof(path)) == sizeof(path) &&
	       memcmp(path, ".", sizeof(path)) == 0;
}

/*
 * The samples that usage_watch.c takes.  Each opens "." of the jail's /proc anew and lists it; the
 * files of each process ("4/stat") are read before that is closed, or right after it.
 */
static void watch_sample(struct task *t, const struct __ptrace_syscall_info *info)
{
	if (t->is_sampling && t->is_listed && !is_of_process(t, info))
		t->is_sampling = false;
	if (t->is_sampling || !opens_walk(t, info))
		return;
	t->is_sampling = true;
	t->is_listed = false;
	t->sample_fd = -1;
	t->samples++;
	memset(t->sample_nth, 0, sizeof(t->sample_nth));
}

static void note_listing(struct task *t, const struct __ptrace_syscall_info *info)
{
	if (t->sample_fd < 0)
		t->sample_fd = (int)info->exit.rval;
	t->is_listed |= t->sample_fd < 0 || t->closed_fd == t->sample_fd;
}

static void on_entry(struct task *t, const struct __ptrace_syscall_info *info)
{
	t->is_entered = true;
	t->calls++;
	t->call_nr = (unsigned)info->entry.nr;
	t->closed_fd = t->call_nr == SYS_close ? (int)info->entry.args[0] : -1;
	watch_sample(t, info);
	(t->is_sampling ? t->sample_nth : t->nth)[t->call_nr % CALLS_MAX]++;
	t->is_chosen = is_the_one(t);
	if (!t->is_chosen && the.mode != MODE_LIST)
		return;
	read_argument(t, info);
	if (!t->is_chosen)
		return;

	the.is_done = true;
	the.done_at_ms = now_ms();
	tell_call("done", t, "");
	if (the.mode == MODE_KILL)
		kill_victim();
	else if (t->call_nr != SYS_close)
		skip_call(t);
}

static void on_return(struct task *t, const struct __ptrace_syscall_info *info)
{
	char result[24];
	if (!t->is_entered)
		return;
	t->is_entered = false;
	if (t->is_chosen && the.mode == MODE_FAIL)
		answer_call(t);
	t->is_chosen = false;
	(void)snprintf(result, sizeof(result), "%lld", (long long)info->exit.rval);
	if (the.mode == MODE_LIST)
		tell_call("call", t, result);
	if (t->is_sampling)
		note_listing(t, info);
}

static void on_call(struct task *t)
{
	struct __ptrace_syscall_info info = { 0 };
	if (ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, sizeof(info), &info) < 0) {
		if (errno == ESRCH)
			return; /* killed meanwhile: its end is reported next */
		fail("read a call of %s", t->role);
	}
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		on_entry(t, &info);
	else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
		on_return(t, &info);
}

/* --- execve: where the loader hands over
 * ---------------------------------------------------------- */

static void plant_breakpoint(struct task *t)
{
	t->entry = entry_point(t->pid);
	errno = 0;
	t->entry_word = ptrace(PTRACE_PEEKTEXT, t->pid, (void *)t->entry, NULL);
	if (t->entry == 0 || errno != 0 ||
	    ptrace(PTRACE_POKETEXT, t->pid, (void *)t->entry,
		   (void *)((t->entry_word & ~0xffL) | BREAKPOINT)) < 0)
		fail("put a breakpoint into %s", t->role);
}

/* True: it was ours, and the program goes on as if nothing had been. */
static bool on_breakpoint(struct task *t)
{
	struct user_regs_struct regs;
	if (t->entry == 0 || ptrace(PTRACE_GETREGS, t->pid, NULL, &regs) < 0 ||
	    regs.rip != t->entry + 1)
		return false;
	regs.rip = t->entry;
	if (ptrace(PTRACE_POKETEXT, t->pid, (void *)t->entry, (void *)t->entry_word) < 0 ||
	    ptrace(PTRACE_SETREGS, t->pid, NULL, &regs) < 0)
		fail("take the breakpoint out of %s", t->role);
	t->entry = 0;
	t->is_counted = true;
	return true;
}

/* A program that is not cejail's is not traced, nor the helper of --upstream. */
static void on_exec(struct task *t)
{
	bool is_ours = t->pid == the.supervisor || strncmp(t->role, "scope-helper", 12) == 0 ||
		       is_gateway(t->pid);
	if (strncmp(t->role, "payload", 7) == 0)
		the.is_after = true;
	t->is_entered = t->is_chosen = false;
	if (is_ours) {
		t->is_counted = false;
		plant_breakpoint(t);
		go_on(t, 0);
		return;
	}
	tell_faults(t);
	if (ptrace(PTRACE_DETACH, t->pid, NULL, NULL) < 0 && errno != ESRCH)
		fail("let %s go", t->role);
	t->pid = 0;
}

/* --- events
 * ------------------------------------------------------------------------------------------ */

static void on_birth(struct task *parent, int event)
{
	unsigned long pid = 0;
	if (ptrace(PTRACE_GETEVENTMSG, parent->pid, NULL, &pid) < 0)
		return; /* killed meanwhile; the child is found at its own stop, or is dead, too */
	struct task *child = find_task((pid_t)pid);
	if (!child)
		child = add_task((pid_t)pid);
	name_task(child, role_of_child(parent, (pid_t)pid, event));
	if (child->is_over) {
		child->pid = 0;
		return;
	}
	child->is_counted = parent->is_counted && strcmp(child->role, "server") != 0;
	if (child->waits_for_event) {
		child->waits_for_event = false;
		go_on(child, 0);
	}
}

/* Of a parent that was killed while it forked, no event comes. */
static void release_orphans(void)
{
	for (size_t i = 0; i < TASKS_MAX; i++) {
		struct task *t = &the.tasks[i];
		if (t->pid == 0 || !t->waits_for_event)
			continue;
		t->waits_for_event = false;
		go_on(t, 0);
	}
}

static void on_end(struct task *t, int status)
{
	bool is_exit = WIFEXITED(status);
	(void)fprintf(the.report, "end %s %s %d %ld\n", t->role[0] ? t->role : "unnamed",
		      is_exit ? "exited" : "killed",
		      is_exit ? WEXITSTATUS(status) : WTERMSIG(status),
		      the.is_done ? now_ms() - the.done_at_ms : 0);
	if (t->pid == the.supervisor) {
		the.status = is_exit ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		the.supervisor = 0;
		release_orphans();
		(void)alarm(patience_s(LINGER_SECONDS));
	}
	t->is_over = t->role[0] == '\0';
	t->waits_for_event = false;
	if (!t->is_over)
		t->pid = 0;
}

static void on_event(struct task *t, int event, int signal)
{
	switch (event) {
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		on_birth(t, event);
		go_on(t, 0);
		return;
	case PTRACE_EVENT_EXEC:
		on_exec(t);
		return;
	case PTRACE_EVENT_EXIT:
		tell_faults(t);
		go_on(t, 0);
		return;
	case PTRACE_EVENT_STOP:
		if (t->role[0] == '\0' && the.supervisor != 0)
			t->waits_for_event = true; /* its parent says who it is */
		else if (signal != SIGTRAP)
			(void)ptrace(PTRACE_LISTEN, t->pid, NULL, NULL); /* it stays stopped */
		else
			go_on(t, 0);
		return;
	default:
		go_on(t, 0);
	}
}

static void on_stop(struct task *t, int status)
{
	int signal = WSTOPSIG(status), event = status >> 16;
	if (event != 0) {
		on_event(t, event, signal);
		return;
	}
	if (signal == (SIGTRAP | 0x80)) {
		on_call(t);
		signal = 0;
	} else if (signal == SIGTRAP && on_breakpoint(t)) {
		signal = 0;
	}
	go_on(t, signal);
}

static void on_alarm(int signal)
{
	(void)signal; /* waitpid(2) returns */
}

/* waitpid(2) has its favourites: each gets its turn, or one that calls without end is all we hear.
 */
static pid_t wait_for_anyone(int *status)
{
	static size_t turn;
	for (size_t i = 0; i < TASKS_MAX; i++) {
		turn = (turn + 1) % TASKS_MAX;
		pid_t pid = the.tasks[turn].pid;
		if (pid != 0 && waitpid(pid, status, __WALL | WNOHANG) == pid)
			return pid;
	}
	return waitpid(-1, status, __WALL);
}

static void follow(void)
{
	for (;;) {
		int status;
		pid_t pid = wait_for_anyone(&status);
		if (pid < 0)
			break; /* ECHILD: all have ended; EINTR: we have waited long enough */
		struct task *t = find_task(pid);
		if (!t)
			t = add_task(pid);
		if (WIFSTOPPED(status))
			on_stop(t, status);
		else
			on_end(t, status);
	}
	for (size_t i = 0; i < TASKS_MAX; i++)
		if (the.tasks[i].pid != 0 && !the.tasks[i].is_over)
			(void)fprintf(the.report, "left %s\n", the.tasks[i].role);
}

/* --- the beginning
 * ------------------------------------------------------------------------------------- */

/* We and what we trace take turns: waking up another processor each time takes four times as long.
 */
static void stay_on_one_processor(void)
{
	cpu_set_t one;
	int here = sched_getcpu();
	CPU_ZERO(&one);
	CPU_SET(here < 0 ? 0 : here, &one);
	(void)sched_setaffinity(0, sizeof(one), &one); /* slower without */
}

/* It waits until it is traced. */
static void start(char **command)
{
	int ends[2];
	char byte = 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		fail("make a pipe");
	pid_t pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		if (read(ends[0], &byte, 1) != 1)
			_exit(STATUS_BROKEN);
		(void)execv(command[0], command);
		fail("execute '%s'", command[0]);
	}
	struct task *t = add_task(pid);
	name_task(t, "supervisor");
	the.supervisor = pid;
	uintptr_t options = the.mode == MODE_LIST ? OPTIONS_LIST : OPTIONS;
	if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)options) < 0)
		fail("trace '%s'", command[0]);
	if (write(ends[1], &byte, 1) != 1)
		fail("start '%s'", command[0]);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void parse_call(char *text)
{
	char *mark = strchr(text, '#');
	if (mark) {
		*mark = '\0';
		the.call_name = text;
		char *dot = strchr(mark + 1, '.');
		the.call_sample = dot ? (unsigned)strtoul(mark + 1, NULL, 10) : 0;
		the.call_nth = (unsigned)strtoul(dot ? dot + 1 : mark + 1, NULL, 10);
	} else {
		the.call_number = (unsigned)strtoul(text, NULL, 10);
	}
}

/* The command's place in argv; 0: this is no way to call us. */
static int parse(int argc, char **argv)
{
	if (argc >= 5 && strcmp(argv[2], "list") == 0 && strcmp(argv[3], "--") == 0)
		return 4;
	if (argc < 8 || strcmp(argv[6], "--") != 0)
		return 0;
	the.role = argv[3];
	parse_call(argv[4]);
	if (strcmp(argv[2], "fail") == 0) {
		the.mode = MODE_FAIL;
		the.error = (int)strtoul(argv[5], NULL, 10);
		return the.error > 0 ? 7 : 0;
	}
	the.mode = MODE_KILL;
	the.victim = argv[5];
	return strcmp(argv[2], "kill") == 0 ? 7 : 0;
}

int main(int argc, char **argv)
{
	int at = parse(argc, argv);
	if (at == 0) {
		(void)fprintf(stderr, "usage: inject REPORT list|fail ROLE CALL ERRNO|"
				      "kill ROLE CALL VICTIM -- CEJAIL ARG...\n");
		return STATUS_BROKEN;
	}
	the.report = fopen(argv[1], "we");
	if (!the.report)
		fail("open '%s'", argv[1]);
	const struct sigaction once = { .sa_handler = on_alarm };
	(void)sigaction(SIGALRM, &once, NULL);

	const char *slash = strrchr(argv[at], '/');
	the.is_session = strcmp(slash ? slash + 1 : argv[at], "keeper") == 0;
	the.is_bwrap = strcmp(slash ? slash + 1 : argv[at], "bwrap") == 0;
	for (int i = at; i < argc; i++)
		the.is_reduced |= strcmp(argv[i], "--reduced") == 0;
	the.is_broker = argv[at + 1] && strcmp(argv[at + 1], "broker") == 0;
	the.is_mcp = argv[at + 1] && strcmp(argv[at + 1], "mcp") == 0;
	stay_on_one_processor();
	start(argv + at);
	follow();
	if (fclose(the.report) != 0)
		fail("write '%s'", argv[1]);
	return the.status;
}
