/* SPDX-License-Identifier: Apache-2.0 */
/* Id maps as the kernel writes them, and which ids are taken from them. */
#include "runtime/kernel/ids/idmap.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define INITIAL "         0          0 4294967295\n"

static struct idmap_ranges map_of(const char *text)
{
	struct idmap_ranges map;
	struct cj_error err = { 0 };
	assert_int_equal(idmap_parse("uid_map", text, &map, &err), 0);
	return map;
}

static void the_initial_map_is_one_range(void **state)
{
	(void)state;
	struct idmap_ranges map = map_of(INITIAL);
	assert_int_equal(map.count, 1);
	assert_int_equal(map.items[0].inside, 0);
	assert_int_equal(map.items[0].count, 4294967295u);
}

static void a_map_of_several_lines_is_read_whole(void **state)
{
	(void)state;
	struct idmap_ranges map = map_of("0 1000 1\n         1     100000      65536\n");
	uint32_t outside = 0;
	assert_int_equal(map.count, 2);
	assert_true(idmap_outside(&map, 0, &outside));
	assert_int_equal(outside, 1000);
	assert_true(idmap_outside(&map, 65536, &outside));
	assert_int_equal(outside, 165535);
	assert_false(idmap_outside(&map, 65537, &outside));
}

static void an_unwritten_map_is_empty(void **state)
{
	(void)state;
	struct idmap_block block;
	struct idmap_ranges none = map_of("");
	assert_int_equal(none.count, 0);
	assert_false(idmap_pick(&none, &none, &block));
}

static void a_malformed_map_is_refused_with_the_line(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"0 0\n",
		"0 0 1 1\n",
		"a 0 1\n",
		"0 0 0\n",
		"-1 0 1\n",
		"0 0 4294967296\n",
		"4294967295 0 1\n",
		"0 4294967290 10\n",
		"\n",
		"0 0 18446744073709551617\n",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct idmap_ranges map = { .count = 77 };
		struct cj_error err = { 0 };
		assert_int_equal(idmap_parse("uid_map", bad[i], &map, &err), -EINVAL);
		assert_non_null(strstr(err.msg, "'uid_map'"));
		assert_non_null(strstr(err.msg, "line 1"));
		assert_int_equal(map.count, 77);
	}
}

static void more_lines_than_the_kernel_writes_are_refused(void **state)
{
	(void)state;
	static char text[(IDMAP_LINES_MAX + 1) * 8 + 1];
	for (size_t i = 0; i <= IDMAP_LINES_MAX; i++)
		memcpy(text + i * 8, "  0 0 1\n", 8);
	struct idmap_ranges map;
	struct cj_error err = { 0 };
	assert_int_equal(idmap_parse("uid_map", text, &map, &err), -EINVAL);
	text[IDMAP_LINES_MAX * 8] = '\0';
	assert_int_equal(idmap_parse("uid_map", text, &map, &err), 0);
	assert_int_equal(map.count, IDMAP_LINES_MAX);
}

static void a_whole_host_gives_the_unused_range(void **state)
{
	(void)state;
	struct idmap_ranges map = map_of(INITIAL);
	struct idmap_block block;
	assert_true(idmap_pick(&map, &map, &block));
	assert_int_equal(block.first, 0x70000000);
	assert_int_equal(block.count, 65536);
}

static void a_container_gives_ids_that_no_account_has(void **state)
{
	(void)state;
	static const char *const maps[] = {
		"0 100000 65536\n",
		"0 1000 1\n1 100000 65536\n",
		"0 524288 131072\n",
		"0 100000 5000\n",
	};
	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		struct idmap_ranges map = map_of(maps[i]);
		struct idmap_block block;
		uint32_t outside;
		assert_true(idmap_pick(&map, &map, &block));
		uint32_t last = block.first + block.count - 1;
		assert_true(block.first >= 1000);
		assert_true(last < 60000 || block.first >= 65536);
		assert_true(idmap_outside(&map, block.first, &outside));
		assert_true(idmap_outside(&map, last, &outside));
		assert_true(block.count >= 1000);
	}
}

static void an_id_must_be_mapped_as_uid_and_as_gid(void **state)
{
	(void)state;
	struct idmap_ranges uids = map_of(INITIAL), gids = map_of("0 100000 3000\n");
	struct idmap_block block;
	assert_true(idmap_pick(&uids, &gids, &block));
	assert_true(block.first >= 1000 && block.first + block.count <= 3000);

	gids = map_of("0 1000 1\n");
	assert_false(idmap_pick(&uids, &gids, &block));
}

static void ids_of_the_system_are_never_given(void **state)
{
	(void)state;
	static const char *const maps[] = { "0 0 1\n", "0 1000 1\n", "0 100000 1000\n",
					    "60000 60000 5536\n", "65534 65534 1\n" };
	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		struct idmap_ranges map = map_of(maps[i]);
		struct idmap_block block;
		assert_false(idmap_pick(&map, &map, &block));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_initial_map_is_one_range),
		cmocka_unit_test(a_map_of_several_lines_is_read_whole),
		cmocka_unit_test(an_unwritten_map_is_empty),
		cmocka_unit_test(a_malformed_map_is_refused_with_the_line),
		cmocka_unit_test(more_lines_than_the_kernel_writes_are_refused),
		cmocka_unit_test(a_whole_host_gives_the_unused_range),
		cmocka_unit_test(a_container_gives_ids_that_no_account_has),
		cmocka_unit_test(an_id_must_be_mapped_as_uid_and_as_gid),
		cmocka_unit_test(ids_of_the_system_are_never_given),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
