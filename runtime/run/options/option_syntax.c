/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run/options/option_syntax.h"

#include "profiles/settings.h"
#include "runtime/base/text.h"

#define NAMED_MAX   40
#define HELP_WIDTH  80
#define HELP_INDENT 30

bool option_split(const char *arg, struct long_option *out)
{
	const char *name = text_after(arg, "--");
	if (!name || *name == '\0')
		return false;
	const char *equals = strchr(name, '=');

	*out = (struct long_option){
		.name = name,
		.name_size = equals ? (size_t)(equals - name) : strlen(name),
		.value = equals ? equals + 1 : NULL,
	};
	return true;
}

bool option_has_name(const struct long_option *o, const char *name)
{
	return strlen(name) == o->name_size && memcmp(name, o->name, o->name_size) == 0;
}

int option_take_value(const char *attached, const char *const **next, const char *named,
		      const char *value_name, const char *verb, const char **out,
		      struct cj_error *err)
{
	if (!attached && !**next) {
		cj_refuse(err, "option '%s' needs a value (%s)", named, value_name);
		return cj_hint(err, "see 'cejail %s --help'", verb);
	}
	*out = attached ? attached : *(*next)++;
	return 0;
}

int option_reject_unknown(const char *named, const char *nearest, const char *verb,
			  struct cj_error *err)
{
	cj_refuse(err, "unknown option '%s'", named);
	if (nearest)
		return cj_hint(err, "did you mean '--%s'?", nearest);
	return cj_hint(err, "see 'cejail %s --help'", verb);
}

int own_rest_init(struct own_rest *rest, const char *const *args, struct arena *a,
		  struct cj_error *err)
{
	size_t count = 0;

	while (args[count])
		count++;
	*rest = (struct own_rest){ .args = arena_array(a, count + 1, sizeof(*rest->args)) };
	return rest->args ? 0 : cj_fail(err, ENOMEM, "read the options");
}

/* "--name", "--name=value" or "-x"; an own letter is not combined with others. */
static const struct own_option *find(const struct own_options *own, const char *arg,
				     const char **out_value)
{
	struct long_option o = { 0 };
	bool is_long = option_split(arg, &o);
	bool is_letter = arg[0] == '-' && arg[1] != '\0' && arg[2] == '\0';

	*out_value = o.value;
	for (size_t i = 0; i < own->count; i++) {
		const struct own_option *row = &own->rows[i];
		if ((is_long && option_has_name(&o, row->name)) ||
		    (is_letter && row->letter == arg[1]))
			return row;
	}
	return NULL;
}

/* Is the next argument the value of this option of `run`? */
static bool takes_next(const char *arg, const char *next)
{
	if (text_begins_with(arg, "--")) {
		const struct setting *s = setting_by_option(arg + 2);
		return s && (setting_needs_value(s) ||
			     (s->value_end && text_ends_with(next, s->value_end)));
	}
	for (const char *at = arg + 1; *at; at++) {
		const struct setting *s = setting_by_letter(*at);
		if (s && setting_needs_value(s))
			return at[1] == '\0';
	}
	return false;
}

/* *out_row: NULL if the next argument is no option of these. */
static int take_own(const struct own_options *own, const char *const **next,
		    const struct own_option **out_row, struct cj_error *err)
{
	const char *value = NULL;

	*out_row = find(own, **next, &value);
	if (!*out_row)
		return 0;
	++*next;
	void *field = (char *)own->out + (*out_row)->offset;
	char named[NAMED_MAX];
	(void)snprintf(named, sizeof(named), "--%s", (*out_row)->name);
	if ((*out_row)->value)
		return option_take_value(value, next, named, (*out_row)->value, own->verb, field,
					 err);
	if (value)
		return cj_reject(err, "option '%s' takes no value", named);
	*(bool *)field = true;
	return 0;
}

int own_options_take_one(const struct own_options *own, const char *const **next, bool *out_is_own,
			 struct cj_error *err)
{
	const struct own_option *row = NULL;
	int rc = take_own(own, next, &row, err);

	*out_is_own = row != NULL;
	return rc;
}

static bool is_option(const char *arg)
{
	return arg && arg[0] == '-' && arg[1] != '\0' && strcmp(arg, "--") != 0;
}

int own_options_take(const struct own_options *own, const char *const **next, struct own_rest *rest,
		     struct cj_error *err)
{
	while (is_option(**next)) {
		const char *arg = **next;
		const char *const *begin = *next;
		const struct own_option *row = NULL;
		if (take_own(own, next, &row, err) < 0)
			return -err->code;
		if (!row) {
			rest->args[rest->count++] = *(*next)++;
			if (**next && takes_next(arg, **next))
				rest->args[rest->count++] = *(*next)++;
		}
		bool is_left_out = row && rest->left_out && strcmp(row->name, rest->left_out) == 0;
		for (; rest->all && !is_left_out && begin < *next; begin++)
			rest->all[rest->nall++] = *begin;
	}
	return 0;
}

void help_print(int width, const char *text)
{
	if (width >= HELP_INDENT - 1)
		(void)printf("\n%*s", HELP_INDENT, "");
	else
		(void)printf("%*s", HELP_INDENT - width, "");
	for (int at = HELP_INDENT; *text;) {
		int size = (int)strcspn(text, " ");
		if (at > HELP_INDENT && at + 1 + size > HELP_WIDTH) {
			(void)printf("\n%*s", HELP_INDENT, "");
			at = HELP_INDENT;
		} else if (at > HELP_INDENT) {
			at += printf(" ");
		}
		at += printf("%.*s", size, text);
		text += size + (text[size] == ' ');
	}
	(void)printf("\n");
}

void own_options_print_help(const struct own_option *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct own_option *o = &rows[i];
		char letter[] = { '-', o->letter, ',', '\0' };
		int width = printf("  %3s --%s%s%s", o->letter ? letter : "", o->name,
				   o->value ? " " : "", o->value ? o->value : "");
		help_print(width, o->help);
	}
}
