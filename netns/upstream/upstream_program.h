/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstream_program - what libexec/cejail/upstream gets from the process that starts it.
 *
 * The program serves plain HTTP/1.1 on the listening sockets, adds TLS and the headers with the
 * caller's secrets, and passes each request to the one server of its socket.  It has no arguments
 * and writes no ready message: connections wait in the backlog.  It exits with 0 at SIGTERM.
 *
 * The configuration is JSON.  "path", "headers", "prefix" and both limits may be absent;
 * "head_ms" and "stall_ms" replace UPSTREAM_HEAD_MS and UPSTREAM_STALL_MS.
 *
 *	{"upstreams": [{"name": "model", "url": "https://api.example.com:8443", "path": "/v1/",
 *	  "requests_max": 10000, "bytes_max": 1073741824,
 *	  "headers": [{"name": "Authorization", "prefix": "Bearer ", "file": "/path"}]}],
 *	 "head_ms": 60000, "stall_ms": 600000}
 *
 * A header's value is masked in answers if the file has UPSTREAM_MASKED_MIN bytes or more, and only
 * as it stands: not in another encoding, and not in pieces of several answers.
 */
#pragma once

#include <stdatomic.h>

#define UPSTREAMS_MAX      16
#define UPSTREAM_CONFIG_FD 3 /* a sealed memfd: JSON, read from its start */
#define UPSTREAM_COUNTERS_FD                                                                       \
	4                    /* a memfd of UPSTREAMS_MAX struct upstream_counters, mapped shared */
#define UPSTREAM_LISTEN_FD 5 /* the first of the listening sockets, one for each upstream */

#define UPSTREAM_HEADERS_MAX 8
#define UPSTREAM_CLIENTS_MAX 64
#define UPSTREAM_HEAD_MAX    16384 /* bytes of a request's head */
#define UPSTREAM_VALUE_MAX   8192  /* bytes of a header's file */
#define UPSTREAM_MASKED_MIN  8
#define UPSTREAM_HEAD_MS     60000  /* for a head, and between two requests */
#define UPSTREAM_STALL_MS    600000 /* without a byte of a body in either direction */

/* Written with atomic stores; the reader takes them as numbers only. */
struct upstream_counters {
	_Atomic uint64_t requests; /* that had an answer of the upstream, whatever its status */
	_Atomic uint64_t failed;   /* that were permitted and had none: unreachable, broken off */
	_Atomic uint64_t refused;  /* by a rule of ours: path, method, head, size, number */
	_Atomic uint64_t sent_bytes, received_bytes; /* bodies, to and from the upstream */
	_Atomic uint64_t status[6]; /* by the first digit: [2] counts 2xx; [0]: others */
};
