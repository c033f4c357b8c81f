/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known - profiles as the service has read them: kept while their files stay the same.
 *
 * A stamp is made of what stat(2) says of every file that could be part of a profile: in each of
 * the profile directories, for it and all its parents, and its seccomp file.
 */
#pragma once

#include <stdint.h>

#include "profiles/config.h"
#include "runtime/base/error.h"

#define KNOWN_MAX 64

struct known;
struct known *known_create(void); /* NULL: no memory */
void known_destroy(struct known **k);

/* The profile's settings, until the next call.  Fails: as profile_load() does. */
int known_get(struct known *k, const char *name, const struct config **out, struct cj_error *err);
/* 0: there is no such profile, or it doesn't read well. */
uint64_t known_stamp(struct known *k, const char *name);
