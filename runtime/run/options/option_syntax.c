/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run/options/option_syntax.h"

#include <string.h>

bool option_split(const char *arg, struct long_option *out)
{
	if (strncmp(arg, "--", 2) != 0 || arg[2] == '\0')
		return false;
	const char *name = arg + 2;
	const char *equals = strchr(name, '=');

	*out = (struct long_option){
		.name = name,
		.name_size = equals ? (size_t)(equals - name) : strlen(name),
		.value = equals ? equals + 1 : NULL,
	};
	return true;
}

bool option_has_name(const struct long_option *o, const char *name)
{
	return strlen(name) == o->name_size && memcmp(name, o->name, o->name_size) == 0;
}

int option_take_value(const char *attached, const char *const **next, const char *named,
		      const char *value_name, const char *verb, const char **out,
		      struct cj_error *err)
{
	if (!attached && !**next) {
		int rc = cj_reject(err, "option '%s' needs a value (%s)", named, value_name);
		cj_hint(err, "see 'cejail %s --help'", verb);
		return rc;
	}
	*out = attached ? attached : *(*next)++;
	return 0;
}

int option_reject_unknown(const char *named, const char *nearest, const char *verb,
			  struct cj_error *err)
{
	int rc = cj_reject(err, "unknown option '%s'", named);

	if (nearest)
		cj_hint(err, "did you mean '--%s'?", nearest);
	else
		cj_hint(err, "see 'cejail %s --help'", verb);
	return rc;
}
