/* SPDX-License-Identifier: Apache-2.0 */
/* types - media types of files, by file name only.  Pure. */
#pragma once

/* "image/png" for "plot.PNG"; "application/octet-stream" where the name says nothing. */
const char *type_of_name(const char *name);
