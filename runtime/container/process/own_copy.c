/* SPDX-License-Identifier: Apache-2.0 */
/* The sealed copy of this program. */
#include "runtime/container/process/process.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3, not in glibc 2.36 */
#endif

#define SEALS        (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)
#define NAME_MAX_LEN 249 /* memfd_create(2) */
#define PHDRS_MAX    32  /* a program of ours has a dozen */

/*
 * The bytes that execve(2) maps: up to the end of the last segment.  Debug information behind it is
 * three quarters of the file.  Whatever is not understood is copied whole.
 */
static off_t size_to_copy(int fd, off_t whole)
{
	ElfW(Ehdr) head;
	ElfW(Phdr) segments[PHDRS_MAX];
	off_t end = 0;
	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    head.e_phentsize != sizeof(segments[0]) || head.e_phnum > PHDRS_MAX)
		return whole;
	size_t size = head.e_phnum * sizeof(segments[0]);
	if (pread(fd, segments, size, (off_t)head.e_phoff) != (ssize_t)size)
		return whole;
	for (size_t i = 0; i < head.e_phnum; i++)
		if (segments[i].p_type == PT_LOAD &&
		    (off_t)(segments[i].p_offset + segments[i].p_filesz) > end)
			end = (off_t)(segments[i].p_offset + segments[i].p_filesz);
	return end > 0 && end < whole ? end : whole;
}

/* Its name is the program's path, so that libexec_find() still finds the helpers. */
static int make_memfd(int exe_fd, struct cj_error *err)
{
	char path[PATH_MAX];
	const char *name = fd_real_path(exe_fd, path);
	if (!name || strlen(name) > NAME_MAX_LEN)
		name = "cejail-oci";
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (fd < 0 && errno == EINVAL) /* Linux before 6.3: always executable */
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0) {
		(void)!cj_fail(err, errno, "create a memfd to execute");
		return cj_hint(err, "sysctl vm.memfd_noexec must be below 2");
	}
	return fd;
}

static int copy(int exe_fd, struct cj_error *err)
{
	struct stat st;
	auto_fd int fd = make_memfd(exe_fd, err);
	if (fd < 0)
		return fd;
	if (fstat(exe_fd, &st) < 0)
		return cj_fail(err, errno, "look at '/proc/self/exe'");
	for (off_t left = size_to_copy(exe_fd, st.st_size), at = 0; left > 0;) {
		ssize_t sent = sendfile(fd, exe_fd, &at, (size_t)left);
		if (sent <= 0)
			return cj_fail(err, sent < 0 ? errno : EIO, "copy this program to memory");
		left -= sent;
	}
	if (fchmod(fd, 0500) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return cj_fail(err, errno, "seal the copy of this program");
	return take_fd(&fd);
}

int own_copy_enter(char *const argv[], struct cj_error *err)
{
	auto_fd int exe_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (exe_fd < 0)
		return cj_fail(err, errno, "open '/proc/self/exe'");
	/* Other files have no seals, and a tmpfs file has only F_SEAL_SEAL: fcntl(2). */
	int seals = fcntl(exe_fd, F_GET_SEALS);
	if (seals >= 0 && (seals & SEALS) == SEALS) {
		/* execve(2) of a descriptor made its number the name. */
		(void)prctl(PR_SET_NAME, "cejail-oci", 0, 0, 0);
		return child_become_undumpable(err);
	}

	auto_fd int copy_fd = copy(exe_fd, err);
	if (copy_fd < 0)
		return copy_fd;
	(void)execveat(copy_fd, "", argv, environ, AT_EMPTY_PATH); /* returns only on failure */
	return cj_fail(err, errno, "execute the copy of this program");
}
