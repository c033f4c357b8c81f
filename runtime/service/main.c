/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libexec/cejail/serve: the service, as `cejail serve` executes it: options, configuration,
 * spawner, server.
 *
 * The spawner is forked before this process reads a token or opens a socket.  So every worker comes
 * from a small process that has none of them.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>

#include "runtime/base/files/fd.h"
#include "runtime/service/config/tokens.h"
#include "runtime/service/config/profile_cache.h"
#include "runtime/service/config/serve_options.h"
#include "runtime/service/keeper/keeper.h"
#include "runtime/service/log/slog.h"
#include "runtime/service/server.h"
#include "runtime/service/worker/work.h"
#include "runtime/service/worker/zygote_keeper.h"

#define SERVE_FAILED 125 /* as for every failure of cejail itself */

static int fail(const struct cj_error *err)
{
	slog_failure(SLOG_ERROR, "", err, "serve");
	return SERVE_FAILED;
}

struct review {
	const struct service_config *c;
	struct profile_cache *profiles;
};

__attribute__((format(printf, 1, 2))) static void warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)printf("warning: "); /* fflush(3) reports failures */
	(void)vprintf(fmt, ap);
	(void)printf("\n");
	va_end(ap);
}

/* NULL: it can't be used, and a warning says why. */
static const struct config *find_profile(const struct review *r, const char *where,
					 const char *profile)
{
	const struct config *config = NULL;
	struct cj_error err = { 0 };
	int rc = profile_cache_get(r->profiles, profile, &config, &err);

	if (rc == -ENOENT)
		warn("%s: there is no profile '%s'", where, profile);
	else if (rc < 0)
		warn("%s: %s", where, err.msg);
	return rc < 0 ? NULL : config;
}

static void review_profiles(const struct review *r, const char *caller, const struct rights *rights)
{
	char where[CALLER_NAME_MAX + 32];

	(void)snprintf(where, sizeof(where), "callers: '%s': profiles", caller);
	for (size_t i = 0; i < rights->profiles.count; i++)
		(void)find_profile(r, where, rights->profiles.items[i]);
}

static void review_host_paths(const struct review *r)
{
	char own[CALLER_NAME_MAX];

	(void)snprintf(own, sizeof(own), "uid:%" PRIu32, (uint32_t)geteuid());
	for (size_t i = 0; i < r->c->callers.count; i++) {
		const struct caller_row *row = &r->c->callers.rows[i];
		bool is_own = strcmp(row->name, "uid:0") == 0 || strcmp(row->name, own) == 0;
		if (is_own && !row->rights.host_paths)
			warn("callers: '%s' has a row without host_paths, so it may not name paths "
			     "of the host; without a row it may",
			     row->name);
	}
}

static void review_pool(const char *caller, const struct rights *rights, const char *profile,
			const struct config *config)
{
	struct rights_clamp clamp = { 0 };
	struct cj_error ignored = { 0 };
	char names[RIGHTS_CLAMP_LIST_MAX];

	if (!rights_has_profile(rights, profile) ||
	    rights_validate(rights, config, config, &clamp, &ignored) < 0)
		return;
	rights_clamp_list_shape(&clamp, names);
	if (names[0])
		warn("pool: '%s' is not used for runs of caller '%s': its ceilings (%s) are below "
		     "what the profile gives, so each run needs a jail of its own",
		     profile, caller, names);
}

static void review_pools(const struct review *r)
{
	const struct callers *callers = &r->c->callers;

	for (size_t i = 0; i < r->c->npools; i++) {
		const char *profile = r->c->pools[i].profile;
		const struct config *config = find_profile(r, "pool", profile);
		if (!config)
			continue;
		struct cj_error err = { 0 };
		char text[CJ_ERROR_TEXT_MAX];
		if (r->c->pools[i].interpreters > 0 && zygote_keeper_check(profile, &err) < 0)
			warn("pool: %s", cj_error_text(&err, text));
		review_pool("default", &callers->standard, profile, config);
		for (size_t k = 0; k < callers->count; k++)
			review_pool(callers->rows[k].name, &callers->rows[k].rights, profile,
				    config);
	}
}

/* Configurations that probably do not do what their authors want. */
static int review(const struct service_config *c, struct cj_error *err)
{
	struct review r = { .c = c, .profiles = profile_cache_create() };

	if (!r.profiles)
		return cj_fail(err, ENOMEM, "review the configuration");
	if (c->probe_profile)
		(void)find_profile(&r, "probe_profile", c->probe_profile);
	review_profiles(&r, "default", &c->callers.standard);
	for (size_t i = 0; i < c->callers.count; i++)
		if (c->callers.rows[i].rights.profiles.items != c->callers.standard.profiles.items)
			review_profiles(&r, c->callers.rows[i].name, &c->callers.rows[i].rights);
	review_host_paths(&r);
	review_pools(&r);
	profile_cache_destroy(&r.profiles);
	return 0;
}

static int check(struct service_config *config)
{
	struct cj_error err = { 0 };
	int rc = tokens_load(config, &err);

	if (rc == 0)
		rc = review(config, &err);
	service_config_free(&config);
	if (rc < 0)
		return fail(&err);
	(void)printf("the configuration is good\n");
	return fflush(stdout) == 0 ? EXIT_SUCCESS : SERVE_FAILED;
}

/* Takes the configuration. */
static int serve(const struct serve_options *options, struct service_config *config,
		 struct cj_error *err)
{
	const struct worker_life worker = { worker_main, zygote_keeper_main, keeper_main };
	struct spawner spawner = SPAWNER_NULL;

	if (spawner_start(&spawner, &worker, err) < 0 || tokens_load(config, err) < 0) {
		service_config_free(&config);
		spawner_end(&spawner);
		return -err->code;
	}
	return server_run(options, config, &spawner, err);
}

int main(int argc, char **argv)
{
	struct serve_options options = { 0 };
	struct service_config *config = NULL;
	struct cj_error err = { 0 };
	unsigned open_streams = 0;

	slog_init();
	if (fd_claim_stdio(&open_streams, &err) < 0)
		return fail(&err);
	/* All times are UTC, so gmtime(3) does not need the host's time zone at every reply. */
	if (setenv("TZ", "UTC0", 1) < 0) {
		(void)!cj_fail(&err, errno, "set TZ");
		return fail(&err);
	}
	tzset(); /* here, or each worker would look for a file of that name */
	(void)signal(SIGPIPE, SIG_IGN); /* write(2) fails with EPIPE instead; cannot fail */
	if (serve_options_parse((const char *const *)argv + (argc > 0), &options, &err) < 0)
		return fail(&err);
	if (options.wants_help) {
		serve_options_print_help();
		return fflush(stdout) == 0 ? EXIT_SUCCESS : SERVE_FAILED;
	}
	if (serve_options_load(&options, &config, &err) < 0)
		return fail(&err);
	if (options.check_only)
		return check(config);
	return serve(&options, config, &err) < 0 ? fail(&err) : EXIT_SUCCESS;
}
