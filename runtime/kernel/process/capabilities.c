/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/process/capabilities.h"

#include <sys/capability.h>
#include <sys/prctl.h>

#include "runtime/base/self_status.h"

#define CAPS_MAX 64 /* as many as fit into the sets of capset(2) */

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

int capabilities_of_kernel(uint64_t *out, struct cj_error *err)
{
	uint64_t bounding = 0;
	return read_bounding(out, &bounding, err);
}

#define HALVES _LINUX_CAPABILITY_U32S_3

static int read_sets(struct capabilities *out, struct cj_error *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[HALVES];
	if (capget(&header, data) < 0)
		return cj_fail(err, errno, "read the capabilities");
	out->effective = (uint64_t)data[1].effective << 32 | data[0].effective;
	out->permitted = (uint64_t)data[1].permitted << 32 | data[0].permitted;
	out->inheritable = (uint64_t)data[1].inheritable << 32 | data[0].inheritable;
	return 0;
}

bool capabilities_is_effective(unsigned cap)
{
	struct cj_error err;
	struct capabilities now = { 0 };
	return read_sets(&now, &err) == 0 && now.effective >> cap & 1;
}

static int write_sets(const struct capabilities *caps, struct cj_error *err)
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

int capabilities_of_self(uint64_t *out, struct cj_error *err)
{
	uint64_t known = 0, bounding = 0;
	struct capabilities sets = { 0 };
	if (read_bounding(&known, &bounding, err) < 0 || read_sets(&sets, err) < 0)
		return -err->code;
	*out = bounding & sets.permitted;
	return 0;
}

/* 1: this kernel says that it knows no such capability, nor any after it; check_bounding() finds
 * out.  A process without CAP_SETPCAP may have a smaller set already. */
static int drop_bounding(unsigned long cap, struct cj_error *err)
{
	if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) >= 0)
		return 0;
	int code = errno;
	if (code == EINVAL && cap > 0)
		return 1;
	if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 0)
		return 0;
	return cj_fail(err, code, "drop capability %lu from the bounding set", cap);
}

/* Returns the first capability that the kernel does not know, as it says. */
static int drop_others(uint64_t bounding, struct cj_error *err)
{
	int rc = 0, cap = 0;
	for (; cap < CAPS_MAX; cap++) {
		if (!(bounding >> cap & 1))
			rc = drop_bounding((unsigned long)cap, err);
		if (rc != 0)
			break;
	}
	return rc < 0 ? rc : cap;
}

static int check_bounding(uint64_t now, uint64_t bounding, int unknown, struct cj_error *err)
{
	if ((now & ~bounding) == 0)
		return 0;
	return unknown < CAPS_MAX && (now >> unknown & 1)
		   ? cj_fail(err, EINVAL, "drop capability %d from the bounding set", unknown)
		   : cj_fail(err, EPERM, "verify the bounding set of capabilities");
}

int capabilities_bound(uint64_t bounding, int proc_fd, struct cj_error *err)
{
	struct self_mask now = { .name = "CapBnd" };
	uint64_t known = 0;
	const int unknown = drop_others(bounding, err);
	if (unknown < 0 ||
	    (!self_status_masks(proc_fd, &now, 1) && read_bounding(&known, &now.value, err) < 0))
		return -err->code;
	return check_bounding(now.value, bounding, unknown, err);
}

int capabilities_apply(const struct capabilities *caps, uint64_t kept, struct cj_error *err)
{
	struct capabilities sets = *caps, now = { 0 };
	sets.permitted |= kept;
	if (write_sets(&sets, err) < 0)
		return -err->code;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return cj_fail(err, errno, "empty the ambient set of capabilities");
	for (unsigned long cap = 0; cap < CAPS_MAX; cap++)
		if (caps->ambient >> cap & 1 &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return cj_fail(err, errno, "put capability %lu into the ambient set", cap);
	if (read_sets(&now, err) < 0)
		return -err->code;
	if (now.effective != sets.effective || now.permitted != sets.permitted ||
	    now.inheritable != sets.inheritable)
		return cj_fail(err, EPERM, "verify the capabilities");
	return 0;
}

/* capset(2) also empties the ambient set: no capability is ambient that is not permitted and
 * inheritable, capabilities(7).  The status tells that; where it can't be read, prctl(2) does it
 * again. */
int capabilities_drop_all(int proc_fd, struct cj_error *err)
{
	enum { BOUNDING = 4, SETS };
	struct self_mask now[SETS] = { { .name = "CapEff" },
				       { .name = "CapPrm" },
				       { .name = "CapInh" },
				       { .name = "CapAmb" },
				       [BOUNDING] = { .name = "CapBnd" } };
	const struct capabilities none = { 0 };
	uint64_t known = 0, bounding = 0;
	const int unknown = drop_others(0, err);
	if (unknown < 0 || write_sets(&none, err) < 0)
		return -err->code;
	if (!self_status_masks(proc_fd, now, SETS))
		return read_bounding(&known, &bounding, err) < 0 ||
			       check_bounding(bounding, 0, unknown, err) < 0
			   ? -err->code
			   : capabilities_apply(&none, 0, err);
	for (size_t i = 0; i < BOUNDING; i++)
		if (now[i].value != 0)
			return cj_fail(err, EPERM, "verify the capabilities");
	return check_bounding(now[BOUNDING].value, 0, unknown, err);
}

int capabilities_raise(const struct capabilities *caps, uint64_t more, struct cj_error *err)
{
	struct capabilities sets = *caps;
	sets.permitted |= more;
	sets.effective |= more;
	return write_sets(&sets, err);
}
