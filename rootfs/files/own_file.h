/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_file - files of ours for a program: their bytes are part of our programs.
 *
 * Init is a copy of the supervisor, so it has them, too: they need not be sent to it.
 */
#pragma once

#include "runtime/base/byte_queue.h"

enum own_file { OWN_FILE_NONE, OWN_FILE_TOOLS_PY, OWN_FILE_TOOLS_MJS, OWN_FILE_COUNT };

/* Its bytes, without a NUL; OWN_FILE_NONE has none. */
struct blob own_file_bytes(enum own_file which);
