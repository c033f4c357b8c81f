/* SPDX-License-Identifier: Apache-2.0 */
/*
 * public - the paths of this host that a jail with the root "host" sees: two tables.
 *
 * A row must be readable by every user of the host, hold no secret on any distribution and
 * not be the place where an administrator puts one, and a common program must need it.
 * Deliberately absent: /etc/ssl/private, /etc/pki/tls/private; /etc/java-*-openjdk/management
 * (passwords of jmxremote); /etc/maven/settings.xml, /etc/gitconfig, pip.conf, npmrc, gemrc,
 * wgetrc, /etc/R/Renviron.site, /etc/php (tokens and passwords); /etc/ImageMagick-N/policy.xml (a
 * shared secret); all that names the host's users.
 */
#pragma once

#include <stddef.h>

/* Absolute; the first one is "/usr". */
extern const char *const public_paths[];
extern const size_t public_paths_count;

#define PUBLIC_NAMES_MAX 12

/* Paths below /etc with a version in the name: "/etc/PREFIX*SUFFIX", or each NAME below it. */
struct public_family {
	const char *prefix, *suffix;
	const char *names[PUBLIC_NAMES_MAX + 1]; /* ends in a NULL; none: the path itself */
};
extern const struct public_family public_families[];
extern const size_t public_families_count;
