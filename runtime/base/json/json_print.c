/* SPDX-License-Identifier: Apache-2.0 */
/* JSON on standard output.  Acts. */
#include "runtime/base/json/json_print.h"

#include <stdio.h>

int json_print(struct json_writer *w, struct cj_error *err)
{
	const char *text = NULL;
	size_t size = 0;

	if (json_writer_take(w, &text, &size, err) < 0)
		return -err->code;
	(void)printf("%.*s\n", (int)size, text);
	return 0;
}
