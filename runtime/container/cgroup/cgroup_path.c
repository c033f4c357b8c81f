/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/container/cgroup/container_cgroup.h"

#include "runtime/base/text.h"

/* systemd.unit(5), "valid unit name"; no '@': a template has no cgroup. */
#define UNIT_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\"

static size_t count_colons(const char *text)
{
	size_t count = 0;
	for (; *text; text++)
		count += *text == ':';
	return count;
}

/* Appends "/COMPONENT", without the slash at the beginning of a relative path. */
static bool append(char out[static CGROUP_PATH_MAX], size_t *used, bool is_absolute,
		   const char *component, size_t size)
{
	size_t slash = is_absolute || *used > 0;
	if (*used + slash + size >= CGROUP_PATH_MAX)
		return false;
	if (slash)
		out[(*used)++] = '/';
	memcpy(out + *used, component, size);
	*used += size;
	out[*used] = '\0';
	return true;
}

int cgroup_path_clean(const char *path, char out[static CGROUP_PATH_MAX], struct cj_error *err)
{
	size_t used = 0;
	out[0] = '\0';
	if (path[0] != '/' && count_colons(path) == 2)
		return cj_reject(err,
				 "cgroupsPath '%.200s' is of the form slice:prefix:name: use "
				 "--systemd-cgroup",
				 path);

	for (const char *at = path; *at;) {
		size_t size = strcspn(at, "/");
		if (size == 2 && memcmp(at, "..", 2) == 0)
			return cj_reject(err, "cgroupsPath '%.200s' contains '..'", path);
		bool is_real = size > 0 && !(size == 1 && at[0] == '.');
		if (is_real && !append(out, &used, path[0] == '/', at, size))
			return cj_reject(err, "cgroupsPath '%.100s...' is too long", path);
		at += size + (at[size] == '/');
	}
	if (used == 0)
		return cj_reject(err, "cgroupsPath '%.200s' is the root of the hierarchy", path);
	return 0;
}

static int put_unit(char out[static CGROUP_UNIT_MAX], struct cj_error *err, const char *path,
		    int size)
{
	if (size < 0 || size >= CGROUP_UNIT_MAX || out[0] == '.' ||
	    strspn(out, UNIT_CHARACTERS) != (size_t)size)
		return cj_reject(err, "cgroupsPath '%.200s': '%.100s' is no name of a unit", path,
				 out);
	return 0;
}

static int put_slice(const char *path, int size, struct cgroup_scope_name *out,
		     struct cj_error *err)
{
	int written = snprintf(out->slice, sizeof(out->slice), "%.*s", size, path);
	if (size == 0)
		return 0;
	if (!text_ends_with(out->slice, ".slice"))
		return cj_reject(err, "cgroupsPath '%.200s': the slice does not end in '.slice'",
				 path);
	return put_unit(out->slice, err, path, written);
}

int cgroup_path_scope(const char *path, const char *id, struct cgroup_scope_name *out,
		      struct cj_error *err)
{
	*out = (struct cgroup_scope_name){ 0 };
	if (!path || path[0] == '\0')
		return put_unit(out->unit, err, id,
				snprintf(out->unit, sizeof(out->unit), "cejail-oci-%s.scope", id));

	if (count_colons(path) != 2)
		return cj_reject(err,
				 "cgroupsPath '%.200s' is not of the form slice:prefix:name, "
				 "which --systemd-cgroup needs",
				 path);
	int slice = (int)strcspn(path, ":");
	const char *prefix = path + slice + 1;
	int prefix_size = (int)strcspn(prefix, ":");
	const char *name = prefix + prefix_size + 1;
	if (name[0] == '\0')
		return cj_reject(err, "cgroupsPath '%.200s' has no name", path);
	if (put_slice(path, slice, out, err) < 0)
		return -err->code;
	return put_unit(out->unit, err, path,
			snprintf(out->unit, sizeof(out->unit), "%.*s%s%s.scope", prefix_size,
				 prefix, prefix_size > 0 ? "-" : "", name));
}
