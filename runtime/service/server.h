/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server - the life of `cejail serve`.
 *
 * The roles, each a process:
 *
 *	server       one thread, one epoll loop; reads what callers send, never forks
 *	  spawner    forked first, before the server has a token or a request in memory
 *	    worker   one for each run: the supervisor of one jail
 *	      init     pid 1 of the jail
 *	        payload  the untrusted program
 *	    zygote keeper    one for each profile with a zygote: starts it and watches it
 *	      zygote         the interpreter with its modules; workers ask it for forks
 *	    session keeper   one for each session: the supervisor of a jail that stays
 *	      exec worker    one for each exec and each operation on a file in it
 *
 * A request's way through them:
 *
 *	server   http/        reads the head of the request, with a parser of its own and bounds
 *	         api/         checks Origin, Host, uid or token, and the length, before any body
 *	         http/        receives the body
 *	         api/         checks the caller again, and its rate
 *	         api/         validates the request: JSON, profile, permissions, ceilings; what it
 *	                      decides is one struct run_order, which the run keeps to its end
 *	         queue/       queues the run, until it is the turn of this caller
 *	         queue/       takes a prepared worker from the pool, or spawns a cold one
 *	         operations/  writes the audit line of the start, before the run starts
 *	            |
 *	            |  the job: a header and the request's body, in a sealed memfd
 *	            v
 *	worker   request/     parses the same body again, and checks the profile's hash
 *	         profiles/    makes the plan and the program, clamped to the ceilings of the job
 *	         jail/        prepares the jail if that is not done yet, starts the program, waits
 *	            |
 *	            |  lines of JSON: events, a summary, the result
 *	            v
 *	server   queue/       sends the events to the caller as they come
 *	         operations/  writes the audit line of the end
 *	         operations/  counts the run in the metrics
 *	         http/        sends the worker's result to the caller, byte for byte
 *
 * Two processes validate the request, because they have different powers.  The server faces all
 * callers and holds their tokens, but it can't build a jail.  It validates a request to refuse it
 * early, before a process exists for it.  The worker can build a jail, but it knows one caller and
 * one request.  It takes no parsed request from the server: it parses the caller's bytes itself,
 * and takes from the server only what the caller may do.
 *
 * A session (sessions/) goes this way once: a worker of the pool, or a cold one, gets a job that
 * makes it the keeper.  Its execs are runs: queued, audited, counted and answered as above, but
 * queue/ asks the keeper for their worker in place of the pool.
 *
 * The life of the server:
 *
 *	start    sockets, pool, first probe; READY=1 when that probe has succeeded
 *	reload   SIGHUP: the new configuration; if it is bad, the old one stays, and the log says so
 *	drain    SIGTERM, SIGINT: new runs are refused, unfinished ones may end, for a while; a
 *	         session ends when its last exec has ended
 *	end      no run and no session is left, or the drain time is over, or a second signal
 *	         came; whatever still runs is cancelled
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/service/api/api.h"
#include "runtime/service/config/serve_options.h"
#include "runtime/service/worker/spawner.h"

/* Takes the configuration and the spawner.  Returns when the service has ended; fails with why. */
int server_run(const struct serve_options *o, struct service_config *config,
	       struct spawner *spawner, struct cj_error *err);

/*
 * --until-idle: `cejail session create` starts a service that ends when nobody uses it.  It waits
 * before it ends, so that several sessions in a row, with short pauses, use the same one.
 */
#define IDLE_PATIENCE_MS 10000

/* What a service has to do at the moment. */
struct idle_uses {
	size_t runs, own_runs; /* all, and those of them that probe: a probe is no use */
	size_t requests;       /* whose replies are not sent yet */
	size_t sessions;       /* that live, with or without an exec */
};
bool idle_is_used(const struct idle_uses *u);

struct idle {
	uint64_t since_ms; /* of the last use; monotonic; 0: there was none */
};

/* Returns the time in ms until the service has been idle for long enough: 0: it has. */
int idle_tick(struct idle *i, bool is_used, uint64_t now_ms);
