/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annotations - the annotations of a container that cejail-oci acts on.
 *
 *	io.cejail.network                public, or allow:HOST[:PORT],...
 *	io.cejail.network.name-servers   ADDRESS,...: port 53 of these is open, too
 *	io.cejail.network.allow-private  true: "allow:" may name private addresses
 *	io.cejail.result                 the file of the result: result_place.h
 *	io.cejail.profile                a profile whose seccomp filter applies, too, with Landlock
 *
 * Each of them only restricts the container or reports about it.  An unknown name that begins with
 * "io.cejail." is an error: a misspelt restriction must not be a missing one.
 */
#pragma once

#include <stdbool.h>

#include "netns/address/allowlist.h"
#include "runtime/container/config/oci_value.h"

struct annotations {
	bool is_sandbox; /* of a pod: the program is the engine's own, and has no result */
	bool has_network;
	bool is_list; /* allow: */
	const struct allowlist_entry *allow;
	size_t nallow;
	bool may_be_private;
	const struct ip *name_servers;
	size_t nname_servers;
	const char *result;  /* NULL: none */
	const char *profile; /* NULL: none */
};

#define ANNOTATION_NETWORK "io.cejail.network"
#define ANNOTATION_PRIVATE ANNOTATION_NETWORK ".allow-private"
#define ANNOTATION_SERVERS ANNOTATION_NETWORK ".name-servers"
#define ANNOTATION_RESULT  "io.cejail.result"
#define ANNOTATION_PROFILE "io.cejail.profile"

/* All zero without any.  What *out points to lives in the arena, or in `pairs`. */
int annotations_read(const struct oci_pairs *pairs, struct arena *a, struct annotations *out,
		     struct cj_error *err);
