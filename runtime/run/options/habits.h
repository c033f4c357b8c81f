/* SPDX-License-Identifier: Apache-2.0 */
/*
 * habits - the options and verbs of docker and podman that users type most, with the equivalent of
 * cejail.
 *
 * An answer continues an error message: "unknown option '--rm': " ANSWER.  It is the option to
 * write ("write ..."), the reason why none is needed ("not needed: ..."), or the reason why cejail
 * has no equivalent ("not available: ...").
 */
#pragma once

/* The answer for an option as it was typed, "--volume" or "-u"; NULL: none. */
const char *habit_for_option(const char *named);

/* The answer for a value that our option --OPTION does not accept; NULL: none. */
const char *habit_for_value(const char *option, const char *value);

/* The answer for a verb: "exec", "stop"; NULL: none. */
const char *habit_for_verb(const char *verb);

/* "SRC:DST" as docker's -v takes it. */
bool habit_is_volume(const char *word);

/* "ubuntu", "python:3.12": the name of a container image. */
bool habit_is_image(const char *word);
