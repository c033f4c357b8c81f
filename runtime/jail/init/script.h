/* SPDX-License-Identifier: Apache-2.0 */
/* script - the "#!" line that a program begins with, as execve(2) reads it.  Pure. */
#pragma once

#include <stddef.h>

#define SCRIPT_LINE_MAX  256 /* what the kernel reads: BINPRM_BUF_SIZE */
#define SCRIPT_WORDS_MAX 2

struct script {
	char line[SCRIPT_LINE_MAX + 1];
	const char *interpreter; /* in `line`; NULL: the program begins with no such line */
	const char *argument;    /* all that follows it, one word; NULL: none */
};

/* Reads at most SCRIPT_LINE_MAX bytes of the program's text. */
void script_parse(const char *text, size_t size, struct script *out);

/*
 * The words that run the program, before its own path; returns how many.  "/usr/bin/env NAME" is
 * NAME, which is then looked for along the program's PATH: so it is known whether it is there.
 */
size_t script_command(const struct script *script, const char *out[SCRIPT_WORDS_MAX]);
