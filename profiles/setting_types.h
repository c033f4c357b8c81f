/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setting_types - how the values of the settings table are read and shown.  Pure.
 *
 * A row of settings[] names one set_ and one put_ function.  set_ takes one whole
 * text, checks it and writes the field at the row's offset only on success; put_ is
 * its inverse, so that `cejail profile show` prints what set_ would read again.
 */
#pragma once

#include "profiles/settings.h"

#define VALUE_PATH_NONE "none" /* the text of a value_path that is NULL */
#define ENV_NAME_LEN    255    /* bytes in the name of a variable */

int set_flag(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int set_size(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int set_count(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int set_cpus(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int set_duration(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int set_text(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int check_text(struct config *c, const struct setting *s, const char *text,
	       struct cj_error *err); /* not empty; kept nowhere */
int set_hostname(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int set_directory(struct config *c, const struct setting *s, const char *text,
		  struct cj_error *err); /* in the jail: absolute, normalised */
int set_value_path(struct config *c, const struct setting *s, const char *text,
		   struct cj_error *err); /* in the jail: absolute, normalised; or "none" */
int set_artifacts(struct config *c, const struct setting *s, const char *text,
		  struct cj_error *err); /* a directory, or "inline[:SIZE]" */
int set_file_name(struct config *c, const struct setting *s, const char *text,
		  struct cj_error *err);
int set_id(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int set_fd(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int set_input_fd(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int set_code(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int set_json(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int set_remote(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int set_network(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int set_uplink(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int set_network_start(struct config *c, const struct setting *s, const char *text,
		      struct cj_error *err);
int set_output_policy(struct config *c, const struct setting *s, const char *text,
		      struct cj_error *err);
int set_audit(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int set_launcher(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int set_extends(struct config *c, const struct setting *s, const char *text,
		struct cj_error *err); /* checks the name; profile.c follows it */

int add_text(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int add_env(struct config *c, const struct setting *s, const char *text,
	    struct cj_error *err); /* a later value takes the place of an earlier one */
int add_extension(struct config *c, const struct setting *s, const char *text,
		  struct cj_error *err);
int add_argument(
    struct config *c, const struct setting *s, const char *text,
    struct cj_error *err); /* of a command: {file} and {args} are arguments of their own */
int add_module(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int add_degraded(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int add_target(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int add_tmpfs(struct config *c, const struct setting *s, const char *text, struct cj_error *err);
int add_file_text(struct config *c, const struct setting *s, const char *text,
		  struct cj_error *err);
int add_connect(struct config *c, const struct setting *s, const char *text, struct cj_error *err);

void put_flag(struct json_writer *w, const struct config *c, const struct setting *s);
void put_size(struct json_writer *w, const struct config *c, const struct setting *s);
void put_count(struct json_writer *w, const struct config *c, const struct setting *s);
void put_cpus(struct json_writer *w, const struct config *c, const struct setting *s);
void put_duration(struct json_writer *w, const struct config *c, const struct setting *s);
void put_text(struct json_writer *w, const struct config *c, const struct setting *s);
void put_value_path(struct json_writer *w, const struct config *c, const struct setting *s);
void put_network(struct json_writer *w, const struct config *c, const struct setting *s);
void put_uplink(struct json_writer *w, const struct config *c, const struct setting *s);
void put_launcher(struct json_writer *w, const struct config *c, const struct setting *s);
void put_network_start(struct json_writer *w, const struct config *c, const struct setting *s);
void put_output_policy(struct json_writer *w, const struct config *c, const struct setting *s);
void put_audit(struct json_writer *w, const struct config *c, const struct setting *s);
void put_list(struct json_writer *w, const struct config *c, const struct setting *s);
void put_env(struct json_writer *w, const struct config *c, const struct setting *s);

/* Reads "inline[:SIZE]"; *out stays 0 for another text.  Fails: a SIZE above the maximum. */
int parse_inline(const char *text, uint64_t *out_bytes, struct cj_error *err);

/* The names of the values, indexed by their enum; plan_json.c shows them, too. */
extern const char *const launcher_names[LAUNCHER_COUNT];
extern const char *const output_policy_names[OUTPUT_POLICY_COUNT];
extern const char *const degraded_names[DEGRADED_COUNT];
extern const char *const network_start_names[NETWORK_START_COUNT];
