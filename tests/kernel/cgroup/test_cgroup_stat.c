/* SPDX-License-Identifier: Apache-2.0 */
/* memory.stat and io.stat as JSON. */
#include "runtime/kernel/cgroup/cgroup_stat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void expect(struct json_writer *w, const char *expected)
{
	const char *text;
	size_t size;
	struct cj_error err = { 0 };
	assert_int_equal(json_writer_take(w, &text, &size, &err), 0);
	assert_int_equal(size, strlen(expected));
	assert_memory_equal(text, expected, size);
}

static void the_lines_of_memory_stat_are_members(void **state)
{
	(void)state;
	auto_json_writer struct json_writer *w = json_writer_create(false);
	json_open_object(w);
	cgroup_stat_write_raw(w, "anon 12\nfile 0\nBAD 1\nx y\n 3\nslab 18446744073709551615\n"
				 "over 18446744073709551616\nlast 7");
	json_close_object(w);
	expect(w, "{\"anon\":12,\"file\":0,\"slab\":18446744073709551615,\"last\":7}");
}

static void io_stat_has_an_entry_for_each_device_and_operation(void **state)
{
	(void)state;
	static const char text[] = "8:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n"
				   "junk\n8:x rbytes=1\n"
				   "253:1 rios=5 cost.usage=3 rbytes=x\n8:16\n";
	auto_json_writer struct json_writer *w = json_writer_create(false);
	json_open_array(w);
	cgroup_stat_write_io(w, text, CGROUP_STAT_BYTES);
	json_close_array(w);
	expect(w, "[{\"major\":8,\"minor\":0,\"op\":\"Read\",\"value\":10},"
		  "{\"major\":8,\"minor\":0,\"op\":\"Write\",\"value\":20},"
		  "{\"major\":8,\"minor\":0,\"op\":\"Discard\",\"value\":0}]");

	auto_json_writer struct json_writer *requests = json_writer_create(false);
	json_open_array(requests);
	cgroup_stat_write_io(requests, text, CGROUP_STAT_REQUESTS);
	json_close_array(requests);
	expect(requests, "[{\"major\":8,\"minor\":0,\"op\":\"Read\",\"value\":1},"
			 "{\"major\":8,\"minor\":0,\"op\":\"Write\",\"value\":2},"
			 "{\"major\":8,\"minor\":0,\"op\":\"Discard\",\"value\":0},"
			 "{\"major\":253,\"minor\":1,\"op\":\"Read\",\"value\":5}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lines_of_memory_stat_are_members),
		cmocka_unit_test(io_stat_has_an_entry_for_each_device_and_operation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
