/* SPDX-License-Identifier: Apache-2.0 */
/* Reads annotations by a table. */
#include "runtime/container/annotation/annotations.h"

#include <string.h>

#include "netns/firewall/firewall.h"
#include "netns/address/ranges.h"
#include "runtime/base/text.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define PREFIX    "io.cejail."
#define ALLOW     "allow:"

typedef int annotation_reader(const char *value, struct arena *a, struct annotations *out,
			      struct cj_error *err);

/* --- lists ----------------------------------------------------------------------------- */

/* "a,b" into its parts; a part may be empty.  The reader of a part refuses that. */
static int split(const char *text, struct arena *a, struct strings *out, struct cj_error *err)
{
	for (;;) {
		size_t size = strcspn(text, ",");
		const char *part = arena_strndup(a, text, size);
		if (!part || strings_add(out, a, part) < 0)
			return cj_fail(err, ENOMEM, "read a list");
		if (text[size] == '\0')
			return 0;
		text += size + 1;
	}
}

static int read_allow(const char *list, struct arena *a, struct annotations *out,
		      struct cj_error *err)
{
	struct strings parts = { 0 };

	if (split(list, a, &parts, err) < 0)
		return -err->code;
	if (parts.count > ALLOWLIST_MAX)
		return cj_reject(err, "it names %zu hosts; at most %d are possible", parts.count,
				 ALLOWLIST_MAX);
	struct allowlist_entry *entries = arena_array(a, parts.count, sizeof(*entries));
	if (!entries)
		return cj_fail(err, ENOMEM, "read a list");
	for (size_t i = 0; i < parts.count; i++)
		if (allowlist_parse(parts.items[i], a, &entries[i], err) < 0)
			return -err->code;
	out->allow = entries;
	out->nallow = parts.count;
	return 0;
}

/* --- the annotations ------------------------------------------------------------------- */

static int read_network(const char *value, struct arena *a, struct annotations *out,
			struct cj_error *err)
{
	out->has_network = true;
	if (strcmp(value, "public") == 0)
		return 0;
	if (strncmp(value, ALLOW, strlen(ALLOW)) != 0)
		return cj_reject(err, "'%.64s' is neither public nor allow:HOST[:PORT],...", value);
	out->is_list = true;
	return read_allow(value + strlen(ALLOW), a, out, err);
}

static int read_private(const char *value, struct arena *a, struct annotations *out,
			struct cj_error *err)
{
	(void)a;
	return parse_bool(value, &out->may_be_private, err);
}

/* A cluster's name servers have private addresses.  No name server of another host has these. */
static bool is_server(const struct ip *ip)
{
	enum net_class class;

	return !ranges_find(ip, &class) || class == NET_PRIVATE || class == NET_SHARED;
}

static int read_servers(const char *value, struct arena *a, struct annotations *out,
			struct cj_error *err)
{
	struct strings parts = { 0 };

	if (split(value, a, &parts, err) < 0)
		return -err->code;
	if (parts.count > FIREWALL_NAME_SERVERS_MAX)
		return cj_reject(err, "at most %d name servers are possible",
				 FIREWALL_NAME_SERVERS_MAX);
	struct ip *servers = arena_array(a, parts.count, sizeof(*servers));
	if (!servers)
		return cj_fail(err, ENOMEM, "read a list");
	for (size_t i = 0; i < parts.count; i++) {
		if (!ip_parse(parts.items[i], &servers[i]))
			return cj_reject(err, "'%.64s' is not an address", parts.items[i]);
		if (!is_server(&servers[i]))
			return cj_reject(err, "'%s' is neither a public nor a private address",
					 parts.items[i]);
	}
	out->name_servers = servers;
	out->nname_servers = parts.count;
	return 0;
}

static int read_result(const char *value, struct arena *a, struct annotations *out,
		       struct cj_error *err)
{
	(void)a;
	if (value[0] == '\0')
		return cj_reject(err, "it is empty");
	out->result = value;
	return 0;
}

/* A path would let the author of a pod name any file of the host. */
static int read_profile(const char *value, struct arena *a, struct annotations *out,
			struct cj_error *err)
{
	(void)a;
	if (!is_name(value))
		return cj_reject(err, "'%.64s' is no name of a profile", value);
	out->profile = value;
	return 0;
}

static const struct row {
	const char *name;
	annotation_reader *read;
} rows[] = {
	{ ANNOTATION_NETWORK, read_network }, { ANNOTATION_SERVERS, read_servers },
	{ ANNOTATION_PRIVATE, read_private }, { ANNOTATION_RESULT, read_result },
	{ ANNOTATION_PROFILE, read_profile },
};

static int reject_unknown(const char *name, struct cj_error *err)
{
	const char *names[LENGTH(rows) + 1] = { NULL };

	for (size_t i = 0; i < LENGTH(rows); i++)
		names[i] = rows[i].name;
	const char *nearest = text_nearest(name, names);
	cj_refuse(err, "unknown annotation '%.128s'", name);
	if (nearest)
		return cj_hint(err, "did you mean '%s'?", nearest);
	return cj_hint(err, "see cejail-oci(8), ANNOTATIONS");
}

static int read_pair(const struct oci_pair *pair, struct arena *a, struct annotations *out,
		     struct cj_error *err)
{
	if (strncmp(pair->name, PREFIX, strlen(PREFIX)) != 0)
		return 0;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		if (strcmp(pair->name, rows[i].name) != 0)
			continue;
		return rows[i].read(pair->value, a, out, err) < 0
			   ? cj_wrap(err, "annotation '%s'", pair->name)
			   : 0;
	}
	return reject_unknown(pair->name, err);
}

/* containerd and CRI-O mark the container that only keeps a pod's namespaces. */
static bool is_sandbox(const struct oci_pair *pair)
{
	static const struct oci_pair marks[] = {
		{ "io.kubernetes.cri.container-type", "sandbox" },
		{ "io.kubernetes.cri-o.ContainerType", "sandbox" },
	};

	for (size_t i = 0; i < LENGTH(marks); i++)
		if (strcmp(pair->name, marks[i].name) == 0 &&
		    strcmp(pair->value, marks[i].value) == 0)
			return true;
	return false;
}

int annotations_read(const struct oci_pairs *pairs, struct arena *a, struct annotations *out,
		     struct cj_error *err)
{
	struct annotations read = { 0 };

	for (size_t i = 0; i < pairs->count; i++) {
		if (read_pair(&pairs->items[i], a, &read, err) < 0)
			return -err->code;
		read.is_sandbox = read.is_sandbox || is_sandbox(&pairs->items[i]);
	}
	if (read.is_sandbox)
		read.result = NULL;
	if (!read.has_network && (read.nname_servers > 0 || read.may_be_private))
		return cj_reject(err,
				 "annotation '%s' is missing: the others of the network need "
				 "it",
				 ANNOTATION_NETWORK);
	*out = read;
	return 0;
}
