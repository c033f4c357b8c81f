/* SPDX-License-Identifier: Apache-2.0 */
/* memory.stat and io.stat as JSON, from files in a directory that plays the cgroup. */
#include "runtime/container/cgroup/container_cgroup.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/scope.h"

static char directory[64];

static void put(int dir_fd, const char *name, const char *text)
{
	auto_fd int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static struct container_cgroup begin(void)
{
	struct container_cgroup c = CONTAINER_CGROUP_NULL;
	(void)snprintf(directory, sizeof(directory), "/tmp/cejail-stats.XXXXXX");
	assert_non_null(mkdtemp(directory));
	c.dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(c.dir_fd >= 0);
	return c;
}

static void end(struct container_cgroup *c)
{
	static const char *const names[] = { "memory.current", "memory.stat", "io.stat" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlinkat(c->dir_fd, names[i], 0);
	container_cgroup_close(c);
	assert_int_equal(rmdir(directory), 0);
}

static void expect(const struct container_cgroup *c, const char *expected)
{
	struct blob text;
	struct cj_error err = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	container_cgroup_stats_write(c, w);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	assert_int_equal(text.size, strlen(expected));
	assert_memory_equal(text.bytes, expected, text.size);
}

static void the_lines_of_memory_stat_are_members(void **state)
{
	(void)state;
	struct container_cgroup c = begin();
	put(c.dir_fd, "memory.current", "5\n");
	put(c.dir_fd, "memory.stat",
	    "anon 12\nfile 0\nBAD 1\nx y\n 3\nslab 18446744073709551615\n"
	    "over 18446744073709551616\nlast 7");
	expect(&c,
	       "{\"memory\":{\"usage\":{\"limit\":18446744073709551615,\"usage\":5},\"cache\":0,"
	       "\"raw\":{\"anon\":12,\"file\":0,\"slab\":18446744073709551615,\"last\":7}}}");
	end(&c);
}

static void io_stat_has_an_entry_for_each_device_and_operation(void **state)
{
	(void)state;
	struct container_cgroup c = begin();
	put(c.dir_fd, "io.stat",
	    "8:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n"
	    "junk\n8:x rbytes=1\n"
	    "253:1 rios=5 cost.usage=3 rbytes=x\n8:16\n");
	expect(&c, "{\"blkio\":{\"ioServiceBytesRecursive\":["
		   "{\"major\":8,\"minor\":0,\"op\":\"Read\",\"value\":10},"
		   "{\"major\":8,\"minor\":0,\"op\":\"Write\",\"value\":20},"
		   "{\"major\":8,\"minor\":0,\"op\":\"Discard\",\"value\":0}],"
		   "\"ioServicedRecursive\":["
		   "{\"major\":8,\"minor\":0,\"op\":\"Read\",\"value\":1},"
		   "{\"major\":8,\"minor\":0,\"op\":\"Write\",\"value\":2},"
		   "{\"major\":8,\"minor\":0,\"op\":\"Discard\",\"value\":0},"
		   "{\"major\":253,\"minor\":1,\"op\":\"Read\",\"value\":5}]}}");
	end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lines_of_memory_stat_are_members),
		cmocka_unit_test(io_stat_has_an_entry_for_each_device_and_operation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
