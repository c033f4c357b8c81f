/* SPDX-License-Identifier: Apache-2.0 */
/* help - the layout of --help.  Standard output is checked once, by the caller at its end. */
#pragma once

/* The text beside a name that stands there already, `width` columns wide. */
void help_print(int width, const char *text);
