/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rights - what a caller may ask for, and what its ceilings clamp.
 *
 * The server validates a request's config against the rights.  The worker applies the clamps to
 * the config that it has read itself.
 *
 * One table has every key of a request and what it can do to the limits and the isolation of a run.
 * --request-fd, the API, its sessions and execs, and the tools of MCP all validate against this
 * table.  A key without a row is refused.
 */
#pragma once

#include "profiles/config.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"

/* No ceiling; 0: the profile's own value. */
#define CEILING_NONE UINT64_MAX

#define CALLER_NAME_MAX 64 /* "uid:1000", "token:ci" */

enum rights_effect {
	RIGHTS_NEUTRAL, /* no limit and no isolation depends on it, or other code bounds it */
	RIGHTS_LOWERS,  /* it can only lower or restrict what the profile or a ceiling gives */
	RIGHTS_RAISES,  /* it gives access to the host, so it needs host_paths */
};

/* -1: the table has no such key, so no request may have it. */
int rights_effect_of(const char *key);
/* The keys of the table, in its order; NULL: `i` is behind the last one. */
const char *rights_key(size_t i);

struct ceilings {
	uint64_t memory_bytes, millicpus, pids, wall_ms, disk_bytes, output_bytes;
};

/* Of a request that wants more network than its profile has. */
enum network_right { NETWORK_AS_PROFILE, NETWORK_NEVER, NETWORK_ANY, NETWORK_RIGHT_COUNT };

/* What a caller may do. */
struct rights {
	struct strings profiles; /* count 0: all there are */
	struct ceilings ceilings;
	enum network_right network;
	/* May name paths and end points of the host, and raise what has no ceiling. */
	bool host_paths;
	unsigned concurrent, queued;     /* 0: as many as the service has */
	unsigned sessions;               /* live ones; 0: none */
	unsigned rate_per_minute, burst; /* rate 0: not limited; else burst is at least 1 */
};

/* What a config limits, as ceilings. */
void rights_ceilings_of(const struct config *c, struct ceilings *out);
/* Each ceiling becomes the lower, or else the higher, of both. */
void rights_ceilings_merge(struct ceilings *into, const struct ceilings *other, bool to_lowest);

bool rights_has_profile(const struct rights *r, const char *profile);

/* What the rights take away from what only the profile gives. */
struct rights_clamp {
	struct ceilings ceilings; /* 0: the config's value stays */
	bool no_network;
};

/*
 * rights_validate - the effective config of a request against the caller's rights.
 *
 * `asked` is the config with the request's settings applied, `profile` without.  What the request
 * itself asks above a ceiling is refused (EACCES, the setting named); where only the profile gives
 * more, *clamp gets the ceiling, else 0.  A request that says the same as its profile looks like
 * one that says nothing.
 */
int rights_validate(const struct rights *r, const struct config *asked,
		    const struct config *profile, struct rights_clamp *clamp, struct cj_error *err);
/*
 * rights_validate_kept - what a request can take back for no caller: strict and noexec of `before`.
 *
 * Fails: EPERM, the setting named.
 */
int rights_validate_kept(const struct config *asked, const struct config *before,
			 struct cj_error *err);
/*
 * rights_validate_within - one number of `asked` against ceilings that a call can only lower.
 *
 * `named`: what the caller calls the setting.  Fails: EACCES; a ceiling of 0 allows nothing.
 */
int rights_validate_within(const struct ceilings *most, const struct config *asked, const char *key,
			   const char *named, struct cj_error *err);
/* The refusal of a request that asks for a network itself, where *clamp has taken it away. */
int rights_refuse_network(struct cj_error *err);

void rights_clamp_apply(const struct rights_clamp *clamp, struct config *c);
/* The settings that it clamps and that shape a jail: "memory, pids"; "": none. */
#define RIGHTS_CLAMP_LIST_MAX 64
void rights_clamp_list_shape(const struct rights_clamp *clamp,
			     char out[static RIGHTS_CLAMP_LIST_MAX]);
bool rights_clamp_changes_shape(const struct rights_clamp *clamp);
