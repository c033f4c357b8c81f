/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_uri - paths as parts of URIs: RFC 3986, section 3.3.  Pure. */
#pragma once

/* Writes at most three bytes for each of the path, and no NUL.  Returns the end. */
char *mcp_uri_put_path(char *to, const char *path);
/* "BEFOREdirectory/path"; malloc'ed; NULL: no memory. */
char *mcp_uri_join(const char *before, const char *directory, const char *path);
