/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome - how a run ended, with the evidence.  The front ends translate it.
 */
#pragma once

#include "netns/firewall/denials.h"
#include "netns/network.h"
#include "profiles/plan/plan.h"
#include "rootfs/files/artifacts.h"
#include "runtime/base/json/json.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/files/sha256.h"
#include "runtime/kernel/seccomp/filter.h"

enum status {
	STATUS_EXITED,
	STATUS_SIGNALED,
	STATUS_TIMEOUT,
	STATUS_CPU_LIMIT,
	STATUS_OOM,
	STATUS_OUTPUT_LIMIT,
	STATUS_CANCELLED,
	STATUS_SETUP_ERROR,
	STATUS_COUNT
};

enum limit {
	LIMIT_MEMORY,
	LIMIT_CPUS,
	LIMIT_PIDS,
	LIMIT_WALL,
	LIMIT_CPU_TIME,
	LIMIT_DISK,
	LIMIT_NOFILE,
	LIMIT_OUTPUT,
	LIMIT_COUNT
};

enum limit_enforcer {
	NOT_ENFORCED,
	ENFORCED_BY_CGROUP,
	ENFORCED_BY_RLIMIT,
	ENFORCED_BY_SUPERVISOR,
	ENFORCED_BY_TMPFS,
	LIMIT_ENFORCER_COUNT
};

/* Was the limit reached?  In the result: false, true, null. */
enum limit_hit { HIT_NO, HIT_YES, HIT_UNKNOWN };

struct limit_state {
	uint64_t value; /* 0: not asked for */
	enum limit_enforcer enforced_by;
	enum limit_hit hit;
};

enum layer {
	LAYER_USER_NS,
	LAYER_PID_NS,
	LAYER_MOUNT_NS,
	LAYER_NETWORK_NS,
	LAYER_IPC_NS,
	LAYER_UTS_NS,
	LAYER_CGROUP_NS,
	LAYER_CGROUP, /* a cgroup v2 leaf of its own, whatever controllers it has */
	LAYER_ROOT,   /* read-only root */
	LAYER_NO_NEW_PRIVS,
	LAYER_CAPABILITIES, /* none in any set */
	LAYER_SECCOMP,
	LAYER_SYSCALL_REPORT, /* user notification */
	LAYER_LANDLOCK,
	LAYER_NETWORK_FILTER,
	LAYER_COUNT
};

enum layer_state { LAYER_ABSENT, LAYER_ON, LAYER_OFF, LAYER_STATE_COUNT };

/* The feature that a warning is about; DEGRADED_COUNT: another warning. */
enum degraded degraded_of(const char *warning);

/* The names in the result; tests compare them with the man page and the schema. */
extern const char *const status_names[STATUS_COUNT];
extern const char *const limit_names[LIMIT_COUNT]; /* "memory", "cpus", "pids", "wall", ... */
extern const char
    *const limit_units[LIMIT_COUNT]; /* of `value` in the result: "bytes", "ms", ... */
extern const char *const limit_enforcer_names[LIMIT_ENFORCER_COUNT];
extern const char *const layer_names[LAYER_COUNT];
extern const char *const layer_state_names[LAYER_STATE_COUNT];

/*
 * capture - one output stream: its head, its tail, and the number of its bytes.
 *
 * Memory is bounded by the cap, grows only as output comes, and every byte is counted.
 */
struct capture {
	uint64_t total; /* bytes of the stream */
	size_t cap;     /* bytes that are kept: half as head, half as tail */
	uint8_t *head;
	size_t head_size, head_room;
	uint8_t *tail; /* ring */
	size_t tail_size, tail_start, tail_room;
};

void capture_init(struct capture *c, size_t cap);
void capture_fini(struct capture *c);

/* -ENOMEM: the bytes are counted but not kept. */
int capture_add(struct capture *c, const void *bytes, size_t size);

bool capture_is_truncated(const struct capture *c);

/* True for an empty stream, or if its last kept byte is a newline. */
bool capture_ends_line(const struct capture *c);

/*
 * Head, then (if something was left out) a line "\n[... N bytes left out ...]\n", then the tail,
 * as one malloc'ed block with a NUL behind; cut so that no UTF-8 character is split where the
 * stream is UTF-8.  *out_kept counts only the program's own bytes.  NULL: no memory.
 */
char *capture_text(const struct capture *c, size_t *out_size, size_t *out_kept);

struct usage {
	uint64_t wall_ms, cpu_user_ms, cpu_system_ms;
	uint64_t memory_peak_bytes, pids_peak;
	bool has_memory_peak, has_pids_peak;
};

/* Of a session: what its network opens since it was changed. */
struct network_rules {
	struct network_lists lists;
	bool has_changed; /* since the result before */
};

struct network_outcome {
	enum uplink_kind uplink; /* UPLINK_AUTO: the run ended before one was chosen */
	enum network_state state;
	const char *why; /* NETWORK_FAILED: the reason, one line for the user; else NULL */
	const struct denial *denied;
	size_t ndenied;
	const struct http_upstream_use *upstreams; /* --upstream */
	size_t nupstreams;
	const struct network_rules *rules; /* NULL: they were never changed */
};

/* The calls of a program to one tool. */
struct call_count {
	const char *name; /* NULL: all refused calls without a name, or with too many names */
	uint64_t count, failed, refused; /* failed ones count, too; refused ones do not */
};

struct cell_outcome; /* session/repl/repl_channel.h */

struct outcome {
	struct arena arena; /* what the pointers below point into */
	char id[PLAN_ID_MAX];
	enum status status;
	bool has_status;   /* the first terminal event sets it, once (outcome_decide) */
	int exit_code;     /* of the program, or -1 */
	int signal;        /* or 0 */
	int cancel_signal; /* STATUS_CANCELLED: the signal; 0: the reader of the output closed it */
	bool is_cancelled_elsewhere; /* STATUS_CANCELLED at a service, by another request: a warning
				      * says why */
	int exec_errno;        /* the command could not be executed: ENOENT, EACCES, ...; else 0 */
	struct cj_error error; /* STATUS_SETUP_ERROR */
	struct capture output[2]; /* stdout, stderr */
	struct usage usage;
	struct limit_state limits[LIMIT_COUNT];
	enum layer_state layers[LAYER_COUNT];
	struct denied_syscall *denied;
	size_t ndenied;
	struct network_outcome network;
	const struct outcome *setup; /* of the command before the program, borrowed; NULL: none */
	const struct call_count *calls;
	size_t ncalls;
	struct artifacts artifacts;
	const struct json_node *value;   /* of the program; untrusted; NULL: none */
	const struct cell_outcome *cell; /* likewise, of a cell in a session; NULL: it was none */
	struct strings warnings;
	char code_sha256[SHA256_HEX_MAX]; /* "" without code */
	const char *code_real;            /* the file that was opened as code; NULL: not known */
	uint64_t started_epoch_ms;
};

void outcome_init(struct outcome *o, const char *id, size_t output_cap);
void outcome_fini(struct outcome *o);

/* The first terminal event wins; later calls change nothing. */
void outcome_decide(struct outcome *o, enum status status);

/* cejail itself failed: STATUS_SETUP_ERROR, even if a status was decided before. */
void outcome_fail(struct outcome *o, const struct cj_error *err);

/* The command could not be executed; nothing of the program ran. */
void outcome_exec_failed(struct outcome *o, int exec_errno);

/* A warning for the result and the terminal; a sentence, lower case, no full stop. */
void outcome_warn(struct outcome *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What the lines about a run have of its outcome. */
struct outcome_totals {
	enum status status;
	int exit_code, signal; /* -1 and 0 where there is none */
	uint64_t limits_hit;   /* a bit for each that was reached: 1 << LIMIT_MEMORY, ... */
	struct usage usage;
	uint64_t stdout_bytes, stderr_bytes, artifacts, denied_packets, denied_syscalls;
};
struct outcome_totals outcome_totals(const struct outcome *o);

/* The exit status of cejail: the table of cejail(1), EXIT STATUS. */
int outcome_exit_status(const struct outcome *o);
