/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the headers of an ELF file as the kernel does before it executes it.
 *
 * The file is untrusted: any offset and size may be in it.  A file that the kernel would refuse has
 * no interpreter here.
 */
#include "runtime/jail/init/init.h"

#include <elf.h>

#define HEADERS_MAX 65536 /* bytes of program headers that the kernel takes */

struct headers {
	uint64_t offset;
	size_t size; /* of one */
	size_t count;
};

struct segment {
	uint32_t type;
	uint64_t offset, size;
};

/* Reads all of it; or false with *out_errno, 0 if the file ends before. */
static bool read_at(const struct elf_file *f, void *to, size_t size, uint64_t offset,
		    int *out_errno)
{
	ssize_t got = 0;
	if (offset <= f->size && size <= f->size - offset) {
		memcpy(to, f->begin + offset, size);
		got = (ssize_t)size;
	} else if (offset <= INT64_MAX) {
		got = TEMP_FAILURE_RETRY(pread(f->fd, to, size, (off_t)offset));
	}
	*out_errno = got < 0 && errno != EINVAL && errno != ESPIPE ? errno : 0;
	return got == (ssize_t)size;
}

static bool read_headers(const struct elf_file *f, enum elf_layout layout, struct headers *out,
			 int *out_errno)
{
	union {
		Elf64_Ehdr wide;
		Elf32_Ehdr narrow;
	} head = { 0 };
	const size_t size = layout == ELF_LAYOUT_64 ? sizeof(head.wide) : sizeof(head.narrow);
	if (!read_at(f, &head, size, 0, out_errno) ||
	    memcmp(head.wide.e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	if (layout == ELF_LAYOUT_64)
		*out = (struct headers){ head.wide.e_phoff, sizeof(Elf64_Phdr), head.wide.e_phnum };
	else
		*out = (struct headers){ head.narrow.e_phoff, sizeof(Elf32_Phdr),
					 head.narrow.e_phnum };
	return out->count * out->size <= HEADERS_MAX;
}

static bool read_segment(const struct elf_file *f, enum elf_layout layout, uint64_t offset,
			 struct segment *out, int *out_errno)
{
	if (layout == ELF_LAYOUT_64) {
		Elf64_Phdr wide;
		if (!read_at(f, &wide, sizeof(wide), offset, out_errno))
			return false;
		*out = (struct segment){ wide.p_type, wide.p_offset, wide.p_filesz };
		return true;
	}
	Elf32_Phdr narrow;
	if (!read_at(f, &narrow, sizeof(narrow), offset, out_errno))
		return false;
	*out = (struct segment){ narrow.p_type, narrow.p_offset, narrow.p_filesz };
	return true;
}

int elf_interpreter(const struct elf_file *f, enum elf_layout layout, char out_name[PATH_MAX])
{
	struct headers headers;
	int code = 0;
	out_name[0] = '\0';
	if (!read_headers(f, layout, &headers, &code))
		return code;
	for (size_t i = 0; i < headers.count; i++) {
		struct segment segment;
		if (!read_segment(f, layout, headers.offset + i * headers.size, &segment, &code))
			return code;
		if (segment.type != PT_INTERP)
			continue;
		/* The kernel takes the first one, and it must end with a NUL. */
		if (segment.size < 2 || segment.size > PATH_MAX ||
		    !read_at(f, out_name, segment.size, segment.offset, &code) ||
		    out_name[segment.size - 1] != '\0')
			out_name[0] = '\0';
		return code;
	}
	return 0;
}
