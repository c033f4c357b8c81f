/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/container/process/process_parts.h"

#include <ctype.h>

#include "runtime/base/text.h"

/* libcap takes any case and numbers; config.json has the names of capabilities(7). */
uint64_t process_caps_bit(const char *name)
{
	if (!text_begins_with(name, "CAP_") || !isupper((unsigned char)name[4]))
		return 0;
	for (const char *c = name; *c; c++)
		if (!isupper((unsigned char)*c) && *c != '_')
			return 0;
	return capabilities_bit(name);
}

/* What one set is resolved from. */
struct resolution {
	const char *set; /* for warnings */
	const struct strings *names;
	const uint64_t *within, *also; /* it has no others: the kernel would refuse them */
	const char *lacking; /* why others are not available: behind the capability's name */
	uint64_t *out;
};

static int resolve_set(const struct resolution *r, struct arena *a, struct strings *warnings)
{
	*r->out = 0;
	for (size_t i = 0; i < r->names->count; i++) {
		const char *name = r->names->items[i];
		uint64_t bit = process_caps_bit(name);
		const char *why = !bit                             ? "is not known"
				  : !(bit & *r->within & *r->also) ? r->lacking
								   : NULL;
		*r->out |= why ? 0 : bit;
		const char *text =
		    why ? arena_printf(a, "capability '%.64s' %s; the %s set goes without it", name,
				       why, r->set)
			: NULL;
		if (why && strings_add(warnings, a, text) < 0)
			return -ENOMEM;
	}
	return 0;
}

int process_caps_resolve(const struct oci_capabilities *wanted, uint64_t available, struct arena *a,
			 struct capabilities *out, struct strings *warnings)
{
	struct capabilities caps = { 0 };
	static const char here[] = "is not available here";
	/* In this order: the last two depend on others.  capset(2), PR_CAP_AMBIENT(2const) */
	const struct resolution sets[] = {
		{ "bounding", &wanted->bounding, &available, &available, here, &caps.bounding },
		{ "permitted", &wanted->permitted, &available, &available, here, &caps.permitted },
		{ "inheritable", &wanted->inheritable, &available, &available, here,
		  &caps.inheritable },
		{ "effective", &wanted->effective, &caps.permitted, &caps.permitted,
		  "is not in the permitted set", &caps.effective },
		{ "ambient", &wanted->ambient, &caps.permitted, &caps.inheritable,
		  "is not in the permitted and the inheritable set", &caps.ambient },
	};

	for (size_t i = 0; i < COUNT_OF(sets); i++)
		if (resolve_set(&sets[i], a, warnings) < 0)
			return -ENOMEM;
	*out = caps;
	return 0;
}
