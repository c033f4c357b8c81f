/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_record - any bytes as the record of a run whose supervisor is gone.
 *
 * Asserted: what is listed is the file's own run, dead, and written again it reads the same; only a
 * cgroup that is named after the run is swept; the record goes with it, and nothing else does.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/base/scope.h"
#include "runtime/kernel/cgroup/cgroup.h"
#include "runtime/jail/record.h"
#include "tests/fuzz/bytes.h"

/* WRAP: cgroup_remove_path */

#define ID "fuzz"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int __wrap_cgroup_remove_path(const char *path, uint64_t inode, struct cj_error *err);

static unsigned removals;

int __wrap_cgroup_remove_path(const char *path, uint64_t inode, struct cj_error *err)
{
	static const char tail[] = "/cejail-" ID;
	size_t size = strlen(path);
	(void)inode, (void)err;
	assert(size > sizeof(tail) - 1);
	assert(strcmp(path + size - (sizeof(tail) - 1), tail) == 0);
	removals++;
	return 0;
}

/* A runtime directory in memory; it stays for all inputs. */
static int open_dir(void)
{
	char path[] = "/dev/shm/fuzz-record-XXXXXX";
	char *made = mkdtemp(path);
	assert(made);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(fd >= 0 && mkdirat(fd, "runs", 0700) == 0);
	return fd;
}

static int dir_fd = -1;

/* What is empty in the end can be removed: the name is in /proc. */
static void close_dir(void)
{
	char link[64], path[256] = "";
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
	if (readlink(link, path, sizeof(path) - 1) < 0)
		return;
	(void)unlinkat(dir_fd, "runs/" ID ".json", 0);
	(void)unlinkat(dir_fd, "runs", AT_REMOVEDIR);
	(void)rmdir(path);
}

static void put_file(const uint8_t *bytes, size_t size)
{
	int fd = openat(dir_fd, "runs/" ID ".json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert(fd >= 0);
	ssize_t put = write(fd, bytes, size);
	assert(put == (ssize_t)size);
	close(fd);
}

static size_t list(struct arena *a, struct record_entry **out)
{
	struct cj_error err = { 0 };
	size_t count = 0;
	int rc = record_list(dir_fd, a, out, &count, &err);
	assert(rc == 0 && count <= 1);
	return count;
}

/* What was read, written and read again. */
static void check_round_trip(const struct record *r)
{
	auto_arena struct arena a = { 0 };
	struct record_entry *again = NULL;
	struct cj_error err = { 0 };
	(void)unlinkat(dir_fd, "runs/" ID ".json", 0);
	auto_fd int lock_fd = record_create(dir_fd, r, &err);
	assert(lock_fd >= 0);
	if (list(&a, &again) == 0) /* its escapes made it too long */
		return;
	assert(again->is_alive && again->record.started_ms == r->started_ms);
	assert(strcmp(again->record.profile, r->profile) == 0);
	assert(strcmp(again->record.cgroup_path, r->cgroup_path) == 0);
	record_remove(dir_fd, ID, &lock_fd);
	assert(list(&a, &again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	auto_arena struct arena a = { 0 };
	struct record_entry *entries = NULL;
	struct cj_error err = { 0 };
	if (dir_fd < 0) {
		dir_fd = open_dir();
		(void)atexit(close_dir);
	}

	put_file(bytes, size);
	size_t count = list(&a, &entries);
	assert(count == 0 || (!entries->is_alive && strcmp(entries->record.id, ID) == 0));
	assert(count == 0 ||
	       (entries->record.supervisor_pid >= 0 && entries->record.init_pid >= 0));

	removals = 0;
	int swept = record_sweep(dir_fd, &err);
	assert(swept == 1 && removals <= count);
	if (count > 0)
		check_round_trip(&entries->record);
	return 0;
}
