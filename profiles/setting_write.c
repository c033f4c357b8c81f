/* SPDX-License-Identifier: Apache-2.0 */
/* Writers of the values in the settings table: setting_types.h.  Pure. */
#include "profiles/setting_types.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/json/json.h"

static const void *value_of(const struct config *c, const struct setting *s)
{
	return (const char *)c + s->offset;
}

/* The key without its group: "mode" of "network.mode". */
static void put_key(struct json_writer *w, const struct setting *s)
{
	const char *dot = strrchr(s->key, '.');
	json_put_key(w, dot ? dot + 1 : s->key);
}

void put_flag(struct json_writer *w, const struct config *c, const struct setting *s)
{
	put_key(w, s);
	json_put_bool(w, *(const bool *)value_of(c, s));
}

struct unit {
	uint64_t factor;
	const char *suffix;
};

/* The largest unit that divides the value, so that reading it back gives the same. */
static void put_in_units(struct json_writer *w, const struct setting *s, uint64_t value,
			 const struct unit *units, size_t n)
{
	char text[32];
	size_t i = 0;
	while (i + 1 < n && value % units[i].factor != 0)
		i++;
	(void)snprintf(text, sizeof(text), "%" PRIu64 "%s", value / units[i].factor,
		       units[i].suffix);
	put_key(w, s);
	json_put_string(w, text);
}

void put_size(struct json_writer *w, const struct config *c, const struct setting *s)
{
	static const struct unit units[] = {
		{ 1ull << 40, "T" }, { 1ull << 30, "G" }, { 1ull << 20, "M" },
		{ 1ull << 10, "K" }, { 1, "" },
	};
	put_in_units(w, s, *(const uint64_t *)value_of(c, s), units,
		     sizeof(units) / sizeof(units[0]));
}

void put_duration(struct json_writer *w, const struct config *c, const struct setting *s)
{
	static const struct unit units[] = {
		{ 3600 * 1000, "h" },
		{ 60 * 1000, "m" },
		{ 1000, "s" },
		{ 1, "ms" },
	};
	uint64_t ms = *(const uint64_t *)value_of(c, s);
	if (ms > 0) /* 0: no limit, and no way to ask for it */
		put_in_units(w, s, ms, units, sizeof(units) / sizeof(units[0]));
}

void put_count(struct json_writer *w, const struct config *c, const struct setting *s)
{
	put_key(w, s);
	json_put_u64(w, *(const uint64_t *)value_of(c, s));
}

void put_cpus(struct json_writer *w, const struct config *c, const struct setting *s)
{
	put_key(w, s);
	json_put_milli(w, *(const uint64_t *)value_of(c, s));
}

void put_text(struct json_writer *w, const struct config *c, const struct setting *s)
{
	const char *text = *(const char *const *)value_of(c, s);
	if (!text)
		return;
	put_key(w, s);
	json_put_string(w, text);
}

void put_value_path(struct json_writer *w, const struct config *c, const struct setting *s)
{
	const char *path = *(const char *const *)value_of(c, s);
	put_key(w, s);
	json_put_string(w, path ? path : VALUE_PATH_NONE);
}

void put_network(struct json_writer *w, const struct config *c, const struct setting *s)
{
	put_key(w, s);
	json_put_string(w, network_mode_names[*(const enum network_mode *)value_of(c, s)]);
}

void put_uplink(struct json_writer *w, const struct config *c, const struct setting *s)
{
	put_key(w, s);
	json_put_string(w, uplink_names[*(const enum uplink_kind *)value_of(c, s)]);
}

void put_network_start(struct json_writer *w, const struct config *c, const struct setting *s)
{
	put_key(w, s);
	json_put_string(w, network_start_names[*(const enum network_start *)value_of(c, s)]);
}

void put_launcher(struct json_writer *w, const struct config *c, const struct setting *s)
{
	put_key(w, s);
	json_put_string(w, launcher_names[*(const enum launcher_kind *)value_of(c, s)]);
}

void put_output_policy(struct json_writer *w, const struct config *c, const struct setting *s)
{
	put_key(w, s);
	json_put_string(w, output_policy_names[*(const enum output_policy *)value_of(c, s)]);
}

void put_audit(struct json_writer *w, const struct config *c, const struct setting *s)
{
	put_key(w, s);
	json_put_string(w, *(const bool *)value_of(c, s) ? "required" : "optional");
}

void put_list(struct json_writer *w, const struct config *c, const struct setting *s)
{
	const struct strings *list = value_of(c, s);
	if (list->count == 0)
		return;
	put_key(w, s);
	json_open_array(w);
	for (size_t i = 0; i < list->count; i++)
		json_put_string(w, list->items[i]);
	json_close_array(w);
}

/* Profiles hold values only; a bare NAME can come from an option and means nothing here. */
void put_env(struct json_writer *w, const struct config *c, const struct setting *s)
{
	const struct strings *env = value_of(c, s);
	put_key(w, s);
	json_open_object(w);
	for (size_t i = 0; i < env->count; i++) {
		const char *equals = strchr(env->items[i], '=');
		if (!equals)
			continue;
		char name[ENV_NAME_LEN + 1];
		(void)snprintf(name, sizeof(name), "%.*s", (int)(equals - env->items[i]),
			       env->items[i]);
		json_put_key(w, name);
		json_put_string(w, equals + 1);
	}
	json_close_object(w);
}
