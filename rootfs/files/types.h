/* SPDX-License-Identifier: Apache-2.0 */
/* types - what a file is, told by its name alone: media types for the result.  Pure. */
#pragma once

/* "image/png" for "plot.PNG"; "application/octet-stream" where the name says nothing. */
const char *type_of_name(const char *name);
