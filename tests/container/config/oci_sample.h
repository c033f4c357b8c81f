/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole config.json for tests: a list of its members, of which a test replaces some.
 */
#pragma once

#include "runtime/base/scope.h"
#include "runtime/container/config/oci_config.h"

#define SAMPLE_MAX 16384

/* The texts of members; NULL: the usual one. */
struct sample {
	const char *version, *process, *root, *mounts, *linux_, *more;
};

#define SAMPLE_PROCESS "{\"args\": [\"true\"], \"cwd\": \"/\", \"user\": {\"uid\": 0, \"gid\": 0}}"
#define SAMPLE_SPACES  "\"namespaces\": [{\"type\": \"mount\"}, {\"type\": \"uts\"}]"

static inline const char *sample_or(const char *text, const char *usual)
{
	return text ? text : usual;
}

/* The value of `name`, or NULL. */
static inline const char *oci_pairs_get(const struct oci_pairs *pairs, const char *name)
{
	for (size_t i = 0; i < pairs->count; i++)
		if (strcmp(pairs->items[i].name, name) == 0)
			return pairs->items[i].value;
	return NULL;
}

static inline void sample_write(const struct sample *s, char out[SAMPLE_MAX])
{
	(void)snprintf(out, SAMPLE_MAX,
		       "{\"ociVersion\": %s, \"process\": %s, \"root\": %s, \"mounts\": %s, "
		       "\"linux\": {%s}%s%s}",
		       sample_or(s->version, "\"1.2.0\""), sample_or(s->process, SAMPLE_PROCESS),
		       sample_or(s->root, "{\"path\": \"rootfs\"}"), sample_or(s->mounts, "[]"),
		       sample_or(s->linux_, SAMPLE_SPACES), s->more ? ", " : "",
		       sample_or(s->more, ""));
}

static inline int sample_read(const struct sample *s, struct arena *a, struct oci_config *out,
			      struct cj_error *err)
{
	char text[SAMPLE_MAX];

	sample_write(s, text);
	return oci_config_read("config.json", text, strlen(text), a, out, err);
}
