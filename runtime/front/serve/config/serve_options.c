/* SPDX-License-Identifier: Apache-2.0 */
/* The words behind `cejail serve`.  Pure but for the help text. */
#include "runtime/front/serve/config/serve_options.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/help.h"
#include "runtime/base/text.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define NAMES_MAX 96

/* What is no setting of the file. */
static const struct own_option {
	const char *name, *value, *help;
	size_t offset; /* of a bool, or with a value of a string */
} own_options[] = {
	{ "config", "FILE", "read this instead of " SERVICE_CONFIG_FILE,
	  offsetof(struct serve_options, config) },
	{ "fake", "FILE", "answer from this file and run nothing: for tests of clients",
	  offsetof(struct serve_options, fake) },
	{ "check", NULL, "read and check the configuration, run nothing",
	  offsetof(struct serve_options, check_only) },
	{ "help", NULL, "this text", offsetof(struct serve_options, wants_help) },
};

/* --- finding a row ------------------------------------------------------------ */

static bool is_word(const char *name, const char *word, size_t size)
{
	return name && strlen(name) == size && memcmp(name, word, size) == 0;
}

static const struct own_option *find_own(const char *word, size_t size)
{
	for (size_t i = 0; i < LENGTH(own_options); i++)
		if (is_word(own_options[i].name, word, size))
			return &own_options[i];
	return NULL;
}

/* Only the file's own keys have options: service_config_set() writes to no other place. */
static const struct service_key *find_key(const char *word, size_t size)
{
	const struct service_table *t = &service_tables[0];
	for (size_t i = 0; i < t->count; i++)
		if (is_word(t->keys[i].option, word, size))
			return &t->keys[i];
	return NULL;
}

static int reject_option(const char *word, size_t size, struct cj_error *err)
{
	const struct service_table *t = &service_tables[0];
	const char *names[NAMES_MAX + 1] = { NULL };
	char name[64];
	size_t n = 0;

	for (size_t i = 0; i < LENGTH(own_options); i++)
		names[n++] = own_options[i].name;
	for (size_t i = 0; i < t->count && n < NAMES_MAX; i++)
		if (t->keys[i].option)
			names[n++] = t->keys[i].option;
	(void)snprintf(name, sizeof(name), "%.*s", (int)(size < 63 ? size : 63), word);
	const char *near = text_nearest(name, names);
	int rc = cj_reject(err, "unknown option '--%s'", name);
	if (near)
		cj_hint(err, "did you mean '--%s'?", near);
	else
		cj_hint(err, "see 'cejail serve --help'");
	return rc;
}

/* --- the words ------------------------------------------------------------------ */

/* "=VALUE" of the same word, else the next one. */
static int take_value(const char *const **next, const char *equals, const char *name,
		      const char *called, const char **out, struct cj_error *err)
{
	const char *value = equals ? equals + 1 : **next;
	if (!value) {
		int rc = cj_reject(err, "option '--%s' needs a value (%s)", name, called);
		cj_hint(err, "see 'cejail serve --help'");
		return rc;
	}
	if (!equals)
		++*next;
	*out = value;
	return 0;
}

static int take_own(const struct own_option *o, const char *const **next, const char *equals,
		    struct serve_options *out, struct cj_error *err)
{
	void *field = (char *)out + o->offset;
	if (o->value)
		return take_value(next, equals, o->name, o->value, field, err);
	if (equals)
		return cj_reject(err, "option '--%s' takes no value", o->name);
	*(bool *)field = true;
	return 0;
}

static int take_key(const struct service_key *k, const char *const **next, const char *equals,
		    struct serve_options *out, struct cj_error *err)
{
	const char *value = NULL;
	int rc = take_value(next, equals, k->option, k->value, &value, err);
	if (rc < 0)
		return rc;
	if (out->count == SERVE_OPTIONS_MAX)
		return cj_reject(err, "more than %d options", SERVE_OPTIONS_MAX);
	out->given[out->count++] = (struct serve_option){ k, value };
	return 0;
}

static int take_word(const char *const **next, struct serve_options *out, struct cj_error *err)
{
	const char *word = *(*next)++;
	if (strcmp(word, "-h") == 0) {
		out->wants_help = true;
		return 0;
	}
	if (strncmp(word, "--", 2) != 0 || word[2] == '\0') {
		int rc = cj_reject(err, "'%s' is one word too many", word);
		cj_hint(err, "see 'cejail serve --help'");
		return rc;
	}
	word += 2;
	const char *equals = strchr(word, '=');
	size_t size = equals ? (size_t)(equals - word) : strlen(word);
	const struct own_option *own = find_own(word, size);
	const struct service_key *key = find_key(word, size);
	if (own)
		return take_own(own, next, equals, out, err);
	return key ? take_key(key, next, equals, out, err) : reject_option(word, size, err);
}

int serve_options_parse(const char *const *words, struct serve_options *out, struct cj_error *err)
{
	struct serve_options o = { 0 };
	int rc = 0;
	while (*words && rc == 0)
		rc = take_word(&words, &o, err);
	if (rc == 0)
		*out = o;
	return rc;
}

int serve_options_apply(const struct serve_options *o, struct service_config *c,
			struct cj_error *err)
{
	int rc = 0;
	for (size_t i = 0; i < o->count && rc == 0; i++) {
		char named[64];
		(void)snprintf(named, sizeof(named), "--%s", o->given[i].key->option);
		rc = service_config_set(c, o->given[i].key, named, o->given[i].value, err);
	}
	return rc;
}

/* --- the help text ---------------------------------------------------------------- */

static void print_entry(const char *before, const char *name, const char *value, const char *help)
{
	int width = printf("  %s%s%s%s", before, name, value ? " " : "", value ? value : "");
	help_print(width, help);
}

static void print_keys(const struct service_table *t)
{
	if (t->name[0] != '\0')
		(void)printf("\nIn each \"%s\":\n", t->name);
	for (size_t i = 0; i < t->count; i++) {
		const struct service_key *k = &t->keys[i];
		char help[256];
		(void)snprintf(help, sizeof(help), "%s [%s]", k->help, k->standard);
		print_entry("", k->key, k->value, help);
	}
}

void serve_options_print_help(void)
{
	(void)printf("Usage: cejail serve [OPTION...]\n"
		     "Run programs in jails for callers of a socket: cejail-serve(8).\n\n");
	for (size_t i = 0; i < LENGTH(own_options); i++)
		print_entry("--", own_options[i].name, own_options[i].value, own_options[i].help);
	for (size_t i = 0; i < service_tables[0].count; i++) {
		const struct service_key *k = &service_tables[0].keys[i];
		if (k->option)
			print_entry("--", k->option, k->value, k->help);
	}
	(void)printf("\nKeys of the file (JSON), [what they are where nobody says]:\n");
	for (size_t i = 0; i < service_tables_count; i++)
		print_keys(&service_tables[i]);
}
