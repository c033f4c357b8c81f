/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the cgroup2 mount, and the cgroup of a process.
 *
 * /proc/self/mountinfo costs a run 2 us for each mount of the host.  Since Linux 6.8 statmount(2)
 * tells the same of one mount: it is asked for the two usual places.  Any answer but a plain yes
 * leads to the file.
 */
#include "runtime/kernel/cgroup/cgroup_parent.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"

#define MOUNTINFO_MAX (4u << 20)

/* <linux/mount.h> and <linux/stat.h> of Linux 6.8; the number is that of every architecture. */
#ifndef SYS_statmount
#define SYS_statmount 457
#endif
#define UNIQUE_ID  0x4000u /* STATX_MNT_ID_UNIQUE */
#define TELL_SUPER 0x01u   /* STATMOUNT_SB_BASIC */
#define TELL_ROOT  0x08u   /* STATMOUNT_MNT_ROOT */
#define TELL_POINT 0x10u   /* STATMOUNT_MNT_POINT */
#define TELL_ALL   (TELL_SUPER | TELL_ROOT | TELL_POINT)

struct mount_request { /* struct mnt_id_req, its first version */
	uint32_t size, spare;
	uint64_t id, wanted;
};

struct mount_answer { /* struct statmount */
	uint32_t size, options;
	uint64_t told;
	uint32_t device[2];
	uint64_t magic;
	uint32_t not_wanted[18];
	uint32_t root, point; /* offsets into text */
	uint64_t not_known[50];
	char text[2 * CGROUP_PATH_MAX];
};
_Static_assert(offsetof(struct mount_answer, text) == 512, "the kernel's layout");

static bool unique_id(const char *path, uint64_t *out)
{
	struct statx st;
	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, UNIQUE_ID, &st) < 0)
		return false;
	*out = st.stx_mnt_id;
	return (st.stx_mask & UNIQUE_ID) != 0;
}

static bool copy_path(char out[static CGROUP_PATH_MAX], const char *path)
{
	size_t size = strlen(path);
	if (size >= CGROUP_PATH_MAX || strchr(path, '\\')) /* kernels differ in how they quote */
		return false;
	memcpy(out, path, size + 1);
	return true;
}

/* False: no cgroup2 is mounted right there, or it is not known. */
static bool ask(const char *point, struct cgroup_mount *out)
{
	struct mount_request request = { .size = sizeof(request), .wanted = TELL_ALL };
	struct mount_answer answer;
	if (!unique_id(point, &request.id) ||
	    syscall(SYS_statmount, &request, &answer, sizeof(answer), 0) < 0)
		return false;
	if ((answer.told & TELL_ALL) != TELL_ALL || answer.magic != CGROUP2_SUPER_MAGIC ||
	    strcmp(answer.text + answer.point, point) != 0)
		return false;
	return copy_path(out->point, point) && copy_path(out->root, answer.text + answer.root);
}

void cgroup_mount_find(struct cgroup_mount *out)
{
	*out = (struct cgroup_mount){ 0 };
	if (ask("/sys/fs/cgroup", out) || ask("/sys/fs/cgroup/unified", out))
		return;

	auto_arena struct arena a = { 0 };
	struct cj_error ignored; /* without the file no mount is known, and the caller reports it */
	char *text;
	size_t size;
	*out = (struct cgroup_mount){ 0 };
	if (fd_read_file(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &a, &text, &size,
			 &ignored) == 0)
		cgroup_text_mount(text, out);
}

int cgroup_self_read(pid_t pid, struct cgroup_self *out)
{
	char path[40] = "/proc/self/cgroup", text[SYSTEM_FILE_SMALL];
	if (pid > 0)
		(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	ssize_t size = system_file_read(AT_FDCWD, path, text, sizeof(text));
	if (size < 0)
		text[0] = '\0';
	cgroup_text_self(text, out);
	return size < 0 ? (int)size : 0;
}
