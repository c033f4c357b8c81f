/* SPDX-License-Identifier: Apache-2.0 */
/* Media types by name. */
#include "rootfs/files/types.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void the_last_extension_decides_the_type(void **state)
{
	(void)state;
	assert_string_equal(type_of_name("plot.png"), "image/png");
	assert_string_equal(type_of_name("PLOT.PNG"), "image/png");
	assert_string_equal(type_of_name("a/b.d/table.csv"), "text/csv");
	assert_string_equal(type_of_name("x.tar.gz"), "application/gzip");
	assert_string_equal(type_of_name(".json"), "application/json");
}

static void other_names_are_not_reported(void **state)
{
	(void)state;
	static const char *const names[] = { "", "png", "x.", "x.pngx", "x.pn", "x.png ", NULL };
	for (size_t i = 0; names[i]; i++)
		assert_string_equal(type_of_name(names[i]), "application/octet-stream");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_extension_decides_the_type),
		cmocka_unit_test(other_names_are_not_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
