/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run/request/rights.h"

#include <assert.h>
#include <inttypes.h>

#include "profiles/setting_types.h"
#include "runtime/base/text.h"

bool rights_has_profile(const struct rights *r, const char *profile)
{
	return r->profiles.count == 0 || strings_has(&r->profiles, profile);
}

static const char *format_count(uint64_t value, char *out, size_t out_size)
{
	(void)snprintf(out, out_size, "%" PRIu64, value);
	return out;
}

/* Exact, unlike for a person: a byte above the ceiling must not read as the ceiling. */
static const char *format_size(uint64_t bytes, char *out, size_t out_size)
{
	static const char units[] = "KMGT";
	unsigned unit = 0;
	while (unit < sizeof(units) - 1 && bytes > 0 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	(void)snprintf(out, out_size, "%" PRIu64 "%.*s", bytes, unit > 0,
		       &units[unit > 0 ? unit - 1 : 0]);
	return out;
}

static const char *format_cpus(uint64_t millicpus, char *out, size_t out_size)
{
	(void)snprintf(out, out_size, "%" PRIu64 ".%03" PRIu64, millicpus / 1000, millicpus % 1000);
	return out;
}

struct validation {
	const struct rights *rights;
	const struct config *asked, *profile;
	struct rights_clamp *clamp;
};

struct right_rule {
	const char *key;
	enum rights_effect effect;
	/* NULL: the effect says all, or `is_kept` does */
	int (*validate)(const struct validation *v, const struct right_rule *rule,
			struct cj_error *err);
	/* Whether `asked` keeps what `before` insists on, whoever the caller is. */
	bool (*is_kept)(const struct config *asked, const struct config *before);
	/* of a number */
	const char *(*format)(uint64_t value, char *out, size_t out_size);
	size_t config_at;
	bool has_ceiling; /* else the profile's value is the maximum */
	bool is_shape;    /* a jail is prepared with it */
	size_t ceiling_at;
};

/* A config without a limit has 0 there: that is more than any other number. */
static uint64_t number_at(const void *base, size_t offset)
{
	uint64_t value;
	memcpy(&value, (const char *)base + offset, sizeof(value));
	return value;
}

static void put_number(void *base, size_t offset, uint64_t value)
{
	memcpy((char *)base + offset, &value, sizeof(value));
}

static uint64_t limit_at(const struct config *c, const struct right_rule *rule)
{
	uint64_t value = number_at(c, rule->config_at);
	return value > 0 ? value : CEILING_NONE;
}

struct number_text {
	char text[32];
};

static const char *format_limit(const struct right_rule *rule, uint64_t value,
				struct number_text *out)
{
	return value == CEILING_NONE ? "no limit"
				     : rule->format(value, out->text, sizeof(out->text));
}

static int validate_number(const struct validation *v, const struct right_rule *rule,
			   struct cj_error *err)
{
	const struct rights *r = v->rights;
	uint64_t wanted = limit_at(v->asked, rule), given = limit_at(v->profile, rule);
	uint64_t ceiling = rule->has_ceiling ? number_at(&r->ceilings, rule->ceiling_at)
			   : r->host_paths   ? CEILING_NONE
					     : 0;
	uint64_t most = ceiling > 0 ? ceiling : given;

	if (wanted <= most)
		return 0;
	if (wanted == given) {
		assert(rule->has_ceiling); /* without one, `most` is what the profile gives */
		put_number(&v->clamp->ceilings, rule->ceiling_at, most);
		return 0;
	}
	struct number_text one, other;
	cj_refuse_as(err, EACCES, "%s: %s is above %s of %s", rule->key,
		     format_limit(rule, wanted, &one),
		     ceiling == 0 ? "the profile's value" : "this caller's ceiling",
		     format_limit(rule, most, &other));
	return cj_hint(err, "ask for less, or have '%s' raised in %s", rule->key,
		       rule->has_ceiling ? "this caller's row of the service's configuration"
					 : "the profile");
}

/* `least` is what the request may ask for in any case. */
static int refuse_more(const char *key, const char *asked, const char *given, const char *least,
		       struct cj_error *err)
{
	cj_refuse_as(err, EACCES, "%s: '%s' is more than the profile's '%s'", key, asked, given);
	return cj_hint(err, "leave it out, or ask for '%s'", least);
}

/* With truncate a program goes on writing, and uses time and CPU that kill would have ended. */
static int validate_output_policy(const struct validation *v, const struct right_rule *rule,
				  struct cj_error *err)
{
	enum output_policy asked = v->asked->run_limits.on_output_limit,
			   given = v->profile->run_limits.on_output_limit;

	if (asked == given || asked == OUTPUT_KILL || v->rights->host_paths)
		return 0;
	return refuse_more(rule->key, output_policy_names[asked], output_policy_names[given],
			   output_policy_names[OUTPUT_KILL], err);
}

int rights_refuse_network(struct cj_error *err)
{
	cj_refuse_as(err, EACCES, "network: this caller's runs may have none");
	return cj_hint(err, "leave it out, or ask for \"network\": \"none\"");
}

/* A caller without the right to a network loses the profile's, too. */
static int validate_mode(const struct validation *v, const struct right_rule *rule,
			 struct cj_error *err)
{
	enum network_mode asked = v->asked->network, given = v->profile->network;
	bool is_never = v->rights->network == NETWORK_NEVER;

	v->clamp->no_network = is_never && asked != NETWORK_NONE;
	if (asked == given || asked == NETWORK_NONE || v->rights->network == NETWORK_ANY)
		return 0;
	return is_never
		   ? rights_refuse_network(err)
		   : refuse_more(rule->key, network_mode_names[asked], network_mode_names[given],
				 network_mode_names[NETWORK_NONE], err);
}

/* A profile chooses none so that no packet leaves, and another kind for the routes that it has. */
static int validate_uplink(const struct validation *v, const struct right_rule *rule,
			   struct cj_error *err)
{
	enum uplink_kind asked = v->asked->uplink, given = v->profile->uplink;

	if (asked == given || asked == UPLINK_NONE || v->rights->network == NETWORK_ANY)
		return 0;
	if (v->rights->network == NETWORK_NEVER)
		return rights_refuse_network(err);
	cj_refuse_as(err, EACCES, "%s: '%s' is not the profile's, which is '%s'", rule->key,
		     uplink_names[asked], uplink_names[given]);
	return cj_hint(err, "leave it out, or ask for 'none'");
}

static int refuse_target(const struct validation *v, const struct right_rule *rule,
			 const char *target, struct cj_error *err)
{
	if (v->rights->network == NETWORK_NEVER)
		return rights_refuse_network(err);
	cj_refuse_as(err, EACCES, "%s: '%.128s' is not in the profile's list%s", rule->key, target,
		     v->profile->allow_private ? ", and it has allow_private" : "");
	return cj_hint(err, "name only destinations of the profile, or leave it out");
}

/*
 * A list of its own restricts a profile that has none, unless the profile has allow_private: then
 * each destination may be in a closed range, which no list opens otherwise.
 */
static int validate_allow(const struct validation *v, const struct right_rule *rule,
			  struct cj_error *err)
{
	const struct strings *asked = &v->asked->allow, *given = &v->profile->allow;
	bool may_any = given->count == 0 && (!v->profile->allow_private || v->rights->host_paths);

	if (v->asked->network == NETWORK_NONE || v->rights->network == NETWORK_ANY || may_any)
		return 0;
	for (size_t i = 0; i < asked->count; i++)
		if (!strings_has(given, asked->items[i]))
			return refuse_target(v, rule, asked->items[i], err);
	return asked->count == 0 && given->count > 0
		   ? refuse_target(v, rule, "every public destination", err)
		   : 0;
}

/* A choice about the network whose values are in the order of their strictness. */
static int validate_choice(const struct validation *v, const char *key, unsigned asked,
			   unsigned given, const char *const *names, unsigned strictest,
			   struct cj_error *err)
{
	if (asked >= given || v->asked->network == NETWORK_NONE ||
	    v->rights->network == NETWORK_ANY)
		return 0;
	if (v->rights->network == NETWORK_NEVER)
		return rights_refuse_network(err);
	return refuse_more(key, names[asked], names[given], names[strictest], err);
}

static int validate_allow_by(const struct validation *v, const struct right_rule *rule,
			     struct cj_error *err)
{
	return validate_choice(v, rule->key, v->asked->allow_by, v->profile->allow_by,
			       network_allow_by_names, NETWORK_ALLOW_BY_NAME, err);
}

static int validate_names(const struct validation *v, const struct right_rule *rule,
			  struct cj_error *err)
{
	return validate_choice(v, rule->key, v->asked->network_names, v->profile->network_names,
			       network_names_names, NETWORK_NAMES_START, err);
}

static bool keeps_strict(const struct config *asked, const struct config *before)
{
	return asked->strict || !before->strict;
}

static bool keeps_noexec(const struct config *asked, const struct config *before)
{
	return asked->noexec || !before->noexec;
}

/* A writable root can't be mounted noexec: it would be the place where files can be executed. */
static bool keeps_root(const struct config *asked, const struct config *before)
{
	return !before->noexec || before->writable || !asked->writable;
}

#define AT(field) offsetof(struct config, field)
#define NUMBER(name, how, field)                                                                   \
	.key = (name), .effect = RIGHTS_LOWERS, .validate = validate_number, .format = (how),      \
	.config_at = AT(field)
#define CEILING(field) .has_ceiling = true, .ceiling_at = offsetof(struct ceilings, field)
#define LOWERS(name)   .key = (name), .effect = RIGHTS_LOWERS

static const struct right_rule rules[] = {
	{ NUMBER("memory", format_size, limits.memory_bytes), CEILING(memory_bytes),
	  .is_shape = true },
	{ NUMBER("cpus", format_cpus, limits.millicpus), CEILING(millicpus), .is_shape = true },
	{ NUMBER("pids", format_count, limits.pids), CEILING(pids), .is_shape = true },
	{ NUMBER("timeout", text_format_duration, run_limits.wall_ms), CEILING(wall_ms) },
	{ NUMBER("disk", format_size, limits.disk_bytes), CEILING(disk_bytes), .is_shape = true },
	{ NUMBER("max_output", format_size, run_limits.output_bytes), CEILING(output_bytes) },
	{ NUMBER("nofile", format_count, limits.nofile) },
	{ NUMBER("cpu_time", text_format_duration, limits.cpu_ms) },
	{ NUMBER("calls.max", format_count, run_limits.calls) },
	{ NUMBER("calls.outstanding", format_count, run_limits.calls_outstanding) },
	{ NUMBER("calls.rate", format_count, run_limits.calls_per_second) },
	{ NUMBER("calls.timeout", text_format_duration, run_limits.call_ms) },
	{ LOWERS("on_output_limit"), .validate = validate_output_policy },
	{ LOWERS("network.mode"), .validate = validate_mode },
	{ LOWERS("network.uplink"), .validate = validate_uplink },
	{ LOWERS("network.allow"), .validate = validate_allow },
	{ LOWERS("network.allow_by"), .validate = validate_allow_by },
	{ LOWERS("network.names"), .validate = validate_names },
	{ LOWERS("strict"), .is_kept = keeps_strict },
	{ LOWERS("noexec"), .is_kept = keeps_noexec },
	{ LOWERS("writable"), .is_kept = keeps_root },

	/* request_apply() refuses them to a caller without host_paths */
	{ "file", RIGHTS_RAISES },
	{ "ro_bind", RIGHTS_RAISES },
	{ "bind", RIGHTS_RAISES },
	{ "overlay", RIGHTS_RAISES },
	{ "connect", RIGHTS_RAISES },
	{ "upstream", RIGHTS_RAISES },
	{ "rootfs", RIGHTS_RAISES },
	{ "seccomp", RIGHTS_RAISES },
	{ "cgroup_parent", RIGHTS_RAISES },
	{ "network.allow_private", RIGHTS_RAISES },

	/* the jail's own files and names; what they use counts in disk and memory */
	{ "tmpfs", RIGHTS_NEUTRAL },
	{ "hostname", RIGHTS_NEUTRAL },
	{ "workdir", RIGHTS_NEUTRAL },
	{ "env", RIGHTS_NEUTRAL },
	{ "file_name", RIGHTS_NEUTRAL },
	{ "files", RIGHTS_NEUTRAL },
	{ "network.deny", RIGHTS_NEUTRAL },  /* adds to what the profile denies */
	{ "network.start", RIGHTS_NEUTRAL }, /* both load all rules before the first packet */
	/* the program, its data and its results; request_caps and ARTIFACTS_* bound them */
	{ "code", RIGHTS_NEUTRAL },
	{ "command", RIGHTS_NEUTRAL },
	{ "args", RIGHTS_NEUTRAL },
	{ "args_json", RIGHTS_NEUTRAL },
	{ "tools", RIGHTS_NEUTRAL }, /* whoever names them answers their calls */
	{ "stdin", RIGHTS_NEUTRAL },
	{ "open_stdin", RIGHTS_NEUTRAL },
	{ "artifacts", RIGHTS_NEUTRAL },
	{ "artifact_path", RIGHTS_NEUTRAL },
	{ "value_path", RIGHTS_NEUTRAL },
	{ "accept_weaker", RIGHTS_NEUTRAL }, /* the result has every warning, and strict refuses */
	/* rights_has_profile(), runs_has_live() */
	{ "profile", RIGHTS_NEUTRAL },
	{ "id", RIGHTS_NEUTRAL },
	/* sessions_check_ceilings(); a renewal is never longer than the lease */
	{ "lease", RIGHTS_NEUTRAL },
	{ "idle", RIGHTS_NEUTRAL },
	{ "renew_on_use", RIGHTS_NEUTRAL },
	/* sessions_admit() counts the sessions, sessions_admit_exec() their execs */
	{ "context", RIGHTS_NEUTRAL },
	{ "detach", RIGHTS_NEUTRAL },
	{ "interrupt", RIGHTS_NEUTRAL }, /* SIGINT at a limit; SIGKILL follows within seconds */
};
#undef AT
#undef NUMBER
#undef CEILING
#undef LOWERS

const char *rights_key(size_t i)
{
	return i < COUNT_OF(rules) ? rules[i].key : NULL;
}

static const struct right_rule *find_rule(const char *key)
{
	for (size_t i = 0; i < COUNT_OF(rules); i++)
		if (strcmp(rules[i].key, key) == 0)
			return &rules[i];
	return NULL;
}

int rights_effect_of(const char *key)
{
	const struct right_rule *rule = find_rule(key);
	return rule ? (int)rule->effect : -1;
}

int rights_validate(const struct rights *r, const struct config *asked,
		    const struct config *profile, struct rights_clamp *clamp, struct cj_error *err)
{
	struct rights_clamp made = { 0 };
	const struct validation v = { r, asked, profile, &made };
	int rc = 0;

	for (size_t i = 0; i < COUNT_OF(rules) && rc == 0; i++)
		if (rules[i].validate)
			rc = rules[i].validate(&v, &rules[i], err);
	if (rc == 0)
		*clamp = made;
	return rc;
}

int rights_validate_within(const struct ceilings *most, const struct config *asked, const char *key,
			   const char *named, struct cj_error *err)
{
	const struct right_rule *rule = find_rule(key);
	struct number_text one, other;
	assert(rule && rule->has_ceiling);
	uint64_t value = limit_at(asked, rule), ceiling = number_at(most, rule->ceiling_at);

	if (value <= ceiling)
		return 0;
	if (ceiling == 0) {
		cj_refuse_as(err, EACCES, "'%s': the limit of this tool is not known", named);
		return cj_hint(err, "leave it out");
	}
	const char *most_text = format_limit(rule, ceiling, &other);
	cj_refuse_as(err, EACCES, "'%s': %s is above the limit of this tool, which is %s", named,
		     format_limit(rule, value, &one), most_text);
	return cj_hint(err, "ask for %s or less, or leave it out", most_text);
}

/* What a profile insists on stays: another profile is the way to have less. */
int rights_validate_kept(const struct config *asked, const struct config *before,
			 struct cj_error *err)
{
	for (size_t i = 0; i < COUNT_OF(rules); i++) {
		const struct right_rule *rule = &rules[i];
		if (!rule->is_kept || rule->is_kept(asked, before))
			continue;
		cj_refuse_as(err, EPERM,
			     rule->is_kept == keeps_root
				 ? "request: %s: the profile has noexec and a root that is "
				   "read-only, and this can't be taken back"
				 : "request: %s is the profile's, and can't be taken back",
			     rule->key);
		return cj_hint(err, "choose a profile without it");
	}
	return 0;
}

void rights_ceilings_of(const struct config *c, struct ceilings *out)
{
	*out = (struct ceilings){ 0 };
	for (size_t i = 0; i < COUNT_OF(rules); i++) {
		const struct right_rule *rule = &rules[i];
		if (rule->has_ceiling)
			put_number(out, rule->ceiling_at, limit_at(c, rule));
	}
}

void rights_ceilings_merge(struct ceilings *into, const struct ceilings *other, bool to_lowest)
{
	for (size_t i = 0; i < COUNT_OF(rules); i++) {
		const struct right_rule *rule = &rules[i];
		if (!rule->has_ceiling)
			continue;
		uint64_t own = number_at(into, rule->ceiling_at);
		uint64_t value = number_at(other, rule->ceiling_at);
		if (to_lowest ? value < own : value > own)
			put_number(into, rule->ceiling_at, value);
	}
}

void rights_clamp_apply(const struct rights_clamp *clamp, struct config *c)
{
	for (size_t i = 0; i < COUNT_OF(rules); i++) {
		const struct right_rule *rule = &rules[i];
		uint64_t ceiling = rule->has_ceiling ? number_at(&clamp->ceilings, rule->ceiling_at)
						     : 0;
		if (ceiling > 0)
			put_number(c, rule->config_at, ceiling);
	}
	if (clamp->no_network)
		c->network = NETWORK_NONE;
}

void rights_clamp_list_shape(const struct rights_clamp *clamp,
			     char out[static RIGHTS_CLAMP_LIST_MAX])
{
	out[0] = '\0';
	for (size_t i = 0; i < COUNT_OF(rules); i++)
		if (rules[i].is_shape && number_at(&clamp->ceilings, rules[i].ceiling_at) > 0)
			text_append(out, RIGHTS_CLAMP_LIST_MAX, "%s%s", out[0] ? ", " : "",
				    rules[i].key);
	if (clamp->no_network)
		text_append(out, RIGHTS_CLAMP_LIST_MAX, "%snetwork", out[0] ? ", " : "");
}

bool rights_clamp_changes_shape(const struct rights_clamp *clamp)
{
	char names[RIGHTS_CLAMP_LIST_MAX];
	rights_clamp_list_shape(clamp, names);
	return names[0] != '\0';
}
