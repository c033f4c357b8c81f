/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages that every copy of the zygote uses, as a trial has found them; runs in the zygote and
 * in each copy.
 *
 * A copy shares the zygote's pages, and its tables have none of those that belong to files.  The
 * first use of each page is a page fault, several hundred in each copy.  Where faults are slow, on
 * a virtual machine, they take longer than all the rest; process_madvise(2) takes a fraction of
 * that.
 */
#include "runtime/jail/zygote/zygote_inside.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define RANGES_MAX 1024
/* What is larger is address space that is reserved, a sanitizer's terabytes for example: to look at
 * each page of it would take minutes. */
#define MAPPING_MAX (1ull << 30)
#define TRIAL_MS    10000

/* The pages that get the same advice. */
struct ranges {
	size_t count, size; /* of all of them in bytes */
	struct iovec items[RANGES_MAX];
};
static_assert(RANGES_MAX <= IOV_MAX, "one call takes all ranges");

static struct ranges to_read, to_write;

/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGE_IS_PRESENT   (1ull << 63)
#define PAGE_IS_OF_FILE   (1ull << 61)
#define PAGE_IS_EXCLUSIVE (1ull << 56) /* it was copied, or is new */

/* Where a copy gets such a page; NULL: nothing to do. */
static struct ranges *ranges_of(uint64_t page, bool is_writable)
{
	if (!(page & PAGE_IS_PRESENT))
		return NULL;
	if (page & PAGE_IS_OF_FILE)
		return &to_read;
	return is_writable && (page & PAGE_IS_EXCLUSIVE) ? &to_write : NULL;
}

static void add(struct ranges *r, uintptr_t begin, size_t size)
{
	struct iovec *last = r->count > 0 ? &r->items[r->count - 1] : NULL;
	if (last && (uintptr_t)last->iov_base + last->iov_len == begin)
		last->iov_len += size;
	else if (r->count < RANGES_MAX)
		r->items[r->count++] = (struct iovec){ (void *)begin, size };
	else
		return;
	r->size += size;
}

static void look_at(int pagemap_fd, uintptr_t begin, uintptr_t end, bool is_writable)
{
	const size_t page_size = (size_t)getpagesize();
	uint64_t pages[512];
	while (begin < end) {
		const size_t left = (end - begin) / page_size;
		const size_t n = left < COUNT_OF(pages) ? left : COUNT_OF(pages);
		const ssize_t size = (ssize_t)(n * sizeof(pages[0]));
		if (pread(pagemap_fd, pages, (size_t)size,
			  (off_t)(begin / page_size * sizeof(pages[0]))) != size)
			return; /* not of this process: the vsyscall page */
		for (const uint64_t *page = pages; page < pages + n; page++, begin += page_size) {
			struct ranges *r = ranges_of(*page, is_writable);
			if (r)
				add(r, begin, page_size);
		}
	}
}

/* Of a process that waits. */
static void look_at_all(pid_t pid)
{
	char path[64], line[512], access[5];
	uintptr_t begin, end;
	(void)snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	auto_fd int pagemap_fd = open(path, O_RDONLY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	auto_file FILE *maps = fopen(path, "re");
	while (maps && pagemap_fd >= 0 && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, access) == 3 &&
		    access[0] == 'r' && access[3] == 'p' && end - begin <= MAPPING_MAX)
			look_at(pagemap_fd, begin, end, access[1] == 'w');
}

pid_t zygote_pages_try(pid_t (*fork_now)(void))
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	auto_fd int near_fd = ends[0], far_fd = ends[1];
	pid_t parent = getpid(), pid = fork_now();
	if (pid == 0) {
		/* Outside every jail nothing else would end it, and it must not take itself for a
		 * process of one. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
			_exit(EXIT_FAILURE);
		if (dup2(far_fd, ZYGOTE_SOCK_FD) < 0)
			_exit(EXIT_FAILURE);
		return 0;
	}
	cj_close(&far_fd);
	if (pid < 0)
		return -1;
	char ready;
	if (fd_await(near_fd, POLLIN, TRIAL_MS) && read(near_fd, &ready, 1) == 1)
		look_at_all(pid);
	(void)kill(pid, SIGKILL); /* our child */
	(void)sys_waitpid(pid, NULL, 0);
	return pid;
}

#define THIS_PROCESS (-10000) /* PIDFD_SELF_THREAD, newer than the headers of Debian 12 */

/* Older kernels know no such descriptor, or let no process give itself this advice. */
static void fetch(const struct ranges *r, int advice)
{
	if (r->count == 0 || syscall(SYS_process_madvise, THIS_PROCESS, r->items, r->count, advice,
				     0) == (long)r->size)
		return;
	for (size_t i = 0; i < r->count; i++)
		(void)madvise(r->items[i].iov_base, r->items[i].iov_len,
			      advice); /* on failure faults fetch them */
}

void zygote_pages_fetch(void)
{
	fetch(&to_read, MADV_POPULATE_READ);
	fetch(&to_write, MADV_POPULATE_WRITE);
}
