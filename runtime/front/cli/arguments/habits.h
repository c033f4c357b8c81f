/* SPDX-License-Identifier: Apache-2.0 */
/*
 * habits - options and verbs of docker, podman, bwrap, firejail and systemd-run, and what to
 * write here instead.  Pure: tables and lookups.
 *
 * An answer continues an error message: "unknown option '--rm': " ANSWER.  It is what to write
 * here ("write ..."), or why nothing need be written ("not needed: ..."), or why it can't be had
 * ("not available: ...").
 */
#pragma once

#include <stdbool.h>

/* The answer for an option as it was typed, "--volume" or "-u"; NULL: no such habit. */
const char *habit_for_option(const char *named);

/* The answer for a value that one of our options (its long name) refused; NULL: none. */
const char *habit_for_value(const char *option, const char *value);

/* The answer for a verb: "exec", "stop"; NULL: none. */
const char *habit_for_verb(const char *verb);

/* "SRC:DST" as docker's -v takes it. */
bool habit_is_volume(const char *word);

/* "ubuntu", "python:3.12", "docker.io/library/alpine": the name of a container image. */
bool habit_is_image(const char *word);
