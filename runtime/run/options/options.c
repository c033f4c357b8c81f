/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run/options/options.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>

#include "profiles/plan/env_file.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/run/options/habits.h"
#include "runtime/run/options/option_syntax.h"

/* The options that decide where the run comes from, where its result goes, and which messages are
 * printed. */
static const char *const delivery_options[] = {
	"request-fd", "json", "result-fd", "events-fd", "verbose", "quiet",
	"no-report",  "id",   "remote",    "calls-fd",  NULL,
};

struct option_scan {
	const char *verb;        /* whose --help a hint names */
	const char *const *next; /* the argument to be read */
	struct arena *arena;
	struct options *out;
};

static int add_given(struct option_scan *s, const struct setting *setting, const char *named,
		     const char *value, struct cj_error *err)
{
	struct options *o = s->out;

	if (!named)
		return cj_fail(err, ENOMEM, "read the options");
	return arena_append(s->arena, o->items, o->count, (struct given){ setting, named, value })
		   ? 0
		   : cj_fail(err, ENOMEM, "read the options");
}

static int scan_long(struct option_scan *s, const char *arg, struct cj_error *err)
{
	struct long_option o;
	bool is_split = option_split(arg, &o); /* options_scan() has checked the "--" */
	assert(is_split);
	const char *named = arena_strndup(s->arena, arg, o.name_size + 2);
	if (!named)
		return cj_fail(err, ENOMEM, "read the options");
	if (!o.value && option_has_name(&o, "help")) {
		s->out->wants_help = true;
		return 0;
	}

	const struct setting *setting = setting_by_option(named + 2);
	if (!setting) {
		const char *habit = habit_for_option(named);
		if (habit)
			return cj_reject(err, "unknown option '%s': %s", named, habit);
		return option_reject_unknown(named, setting_suggest_option(named + 2), s->verb,
					     err);
	}

	const char *value = o.value;
	if (!value && setting->value_end && *s->next &&
	    text_ends_with(*s->next, setting->value_end))
		value = *s->next++;
	if (setting_needs_value(setting) &&
	    option_take_value(value, &s->next, named, setting->value, s->verb, &value, err) < 0)
		return -err->code;
	return add_given(s, setting, named, value, err);
}

static int scan_letters(struct option_scan *s, const char *arg, struct cj_error *err)
{
	for (const char *at = arg + 1; *at; at++) {
		const char *named = arena_printf(s->arena, "-%c", *at);
		const struct setting *setting = setting_by_letter(*at);
		const char *value = NULL;

		if (*at == 'h' && !setting) {
			s->out->wants_help = true;
			continue;
		}
		if (!named)
			return cj_fail(err, ENOMEM, "read the options");
		if (!setting) {
			const char *habit = habit_for_option(named);
			if (habit)
				return cj_reject(err, "unknown option '%s': %s", named, habit);
			cj_refuse(err, "unknown option '%s' in '%s'", named, arg);
			return cj_hint(err, "see 'cejail %s --help'", s->verb);
		}
		if (setting->kind == SETTING_FLAG) {
			if (add_given(s, setting, named, NULL, err) < 0)
				return -err->code;
			continue;
		}
		if (at[1])
			value = at + 1;
		if (setting_needs_value(setting) &&
		    option_take_value(value, &s->next, named, setting->value, s->verb, &value,
				      err) < 0)
			return -err->code;
		return add_given(s, setting, named, value, err);
	}
	return 0;
}

int options_scan(const char *verb, const char *const *args, struct arena *a, struct options *out,
		 struct cj_error *err)
{
	struct option_scan s = { .verb = verb, .next = args, .arena = a, .out = out };

	*out = (struct options){ 0 };
	while (*s.next) {
		const char *arg = *s.next;
		if (arg[0] != '-' || arg[1] == '\0') /* "-" is an operand */
			break;
		s.next++;
		if (strcmp(arg, "--") == 0) {
			out->has_separator = true;
			break;
		}
		int rc = arg[1] == '-' ? scan_long(&s, arg, err) : scan_letters(&s, arg, err);
		if (rc < 0)
			return rc;
	}
	out->operands = s.next;
	return 0;
}

/* A file, or with fd:N an open descriptor, which nothing else may inherit. */
static int open_variables(const char *path, struct cj_error *err)
{
	uint64_t number = 0;

	const char *digits = text_after(path, "fd:");
	if (!digits)
		return fd_open_regular(path, err);
	const char *end = text_take_u64(digits, &number);
	if (!end || *end || number > INT_MAX)
		return cj_reject(err, "'%s' is not fd: and a number", path);
	const int fd = fcntl((int)number, F_DUPFD_CLOEXEC, 3);
	if (fd < 0 || fcntl((int)number, F_SETFD, FD_CLOEXEC) < 0)
		return cj_fail(err, errno, "read '%s'", path);
	return fd;
}

static int read_variables(const char *path, const char *const *caller_env, struct option_scan *to,
			  struct cj_error *err)
{
	struct env_line *lines = NULL;
	char *text = NULL;
	size_t size = 0, count = 0;
	auto_fd int fd = open_variables(path, err);

	if (fd < 0 || fd_read_all(fd, ENV_FILE_MAX, to->arena, &text, &size, path, err) < 0)
		return cj_wrap(err, "--env-file");
	if (env_file_parse(text, size, caller_env, to->arena, &lines, &count, err) < 0)
		return cj_wrap(err, "--env-file '%s'", path);
	for (size_t i = 0; i < count; i++) {
		const char *named =
		    arena_printf(to->arena, "--env-file '%s': line %u", path, lines[i].number);
		if (add_given(to, setting_by_option("env"), named, lines[i].text, err) < 0)
			return -err->code;
	}
	return 0;
}

int options_check(const struct options *o, bool (*takes)(const struct setting *), const char *verb,
		  struct cj_error *err)
{
	for (size_t i = 0; i < o->count; i++)
		if (!takes(o->items[i].setting)) {
			cj_refuse(err, "option '%s' is not for 'cejail %s'", o->items[i].named,
				  verb);
			return cj_hint(err, "see 'cejail %s --help'", verb);
		}
	return 0;
}

int options_expand(struct options *o, const char *const *caller_env, struct arena *a,
		   struct cj_error *err)
{
	const struct setting *env_file = setting_by_option("env-file");
	struct options all = *o;
	struct option_scan to = { .arena = a, .out = &all };

	if (!options_find(o, "env-file"))
		return 0;
	all.items = NULL;
	all.count = 0;
	for (size_t i = 0; i < o->count; i++)
		if (o->items[i].setting == env_file &&
		    read_variables(o->items[i].value, caller_env, &to, err) < 0)
			return -err->code;
	for (size_t i = 0; i < o->count; i++)
		if (o->items[i].setting != env_file &&
		    add_given(&to, o->items[i].setting, o->items[i].named, o->items[i].value, err) <
			0)
			return -err->code;
	*o = all;
	return 0;
}

static const struct given *find_given(const struct options *o, const char *option)
{
	const struct setting *wanted = setting_by_option(option);

	for (size_t i = o->count; wanted && i > 0; i--) {
		if (o->items[i - 1].setting == wanted)
			return &o->items[i - 1];
	}
	return NULL;
}

const char *options_find(const struct options *o, const char *option)
{
	const struct given *given = find_given(o, option);
	return given ? given->value : NULL;
}

bool options_has(const struct options *o, const char *option)
{
	return find_given(o, option) != NULL;
}

static int apply(const struct options *o, bool delivery, struct config *c, struct cj_error *err)
{
	for (size_t i = 0; i < o->count; i++) {
		const struct given *g = &o->items[i];
		if (text_is_one_of(g->setting->option, delivery_options) != delivery ||
		    strcmp(g->setting->option, "profile") == 0)
			continue;
		if (setting_set(c, g->setting, g->named, g->value, err) < 0) {
			/*
			 * A value that looks like an option: probably the option lacks its value.
			 */
			const char *habit = g->value ? habit_for_value(g->setting->option, g->value)
						     : NULL;

			if (habit)
				return cj_hint(err, "%s", habit);
			if (g->value && g->value[0] == '-' && g->value[1] != '\0')
				return cj_hint(err, "'%s' takes the next argument as its value",
					       g->named);
			return -err->code;
		}
	}
	return 0;
}

int options_apply_delivery(const struct options *o, struct config *c, struct cj_error *err)
{
	return apply(o, true, c, err);
}

int options_apply_rest(const struct options *o, struct config *c, struct cj_error *err)
{
	return apply(o, false, c, err);
}

void options_print_help(bool (*wanted)(const struct setting *s))
{
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *s = &settings[i];
		if (!s->option || (wanted && !wanted(s)))
			continue;
		int width = s->letter ? printf("  -%c, ", s->letter) : printf("      ");
		width += printf("--%s", s->option);
		if (s->value)
			width += printf(s->value_optional ? "[=%s]" : " %s", s->value);
		help_print(width, s->help);
	}
}
