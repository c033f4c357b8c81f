/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about a configuration.  Acts: reads profiles. */
#include "runtime/service/config/review.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/service/config/profile_cache.h"
#include "runtime/service/worker/zygote_keeper.h"

#define LINE_MAX_SIZE 1024

struct review {
	const struct service_config *c;
	struct profile_cache *profiles;
	void (*warn)(const char *line);
};

__attribute__((format(printf, 2, 3))) static void say(const struct review *r, const char *fmt, ...)
{
	char line[LINE_MAX_SIZE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	r->warn(line);
}

/* NULL: it can't be used, and a warning says why. */
static const struct config *find_profile(const struct review *r, const char *where,
					 const char *profile)
{
	const struct config *config = NULL;
	struct cj_error err = { 0 };
	int rc = profile_cache_get(r->profiles, profile, &config, &err);

	if (rc == -ENOENT)
		say(r, "%s: there is no profile '%s'", where, profile);
	else if (rc < 0)
		say(r, "%s: %s", where, err.msg);
	return rc < 0 ? NULL : config;
}

/* --- callers ---------------------------------------------------------------- */

static void review_profiles(const struct review *r, const char *caller, const struct rights *rights)
{
	char where[CALLER_NAME_MAX + 32];

	(void)snprintf(where, sizeof(where), "callers: '%s': profiles", caller);
	for (size_t i = 0; i < rights->profiles.count; i++)
		(void)find_profile(r, where, rights->profiles.items[i]);
}

static void review_host_paths(const struct review *r, uid_t own_uid)
{
	char own[CALLER_NAME_MAX];

	(void)snprintf(own, sizeof(own), "uid:%" PRIu32, (uint32_t)own_uid);
	for (size_t i = 0; i < r->c->callers.count; i++) {
		const struct caller_row *row = &r->c->callers.rows[i];
		bool is_own = strcmp(row->name, "uid:0") == 0 || strcmp(row->name, own) == 0;
		if (is_own && !row->rights.host_paths)
			say(r,
			    "callers: '%s' has a row without host_paths, so it may not name paths "
			    "of the host; without a row it may",
			    row->name);
	}
}

/* --- pools ------------------------------------------------------------------ */

static void review_pool(const struct review *r, const char *caller, const struct rights *rights,
			const char *profile, const struct config *config)
{
	struct rights_clamp clamp = { 0 };
	struct cj_error ignored = { 0 };
	char names[RIGHTS_CLAMP_LIST_MAX];

	if (!rights_has_profile(rights, profile) ||
	    rights_validate(rights, config, config, &clamp, &ignored) < 0)
		return;
	rights_clamp_list_shape(&clamp, names);
	if (names[0])
		say(r,
		    "pool: '%s' is not used for runs of caller '%s': its ceilings (%s) are below "
		    "what the profile gives, so each run needs a jail of its own",
		    profile, caller, names);
}

static void review_zygote(const struct review *r, const char *profile)
{
	struct cj_error err = { 0 };

	if (zygote_keeper_check(profile, &err) < 0)
		say(r, err.hint[0] ? "pool: %s (%s)" : "pool: %s", err.msg, err.hint);
}

static void review_pools(const struct review *r)
{
	const struct callers *callers = &r->c->callers;

	for (size_t i = 0; i < r->c->npools; i++) {
		const char *profile = r->c->pools[i].profile;
		const struct config *config = find_profile(r, "pool", profile);
		if (!config)
			continue;
		if (r->c->pools[i].interpreters > 0)
			review_zygote(r, profile);
		review_pool(r, "default", &callers->standard, profile, config);
		for (size_t k = 0; k < callers->count; k++)
			review_pool(r, callers->rows[k].name, &callers->rows[k].rights, profile,
				    config);
	}
}

int review_config(const struct service_config *c, uid_t own_uid, void (*warn)(const char *line),
		  struct cj_error *err)
{
	struct review r = { .c = c, .profiles = profile_cache_create(), .warn = warn };

	if (!r.profiles)
		return cj_fail(err, ENOMEM, "review the configuration");
	if (c->probe_profile)
		(void)find_profile(&r, "probe_profile", c->probe_profile);
	review_profiles(&r, "default", &c->callers.standard);
	for (size_t i = 0; i < c->callers.count; i++)
		if (c->callers.rows[i].rights.profiles.items != c->callers.standard.profiles.items)
			review_profiles(&r, c->callers.rows[i].name, &c->callers.rows[i].rights);
	review_host_paths(&r, own_uid);
	review_pools(&r);
	profile_cache_destroy(&r.profiles);
	return 0;
}
