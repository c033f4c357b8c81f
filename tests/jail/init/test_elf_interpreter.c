/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel would map with an ELF file, read from files of all kinds. */
#include "runtime/jail/init/init.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "runtime/base/scope.h"

#define NAME "/proc/self/exe"

struct wide {
	Elf64_Ehdr head;
	Elf64_Phdr segments[2];
	char name[32];
};

struct narrow {
	Elf32_Ehdr head;
	Elf32_Phdr segments[2];
	char name[32];
};

static struct wide wide(void)
{
	struct wide f = {
		.head = { .e_phoff = offsetof(struct wide, segments), .e_phnum = 2 },
		.segments = { { .p_type = PT_LOAD },
			      { .p_type = PT_INTERP,
				.p_offset = offsetof(struct wide, name),
				.p_filesz = sizeof(NAME) } },
		.name = NAME,
	};
	memcpy(f.head.e_ident, ELFMAG, SELFMAG);
	return f;
}

/* The interpreter of a file of these bytes; an errno as text would fail every comparison. */
static const char *interpreter_of(const void *bytes, size_t size, enum elf_layout layout)
{
	static char name[PATH_MAX];
	static char again[PATH_MAX];
	auto_fd int fd = memfd_create("elf", MFD_CLOEXEC);
	assert_int_equal(write(fd, bytes, size), size);
	struct elf_file f = { .fd = fd };
	assert_int_equal(elf_interpreter(&f, layout, name), 0);
	/* The same whatever has been read of it already. */
	for (; f.size < size && f.size < sizeof(f.begin); f.size++) {
		memcpy(f.begin, bytes, f.size);
		assert_int_equal(elf_interpreter(&f, layout, again), 0);
		assert_string_equal(again, name);
	}
	return name;
}

static const char *of_wide(const struct wide *f)
{
	return interpreter_of(f, sizeof(*f), ELF_LAYOUT_64);
}

static void the_interpreter_is_found_in_both_layouts(void **state)
{
	(void)state;
	struct wide f = wide();
	assert_string_equal(of_wide(&f), NAME);

	struct narrow n = {
		.head = { .e_phoff = offsetof(struct narrow, segments), .e_phnum = 2 },
		.segments = { { .p_type = PT_LOAD },
			      { .p_type = PT_INTERP,
				.p_offset = offsetof(struct narrow, name),
				.p_filesz = sizeof(NAME) } },
		.name = NAME,
	};
	memcpy(n.head.e_ident, ELFMAG, SELFMAG);
	assert_string_equal(interpreter_of(&n, sizeof(n), ELF_LAYOUT_32), NAME);
}

/* The kernel reads the layout that belongs to the machine, whatever class the file claims. */
static void the_class_that_the_file_claims_changes_nothing(void **state)
{
	(void)state;
	struct wide f = wide();
	f.head.e_ident[EI_CLASS] = ELFCLASS32;
	assert_string_equal(of_wide(&f), NAME);
}

static void files_that_the_kernel_refuses_have_none(void **state)
{
	(void)state;
	assert_string_equal(interpreter_of("", 0, ELF_LAYOUT_64), "");
	assert_string_equal(interpreter_of("#!/bin/sh\n", 10, ELF_LAYOUT_64), "");

	struct wide f = wide();
	assert_string_equal(interpreter_of(&f, sizeof(f.head) + 60, ELF_LAYOUT_64), "");
	f.segments[1].p_filesz = sizeof(NAME) - 1; /* no NUL at its end */
	assert_string_equal(of_wide(&f), "");
	f.segments[1].p_filesz = PATH_MAX + 1;
	assert_string_equal(of_wide(&f), "");
	f = wide();
	f.segments[1].p_offset = UINT64_MAX;
	assert_string_equal(of_wide(&f), "");
	f = wide();
	f.head.e_phoff = UINT64_MAX - 8;
	assert_string_equal(of_wide(&f), "");
	f = wide();
	f.head.e_phnum = UINT16_MAX;
	assert_string_equal(of_wide(&f), "");
}

static void an_unreadable_file_is_an_errno(void **state)
{
	(void)state;
	char name[PATH_MAX];
	auto_fd int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(elf_interpreter(&(struct elf_file){ .fd = fd }, ELF_LAYOUT_64, name),
			 EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_interpreter_is_found_in_both_layouts),
		cmocka_unit_test(the_class_that_the_file_claims_changes_nothing),
		cmocka_unit_test(files_that_the_kernel_refuses_have_none),
		cmocka_unit_test(an_unreadable_file_is_an_errno),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
