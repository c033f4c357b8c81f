/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens - the secrets of TCP callers, read from their files.
 *
 * Only the SHA-256 digest of a token stays in memory.  The service does not start if others can
 * read a file, or if a token could be guessed.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/service/config/service_config.h"

#define TOKEN_DEFAULT_NAME "token:default"

/*
 * tokens_load - each row's token_file, and for TOKEN_DEFAULT_NAME "token_file" or the systemd
 * credential "token" ($CREDENTIALS_DIRECTORY/token).
 *
 * Fails: a file that is missing, is not regular, is readable for others or a group (a credential's
 * group bits are its access list), or has a weak token; two callers with one token; "tcp" without
 * any token.
 */
int tokens_load(struct service_config *c, struct cj_error *err);
