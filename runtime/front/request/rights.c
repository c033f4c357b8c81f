/* SPDX-License-Identifier: Apache-2.0 */
/* A request's config against its caller's rights.  Pure. */
#include "runtime/front/request/rights.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/text.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

bool rights_has_profile(const struct rights *r, const char *profile)
{
	return r->profiles.count == 0 || strings_has(&r->profiles, profile);
}

static void format_count(uint64_t value, char *out, size_t out_size)
{
	(void)snprintf(out, out_size, "%" PRIu64, value);
}

/* Exact, unlike for a person: a byte above the ceiling must not read as the ceiling. */
static void format_size(uint64_t bytes, char *out, size_t out_size)
{
	static const char units[] = "KMGT";
	unsigned unit = 0;
	while (unit < sizeof(units) - 1 && bytes > 0 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	(void)snprintf(out, out_size, "%" PRIu64 "%.*s", bytes, unit > 0,
		       &units[unit > 0 ? unit - 1 : 0]);
}

static void format_cpus(uint64_t millicpus, char *out, size_t out_size)
{
	(void)snprintf(out, out_size, "%" PRIu64 ".%03" PRIu64, millicpus / 1000, millicpus % 1000);
}

/*
 * A number of the config that rights limit; without a ceiling of its own, by the profile's value.
 */
static const struct limit_row {
	const char *key;
	void (*format)(uint64_t value, char *out, size_t out_size);
	size_t config_at;
	bool has_ceiling, is_shape; /* is_shape: a jail is prepared with it */
	size_t ceiling_at;
} limit_rows[] = {
#define AT(field)      offsetof(struct config, field)
#define CEILING(field) .has_ceiling = true, .ceiling_at = offsetof(struct ceilings, field)
	{ "memory", format_size, AT(memory_bytes), CEILING(memory_bytes), .is_shape = true },
	{ "cpus", format_cpus, AT(millicpus), CEILING(millicpus), .is_shape = true },
	{ "pids", format_count, AT(pids), CEILING(pids), .is_shape = true },
	{ "timeout", text_format_duration, AT(wall_ms), CEILING(wall_ms) },
	{ "disk", format_size, AT(disk_bytes), CEILING(disk_bytes), .is_shape = true },
	{ "max_output", format_size, AT(output_bytes), CEILING(output_bytes) },
	{ "nofile", format_count, AT(nofile) },
	{ "cpu_time", text_format_duration, AT(cpu_ms) },
#undef AT
#undef CEILING
};

static uint64_t number_at(const void *base, size_t offset)
{
	uint64_t value;
	memcpy(&value, (const char *)base + offset, sizeof(value));
	return value;
}

static int refuse_number(const struct limit_row *row, uint64_t asked, uint64_t most,
			 bool is_profiles, struct cj_error *err)
{
	char asked_text[32], most_text[32];
	row->format(asked, asked_text, sizeof(asked_text));
	row->format(most, most_text, sizeof(most_text));
	int rc = cj_reject_as(err, EACCES, "%s: %s is above %s of %s", row->key, asked_text,
			      is_profiles ? "the profile's value" : "this caller's ceiling",
			      most_text);
	cj_hint(err, "ask for less, or have '%s' raised in %s", row->key,
		row->has_ceiling ? "this caller's row of the service's configuration"
				 : "the profile");
	return rc;
}

static int validate_number(const struct rights *r, const struct limit_row *row,
			   const struct config *asked, const struct config *profile,
			   struct rights_clamp *clamp, struct cj_error *err)
{
	uint64_t wanted = number_at(asked, row->config_at);
	uint64_t given = number_at(profile, row->config_at);
	uint64_t ceiling = row->has_ceiling ? number_at(&r->ceilings, row->ceiling_at) : 0;
	if (!row->has_ceiling && (r->host_paths || given == 0))
		ceiling = CEILING_NONE; /* 0: the profile has no such limit */

	uint64_t most = ceiling > 0 ? ceiling : given;
	if (wanted <= most)
		return 0;
	if (wanted != given)
		return refuse_number(row, wanted, most, ceiling == 0, err);
	assert(row->has_ceiling); /* without one, `most` is what the profile gives, or all */
	memcpy((char *)&clamp->ceilings + row->ceiling_at, &most, sizeof(most));
	return 0;
}

static int refuse(struct cj_error *err, const char *what)
{
	return cj_reject_as(err, EACCES, "%s", what);
}

/* More of the network than the profile has: a mode, or more of the addresses it names. */
static bool wants_more_network(const struct config *asked, const struct config *profile)
{
	if (asked->network != profile->network)
		return asked->network != NETWORK_NONE;
	if (asked->network == NETWORK_NONE || profile->allow.count == 0)
		return false;
	for (size_t i = 0; i < asked->allow.count; i++)
		if (!strings_has(&profile->allow, asked->allow.items[i]))
			return true;
	return asked->allow.count == 0;
}

int rights_refuse_network(struct cj_error *err)
{
	(void)!refuse(err, "network: this caller's runs may have none");
	return cj_hint(err, "leave it out, or ask for \"network\": \"none\"");
}

static int validate_network(const struct rights *r, const struct config *asked,
			    const struct config *profile, struct rights_clamp *clamp,
			    struct cj_error *err)
{
	bool wants_more = wants_more_network(asked, profile);

	if (r->network == NETWORK_AS_PROFILE && wants_more)
		return refuse(err, "network: this caller's runs may have no more of it than the "
				   "profile gives");
	if (r->network != NETWORK_NEVER || asked->network == NETWORK_NONE)
		return 0;
	clamp->no_network = true;
	return wants_more ? rights_refuse_network(err) : 0;
}

int rights_validate(const struct rights *r, const struct config *asked,
		    const struct config *profile, struct rights_clamp *clamp, struct cj_error *err)
{
	struct rights_clamp made = { 0 };
	int rc = 0;

	for (size_t i = 0; i < LENGTH(limit_rows) && rc == 0; i++)
		rc = validate_number(r, &limit_rows[i], asked, profile, &made, err);
	if (rc == 0)
		rc = validate_network(r, asked, profile, &made, err);
	if (rc == 0)
		*clamp = made;
	return rc;
}

/* --- the clamps ------------------------------------------------------------- */

void rights_clamp_apply(const struct rights_clamp *clamp, struct config *c)
{
	for (size_t i = 0; i < LENGTH(limit_rows); i++) {
		const struct limit_row *row = &limit_rows[i];
		uint64_t ceiling = row->has_ceiling ? number_at(&clamp->ceilings, row->ceiling_at)
						    : 0;
		if (ceiling > 0)
			memcpy((char *)c + row->config_at, &ceiling, sizeof(ceiling));
	}
	if (clamp->no_network)
		c->network = NETWORK_NONE;
}

void rights_clamp_list_shape(const struct rights_clamp *clamp,
			     char out[static RIGHTS_CLAMP_LIST_MAX])
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < LENGTH(limit_rows); i++)
		if (limit_rows[i].is_shape &&
		    number_at(&clamp->ceilings, limit_rows[i].ceiling_at) > 0)
			used += (size_t)snprintf(out + used, RIGHTS_CLAMP_LIST_MAX - used, "%s%s",
						 used > 0 ? ", " : "", limit_rows[i].key);
	if (clamp->no_network)
		(void)snprintf(out + used, RIGHTS_CLAMP_LIST_MAX - used, "%snetwork",
			       used > 0 ? ", " : "");
}

bool rights_clamp_changes_shape(const struct rights_clamp *clamp)
{
	char names[RIGHTS_CLAMP_LIST_MAX];
	rights_clamp_list_shape(clamp, names);
	return names[0] != '\0';
}
