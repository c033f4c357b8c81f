/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_values - how the values of the service's tables are read.
 *
 * Each takes one whole text, checks it against the row, and writes the field only on success.
 */
#pragma once

#include "runtime/service/config/service_config.h"

#define SERVICE_SETTER(name)                                                                       \
	int service_##name(struct service_config *c, const struct service_key *k, void *base,      \
			   const char *text, struct cj_error *err)

SERVICE_SETTER(set_count); /* unsigned */
SERVICE_SETTER(set_flag);
SERVICE_SETTER(set_duration); /* uint64_t, ms */
SERVICE_SETTER(set_bytes);    /* size_t */
SERVICE_SETTER(set_path);     /* absolute */
SERVICE_SETTER(set_mode);     /* of a socket: "0660" */
SERVICE_SETTER(set_group);
SERVICE_SETTER(set_tcp); /* of the loopback */
SERVICE_SETTER(set_profile);
SERVICE_SETTER(add_profile);
/* uint64_t: as the row's `parse` reads it, or "unlimited". */
SERVICE_SETTER(set_ceiling);
int service_parse_bytes(const char *text, uint64_t *out, struct cj_error *err);
int service_parse_number(const char *text, uint64_t *out, struct cj_error *err);
SERVICE_SETTER(set_network_right);
SERVICE_SETTER(set_session_reserve);
