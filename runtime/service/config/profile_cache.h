/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_cache - parsed profiles, as long as their files do not change.
 *
 * A stamp is a hash of stat(2) of every file that could be part of a profile: in each of the
 * profile directories, for the profile and all its parents, and of its seccomp file.
 */
#pragma once

#include "profiles/config.h"
#include "runtime/base/error.h"

#define PROFILE_CACHE_MAX 64

struct profile_cache;
struct profile_cache *profile_cache_create(void); /* NULL: no memory */
void profile_cache_destroy(struct profile_cache **k);

/* The profile's settings, until the next call.  Fails: as profile_load() does. */
int profile_cache_get(struct profile_cache *k, const char *name, const struct config **out,
		      struct cj_error *err);
/* 0: there is no such profile, or it is invalid. */
uint64_t profile_cache_stamp(struct profile_cache *k, const char *name);

/*
 * profile_cache_turn - another turn of the event loop begins.
 *
 * In one turn profile_cache_stamp() looks at the files of a profile once, and not after
 * profile_cache_get(), which always looks: a request gets what is there when it arrives.  Without
 * turns both always look.
 */
void profile_cache_turn(struct profile_cache *k);
