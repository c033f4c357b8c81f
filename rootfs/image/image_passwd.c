/* SPDX-License-Identifier: Apache-2.0 */
/* Whom USER of an image means.  Pure. */
#include "rootfs/image/image_passwd.h"

#include <string.h>

#include "runtime/base/text.h"

#define UID_MAX  (UINT32_MAX - 1)
#define USER_MAX 256
#define DIGITS   "0123456789"

/* The third field of the line "NAME:PASSWORD:UID:..."; false: another line. */
static bool read_line(const char *line, size_t size, const char *name, char out[static 16])
{
	size_t length = strlen(name);
	if (size <= length || memcmp(line, name, length) != 0 || line[length] != ':')
		return false;
	const char *at = memchr(line + length + 1, ':', size - length - 1);
	if (!at)
		return false;
	size_t digits = strspn(++at, DIGITS);
	if (digits == 0 || digits >= 16 || at + digits >= line + size || at[digits] != ':')
		return false;
	memcpy(out, at, digits);
	out[digits] = '\0';
	return true;
}

static bool find_line(const char *passwd, const char *name, char out[static 16])
{
	for (const char *line = passwd; line && *line;) {
		size_t size = strcspn(line, "\n");
		if (read_line(line, size, name, out))
			return true;
		line += size;
		line += *line == '\n';
	}
	return false;
}

int image_passwd_find(const char *user, const char *passwd, uint32_t *out_uid, struct cj_error *err)
{
	char name[USER_MAX], digits[16];
	uint64_t uid = 0;
	size_t size = strcspn(user, ":");

	if (size >= sizeof(name))
		return cj_reject(err, "the image's user is longer than %d bytes", USER_MAX - 1);
	memcpy(name, user, size);
	name[size] = '\0';
	const char *number = name;
	if (size > 0 && strspn(name, DIGITS) != size) {
		if (!passwd || !find_line(passwd, name, digits))
			return cj_reject(err, "the image's user '%s' is not in its /etc/passwd",
					 name);
		number = digits;
	}
	if (size > 0 && parse_u64(number, 0, UID_MAX, &uid, err) < 0)
		return cj_wrap(err, "the image's user '%s'", name);
	*out_uid = (uint32_t)uid;
	return 0;
}
