/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_upstream - --upstream: a server of the outside that the program reaches by plain HTTP, and
 * whose key it never has.
 *
 *	program    http://NAME.upstream.internal, which /etc/hosts leads to the jail's loopback
 *	init       listens there, before the program starts (forward_listen)
 *	helper     libexec/cejail/upstream accepts, adds the header, and speaks TLS to the server
 *	supervisor starts the helper, kills it, and reads its counters
 *
 * The supervisor reads no byte of a request or an answer, and never the key.
 */
#pragma once

#include "netns/upstream/upstream_program.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"

#define UPSTREAM_PORT     80
#define UPSTREAM_DOMAIN   ".upstream.internal"
#define UPSTREAM_NAME_MAX 32
#define UPSTREAM_REQUESTS 10000 /* of one run, if the text says nothing else */
#define UPSTREAM_BYTES    (UINT64_C(1) << 30)

/* Of a status: by its first digit; [0]: others. */
#define UPSTREAM_CLASSES (sizeof(((struct upstream_counters *)0)->status) / sizeof(uint64_t))

/* PREFIX and what the file has, without the newline at its end. */
struct http_upstream_header {
	const char *name, *prefix;
	const char *file; /* an absolute path */
};

struct http_upstream_spec {
	const char *name; /* a label of the DNS, in lower case */
	const char *url;  /* scheme, host and port */
	const char *path; /* the prefix of each path, "/" or with a slash at both ends */
	struct http_upstream_header headers[UPSTREAM_HEADERS_MAX];
	size_t nheaders;
	uint64_t requests_max, bytes_max;
};

/*
 * http_upstream_parse - "NAME=URL[,KEY=VALUE...]", as cejail(1) has it.
 *
 * No system calls.  The texts of *out live in `a`.  A file is as written.
 * Fails: EINVAL with the word that is wrong and the form that works.
 */
int http_upstream_parse(const char *text, struct arena *a, struct http_upstream_spec *out,
			struct cj_error *err);

/* The header is for one connection only: RFC 9110, 7.6.1. */
bool http_upstream_is_hop(const char *header);
/* The helper writes this header itself, whatever the program and the option say. */
bool http_upstream_is_own(const char *header);

/* The last byte of the address, 127.0.80.X, on which the jail has the upstream `i`. */
uint32_t http_upstream_address(size_t i);

/* Lines of /etc/hosts for all of them.  NULL: no memory. */
const char *http_upstream_hosts(const struct http_upstream_spec *specs, size_t n, struct arena *a);

/* What one was used for. */
struct http_upstream_use {
	const char *name;
	uint64_t requests, failed, refused, sent_bytes, received_bytes;
	uint64_t status[UPSTREAM_CLASSES];
};

struct http_upstream;

/*
 * http_upstream_create - takes the listeners on success.
 *
 * Forks of this process share the counters.  The specs are borrowed.
 */
int http_upstream_create(const struct http_upstream_spec *specs, size_t n, int *listen_fds,
			 struct http_upstream **out, struct cj_error *err);

size_t http_upstream_count(const struct http_upstream *u);

int http_upstream_fd(const struct http_upstream *u);

/*
 * http_upstream_serve - when http_upstream_fd() is readable: starts the helper for the first
 * client, and sees its end.
 *
 * Fails: once, without the helper; then nobody listens any more, and connections are refused.
 * Follows: clone3(2), execve(2).
 */
int http_upstream_serve(struct http_upstream *u, struct cj_error *err);

/* Has the helper ended, and http_upstream_serve() has not said so yet? */
bool http_upstream_is_ending(const struct http_upstream *u);

/*
 * What each was used for since `before`, which is moved on to now; NULL: since the start.
 * The array is in `a`.  NULL: no memory.
 */
struct http_upstream_use *http_upstream_read(const struct http_upstream *u,
					     struct http_upstream_use *before, struct arena *a);

/* Kills and reaps the helper. */
void http_upstream_destroy(struct http_upstream **u);
