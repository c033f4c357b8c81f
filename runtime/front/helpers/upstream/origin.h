/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin - what libexec/cejail/upstream consists of: the origin servers that it may reach, their
 * headers with secrets, the check of a request, the connections, what the process gives up.
 */
#pragma once

#include <curl/curl.h>
#include <sys/stat.h>

#include "netns/upstream/upstream_program.h"
#include "runtime/base/arena.h"
#include "runtime/base/byte_queue.h"
#include "runtime/base/error.h"
#include "runtime/service/http/http_head.h"

struct origin_header {
	const char *name, *prefix, *file;
	bool is_loaded;
	struct stat identity; /* of the file that `value` was read from */
	char value[UPSTREAM_VALUE_MAX + 1];
};

#define ORIGIN_ADDRESSES_MAX 1024 /* bytes of them as text; more are left out */

struct origin {
	const char *name, *url; /* the URL has no path */
	const char *path;       /* the prefix of every path */
	uint16_t port;
	char host[256];                       /* to be looked up; "": it is an address */
	char addresses[ORIGIN_ADDRESSES_MAX]; /* with commas between; "": there is none */
	uint64_t fresh_until_ms;
	bool is_asked; /* the resolver is about to answer */
	uint64_t requests_max, bytes_max;
	uint64_t requests, bytes; /* so far */
	struct origin_header headers[UPSTREAM_HEADERS_MAX];
	size_t nheaders;
	struct upstream_counters *counters;
};

struct origin_set {
	struct origin *origins;
	size_t count;
	uint64_t head_ms, stall_ms;
	const char *ca_file, *ca_dir; /* NULL: libcurl's own */
	int resolver_fd;
};

/* origin_config.c: reads the configuration.  Makes no system calls. */
int origin_read_config(const char *text, size_t size, struct arena *a, struct origin_set *out,
		       struct cj_error *err);

/* --- origin_secret.c: values of headers ---------------------------------------------------- */

/*
 * Reads the file of a header anew if it is another one, or has changed.  Fails: it can't be read,
 * or its content can't be a header's value.  The message does not name the file: a program in the
 * jail reads it.
 */
int origin_load(struct origin_header *h, struct cj_error *err);

/* The secrets of one request, and the end of its answer that may be the beginning of one. */
struct origin_mask {
	char *secrets[2 * UPSTREAM_HEADERS_MAX]; /* malloc'ed; longer ones before their ends */
	size_t count;
	struct byte_queue held;
};

int origin_mask_begin(struct origin_mask *m, const struct origin *o);
void origin_mask_fini(struct origin_mask *m);
/* Replaces each secret by as many '*'. */
void origin_mask_text(const struct origin_mask *m, char *bytes, size_t size);
/*
 * Adds bytes of a body, and moves those to `out` that no later byte can make a part of a secret.
 * `is_last`: moves all.  -ENOMEM.
 */
int origin_mask_stream(struct origin_mask *m, const char *bytes, size_t size, bool is_last,
		       struct byte_queue *out);

/* --- origin_request.c: what a request may be.  No system calls. ---------------------------- */

struct origin_request {
	struct http_head head;
	char target[UPSTREAM_HEAD_MAX]; /* path and query as they came */
	unsigned refusal;               /* the status to answer with, after a failure */
};

/* A whole head, which is changed, and which *out points into. */
int origin_check(const struct origin *o, char *bytes, size_t size, struct origin_request *out,
		 struct cj_error *err);
/* The program's header goes to the origin. */
bool origin_sends(const struct origin *o, const struct http_head *head, const char *name);
/* The header is for one connection only; `named`: a value of Connection, or NULL. */
bool origin_is_hop(const char *name, const char *named);

/* origin_serve.c: serves the listening sockets until SIGTERM. */
int origin_serve(struct origin_set *set, struct cj_error *err);

/* --- origin_resolve.c: the process that looks up names -------------------------------------- */

/* Before origin_confine().  The process ends with this one. */
int origin_start_resolver(struct origin_set *set, struct cj_error *err);
/* False: it is being looked up; ask again after origin_take_addresses(). */
bool origin_is_resolved(const struct origin_set *set, struct origin *o);
/* When resolver_fd is readable.  False: there is no resolver any more. */
bool origin_take_addresses(struct origin_set *set);

/* --- origin_confine.c ----------------------------------------------------------------------- */

/* What the process gives up before the first byte of a client. */
int origin_confine(const struct origin_set *set, struct cj_error *err);
/* The same before a name is looked up; it needs no_new_privs already. */
int origin_confine_lookup(struct cj_error *err);
