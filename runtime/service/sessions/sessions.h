/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions - the sessions and their execs.  The functions of this header keep the table: states,
 * leases, ceilings, kept results.  They make no system calls: time is an argument.  Those of
 * keeper_conn.h act.
 *
 * A session only moves forward through its states.  It counts for its caller, and reserves memory
 * (runs.h), until it has ended: then nothing of its jail is left.  The last ended sessions
 * of a caller are remembered, with the reason, and so are the last execs of a session.
 */
#pragma once

#include <sys/queue.h>

#include "profiles/config.h"
#include "runtime/base/byte_queue.h"
#include "runtime/base/json/json.h"
#include "runtime/service/access/account.h"
#include "runtime/service/log/api_error.h"
#include "runtime/service/keeper/keeper_channel.h"
#include "runtime/service/queue/execution.h"

#define SESSIONS_OF_A_CALLER_MAX 32 /* remembered */
#define SESSIONS_REMEMBERED_MAX  512
#define SESSION_EXECS_AT_ONCE    16 /* keeper_channel.h has room for these, a cell and files */
#define SESSION_EXECS_WAITING    32
#define SESSION_EXECS_REMEMBERED 32
#define SESSION_LEASE_MS         (5 * 60 * 1000) /* of a session that asks for none */
#define SESSION_RESULT_MS        (10 * 60 * 1000)
#define SESSION_HELD_MAX         (32u << 20) /* bytes of a caller on their way to programs */
#define SESSION_ALL_HELD_MAX     (256u << 20)

enum sessions_pipe_state {
	SESSIONS_PIPE_WAITS, /* for room in the pipe; its watch calls then */
	SESSIONS_PIPE_EMPTY,
	/* At the end of these it is closed. */
	SESSIONS_PIPE_WHOLE, /* all is written, and no more comes */
	SESSIONS_PIPE_GONE,  /* its reader has closed it */
	SESSIONS_PIPE_LOST, /* bytes could not be written: its end must not look like that of all */
};

enum entry_state { ENTRY_STARTING, ENTRY_LIVE, ENTRY_ENDING, ENTRY_ENDED, ENTRY_STATE_COUNT };
extern const char *const entry_state_names[ENTRY_STATE_COUNT];

/* Bytes of a caller on their way into a pipe: of a put to its worker, or to a program's input. */
struct sessions_pipe {
	struct loop *loop; /* borrowed */
	int fd;            /* -1: not there yet, or closed */
	struct watch watch;
	struct byte_queue queue; /* waits */
	bool is_open, is_closed; /* more may come from the caller; its reader takes no more */
	struct exchange *source; /* whose body is the rest; NULL: none, or it is whole */
	void (*flushed)(struct sessions_pipe *p, size_t written, enum sessions_pipe_state state);
};

struct exec_entry {
	TAILQ_ENTRY(exec_entry) link;
	struct session_entry *session;
	char id[PLAN_ID_MAX];
	bool is_detached, is_cell, is_finished;
	bool is_told;    /* that its session has ended */
	struct run *run; /* of an unfinished one */
	/* Of a finished one. */
	uint64_t created_ms, started_ms, ended_ms; /* since the epoch; 0: never */
	bool has_summary;
	enum status status;
	int exit_code;
	enum api_code error; /* API_OK: it had a result */
	uint64_t last_call;  /* the highest number of a call to a tool */
	char *result;        /* of a detached one; NULL: not kept, or no longer */
	size_t result_size;
	uint64_t kept_until_ms; /* monotonic */
	unsigned waiting;       /* callers that wait for its end */
	/* Of an unfinished one. */
	size_t held_bytes; /* of a detached one's request, and of its input */
	size_t body_size;  /* of these, the request, until its worker has it */
	uint64_t signals;  /* came while it was queued: bit N-1 is signal N */
	bool has_stdin;
	struct sessions_pipe input;
	size_t accepted; /* of the body of a request that is its input */
};
TAILQ_HEAD(exec_list, exec_entry);

struct sessions;
TAILQ_HEAD(session_waiters, session_waiter);
TAILQ_HEAD(file_operations, file_operation);

struct session_network {
	struct arena arena; /* of the lists */
	struct network_lists rules;
};
/*
 * session_network_create - copies the settings.
 *
 * `now`: the rules in force, which the settings narrow; NULL: they replace them.
 * Fails: ENOMEM; EPERM they would open what is closed now.  The message is also for a model.
 */
int session_network_create(const struct config *c, const struct session_network *now,
			   struct session_network **out, struct cj_error *err);
void session_network_destroy(struct session_network **n);

struct session_entry {
	TAILQ_ENTRY(session_entry) link;
	struct sessions *all;
	char id[PLAN_ID_MAX], caller[CALLER_NAME_MAX], profile[RUN_PROFILE_MAX];
	bool is_repl, has_tools;
	enum entry_state state;
	enum session_end reason; /* of ENTRY_ENDING and ENTRY_ENDED */
	const char *message;     /* a constant, or malloc'ed where is_own_message */
	bool is_own_message;
	struct account *account; /* NULL: ended */
	uint64_t memory_bytes;   /* its limit */
	struct reservation memory;
	uint64_t lease_ms, idle_ms;
	bool renew_on_use; /* what begins the idle time again also renews the lease */
	uint64_t lease_until_ms, idle_until_ms; /* monotonic */
	uint64_t created_ms, ended_ms;          /* since the epoch */
	struct exec_list execs;                 /* oldest first */
	size_t unfinished, finished;            /* of them */
	unsigned files;                         /* file operations in progress, without watches */
	struct run_gate exec_gate, cell_gate;   /* how many may run at once */
	bool is_isolated, has_usage;
	struct keeper_line usage; /* the last status */
	/* The rules of its network, and those that its keeper loads now; NULL: none.  malloc'ed. */
	struct session_network *network, *next_network;

	/* Of one that has not ended, on which keeper_conn.h acts. */
	struct worker_conn *conn;   /* to its keeper; NULL: that has ended */
	struct config base, config; /* its settings: of the profile, and with its request's */
	struct arena arena;         /* of the texts in both */
	struct run_order order;     /* without its body */
	bool is_callers_own;        /* the mistake that it failed of */
	uint64_t deadline_ms;       /* for the jail to be built, or to end; 0: none */
	uint64_t begun_ms, execs_ended;
	struct session_waiters waiters;    /* for it, and for its execs */
	struct file_operations operations; /* watches too */
	unsigned noperations;
};
TAILQ_HEAD(session_list, session_entry);

struct sessions_limits {
	unsigned count;
	uint64_t memory_bytes;      /* that all may reserve */
	bool reserves_limits;       /* also of sessions in which nothing runs */
	uint64_t lease_ms, idle_ms; /* the longest */
};

struct sessions {
	/* Borrowed, for keeper_conn.h; both outlive them. */
	struct executions *executions;
	struct loop *loop;

	struct session_list entries; /* oldest first, in any state */
	size_t live, ended;          /* live: that have not ended */
	struct reservations memory;
	uint64_t results_bytes, held_bytes;
	struct sessions_limits limits;
};

void sessions_fini(struct sessions *s);
/* At the start and after a reload: each later use of a session renews its times by no more. */
void sessions_set_limits(struct sessions *s, const struct sessions_limits *limits);

struct sessions_request {
	const char *id, *profile;
	struct account *account;
	bool is_repl, has_tools;                  /* has_tools: for its execs that name none */
	uint64_t memory_bytes, lease_ms, idle_ms; /* 0: the default */
	bool renew_on_use;
	uint64_t now_ms, epoch_ms;
};
/* A lease, an idle time or a memory limit above the limits: EPERM, and the message names it. */
int sessions_check_ceilings(const struct sessions *s, const struct sessions_request *o,
			    struct cj_error *err);
/* API_OK: this caller may have one more. */
enum api_code sessions_admit(const struct sessions *s, const struct account *a,
			     uint64_t memory_bytes);
/* Starting; all of it is copied, but for the account.  NULL: no memory. */
struct session_entry *sessions_add(struct sessions *s, const struct sessions_request *o);

/* Also of those that have ended.  The session of another caller is not found. */
struct session_entry *sessions_find(const struct sessions *s, const char *caller, const char *id);

void sessions_set_live(struct session_entry *e, uint64_t now_ms);
/* A line of its keeper has come. */
void sessions_note_usage(struct session_entry *e, const struct keeper_line *status);
/* The caller did something with it: its idle time begins again, and so may its lease. */
void sessions_touch(struct session_entry *e, uint64_t now_ms);
void sessions_renew(struct session_entry *e, uint64_t lease_ms, uint64_t now_ms);
/* From starting or live, once; later ones change nothing.  `message` NULL: the reason's. */
void sessions_set_ending(struct session_entry *e, enum session_end reason, const char *message);
/* Nothing of it is left.  Forgets the oldest ended ones above the limits. */
void sessions_end(struct sessions *s, struct session_entry *e, uint64_t epoch_ms);
/* Removes one that never lived. */
void sessions_drop(struct sessions *s, struct session_entry *e);

/*
 * sessions_due - a live session whose lease or idle time is over, or NULL; then *wait_ms is lowered
 * to the time until the next.
 */
struct session_entry *sessions_due(const struct sessions *s, uint64_t now_ms,
				   enum session_end *out_reason, uint64_t *wait_ms);

/* --- execs ------------------------------------------------------------------------- */

/* API_OK: the session may have one more. */
enum api_code sessions_admit_exec(const struct session_entry *e);
/* Unfinished; its `run` is to be set.  NULL: no memory. */
struct exec_entry *sessions_add_exec(struct session_entry *e, const char *id);
/* Removes one that did not begin after all. */
void sessions_drop_exec(struct sessions *s, struct exec_entry *x);
/* The newest with that id; NULL: none, or forgotten. */
struct exec_entry *sessions_find_exec(const struct session_entry *e, const char *id);
/*
 * sessions_finish_exec - `run` is read a last time.  A detached exec's result is copied and kept as
 * the limits allow; NULL: there is none, because of `error`.
 */
void sessions_finish_exec(struct sessions *s, struct exec_entry *x, const char *result, size_t size,
			  enum api_code error, uint64_t now_ms, uint64_t epoch_ms);
/*
 * sessions_hold - count bytes that wait in memory for an exec; finishing it releases the rest.
 *
 * API_OK: there is room.
 */
enum api_code sessions_hold(struct sessions *s, struct exec_entry *x, size_t bytes);
void sessions_release(struct sessions *s, struct exec_entry *x, size_t bytes);
/* Drops results that are too old; lowers *wait_ms to the time until the next. */
void sessions_expire_results(struct sessions *s, uint64_t now_ms, uint64_t *wait_ms);

/* --- JSON for callers, sessions_json.c: profiles/schema/session.json, exec.json -------------- */

/* Both clocks at one moment: leases are monotonic, callers read the time of day. */
struct sessions_now {
	uint64_t mono_ms, epoch_ms;
};

void sessions_json_put(struct json_writer *w, const struct session_entry *e,
		       const struct sessions_now *now);
/* Without its result. */
void sessions_json_put_exec(struct json_writer *w, const struct exec_entry *x);
/* The whole, with the result and a newline; malloc'ed.  NULL: no memory. */
char *sessions_json_exec(const struct exec_entry *x, size_t *out_size);
