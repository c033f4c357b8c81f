/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_interpreter - the program that the kernel maps together with an ELF file (PT_INTERP).
 */
#pragma once

#include <limits.h>

/* The kernel chooses the layout by the machine, not by the file's class: fs/binfmt_elf.c. */
enum elf_layout { ELF_LAYOUT_64, ELF_LAYOUT_32, ELF_LAYOUT_COUNT };

/*
 * The interpreter that the file names when it is read in this layout; "" when there is none.
 * Allocates nothing.  Returns 0 or the errno of a read.
 */
int elf_interpreter(int fd, enum elf_layout layout, char out_name[PATH_MAX]);
