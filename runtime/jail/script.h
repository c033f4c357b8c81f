/* SPDX-License-Identifier: Apache-2.0 */
/* script - the "#!" line that a program begins with, as execve(2) reads it. */
#pragma once

#define SCRIPT_LINE_MAX 256 /* what the kernel reads: BINPRM_BUF_SIZE */
#define SCRIPT_ARGV_MAX 2

struct script {
	char line[SCRIPT_LINE_MAX + 1];
	const char *interpreter; /* in `line`; NULL: the program begins with no such line */
	const char *argument;    /* everything after it, as one argument; NULL: none */
};

/* Reads at most SCRIPT_LINE_MAX bytes of the program's text. */
void script_parse(const char *text, size_t size, struct script *out);

/*
 * The arguments before the program's own path; returns how many.  "/usr/bin/env NAME" becomes NAME,
 * which is searched in the program's PATH, so that a missing NAME is noticed.
 */
size_t script_command(const struct script *script, const char *out[SCRIPT_ARGV_MAX]);
