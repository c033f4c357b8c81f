/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_paths - any bytes as "SRC[:DST]", as a path of the host and as a place in the jail.
 *
 * Asserted: what is taken apart and put together again is the same; a place in the jail is
 * absolute, whole and itself again when it is read again; a target is that place with our own links
 * followed, and not in /proc, /dev or /sys.
 */

#include "profiles/paths.h"
#include "profiles/plan/plan.h"
#include "rootfs/skeleton.h"
#include "runtime/base/scope.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_refusal(int rc, const struct cj_error *err)
{
	assert(rc < 0 && err->code == -rc && err->msg[0] != '\0');
}

/* As the user would have to write it. */
static char *escape(const char *source, const char *target)
{
	size_t room = 2 * strlen(source) + (target ? 2 * strlen(target) : 0) + 2;
	char *out = malloc(room), *at = out;
	assert(out);
	for (const char *from = source; from; from = from == source ? target : NULL) {
		if (from != source)
			*at++ = ':';
		for (const char *c = from; *c; c++) {
			if (*c == ':' || *c == '\\')
				*at++ = '\\';
			*at++ = *c;
		}
		if (!target)
			break;
	}
	*at = '\0';
	return out;
}

static void check_split(const char *text, struct arena *a)
{
	const char *source = NULL, *target = NULL, *source2, *target2;
	struct cj_error err = { 0 };
	int rc = paths_split(text, a, &source, &target, &err);
	if (rc < 0) {
		check_refusal(rc, &err);
		return;
	}
	assert(source[0] != '\0' && (!target || target[0] != '\0'));
	auto_free char *written = escape(source, target);
	rc = paths_split(written, a, &source2, &target2, &err);
	assert(rc == 0 && strcmp(source, source2) == 0 && (target != NULL) == (target2 != NULL));
	assert(!target || strcmp(target, target2) == 0);
}

static void check_split_all(const char *text, struct arena *a)
{
	struct strings parts = { 0 };
	struct cj_error err = { 0 };
	int rc = paths_split_all(text, a, &parts, &err);
	if (rc < 0)
		check_refusal(rc, &err);
	else
		assert(parts.count >= 1);
	for (size_t i = 0; rc == 0 && i < parts.count; i++)
		assert(parts.items[i][0] != '\0');
}

static void check_normal(const char *path)
{
	size_t size = strlen(path);
	assert(path[0] == '/' && !strstr(path, "//") && !strstr(path, "/./") &&
	       !strstr(path, "/../"));
	assert(size == 1 || path[size - 1] != '/');
	assert(size < 2 || strcmp(path + size - 2, "/.") != 0);
	assert(size < 3 || strcmp(path + size - 3, "/..") != 0);
}

typedef int paths_read(const char *text, struct arena *a, const char **out, struct cj_error *err);

/* NULL: it was refused. */
static const char *check_reader(paths_read *read, const char *text, struct arena *a)
{
	const char *path = NULL, *again = NULL;
	struct cj_error err = { 0 };
	int rc = read(text, a, &path, &err);
	if (rc < 0) {
		check_refusal(rc, &err);
		assert(!path);
		return NULL;
	}
	check_normal(path);
	rc = read(path, a, &again, &err);
	assert(rc == 0 && strcmp(again, path) == 0);
	return path;
}

/* The text of --file-text DST=TEXT is what stands behind the first '='. */
static void check_file_text(const char *text, struct arena *a)
{
	struct copy_spec copy = { 0 };
	struct cj_error err = { 0 };
	int rc = plan_file_text(text, a, &copy, &err);
	if (rc < 0) {
		check_refusal(rc, &err);
		return;
	}
	check_normal(copy.target);
	const char *rest = strchr(text, '=');
	assert(rest && copy.size == strlen(rest + 1) &&
	       memcmp(copy.bytes, rest + 1, copy.size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	auto_free char *text = bytes_text((struct bytes){ bytes, size });
	auto_arena struct arena a = { 0 };
	check_split(text, &a);
	check_split_all(text, &a);
	check_file_text(text, &a);
	(void)check_reader(paths_absolute, text, &a);
	const char *inside = check_reader(paths_inside, text, &a);
	const char *target = check_reader(paths_target, text, &a);
	if (target) {
		assert(inside && strcmp(skeleton_follow(inside, &a), target) == 0);
		assert(target[1] != '\0');
		assert(!paths_is_below(target, "/proc") && !paths_is_below(target, "/dev") &&
		       !paths_is_below(target, "/sys"));
		assert(strchr(paths_name(target), '/') == NULL);
	}
	return 0;
}
