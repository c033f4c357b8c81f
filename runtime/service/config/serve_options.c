/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of `cejail serve`. */
#include "runtime/service/config/serve_options.h"

#include <sys/stat.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/run/options/option_syntax.h"

#define NAMES_MAX 96
#define CLIENTS   CJ_DATADIR "/clients/python"

/* Options that are not keys of the file. */
static const struct own_option own_rows[] = {
	{ "config", 0, "FILE", "read this instead of " SERVICE_CONFIG_FILE,
	  offsetof(struct serve_options, config) },
	{ "check", 0, NULL, "read and check the configuration, run nothing",
	  offsetof(struct serve_options, check_only) },
	{ "until-idle", 0, NULL, "end when there has been no session and no run for 10 seconds",
	  offsetof(struct serve_options, until_idle) },
	{ "help", 'h', NULL, "this text", offsetof(struct serve_options, wants_help) },
};

/* Only the file's own keys have options: serve_options_apply() writes to no other place. */
static const struct service_key *find_key(const struct long_option *o)
{
	const struct service_table *t = &service_tables[0];
	for (size_t i = 0; i < t->count; i++)
		if (t->keys[i].option && option_has_name(o, t->keys[i].option))
			return &t->keys[i];
	return NULL;
}

static int reject_option(const struct long_option *o, struct cj_error *err)
{
	const struct service_table *t = &service_tables[0];
	const char *names[NAMES_MAX + 1] = { NULL };
	char named[64];
	size_t n = 0;

	for (size_t i = 0; i < COUNT_OF(own_rows); i++)
		names[n++] = own_rows[i].name;
	for (size_t i = 0; i < t->count && n < NAMES_MAX; i++)
		if (t->keys[i].option)
			names[n++] = t->keys[i].option;
	(void)snprintf(named, sizeof(named), "--%.*s", (int)(o->name_size < 60 ? o->name_size : 60),
		       o->name);
	if (strcmp(named, "--port") == 0 || strcmp(named, "--listen") == 0 ||
	    strcmp(named, "--host") == 0 || strcmp(named, "--bind") == 0)
		return cj_reject(err,
				 "unknown option '%s': write --tcp 127.0.0.1:PORT, with "
				 "--token-file FILE",
				 named);
	if (strcmp(named, "--fake") == 0)
		return cj_reject(err, "unknown option '--fake': answers from a file come from the "
				      "Python client, PYTHONPATH=" CLIENTS
				      " python3 -m cejail.fake FILE "
				      "--socket PATH");
	return option_reject_unknown(named, text_nearest(named + 2, names), "serve", err);
}

static int take_argument(const char *const **next, struct serve_options *out, struct cj_error *err)
{
	const struct own_options own = {
		.verb = "serve", .rows = own_rows, .count = COUNT_OF(own_rows), .out = out
	};
	struct long_option o;
	bool is_own = false;

	if (own_options_take_one(&own, next, &is_own, err) < 0 || is_own)
		return -err->code;
	const char *arg = *(*next)++;
	if (!option_split(arg, &o)) {
		cj_refuse(err, "unknown argument '%s'", arg);
		return cj_hint(err, "see 'cejail serve --help'");
	}
	const struct service_key *key = find_key(&o);
	if (!key)
		return reject_option(&o, err);
	const char *value = NULL;
	char named[64];
	(void)snprintf(named, sizeof(named), "--%s", key->option);
	if (option_take_value(o.value, next, named, key->value, "serve", &value, err) < 0)
		return -err->code;
	if (out->count == SERVE_OPTIONS_MAX)
		return cj_reject(err, "more than %d options", SERVE_OPTIONS_MAX);
	out->given[out->count++] = (struct serve_option){ key, value };
	return 0;
}

int serve_options_parse(const char *const *args, struct serve_options *out, struct cj_error *err)
{
	struct serve_options o = { 0 };
	int rc = 0;
	while (*args && rc == 0)
		rc = take_argument(&args, &o, err);
	if (rc == 0)
		*out = o;
	return rc;
}

int serve_options_apply(const struct serve_options *o, struct service_config *c,
			struct cj_error *err)
{
	const struct json_reader in = { .arena = &c->arena };

	for (size_t i = 0; i < o->count; i++) {
		const struct service_key *k = o->given[i].key;
		if (k->json.set(&in, &k->json, o->given[i].value, c, err) < 0)
			return cj_wrap(err, "--%s", k->option);
	}
	return 0;
}

/* Only root and the service's own user may write it. */
static int check_owner(int fd, const char *path, struct cj_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "stat '%s'", path);
	bool is_ours = st.st_uid == 0 || st.st_uid == geteuid();
	if (is_ours && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0)
		return 0;
	cj_refuse(err, "other users than root and this one can write '%s'", path);
	return cj_hint(err, "chown and chmod it: its writers decide what callers may do");
}

static int read_file(struct service_config *c, const char *path, struct cj_error *err)
{
	char *text = NULL;
	size_t size = 0;
	auto_fd int fd = fd_open_regular(path, err);

	if (fd < 0)
		return fd;
	if (check_owner(fd, path, err) < 0 ||
	    fd_read_all(fd, SERVICE_CONFIG_BYTES_MAX, &c->arena, &text, &size, path, err) < 0)
		return -err->code;
	return service_config_read(c, path, text, size, err);
}

/* $XDG_CONFIG_HOME/cejail/serve.json for a user who has one; else the host's, if there is one. */
static const char *users_file(struct arena *a)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		return NULL;
	if (config && config[0] == '/')
		return arena_printf(a, "%s/cejail/serve.json", config);
	return home && home[0] == '/' ? arena_printf(a, "%s/.config/cejail/serve.json", home)
				      : NULL;
}

static int read_first(struct service_config *c, struct cj_error *err)
{
	const char *const paths[] = { users_file(&c->arena), SERVICE_CONFIG_FILE };

	for (size_t i = 0; i < COUNT_OF(paths); i++) {
		if (!paths[i] ||
		    (access(paths[i], F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR)))
			continue;
		return read_file(c, paths[i], err);
	}
	return 0;
}

int serve_options_load(const struct serve_options *o, struct service_config **out,
		       struct cj_error *err)
{
	struct service_config *c = malloc(sizeof(*c));

	if (!c)
		return cj_fail(err, ENOMEM, "read the configuration");
	service_config_init(c);
	int rc = o->config ? read_file(c, o->config, err) : read_first(c, err);
	if (rc == 0)
		rc = serve_options_apply(o, c, err);
	if (rc == 0)
		rc = service_config_check(c, err);
	if (rc < 0)
		service_config_free(&c);
	*out = c;
	return rc;
}

void service_config_free(struct service_config **c)
{
	if (!*c)
		return;
	service_config_fini(*c);
	cj_free(c);
}

static void print_entry(const char *before, const char *name, const char *value, const char *help)
{
	int width = printf("  %s%s%s%s", before, name, value ? " " : "", value ? value : "");
	help_print(width, help);
}

void serve_options_print_help(void)
{
	(void)printf("Usage: cejail serve [OPTION...]\n"
		     "Run programs in jails for callers of a socket: cejail-serve(8).\n\n");
	own_options_print_help(own_rows, COUNT_OF(own_rows));
	for (size_t i = 0; i < service_tables[0].count; i++) {
		const struct service_key *k = &service_tables[0].keys[i];
		if (k->option)
			print_entry("    --", k->option, k->value, k->help);
	}
	(void)printf("\nKeys of the configuration file (JSON), [default]:\n");
	for (size_t i = 0; i < service_tables_count; i++) {
		const struct service_table *t = &service_tables[i];
		if (t->name[0] != '\0')
			(void)printf("\nIn each \"%s\":\n", t->name);
		for (size_t n = 0; n < t->count; n++) {
			const struct service_key *k = &t->keys[n];
			char help[256];
			(void)snprintf(help, sizeof(help), "%s [%s]", k->help, k->standard);
			print_entry("", k->json.name, k->value, help);
		}
	}
}
