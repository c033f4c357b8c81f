/* SPDX-License-Identifier: Apache-2.0 */
/* Text in a buffer.  Pure. */
#include "runtime/run/mcp/text/mcp_prose.h"

#include <stdarg.h>
#include <stdio.h>

void mcp_say(struct mcp_prose *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int size = vsnprintf(p->text + p->size, sizeof(p->text) - p->size, fmt, ap);
	va_end(ap);
	if (size > 0)
		p->size += (size_t)size;
	if (p->size >= sizeof(p->text))
		p->size = sizeof(p->text) - 1;
}
