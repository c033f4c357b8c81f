/* SPDX-License-Identifier: Apache-2.0 */
/* libexec/cejail/bwrap: `cejail bwrap`, and what a link called "bwrap" leads to. */

#include "runtime/base/files/fd.h"
#include "runtime/front/bwrap/bwrap.h"

#define ARGS_BYTES_MAX (4u << 20)

/* The version whose options these are: programs compare it. */
#define LIKE_VERSION "0.11.0"

static int read_args(int fd, struct arena *a, char **out_text, size_t *out_size,
		     struct cj_error *err)
{
	if (fd_read_all(fd, ARGS_BYTES_MAX, a, out_text, out_size, "the arguments", err) < 0)
		return cj_wrap(err, "Can't read --args data");
	(void)close(fd); /* the program does not inherit it */
	return 0;
}

static void print_help(FILE *to)
{
	(void)fprintf(to, "Usage: cejail bwrap [OPTION...] [--] COMMAND [ARG...]\n\n");
	for (size_t i = 0; i < bwrap_option_count; i++) {
		const struct bwrap_option *o = &bwrap_options[i];
		int used = fprintf(to, "    %s%s%s", o->name, o->args[0] ? " " : "", o->args);
		(void)fprintf(to, "%*s%s%s\n", used < 32 ? 33 - used : 1, "",
			      o->take ? "" : "refused: ", o->help);
	}
}

int main(int argc, char **argv)
{
	auto_arena struct arena a = { 0 };
	struct bwrap_config config = { .limits = BWRAP_LIMITS_NULL };
	struct cj_error err = { 0 };
	int rc = 0;
	if (getuid() != geteuid() || getgid() != getegid())
		rc = cj_reject(&err, "setuid use is refused; remove the set-user-ID bit");
	if (rc == 0 && argc < 2) {
		print_help(stderr);
		return BWRAP_FAILED;
	}
	if (rc == 0)
		rc = bwrap_parse((const char *const *)argv + 1, read_args, &a, &config, &err);
	if (rc == 0 && config.request != BWRAP_RUN) {
		if (config.request == BWRAP_HELP)
			print_help(stdout);
		else
			(void)printf("bubblewrap %s (cejail %s)\n", LIKE_VERSION, CJ_VERSION);
		return fflush(stdout) == 0 ? 0 : BWRAP_FAILED;
	}
	const char *more = getenv(BWRAP_VARIABLE);
	if (rc == 0 && more)
		rc = bwrap_parse_variable(more, &a, &config, &err);
	if (rc == 0)
		rc = bwrap_limits_read(&config.limits, &a, &err);
	if (rc == 0)
		rc = bwrap_check(&config, getuid(), getgid(), &err);
	if (rc == 0)
		rc = bwrap_run(&config, &err);
	else
		bwrap_watch_fail(&(struct bwrap_watch){ 0 },
				 &(struct bwrap_start){ .config = &config }, &err);
	if (rc >= 0)
		return rc;
	bwrap_print_error(&config, &err);
	return BWRAP_FAILED;
}
