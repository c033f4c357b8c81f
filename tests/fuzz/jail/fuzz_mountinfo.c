/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_mountinfo - any bytes as /proc/self/mountinfo; the first line also as a cgroup's path.
 *
 * Asserted: what is found is a whole mount or none; a path located in it lies below its point
 * and never leads out of it.
 */
#include <assert.h>

#include "runtime/kernel/cgroup/cgroup_text.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_located(const struct cgroup_mount *mount, const char *located)
{
	size_t point = strlen(mount->point);
	assert(strnlen(located, CGROUP_PATH_MAX) < CGROUP_PATH_MAX);
	assert(strncmp(located, mount->point, point) == 0);

	const char *below = located + point;
	assert(!strstr(below, "/../"));
	size_t size = strlen(below);
	assert(size < 3 || strcmp(below + size - 3, "/..") != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *text = bytes_text((struct bytes){ bytes, size });

	struct cgroup_mount mount;
	cgroup_text_mount(text, &mount);
	assert(memchr(mount.point, '\0', sizeof(mount.point)));
	assert(memchr(mount.root, '\0', sizeof(mount.root)));
	assert((mount.point[0] == '\0') == (mount.root[0] == '\0'));

	char located[CGROUP_PATH_MAX];
	text[strcspn(text, "\n")] = '\0';
	if (cgroup_text_locate(&mount, text, located))
		check_located(&mount, located);
	const struct cgroup_mount usual = { .point = "/sys/fs/cgroup", .root = "/" };
	if (cgroup_text_locate(&usual, text, located))
		check_located(&usual, located);
	free(text);
	return 0;
}
