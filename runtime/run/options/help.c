/* SPDX-License-Identifier: Apache-2.0 */
/* Two columns, the second one wrapped.  Acts: prints to standard output. */
#include "runtime/run/options/help.h"

#include <stdio.h>
#include <string.h>

#define HELP_WIDTH  80
#define HELP_INDENT 30

static void print_wrapped(const char *text)
{
	for (int at = HELP_INDENT; *text;) {
		int size = (int)strcspn(text, " ");
		if (at > HELP_INDENT && at + 1 + size > HELP_WIDTH) {
			(void)printf("\n%*s", HELP_INDENT, "");
			at = HELP_INDENT;
		} else if (at > HELP_INDENT) {
			at += printf(" ");
		}
		at += printf("%.*s", size, text);
		text += size + (text[size] == ' ');
	}
	(void)printf("\n");
}

void help_print(int width, const char *text)
{
	if (width >= HELP_INDENT - 1)
		(void)printf("\n%*s", HELP_INDENT, "");
	else
		(void)printf("%*s", HELP_INDENT - width, "");
	print_wrapped(text);
}
