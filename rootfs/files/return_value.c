/* SPDX-License-Identifier: Apache-2.0 */
#include "rootfs/files/return_value.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "rootfs/files/jail_file.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

struct extent {
	size_t nodes;
	unsigned depth;
};

/* The reader's own limit is JSON_DEPTH_MAX; NOLINTNEXTLINE(misc-no-recursion) */
static void measure(const struct json_node *node, unsigned depth, struct extent *e)
{
	e->nodes++;
	if (node->type != JSON_ARRAY && node->type != JSON_OBJECT)
		return;
	if (depth > e->depth)
		e->depth = depth;
	for (const struct json_node *n = node->child; n; n = n->next)
		measure(n, depth + 1, e);
}

int return_value_parse(const char *name, const char *text, size_t size, struct arena *a,
		       const struct json_node **out, struct cj_error *err)
{
	const struct json_node *root;
	struct extent e = { 0 };

	if (size > RETURN_VALUE_BYTES_MAX)
		return cj_reject_as(err, EFBIG, "it has more than %u bytes",
				    RETURN_VALUE_BYTES_MAX);
	if (json_parse(name, text, size, a, &root, err) < 0)
		return -err->code;
	measure(root, 1, &e);
	if (e.depth > RETURN_VALUE_DEPTH_MAX)
		return cj_reject_as(err, EFBIG, "it has more than %d levels",
				    RETURN_VALUE_DEPTH_MAX);
	if (e.nodes > RETURN_VALUE_NODES_MAX)
		return cj_reject_as(err, EFBIG, "it has more than %u values",
				    RETURN_VALUE_NODES_MAX);
	*out = root;
	return 0;
}

static int check_type(const struct stat *st, struct cj_error *err)
{
	const char *fault = S_ISDIR(st->st_mode) ? "it is a directory" : jail_file_fault(st);

	if (fault)
		return cj_reject(err, "%s", fault);
	if ((uint64_t)st->st_size > RETURN_VALUE_BYTES_MAX)
		return cj_reject(err, "it has more than %u bytes", RETURN_VALUE_BYTES_MAX);
	return 0;
}

/* -1 with *err untouched: there is no file. */
static int open_file(const struct artifact_place *from, struct arena *a, struct cj_error *err)
{
	const char *name = NULL;
	struct stat st;
	auto_fd int parent_fd = jail_file_parent(from->dir_fd, from->inside, a, &name);
	if (parent_fd < 0)
		return errno == ENOENT ? -1 : cj_reject(err, "%s", strerror(errno));
	if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? -1 : cj_reject(err, "%s", strerror(errno));
	if (check_type(&st, err) < 0)
		return -err->code;
	auto_fd int fd = jail_file_open(parent_fd, name, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cj_reject(err, "open: %s", strerror(errno));
	return check_type(&st, err) < 0 ? -err->code : take_fd(&fd);
}

/* A message of the reader's may quote the file. */
static int make_printable(struct cj_error *err)
{
	char shown[CJ_ERROR_MSG_MAX];

	(void)text_escape(err->msg, strlen(err->msg), false, shown, sizeof(shown));
	memcpy(err->msg, shown, sizeof(shown));
	return -err->code;
}

int return_value_read(const struct artifact_place *from, struct arena *a,
		      const struct json_node **out, struct cj_error *err)
{
	auto_arena struct arena text_arena = { 0 };
	char *text = NULL;
	size_t size = 0;

	*out = NULL;
	auto_fd int fd = open_file(from, a, err);
	if (fd < 0)
		return err->code > 0 ? make_printable(err) : 0;
	if (fd_read_all(fd, RETURN_VALUE_BYTES_MAX, &text_arena, &text, &size, "it", err) < 0 ||
	    return_value_parse(from->path, text, size, a, out, err) < 0)
		return make_printable(err);
	return 0;
}
