/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_config - /etc/cejail/serve.json: tables of keys, and their reader.
 *
 * A row is a key, an entry of cejail-serve(8) and of profiles/schema/serve.json, and, where it has
 * one, an option of `cejail serve` (serve_options.h).  Unknown keys, duplicates, values that can't
 * work are errors with file, line and column; a bad file at SIGHUP changes nothing.
 */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json_record.h"
#include "runtime/service/access/account.h"
#include "runtime/run/request/request.h"

#define SERVICE_CONFIG_FILE      "/etc/cejail/serve.json"
#define SERVICE_CONFIG_BYTES_MAX (1u << 20)
#define POOLS_MAX                16
#define AUDIT_ARGUMENTS_MAX      4096 /* an entry of the journal has room for them */

struct pool_config {
	const char *profile;
	unsigned jails, interpreters, repls; /* prepared ahead, each */
};

struct audit_config {
	const char *file; /* NULL: none */
	bool journal;
	bool sync;          /* fdatasync(2) each line */
	uint64_t arguments; /* of a call, at most so many bytes; 0: never */
};

struct mcp_config {
	struct strings profiles; /* count 0: the standard ones */
	uint64_t text_max;       /* struct mcp_tool */
};

struct service_config {
	struct arena arena;
	const char *socket; /* NULL: the default of who runs us; ignored with socket activation */
	unsigned socket_mode;
	const char *socket_group; /* NULL: leave it */
	const char *tcp;          /* "127.0.0.1:PORT" or "[::1]:PORT"; NULL: none */
	const char *token_file;   /* of "token:default"; NULL: the credential "token", or none */
	unsigned concurrency;     /* runs at once; 0: four for each CPU */
	unsigned queue;           /* that wait; more are refused */
	uint64_t queue_ms;        /* the longest time in the queue */
	uint64_t receive_ms;      /* for a whole request to arrive */
	struct request_caps caps;
	struct pool_config pools[POOLS_MAX];
	size_t npools;
	unsigned sessions;                /* at once; 0: none may be created */
	uint64_t session_lease_ms;        /* the longest */
	uint64_t session_idle_ms;         /* the longest, and what a session has that names none */
	size_t session_memory;            /* that all may reserve; 0: half of the host's */
	unsigned session_reserves_limits; /* 1, or 0: what they use */
	uint64_t pool_age_ms;             /* no prepared jail is used after that */
	uint64_t zygote_age_ms;           /* then the next one starts, or after so many children */
	unsigned zygote_children;
	struct callers callers;
	struct audit_config audit;
	const char *trace_file; /* NULL: none */
	struct mcp_config mcp;
	uint64_t drain_ms;         /* after SIGTERM, running ones may go on for so long */
	uint64_t probe_ms;         /* between two probe runs */
	const char *probe_profile; /* NULL: the strictest, health.h */
};

void service_config_init(struct service_config *c); /* the defaults */
void service_config_fini(struct service_config *c);
/* Onto the defaults; call it once.  `path` is for messages.  The text is no longer needed. */
int service_config_read(struct service_config *c, const char *path, const char *text, size_t size,
			struct cj_error *err);
/* What a setting alone can't know: which ones exclude or need each other.  After the options. */
int service_config_check(const struct service_config *c, struct cj_error *err);

/* --- the tables ------------------------------------------------------------- */

struct service_key {
	struct json_key json; /* it must be the first member: json_record.stride */
	const char *option;   /* without "--"; NULL: none */
	const char *value;    /* how the value is called: "PATH"; NULL: it is true or false */
	const char *standard; /* the default: a value, or a description in parentheses */
	const char *help;     /* one line */
};

/* The file's own keys, then those of its objects: "audit", "pool.PROFILE", "callers.NAME". */
struct service_table {
	const char *name; /* "": the file */
	const struct service_key *keys;
	size_t count;
};
extern const struct service_table service_tables[];
extern const size_t service_tables_count;

/* "127.0.0.1:PORT", "[::1]:PORT", any 127.x.y.z; nothing else, and no name. */
union tcp_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};
int tcp_address_parse(const char *text, union tcp_address *out, socklen_t *out_size,
		      struct cj_error *err);
