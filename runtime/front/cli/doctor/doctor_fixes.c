/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/cli/doctor/doctor.h"

#include <stdio.h>
#include <string.h>

struct linux_number {
	unsigned major, minor, patch;
};

#define SERIES_MAX 5

/* From the change logs of kernel.org.  A series that is not listed ended before the fix. */
static const struct fix {
	const char *name;
	struct linux_number since; /* the first vulnerable release */
	struct linux_number closed[SERIES_MAX];
	struct linux_number mainline; /* and all from here on */
} fixes[] = {
	/* clang-format off */
	{ "CVE-2022-0185", { 5, 1, 0 }, { { 5, 4, 173 }, { 5, 10, 93 }, { 5, 15, 16 }, { 5, 16, 2 } }, { 5, 17, 0 } },
	{ "CVE-2022-0847", { 5, 8, 0 }, { { 5, 10, 102 }, { 5, 15, 25 }, { 5, 16, 11 } }, { 5, 17, 0 } },
	{ "CVE-2023-32233", { 3, 13, 0 }, { { 5, 10, 180 }, { 5, 15, 111 }, { 6, 1, 28 }, { 6, 2, 15 }, { 6, 3, 2 } }, { 6, 4, 0 } },
	{ "CVE-2024-1086", { 3, 15, 0 }, { { 5, 10, 210 }, { 5, 15, 149 }, { 6, 1, 76 }, { 6, 6, 15 }, { 6, 7, 3 } }, { 6, 8, 0 } },
	/* clang-format on */
};

static bool is_before(const struct linux_number *a, const struct linux_number *b)
{
	if (a->major != b->major)
		return a->major < b->major;
	if (a->minor != b->minor)
		return a->minor < b->minor;
	return a->patch < b->patch;
}

/* The release that fixes it for this kernel; NULL: this kernel is not vulnerable. */
static const struct linux_number *closing(const struct fix *fix, const struct linux_number *n)
{
	if (is_before(n, &fix->since) || !is_before(n, &fix->mainline))
		return NULL;
	for (size_t i = 0; i < SERIES_MAX && fix->closed[i].major; i++) {
		const struct linux_number *c = &fix->closed[i];
		if (c->major == n->major && c->minor == n->minor)
			return is_before(n, c) ? c : NULL;
	}
	return &fix->mainline;
}

/* "5.15.0-91-generic" has patch level 0 and then a number of the distribution. */
static bool read_number(const char *release, const char *version, struct linux_number *out)
{
	const char *debian = strstr(version, "Debian ");
	char next = '\0';

	if (debian &&
	    sscanf(debian, "Debian %3u.%3u.%4u", &out->major, &out->minor, &out->patch) == 3)
		return true;
	int got = sscanf(release, "%3u.%3u.%4u%c", &out->major, &out->minor, &out->patch, &next);
	return got == 3 || (got == 4 && out->patch > 0);
}

enum fixes_verdict fixes_check(const char *release, const char *version, char *out, size_t size)
{
	struct linux_number n = { 0 };
	size_t used = 0;

	out[0] = '\0';
	if (!read_number(release, version, &n))
		return FIXES_UNKNOWN;
	for (size_t i = 0; i < sizeof(fixes) / sizeof(fixes[0]); i++) {
		const struct linux_number *c = closing(&fixes[i], &n);
		if (!c || used >= size)
			continue;
		int more = snprintf(out + used, size - used, "%s%s (fixed in %u.%u.%u)",
				    used ? ", " : "", fixes[i].name, c->major, c->minor, c->patch);
		used += more > 0 ? (size_t)more : 0;
	}
	return used > 0 ? FIXES_LACKING : FIXES_ALL;
}
