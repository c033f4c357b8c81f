/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setting_types - how the values of the settings table are read.
 *
 * A row of settings[] names one set_ or add_ function.  It takes one whole text, checks it and
 * writes the field at the row's offset only on success.  The row's put_ function in settings.c is
 * its inverse, so that `cejail profile show` prints what set_ would read again.
 */
#pragma once

#include "profiles/settings.h"

#define VALUE_PATH_NONE "none" /* the text of a value_path that is NULL */
#define ENV_NAME_LEN    255    /* bytes in the name of a variable */

typedef int setting_reader(struct config *c, const struct setting *s, const char *text,
			   struct cj_error *err);

setting_reader set_flag, set_size, set_count, set_cpus, set_duration, set_fd;
setting_reader set_text, set_code, set_json, set_remote, set_hostname, set_file_name, set_id;
setting_reader set_choice;     /* one of the row's choices, into an enum */
setting_reader check_text;     /* not empty; kept nowhere */
setting_reader set_directory;  /* in the jail: absolute, normalised */
setting_reader set_value_path; /* the same, or "none" */
setting_reader set_artifacts;  /* a directory, or "inline[:SIZE]" */
setting_reader set_extends;    /* checks the name; profile.c follows it */

/* One item of a list. */
setting_reader add_text, add_extension, add_module, add_degraded, add_target, add_denied, add_tmpfs;
setting_reader add_file_text, add_connect, add_upstream;
setting_reader add_env;      /* a later value takes the place of an earlier one */
setting_reader add_argument; /* of a command: {file} and {args} are arguments of their own */

/* Reads "inline[:SIZE]"; *out stays 0 for another text.  Fails: a SIZE above the maximum. */
int parse_inline(const char *text, uint64_t *out_bytes, struct cj_error *err);

/* The names of the values, indexed by their enum; plan_json.c shows them, too. */
extern const char *const launcher_names[LAUNCHER_COUNT];
extern const char *const audit_need_names[AUDIT_NEED_COUNT];
extern const char *const output_policy_names[OUTPUT_POLICY_COUNT];
extern const char *const degraded_names[DEGRADED_COUNT];
extern const char *const network_start_names[NETWORK_START_COUNT];
