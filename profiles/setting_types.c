/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/setting_types.h"

#include <limits.h>

#include "netns/upstream/http_upstream.h"
#include "profiles/paths.h"
#include "rootfs/files/artifacts.h"
#include "runtime/base/text.h"

#define ITEMS_MAX     1024 /* of one list; what a list makes is compared with one another */
#define FILE_NAME_LEN 64
#define MODULE_LEN    128
#define ID_LEN        32
#define HOST_NAME_LEN 64 /* HOST_NAME_MAX: sethostname(2) */

const char *const launcher_names[LAUNCHER_COUNT] = {
	[LAUNCHER_NONE] = "none",
	[LAUNCHER_PYTHON] = "python",
	[LAUNCHER_NODE] = "node",
};

const char *const audit_need_names[AUDIT_NEED_COUNT] = {
	[AUDIT_OPTIONAL] = "optional",
	[AUDIT_REQUIRED] = "required",
};

const char *const output_policy_names[OUTPUT_POLICY_COUNT] = {
	[OUTPUT_TRUNCATE] = "truncate",
	[OUTPUT_KILL] = "kill",
};

const char *const degraded_names[DEGRADED_COUNT] = {
	[DEGRADED_LIMITS] = "limits",
	[DEGRADED_LANDLOCK] = "landlock",
	[DEGRADED_NETWORK] = "network",
	[DEGRADED_NETWORK_FILTER] = "network_filter",
	[DEGRADED_SYSCALL_REPORT] = "syscall_report",
	[DEGRADED_HOSTNAME] = "hostname",
	[DEGRADED_RECORD] = "record",
};

const char *const network_start_names[NETWORK_START_COUNT] = {
	[NETWORK_START_FIRST_USE] = "first-use",
	[NETWORK_START_EARLY] = "early",
};

static void *field_of(struct config *c, const struct setting *s)
{
	return (char *)c + s->offset;
}

int set_flag(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	return parse_bool(text ? text : "true", field_of(c, s), err);
}

int set_size(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	return parse_size_within(text, s->min, s->max, field_of(c, s), err);
}

int set_count(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	return parse_u64(text, s->min, s->max, field_of(c, s), err);
}

int set_cpus(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	return parse_cpus(text, field_of(c, s), err);
}

int set_duration(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	return parse_duration(text, field_of(c, s), err);
}

int set_fd(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	uint64_t fd;
	if (parse_u64(text, s->min, s->max, &fd, err) < 0)
		return -err->code;
	*(int *)field_of(c, s) = (int)fd;
	return 0;
}

static int keep_text(struct config *c, const char *text, const char **out, struct cj_error *err)
{
	const char *copy = arena_strdup(&c->arena, text);
	if (!copy)
		return cj_fail(err, ENOMEM, "keep a setting");
	*out = copy;
	return 0;
}

int check_text(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	(void)c;
	return text[0] == '\0' ? cj_reject(err, "the value is empty (%s)", s->value) : 0;
}

int set_text(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	return check_text(c, s, text, err) < 0 ? -err->code
					       : keep_text(c, text, field_of(c, s), err);
}

int set_code(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	if (keep_text(c, text, field_of(c, s), err) < 0) /* an empty program is a program */
		return -err->code;
	c->code_size = strlen(text);
	c->has_code = true;
	return 0;
}

int set_json(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	if (text && set_text(c, s, text, err) < 0)
		return -err->code;
	c->json = true;
	return 0;
}

int set_remote(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	if (text)
		return set_text(c, s, text, err);
	*(const char **)field_of(c, s) = "";
	return 0;
}

int set_directory(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	if (text[0] != '/') {
		cj_refuse(err, "'%s' is not an absolute path in the jail", text);
		return cj_hint(err, "write /box/%s for a place below /box", text);
	}
	return paths_inside(text, &c->arena, field_of(c, s), err);
}

int parse_inline(const char *text, uint64_t *out_bytes, struct cj_error *err)
{
	const char *rest = text_after(text, "inline");

	*out_bytes = 0;
	if (!rest || (*rest != ':' && *rest != '\0'))
		return 0;
	*out_bytes = ARTIFACTS_INLINE_MAX;
	if (*rest == '\0')
		return 0;
	return parse_size_within(rest + 1, 1, ARTIFACTS_INLINE_MAX, out_bytes, err);
}

/* The last one counts, whichever kind. */
int set_artifacts(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	uint64_t bytes;

	if (parse_inline(text, &bytes, err) < 0)
		return -err->code;
	if (bytes == 0 && set_text(c, s, text, err) < 0)
		return -err->code;
	if (bytes > 0)
		*(const char **)field_of(c, s) = NULL;
	c->artifacts_inline_bytes = bytes;
	return 0;
}

int set_value_path(struct config *c, const struct setting *s, const char *text,
		   struct cj_error *err)
{
	if (strcmp(text, VALUE_PATH_NONE) != 0)
		return set_directory(c, s, text, err);
	*(const char **)field_of(c, s) = NULL;
	return 0;
}

/* ASCII letters, digits and the characters of `others`.  isalnum(3) would depend on the locale. */
static bool has_only(const char *text, size_t size, const char *others)
{
	for (size_t i = 0; i < size; i++) {
		char c = text[i];
		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    !strchr(others, c))
			return false;
	}
	return true;
}

int set_id(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	size_t size = strlen(text);
	if (size < 1 || size > ID_LEN || text[0] == '-' || !has_only(text, size, "_-"))
		return cj_reject(err, "'%s' is not a name: 1 to %d of a-z A-Z 0-9 _ -", text,
				 ID_LEN);
	return keep_text(c, text, field_of(c, s), err);
}

/* Its labels: hostname(7). */
int set_hostname(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	bool good = strlen(text) <= HOST_NAME_LEN;
	for (const char *at = text; good && at; at = strchr(at, '.'), at = at ? at + 1 : NULL) {
		size_t size = strcspn(at, ".");
		good = size >= 1 && at[0] != '-' && at[size - 1] != '-' && has_only(at, size, "-");
	}
	if (!good)
		return cj_reject(err, "'%s' is not a host name: 1 to %d of a-z A-Z 0-9 - .", text,
				 HOST_NAME_LEN);
	return keep_text(c, text, field_of(c, s), err);
}

static bool is_file_name(const char *text)
{
	size_t size = strlen(text);
	return size >= 1 && size <= FILE_NAME_LEN && text[0] != '.' && text[0] != '-' &&
	       has_only(text, size, "_-.");
}

int set_file_name(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	if (!is_file_name(text))
		return cj_reject(err, "'%s' is not a file name: 1 to %d of a-z A-Z 0-9 . _ -", text,
				 FILE_NAME_LEN);
	return keep_text(c, text, field_of(c, s), err);
}

int set_extends(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	(void)c; /* profile.c reads the parent before it applies any key */
	(void)s;
	if (!is_name(text))
		return cj_reject(err, "'%s' is not a profile's name (a-z 0-9 _ -)", text);
	return 0;
}

int set_choice(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	for (unsigned i = 0; i < s->choice_count; i++) {
		if (strcmp(s->choices[i], text) == 0) {
			*(unsigned *)field_of(c, s) = i; /* an enum of ours */
			return 0;
		}
	}
	return cj_reject(err, "'%s' %s", text, s->not_a_choice);
}

static int list_add(struct config *c, struct strings *list, const char *text, struct cj_error *err)
{
	if (list->count >= ITEMS_MAX)
		return cj_reject(err, "more than %d of them", ITEMS_MAX);

	const char *copy = NULL;
	if (keep_text(c, text, &copy, err) < 0)
		return -err->code;
	return strings_add(list, &c->arena, copy) < 0 ? cj_fail(err, ENOMEM, "keep a setting") : 0;
}

int add_text(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	return check_text(c, s, text, err) < 0 ? -err->code
					       : list_add(c, field_of(c, s), text, err);
}

int add_argument(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	static const char *const places[] = { "{interpreter}", "{file}", "{args}" };

	for (size_t i = 0; i < COUNT_OF(places); i++)
		if (strstr(text, places[i]) && strcmp(text, places[i]) != 0)
			return cj_reject(err, "'%s': %s must be an argument of its own", text,
					 places[i]);

	struct strings *argv = field_of(c, s);
	if (argv->count == 0 && text[0] == '\0')
		return cj_reject(err, "the first argument, the program, is empty");
	if (argv->count > 0 && strcmp(text, places[0]) == 0)
		return cj_reject(err, "%s can only be the first argument", text);
	return list_add(c, argv, text, err);
}

int add_extension(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	if (text[0] != '.' || !is_file_name(text + 1))
		return cj_reject(err, "'%s' is not an extension like '.py'", text);
	return list_add(c, field_of(c, s), text, err);
}

int add_degraded(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	char all[128] = "";

	for (enum degraded i = 0; i < DEGRADED_COUNT; i++) {
		if (strcmp(degraded_names[i], text) == 0)
			return list_add(c, field_of(c, s), text, err);
		text_append(all, sizeof(all), "%s%s", i ? ", " : "", degraded_names[i]);
	}
	return cj_reject(err, "'%s' is not one of: %s", text, all);
}

/* An argument of the interpreter, which must not be one of its options. */
int add_module(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	size_t size = strlen(text);
	if (size < 1 || size > MODULE_LEN || text[0] == '-' || text[0] == '.' ||
	    !has_only(text, size, "_-./:@"))
		return cj_reject(err, "'%s' is not a module's name", text);
	return list_add(c, field_of(c, s), text, err);
}

/* Looked at here so that a mistake in a profile has its line; the plan reads it again. */
int add_target(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	struct allowlist_entry target;
	return allowlist_parse(text, &c->arena, &target, err) < 0
		   ? -err->code
		   : list_add(c, field_of(c, s), text, err);
}

int add_denied(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	struct allowlist_entry target;
	return allowlist_parse_denied(text, &c->arena, &target, err) < 0
		   ? -err->code
		   : list_add(c, field_of(c, s), text, err);
}

/* As add_target(): the plan reads it again, and compares SIZE with --disk. */
int add_tmpfs(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	const char *target = NULL, *size = NULL;
	uint64_t bytes;
	if (paths_split(text, &c->arena, &target, &size, err) < 0)
		return -err->code;
	if (target[0] != '/')
		return cj_reject(err, "'%s' is not an absolute path in the jail", target);
	if (paths_target(target, &c->arena, &target, err) < 0 ||
	    (size && parse_size(size, &bytes, err) < 0))
		return -err->code;
	return list_add(c, field_of(c, s), text, err);
}

/* The plan splits it again. */
int add_file_text(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	const char *equals = strchr(text, '=');
	if (!equals || equals == text)
		return cj_reject(err, "'%.64s' is not DST=TEXT", text);
	return list_add(c, field_of(c, s), text, err);
}

int add_connect(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	if (strncmp(text, "unix:/", 6) != 0 && strncmp(text, "tcp:", 4) != 0)
		return cj_reject(err, "'%s' is neither 'unix:/PATH[:DST]' nor 'tcp:127.0.0.1:PORT'",
				 text);
	return list_add(c, field_of(c, s), text, err);
}

/* The plan takes it apart again, and opens the files. */
int add_upstream(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	struct http_upstream_spec spec;
	if (http_upstream_parse(text, &c->arena, &spec, err) < 0)
		return -err->code;
	return list_add(c, field_of(c, s), text, err);
}

/* Length of the NAME in "NAME" or "NAME=VALUE"; 0: not a name a shell could use. */
static size_t env_name_length(const char *text)
{
	size_t size = strcspn(text, "=");
	bool begins_well = text[0] < '0' || text[0] > '9';
	return begins_well && has_only(text, size, "_") ? size : 0;
}

int add_env(struct config *c, const struct setting *s, const char *text, struct cj_error *err)
{
	size_t size = env_name_length(text);
	if (size == 0)
		return cj_reject(err,
				 "'%.*s' is not a variable's name: letters, digits and '_', "
				 "no digit first",
				 (int)strcspn(text, "="), text);

	if (size > ENV_NAME_LEN)
		return cj_reject(err,
				 "'%.32s...' is longer than a variable's name may be: %d bytes",
				 text, ENV_NAME_LEN);

	struct strings *env = field_of(c, s);
	for (size_t i = 0; i < env->count; i++)
		if (env_name_length(env->items[i]) == size &&
		    strncmp(env->items[i], text, size) == 0)
			return keep_text(c, text, &env->items[i], err);
	return list_add(c, env, text, err);
}
