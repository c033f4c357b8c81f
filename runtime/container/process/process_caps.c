/* SPDX-License-Identifier: Apache-2.0 */
/* Capability sets: resolved from names, which is pure, and given to the kernel. */
#include "runtime/container/process/process_caps.h"

#include <ctype.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>

#define CAPS_MAX 64 /* as many as fit into the sets of capset(2) */

/* libcap takes any case and numbers; config.json has the names of capabilities(7). */
static bool is_spelled_right(const char *name)
{
	if (strncmp(name, "CAP_", 4) != 0 || !isupper((unsigned char)name[4]))
		return false;
	for (const char *c = name; *c; c++)
		if (!isupper((unsigned char)*c) && *c != '_')
			return false;
	return true;
}

uint64_t process_caps_bit(const char *name)
{
	cap_value_t value = 0;
	if (!is_spelled_right(name) || cap_from_name(name, &value) < 0 || value < 0 ||
	    value >= CAPS_MAX)
		return 0;
	return UINT64_C(1) << value;
}

/* What one set is resolved from. */
struct resolution {
	const char *set; /* for warnings */
	const struct strings *names;
	uint64_t available;
	const char *lacking; /* why others are not available: behind the capability's name */
	uint64_t *out;
};

static int resolve_set(const struct resolution *r, struct arena *a, struct strings *warnings)
{
	*r->out = 0;
	for (size_t i = 0; i < r->names->count; i++) {
		const char *name = r->names->items[i];
		uint64_t bit = process_caps_bit(name);
		const char *why = !bit ? "is not known" : !(bit & r->available) ? r->lacking : NULL;
		*r->out |= why ? 0 : bit;
		const char *text =
		    why ? arena_printf(a, "capability '%.64s' %s; the %s set goes without it", name,
				       why, r->set)
			: NULL;
		if (why && (!text || strings_add(warnings, a, text) < 0))
			return -ENOMEM;
	}
	return 0;
}

int process_caps_resolve(const struct oci_capabilities *wanted, uint64_t available, struct arena *a,
			 struct process_caps *out, struct strings *warnings)
{
	struct process_caps caps = { 0 };
	const struct resolution sets[] = {
		{ "bounding", &wanted->bounding, available, "is not available here",
		  &caps.bounding },
		{ "permitted", &wanted->permitted, available, "is not available here",
		  &caps.permitted },
		{ "inheritable", &wanted->inheritable, available, "is not available here",
		  &caps.inheritable },
	};
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (resolve_set(&sets[i], a, warnings) < 0)
			return -ENOMEM;

	/* The kernel refuses other values: capset(2), PR_CAP_AMBIENT(2const). */
	const struct resolution effective = { "effective", &wanted->effective, caps.permitted,
					      "is not in the permitted set", &caps.effective };
	const struct resolution ambient = { "ambient", &wanted->ambient,
					    caps.permitted & caps.inheritable,
					    "is not in the permitted and the inheritable set",
					    &caps.ambient };
	if (resolve_set(&effective, a, warnings) < 0 || resolve_set(&ambient, a, warnings) < 0)
		return -ENOMEM;
	*out = caps;
	return 0;
}

/* EINVAL comes at the first that this kernel does not know, and at all after it:
 * PR_CAPBSET_READ(2const).  An end in the middle would hide capabilities that are there. */
static int read_bounding(uint64_t *out_known, uint64_t *out_bounding, struct cj_error *err)
{
	uint64_t known = 0, bounding = 0;
	bool is_over = false;
	for (unsigned long cap = 0; cap < CAPS_MAX; cap++) {
		int rc = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
		bool is_unknown = rc < 0 && errno == EINVAL && cap > 0;
		if (!is_unknown && (rc < 0 || is_over))
			return cj_fail(err, rc < 0 ? errno : EINVAL,
				       "read the bounding set of capabilities");
		is_over = is_unknown;
		known |= is_over ? 0 : UINT64_C(1) << cap;
		bounding |= is_over ? 0 : (uint64_t)(unsigned)rc << cap;
	}
	*out_known = known;
	*out_bounding = bounding;
	return 0;
}

int process_caps_of_kernel(uint64_t *out, struct cj_error *err)
{
	uint64_t bounding = 0;
	return read_bounding(out, &bounding, err);
}

#define HALVES _LINUX_CAPABILITY_U32S_3

static uint64_t whole(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}

static int read_sets(struct process_caps *out, struct cj_error *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[HALVES];
	if (capget(&header, data) < 0)
		return cj_fail(err, errno, "read the capabilities");
	out->effective = whole(data[0].effective, data[1].effective);
	out->permitted = whole(data[0].permitted, data[1].permitted);
	out->inheritable = whole(data[0].inheritable, data[1].inheritable);
	return 0;
}

bool process_caps_is_effective(unsigned cap)
{
	struct cj_error err;
	struct process_caps now = { 0 };
	return read_sets(&now, &err) == 0 && now.effective >> cap & 1;
}

static int write_sets(const struct process_caps *caps, struct cj_error *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[HALVES] = {
		{ (uint32_t)caps->effective, (uint32_t)caps->permitted,
		  (uint32_t)caps->inheritable },
		{ (uint32_t)(caps->effective >> 32), (uint32_t)(caps->permitted >> 32),
		  (uint32_t)(caps->inheritable >> 32) },
	};
	if (capset(&header, data) < 0)
		return cj_fail(err, errno, "set the capabilities");
	return 0;
}

int process_caps_of_self(uint64_t *out, struct cj_error *err)
{
	uint64_t known = 0, bounding = 0;
	struct process_caps sets = { 0 };
	if (read_bounding(&known, &bounding, err) < 0 || read_sets(&sets, err) < 0)
		return -err->code;
	*out = bounding & sets.permitted;
	return 0;
}

int process_caps_bound(const struct process_caps *caps, struct cj_error *err)
{
	uint64_t known = 0, bounding = 0;
	if (read_bounding(&known, &bounding, err) < 0)
		return -err->code;
	for (unsigned long cap = 0; cap < CAPS_MAX; cap++)
		if ((bounding & ~caps->bounding) >> cap & 1 &&
		    prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return cj_fail(err, errno, "drop capability %lu from the bounding set",
				       cap);

	if (read_bounding(&known, &bounding, err) < 0)
		return -err->code;
	if (bounding & ~caps->bounding)
		return cj_fail(err, EPERM, "verify the bounding set of capabilities");
	return 0;
}

static int raise_ambient(uint64_t ambient, struct cj_error *err)
{
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return cj_fail(err, errno, "empty the ambient set of capabilities");
	for (unsigned long cap = 0; cap < CAPS_MAX; cap++)
		if (ambient >> cap & 1 &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return cj_fail(err, errno, "put capability %lu into the ambient set", cap);
	return 0;
}

int process_caps_apply(const struct process_caps *caps, uint64_t kept, struct cj_error *err)
{
	struct process_caps sets = *caps, now = { 0 };
	sets.permitted |= kept;
	if (write_sets(&sets, err) < 0 || raise_ambient(caps->ambient, err) < 0 ||
	    read_sets(&now, err) < 0)
		return -err->code;
	if (now.effective != sets.effective || now.permitted != sets.permitted ||
	    now.inheritable != sets.inheritable)
		return cj_fail(err, EPERM, "verify the capabilities");
	return 0;
}

int process_caps_give_up(uint64_t kept, struct cj_error *err)
{
	uint64_t own;
	if (process_caps_of_self(&own, err) < 0)
		return -err->code;
	const struct process_caps caps = { .permitted = own & kept, .effective = own & kept };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return cj_fail(err, errno, "set no_new_privs");
	return process_caps_apply(&caps, 0, err);
}

int process_caps_raise(const struct process_caps *caps, uint64_t more, struct cj_error *err)
{
	struct process_caps sets = *caps;
	sets.permitted |= more;
	sets.effective |= more;
	return write_sets(&sets, err);
}
