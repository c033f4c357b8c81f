/* SPDX-License-Identifier: Apache-2.0 */
/* Users of an image. */
#include "rootfs/image/image_passwd.h"

#include "runtime/base/text.h"

#define UID_MAX  (UINT32_MAX - 1)
#define USER_MAX 256
#define DIGITS   "0123456789"

enum field { FIELD_NAME, FIELD_UID = 2, FIELD_HOME = 5, FIELDS }; /* passwd(5) */

/* The fields up to FIELD_HOME of a line; those that it lacks stay NULL.  Returns the next line. */
static const char *read_line(const char *line, const char *fields[static FIELDS])
{
	const char *end = strchrnul(line, '\n');
	for (size_t i = 0; i < FIELDS; i++) {
		fields[i] = line;
		line = line ? memchr(line, ':', (size_t)(end - line)) : NULL;
		if (line)
			line++;
	}
	return *end == '\n' ? end + 1 : end;
}

static bool is_field(const char *field, const char *text)
{
	size_t length = strlen(text);
	return field && strncmp(field, text, length) == 0 && field[length] == ':';
}

static bool find_line(const char *passwd, const char *name, char out[static 16])
{
	const char *fields[FIELDS];
	for (const char *line = passwd; line && *line;) {
		line = read_line(line, fields);
		size_t digits = fields[FIELD_UID] ? strspn(fields[FIELD_UID], DIGITS) : 0;
		if (!is_field(fields[FIELD_NAME], name) || digits == 0 || digits >= 16 ||
		    fields[FIELD_UID][digits] != ':')
			continue;
		memcpy(out, fields[FIELD_UID], digits);
		out[digits] = '\0';
		return true;
	}
	return false;
}

void image_passwd_home(const char *passwd, uint32_t uid, char out[static PATH_MAX])
{
	const char *fields[FIELDS];
	char number[16];
	(void)snprintf(number, sizeof(number), "%u", uid);
	memcpy(out, "/", sizeof("/"));
	for (const char *line = passwd; *line;) {
		line = read_line(line, fields);
		const char *home = fields[FIELD_HOME];
		if (!is_field(fields[FIELD_UID], number) || !home)
			continue;
		size_t size = strcspn(home, ":\n");
		if (home[0] == '/' && size < PATH_MAX) {
			memcpy(out, home, size);
			out[size] = '\0';
		}
		return;
	}
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
