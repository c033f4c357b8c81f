/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters - what a VARIANT=coverage program has run through, whatever becomes of it.  Acts.
 *
 * The compiler's own runtime writes its counters when a program calls exit(3).  Ours end by
 * _exit, by SIGKILL, behind a filter that opens no file any more, or are forks that nobody
 * executed.  So before main() the counters move into a shared mapping of a file: a fork goes on
 * counting in it, nothing has to be called at the end, and no descriptor stays open.
 *
 * The files are COVERAGE_DIR/NAME with the program's NAME, made by tests/coverage; without
 * one a program counts for itself alone.  With CEJAIL_COVERAGE_WRITE=FILE in its environment a
 * program writes what is in its file as a profile for llvm-profdata(1), and ends.
 *
 * clang -fprofile-instr-generate -mllvm -runtime-counter-relocation: every counter is found at
 * its own address plus __llvm_profile_counter_bias.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* compiler-rt's interface: profile/InstrProfiling.h */
int __llvm_profile_runtime; /* defined: the runtime's own start and end stay out of the program */
extern intptr_t __llvm_profile_counter_bias;
char *__llvm_profile_begin_counters(void);
char *__llvm_profile_end_counters(void);
void __llvm_profile_set_filename(const char *name);
int __llvm_profile_write_file(void);

/* libc's syscall(2), found by its name: a unit test may have functions of its own in place of
 * libc's. */
static long (*call)(long, ...);

static int open_counters(void)
{
	char exe[512], path[sizeof(exe) + sizeof(COVERAGE_DIR)];
	long size = call(SYS_readlink, "/proc/self/exe", exe, sizeof(exe) - 1);
	if (size <= 0)
		return -1;
	exe[size] = '\0';
	(void)snprintf(path, sizeof(path), "%s%s", COVERAGE_DIR, strrchr(exe, '/'));
	return (int)call(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
}

static void write_profile(const char *path, const void *shared, char *own, size_t size)
{
	memcpy(own, shared, size);
	__llvm_profile_set_filename(path);
	_exit(__llvm_profile_write_file() == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

__attribute__((constructor)) static void count_in_file(void)
{
	char *own = __llvm_profile_begin_counters();
	size_t size = (size_t)(__llvm_profile_end_counters() - own);
	*(void **)&call = dlsym(RTLD_DEFAULT, "syscall"); /* as dlsym(3) writes it */
	if (!call)
		return;
	int fd = open_counters();
	if (fd < 0)
		return;

	intptr_t shared = call(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
	(void)call(SYS_close, fd);
	if (shared == -1)
		return;
	const char *path = getenv("CEJAIL_COVERAGE_WRITE");
	if (path)
		write_profile(path, (const void *)shared, own, size);
	__llvm_profile_counter_bias = shared - (intptr_t)own;
}
