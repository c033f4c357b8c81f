/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --request-fd: the run comes as the JSON object that a service takes, from a descriptor.
 *
 * Who writes the request need not be who wrote the command line.  So the command line is for the
 * request what a service's configuration is: its profile with its options is the ceiling of every
 * limit and of the network, and only its options name something of the host.  request.h and
 * rights.h are the service's own code, with the rights of a caller that has no row of its own.
 */
#include <fcntl.h>

#include "profiles/profile.h"
#include "rootfs/files/inputs.h"
#include "runtime/base/files/fd.h"
#include "runtime/front/cli/run_state.h"
#include "runtime/run/request/rights.h"

#define REQUEST_BYTES_MAX (64u << 20)

int run_request_check(const struct config *c, struct cj_error *err)
{
	int fd = c->request_fd;

	if (fd < 0)
		return 0;
	if (fd == STDOUT_FILENO || fd == STDERR_FILENO || fd == c->result_fd || fd == c->events_fd)
		return cj_reject(err, "--request-fd %d: this descriptor is for output", fd);
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0) {
		(void)!cj_fail(err, errno, "--request-fd %d", fd);
		return cj_hint(
		    err, "open it for cejail, as in 'cejail run --request-fd %d %d<FILE'", fd, fd);
	}
	if ((flags & O_ACCMODE) == O_WRONLY || (flags & O_PATH))
		return cj_reject(err, "--request-fd %d: this descriptor is not open for reading",
				 fd);
	if (fd > STDERR_FILENO && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return cj_fail(err, errno, "--request-fd %d", fd);
	return 0;
}

static int check_alone(const struct cli_run *r, struct cj_error *err)
{
	static const char why_program[] = "the request has the program";
	const struct options *o = &r->options;
	const bool is_stdin = r->config.request_fd == STDIN_FILENO;
	const struct {
		bool is_given;
		const char *other, *why, *hint;
	} rows[] = {
		{ r->use_shell, "cejail shell", "use cejail run" },
		{ o->has_separator, "-- CMD", why_program },
		{ *o->operands, *o->operands, why_program },
		{ options_find(o, "code"), "-c CODE", why_program },
		{ options_has(o, "tty"), "--tty", "a request has no terminal" },
		{ is_stdin && options_has(o, "interactive"), "--interactive",
		  "standard input can't be the request and the program's input" },
		{ r->config.remote, "--remote", "it is the request that a service takes",
		  "send it to the service: POST /v1/runs, see cejail-serve(8)" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		if (!rows[i].is_given)
			continue;
		cj_refuse(err, "'--request-fd' and '%s' exclude each other: %s", rows[i].other,
			  rows[i].why);
		if (rows[i].hint)
			cj_hint(err, "%s", rows[i].hint);
		return -err->code;
	}
	return 0;
}

static int parse(struct cli_run *r, struct cj_error *err)
{
	struct config *c = &r->config;
	const struct request_caps caps = {
		.body_bytes = REQUEST_BYTES_MAX,
		.code_bytes = CODE_BYTES_MAX,
		.file_bytes = REQUEST_BYTES_MAX,
		.stdin_bytes = REQUEST_BYTES_MAX,
		.profile = options_find(&r->options, "profile"),
	};
	struct blob body = { 0 };
	char *text = NULL;

	if (fd_read_all(c->request_fd, REQUEST_BYTES_MAX, &c->arena, &text, &body.size,
			"the request", err) < 0)
		return cj_wrap(err, "--request-fd %d", c->request_fd);
	body.bytes = text;
	if (request_parse(body, &caps, &c->arena, &r->request, err) < 0)
		return -err->code;
	r->profile = r->request.profile;
	if (caps.profile && strcmp(caps.profile, r->profile) != 0) {
		cj_refuse_as(err, EACCES, "request: profile '%s' is not that of --profile",
			     r->profile);
		return cj_hint(err, "leave it out, or ask for '%s'", caps.profile);
	}
	if (!r->request.id)
		return 0;
	c->id = r->request.id; /* from here on in every error */
	return run_begin_outcome(r, err);
}

/* The remedies of a service are not those of a command line. */
static int replace_hint(struct cj_error *err, const char *hint)
{
	if (err->code != EACCES)
		return -err->code;
	err->hint[0] = '\0';
	return cj_hint(err, "%s", hint);
}

static int apply(struct cli_run *r, const struct config *ceiling, struct cj_error *err)
{
	static const struct rights rights = { .network = NETWORK_AS_PROFILE };
	struct rights_clamp none;
	struct config *c = &r->config;

	if (request_apply(&r->request, false, c, err) < 0)
		return replace_hint(err, "only options of the command line name something of the "
					 "host; \"files\" has content");
	if (request_check(&r->request, c, &c->arena, err) < 0)
		return -err->code;
	if (rights_validate(&rights, c, ceiling, &none, err) < 0)
		return replace_hint(err, "ask for less, or raise it with an option of the command "
					 "line");
	return 0;
}

static int prepare(struct cli_run *r, struct cj_error *err)
{
	const struct blob *input = &r->request.stdin_bytes;
	struct config ceiling;

	if (options_apply_rest(&r->options, &r->config, err) < 0 ||
	    config_copy(&ceiling, &r->config, err) < 0)
		return -err->code;
	int rc = apply(r, &ceiling, err);
	config_fini(&ceiling);
	if (rc < 0 || request_invoke(&r->request, &r->config, &r->invocation, err) < 0)
		return -err->code;
	r->invocation.environ = r->cli->environ;
	if (!r->request.has_stdin)
		return 0;
	r->config.interactive = true;
	r->stdin_fd = fd_memfd_sealed("stdin", input->bytes, input->size, err);
	return r->stdin_fd < 0 ? -err->code : 0;
}

int run_request_read(struct cli_run *r, struct cj_error *err)
{
	if (check_alone(r, err) < 0 || parse(r, err) < 0)
		return cj_stage(err, "options");
	if (profile_load(&r->config, r->profile, err) < 0)
		return cj_stage(err, "profile");
	return prepare(r, err) < 0 ? cj_stage(err, "options") : 0;
}
