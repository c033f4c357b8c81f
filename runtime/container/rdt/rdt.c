/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of service. */
#include "runtime/container/rdt/rdt.h"

#include <fcntl.h>
#include <mntent.h>
#include <sys/stat.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"

#define SCHEMATA_MAX 8192
#define DIR_MODE     0755

int rdt_open(struct cj_error *err)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	const struct mntent *entry = NULL;
	int fd = -1;

	while (mounts && (entry = getmntent(mounts)) && strcmp(entry->mnt_type, "resctrl") != 0)
		;
	if (entry)
		fd = open(entry->mnt_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int code = entry ? errno : ENOENT;
	if (mounts)
		(void)endmntent(mounts); /* always 1 */
	if (fd >= 0)
		return fd;
	(void)!cj_fail(err, code, "linux.intelRdt: find a mounted resctrl file system");
	return cj_hint(err,
		       "mount -t resctrl resctrl /sys/fs/resctrl; the processor and the kernel "
		       "must have resource control");
}

int rdt_plan(int root_fd, const struct oci_rdt *config, const char *id, struct rdt_record *out,
	     struct cj_error *err)
{
	const char *name = config->clos_id ? config->clos_id : id;
	bool has_schemata = config->l3_schema || config->memory_schema ||
			    config->schemata.count > 0;
	struct rdt_record r = { .is_shared = config->clos_id != NULL };
	struct stat st;

	r.is_made = fstatat(root_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0;
	if (r.is_made && errno != ENOENT)
		return cj_fail(err, errno, "linux.intelRdt: look at the class '%s'", name);
	if (!config->clos_id && !r.is_made)
		return cj_fail(err, EEXIST, "linux.intelRdt: make the class '%s'", name);
	if (config->clos_id && r.is_made && !has_schemata)
		return cj_fail(err, ENOENT, "linux.intelRdt: find the class '%s'", name);
	(void)snprintf(r.class_name, sizeof(r.class_name), "%s", name);
	if (config->has_monitoring)
		(void)snprintf(r.monitor, sizeof(r.monitor), "%s/mon_groups/%s", name, id);
	*out = r;
	return 0;
}

struct text {
	char bytes[SCHEMATA_MAX];
	size_t size;
	bool is_cut;
};

/* Each line of `lines`, but those that begin with `without`. */
static void add_lines(struct text *t, const char *lines, const char *without)
{
	while (lines && *lines) {
		size_t size = strcspn(lines, "\n");
		bool is_left_out = without && strncmp(lines, without, strlen(without)) == 0;
		t->is_cut = t->is_cut || size + 2 > sizeof(t->bytes) - t->size;
		if (!is_left_out && !t->is_cut && size > 0)
			t->size += (size_t)snprintf(t->bytes + t->size, sizeof(t->bytes) - t->size,
						    "%.*s\n", (int)size, lines);
		lines += size + (lines[size] == '\n');
	}
}

/* The kernel indents its lines. */
static bool has_line(const char *text, const char *line, size_t size)
{
	while (*text) {
		text += strspn(text, " ");
		size_t length = strcspn(text, "\n");
		if (length == size && strncmp(text, line, size) == 0)
			return true;
		text += length + (text[length] == '\n');
	}
	return false;
}

static int compare(int class_fd, const struct text *wanted, const char *name, struct cj_error *err)
{
	char has[SCHEMATA_MAX];
	ssize_t rc = system_file_read(class_fd, "schemata", has, sizeof(has));

	if (rc < 0)
		return cj_fail(err, (int)-rc, "linux.intelRdt: read the schemata of '%s'", name);
	for (const char *line = wanted->bytes; *line; line += strcspn(line, "\n") + 1) {
		size_t size = strcspn(line, "\n");
		if (!has_line(has, line, size))
			return cj_reject(err,
					 "linux.intelRdt: the class '%s' exists, without '%.*s'",
					 name, (int)(size < 100 ? size : 100), line);
	}
	return 0;
}

int rdt_make(int root_fd, const struct oci_rdt *config, struct rdt_record *r, struct cj_error *err)
{
	struct text wanted = { 0 };

	/* In the order of the specification.  memBwSchema replaces the line of l3CacheSchema. */
	add_lines(&wanted, config->l3_schema, config->memory_schema ? "MB:" : NULL);
	add_lines(&wanted, config->memory_schema, NULL);
	for (size_t i = 0; i < config->schemata.count; i++)
		add_lines(&wanted, config->schemata.items[i], NULL);
	if (wanted.is_cut)
		return cj_reject(err, "linux.intelRdt: the schemata are too long");
	if (r->is_made && mkdirat(root_fd, r->class_name, DIR_MODE) < 0) {
		if (errno != EEXIST || !r->is_shared)
			return cj_fail(err, errno, "linux.intelRdt: make the class '%s'",
				       r->class_name);
		r->is_made = false; /* another container was faster */
	}
	auto_fd int fd =
	    openat(root_fd, r->class_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return cj_fail(err, errno, "linux.intelRdt: open the class '%s'", r->class_name);
	if (!r->is_made && compare(fd, &wanted, r->class_name, err) < 0)
		return -err->code;
	int rc = r->is_made && wanted.size > 0 ? system_file_write(fd, "schemata", wanted.bytes)
					       : 0;
	if (rc < 0)
		return cj_fail(err, -rc, "linux.intelRdt: write the schemata of '%s'",
			       r->class_name);
	if (r->monitor[0] && mkdirat(root_fd, r->monitor, DIR_MODE) < 0)
		return cj_fail(err, errno, "linux.intelRdt: make the monitoring group '%s'",
			       r->monitor);
	return 0;
}

static int add_task(int root_fd, const char *group, pid_t pid, struct cj_error *err)
{
	char path[sizeof(((struct rdt_record *)NULL)->monitor) + sizeof("/tasks")], text[16];

	(void)snprintf(path, sizeof(path), "%s/tasks", group);
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	int rc = system_file_write(root_fd, path, text);
	return rc < 0 ? cj_fail(err, -rc, "linux.intelRdt: put a process into '%s'", group) : 0;
}

int rdt_join(int root_fd, const struct rdt_record *r, pid_t pid, struct cj_error *err)
{
	if (add_task(root_fd, r->class_name, pid, err) < 0)
		return -err->code;
	return r->monitor[0] ? add_task(root_fd, r->monitor, pid, err) : 0;
}

int rdt_join_recorded(const struct rdt_record *r, pid_t pid, struct cj_error *err)
{
	if (!r->class_name[0])
		return 0;
	auto_fd int fd = rdt_open(err);
	return fd < 0 ? fd : rdt_join(fd, r, pid, err);
}

static int remove_dir(int root_fd, const char *path, struct cj_error *err)
{
	if (unlinkat(root_fd, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	return cj_fail(err, errno, "linux.intelRdt: remove '%s'", path);
}

/* Also if that can't be read: its processes keep their class. */
static bool has_tasks(int root_fd, const char *class_name)
{
	char path[RDT_NAME_MAX + sizeof("/tasks")], text[16];

	(void)snprintf(path, sizeof(path), "%s/tasks", class_name);
	ssize_t size = system_file_read(root_fd, path, text, sizeof(text));
	return size != 0 && size != -ENOENT;
}

int rdt_remove(int root_fd, const struct rdt_record *r, struct cj_error *err)
{
	if (r->monitor[0] && remove_dir(root_fd, r->monitor, err) < 0)
		return -err->code;
	if (!r->is_made || (r->is_shared && has_tasks(root_fd, r->class_name)))
		return 0;
	return remove_dir(root_fd, r->class_name, err);
}

int rdt_remove_recorded(const struct rdt_record *r, struct cj_error *err)
{
	struct cj_error missing = { 0 };

	if (!r->class_name[0])
		return 0;
	auto_fd int fd = rdt_open(&missing);
	if (fd >= 0)
		return rdt_remove(fd, r, err);
	if (missing.code == ENOENT) /* unmounted, with all classes */
		return 0;
	*err = missing;
	return -err->code;
}
