/* SPDX-License-Identifier: Apache-2.0 */
/* The link to a server with an http:// URL. */
#include "runtime/front/mcp/upstream/upstream.h"

const struct upstream_link upstream_http = { .open = NULL };
