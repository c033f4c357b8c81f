/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake - `cejail serve --fake FILE`: workers that build no jail and answer from a file.  It is for
 * the tests of programs that call the service.  Sockets, access checks, queue, cancelling and audit
 * are those of the real service.
 */
#pragma once

#include <stdbool.h>

#include "runtime/service/fake/fake_file.h"
#include "runtime/service/worker/spawner.h"

struct exchange;

/* Reads the file.  *out is the caller's to end with arena_fini(&out->arena). */
int fake_open(const char *path, struct fake_file *out, struct cj_error *err);

/* As struct worker_life says; the context is a struct fake_file. */
__attribute__((noreturn)) void fake_main(void *context, const struct worker_order *order);

/* As struct api_filter says: the file may have an error for a request.  The context is the same. */
bool fake_refuses(void *context, struct exchange *x, const struct request *r);
