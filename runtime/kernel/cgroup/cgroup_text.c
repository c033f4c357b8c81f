/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/cgroup/cgroup_text.h"

#include "runtime/base/text.h"

#define MOUNT_FIELDS 5 /* id, parent, device, root, mount point: proc(5) */

#define LEAF_ID_MAX 32

const char *const cgroup_controller_names[CGROUP_CONTROLLER_COUNT] = {
	[CGROUP_MEMORY] = "memory",
	[CGROUP_CPU] = "cpu",
	[CGROUP_PIDS] = "pids",
};

bool cgroup_text_is_leaf_id(const char *id)
{
	size_t size = strspn(id, "abcdefghijklmnopqrstuvwxyz"
				 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
	return size > 0 && size <= LEAF_ID_MAX && id[size] == '\0' && strcmp(id, "supervisor") != 0;
}

const char *cgroup_text_leaf_id(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *id = text_after(name, CGROUP_LEAF_PREFIX);
	return id && cgroup_text_is_leaf_id(id) ? id : NULL;
}

bool cgroup_text_is_child(const char *name)
{
	const char *number = text_after(name, CGROUP_EXEC_PREFIX);
	return strcmp(name, CGROUP_INIT_LEAF) == 0 ||
	       (number && *number && number[strspn(number, "0123456789")] == '\0');
}

void cgroup_text_leave_supervisor(char *path)
{
	char *slash = strrchr(path, '/');
	if (slash && strcmp(slash + 1, CGROUP_SUPERVISOR_LEAF) == 0)
		*slash = '\0';
}

/* A word within a line: not NUL-ended. */
struct cgroup_word {
	const char *at;
	size_t size;
};

static bool word_is(struct cgroup_word w, const char *text)
{
	return w.size == strlen(text) && memcmp(w.at, text, w.size) == 0;
}

/* The next word before `end`; size 0: there is none. */
static struct cgroup_word take_word(const char **at, const char *end)
{
	while (*at < end && **at == ' ')
		(*at)++;
	struct cgroup_word w = { .at = *at };
	while (*at < end && **at != ' ')
		(*at)++;
	w.size = (size_t)(*at - w.at);
	return w;
}

/* False: it is empty, or doesn't fit. */
static bool take_path(struct cgroup_word w, char out[static CGROUP_PATH_MAX])
{
	return text_unescape_octal(w.at, w.size, out, CGROUP_PATH_MAX) && out[0] != '\0';
}

static bool parse_mount_line(const char *at, const char *end, struct cgroup_mount *out)
{
	struct cgroup_word fields[MOUNT_FIELDS];
	for (size_t i = 0; i < MOUNT_FIELDS; i++)
		fields[i] = take_word(&at, end);

	struct cgroup_word w;
	do
		w = take_word(&at, end);
	while (w.size > 0 && !word_is(w, "-"));
	if (!word_is(take_word(&at, end), "cgroup2"))
		return false;
	return take_path(fields[3], out->root) && take_path(fields[4], out->point);
}

static int rank(const char *point)
{
	if (strcmp(point, "/sys/fs/cgroup") == 0)
		return 3;
	if (strcmp(point, "/sys/fs/cgroup/unified") == 0)
		return 2;
	return point[0] != '\0';
}

void cgroup_text_mount(const char *mountinfo, struct cgroup_mount *out)
{
	*out = (struct cgroup_mount){ 0 };
	while (*mountinfo != '\0') {
		const char *end = mountinfo + strcspn(mountinfo, "\n");
		struct cgroup_mount found = { 0 };
		if (parse_mount_line(mountinfo, end, &found) &&
		    rank(found.point) > rank(out->point))
			*out = found;
		mountinfo = *end == '\n' ? end + 1 : end;
	}
}

/* "7:cpu,cpuacct:/path" of a v1 hierarchy. */
static void note_v1(struct cgroup_word controllers, struct cgroup_self *out)
{
	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
		const char *name = cgroup_controller_names[i];
		size_t size = strlen(name);
		for (size_t at = 0; at + size <= controllers.size; at++) {
			bool begins = at == 0 || controllers.at[at - 1] == ',';
			bool ends = at + size == controllers.size ||
				    controllers.at[at + size] == ',';
			if (begins && ends && memcmp(controllers.at + at, name, size) == 0)
				out->on_v1[i] = true;
		}
	}
}

static void parse_self_line(const char *line, const char *end, struct cgroup_self *out)
{
	const char *first = memchr(line, ':', (size_t)(end - line));
	const char *second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
	if (!second)
		return;

	struct cgroup_word controllers = { first + 1, (size_t)(second - first - 1) };
	size_t size = (size_t)(end - second - 1);
	bool is_unified = word_is((struct cgroup_word){ line, (size_t)(first - line) }, "0");
	if (!is_unified)
		note_v1(controllers, out);
	else if (controllers.size == 0 && size < sizeof(out->path)) {
		memcpy(out->path, second + 1, size);
		out->path[size] = '\0';
	}
}

void cgroup_text_self(const char *text, struct cgroup_self *out)
{
	*out = (struct cgroup_self){ 0 };
	while (*text != '\0') {
		const char *end = text + strcspn(text, "\n");
		parse_self_line(text, end, out);
		text = *end == '\n' ? end + 1 : end;
	}
}

bool cgroup_text_locate(const struct cgroup_mount *mount, const char *path,
			char out[static CGROUP_PATH_MAX])
{
	if (mount->point[0] == '\0' || path[0] != '/' || text_ends_with(path, " (deleted)"))
		return false;
	/* "/.." comes before a cgroup outside our namespace's root: cgroup_namespaces(7). */
	for (const char *at = strstr(path, "/.."); at; at = strstr(at + 1, "/.."))
		if (at[3] == '/' || at[3] == '\0')
			return false;

	if (strcmp(mount->root, "/") != 0)
		path = text_path_below(path, mount->root);
	if (!path)
		return false;
	if (strcmp(path, "/") == 0)
		path = "";

	int size = snprintf(out, CGROUP_PATH_MAX, "%s%s", mount->point, path);
	return size > 0 && size < CGROUP_PATH_MAX;
}

const char *cgroup_text_digits(const char *at, const char *ends, uint64_t *out)
{
	uint64_t value;
	const char *end = text_take_u64(at, &value);
	if (!end || (*end != '\0' && !strchr(ends, *end)))
		return NULL;
	*out = value;
	return end;
}

bool cgroup_text_value(const char *text, const char *key, uint64_t *out)
{
	size_t size = strlen(key);
	while (*text != '\0') {
		if (strncmp(text, key, size) == 0 && text[size] == ' ')
			return cgroup_text_number(text + size + 1, out);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return false;
}

bool cgroup_text_number(const char *text, uint64_t *out)
{
	return cgroup_text_digits(text, "\n", out) != NULL;
}

bool cgroup_text_has_word(const char *text, const char *word)
{
	size_t size = strlen(word);
	while (*text != '\0') {
		text += strspn(text, " \n");
		size_t length = strcspn(text, " \n");
		if (length == size && memcmp(text, word, size) == 0)
			return true;
		text += length;
	}
	return false;
}

size_t cgroup_text_pids(const char *text, pid_t *out, size_t max)
{
	size_t count = 0;
	const char *end;
	while (count < max && (end = strchr(text, '\n')) != NULL) {
		uint64_t pid;
		if (cgroup_text_number(text, &pid) && pid <= INT32_MAX)
			out[count++] = (pid_t)pid;
		text = end + 1;
	}
	return count;
}
