/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_release - how a package is installed on this distribution: os-release(5).
 * os_install_of() is pure, os_install() acts.
 */
#pragma once

#define INSTALL_MAX 96 /* bytes of a command or sentence, with its NUL */

/*
 * "sudo dnf install PACKAGE", by ID and ID_LIKE in `text`; a sentence if they name no distribution
 * that we know, or `text` is NULL.  PACKAGE is the name that Debian has for it.
 */
void os_install_of(const char *text, const char *package, char out[static INSTALL_MAX]);

/* The same on this host. */
void os_install(const char *package, char out[static INSTALL_MAX]);
