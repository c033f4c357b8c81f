/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_settings - any lines as the arguments of `cejail run`: every row of the settings table.
 *
 * Asserted: a refusal has a message that begins with the user's own argument, and changes nothing;
 * sizes and counts keep their row's bounds; what was set shows as a profile that is read back as
 * the same.
 */
#include "profiles/profile.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "tests/fuzz/bytes.h"

/* the front end is in no library */
#include "runtime/run/options/habits.c"
#include "runtime/run/options/options.c"

#define ARGUMENTS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_refusal(int rc, const struct cj_error *err)
{
	assert(rc < 0 && err->code == -rc && err->msg[0] != '\0');
}

static void check_bounds(const struct config *c, const struct setting *s)
{
	uint64_t value;
	int fd;
	if (s->max == 0)
		return;
	memcpy(&value, (const char *)c + s->offset, sizeof(value));
	if (!s->key) { /* a descriptor: no profile has one */
		memcpy(&fd, (const char *)c + s->offset, sizeof(fd));
		value = (uint64_t)fd;
	}
	assert(value >= s->min && value <= s->max);
}

/* All of the config but the arena, where a text that is refused later may have been kept. */
static bool is_same(const struct config *a, const struct config *b)
{
	const size_t first = offsetof(struct config, limits);
	return memcmp((const char *)a + first, (const char *)b + first, sizeof(*a) - first) == 0;
}

static void apply_one(struct config *c, const struct given *g)
{
	struct cj_error err = { 0 };
	struct config before;
	memcpy(&before, c, sizeof(before));
	int rc = setting_set(c, g->setting, g->named, g->value, &err);
	if (rc < 0) {
		check_refusal(rc, &err);
		assert(strncmp(err.msg, g->named, strnlen(g->named, 64)) == 0);
		assert(is_same(c, &before));
	} else {
		check_bounds(c, g->setting);
	}
}

/* The shown profile, the caller's to free. */
static char *show(const struct config *c)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error err = { 0 };
	struct blob text;
	assert(w);
	profile_write(w, c);
	int rc = json_writer_take(w, &text, &err);
	assert(rc == 0);
	return strdup(text.bytes);
}

/* NULL: it can't be read, as a profile may not have all that options may. */
static char *read_back(const char *text)
{
	struct config c;
	const char *extends;
	struct cj_error err = { 0 };
	char *again = NULL;
	config_init(&c);
	int rc = profile_read_text(&c, "shown", text, strlen(text), &extends, &err);
	if (rc < 0)
		check_refusal(rc, &err);
	else
		again = show(&c);
	config_fini(&c);
	return again;
}

static void check_round_trip(const struct config *c, bool is_text)
{
	auto_free char *shown = show(c);
	auto_free char *again = read_back(shown); /* sources of files are now beside the profile */
	assert(again || !is_text || strlen(shown) > JSON_BYTES_MAX / 2);
	if (!again)
		return;
	auto_free char *third = read_back(again);
	assert(third && strcmp(third, again) == 0);
}

static size_t split(char *text, const char *argv[ARGUMENTS_MAX + 1])
{
	size_t count = 0;
	for (char *at = text; at && count < ARGUMENTS_MAX;) {
		char *end = strchr(at, '\n');
		if (end)
			*end++ = '\0';
		argv[count++] = at;
		at = end;
	}
	argv[count] = NULL;
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	auto_free char *text = bytes_text((struct bytes){ bytes, size });
	auto_arena struct arena arena = { 0 };
	const char *argv[ARGUMENTS_MAX + 1];
	struct cj_error err = { 0 };
	struct options options;
	struct config c;

	size_t count = split(text, argv);
	int rc = options_scan("run", argv, &arena, &options, &err);
	if (rc < 0)
		check_refusal(rc, &err);
	else
		assert(options.operands >= argv && options.operands <= argv + count);
	config_init(&c);
	for (size_t i = 0; i < options.count; i++)
		apply_one(&c, &options.items[i]);
	check_round_trip(&c, is_utf8(bytes, size));
	config_fini(&c);
	return 0;
}
