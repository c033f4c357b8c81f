/* SPDX-License-Identifier: Apache-2.0 */
/* help - the layout of --help.  The caller checks standard output for errors once, at the end. */
#pragma once

/* Prints the text after a name of `width` columns that is already printed. */
void help_print(int width, const char *text);
