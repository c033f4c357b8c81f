/* SPDX-License-Identifier: Apache-2.0 */
/*
 * servers_file - servers.json: the MCP servers whose tools code in a jail may call.
 *
 * The format is that of MCP hosts, {"mcpServers": {NAME: {"command", "args", "env", "cwd"} or
 * {"url", "headers"}}}, with "allow", "deny" and "timeout" for each server, and "jail" for one
 * with a command.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json.h"

#define SERVERS_MAX        32
#define SERVERS_NAME_MAX   64
#define SERVERS_TIMEOUT_MS 60000

struct server_spec {
	const char *name;           /* first: json_read_named() */
	const char *command;        /* NULL: it has a URL */
	struct strings args;        /* without the command */
	struct strings env;         /* "NAME=VALUE" */
	const char *cwd;            /* NULL: that of cejail */
	const char *url;            /* "http://..."; NULL: it has a command */
	struct strings headers;     /* "Name: value" */
	struct strings allow, deny; /* patterns of names of tools: tool_choice.h */
	uint64_t timeout_ms;        /* for each answer of the server; 0: not given */
	const char *type;           /* as some hosts write it; NULL: not given */
	bool is_jailed;             /* `cejail mcp wrap` runs the command */
	struct strings jail;        /* with these options: "--NAME=VALUE" */
};

struct servers_file {
	struct arena arena; /* owns all texts */
	const char *path;   /* as the user gave it */
	struct server_spec *servers;
	size_t count;
};

/*
 * servers_file_parse - the text of a file.  No system calls.
 *
 * Owns:  the arena is the caller's to end, also after a failure.  Borrows the path.
 * Fails: EINVAL with the line, the server and the key.
 */
int servers_file_parse(struct servers_file *f, const char *path, const char *text, size_t size,
		       struct cj_error *err);

/* The same of a file. */
int servers_file_read(struct servers_file *f, const char *path, struct cj_error *err);

/*
 * The address of an http:// URL on this machine: "localhost", 127.x.x.x or [::1], a port, a path
 * that begins with '/'.
 */
struct server_address {
	char host[64]; /* of the header Host, without the port */
	bool is_ipv6;
	uint16_t port;
	const char *path; /* points into the URL; "": it has none */
};
int servers_file_split_url(const char *url, struct server_address *out, struct cj_error *err);
