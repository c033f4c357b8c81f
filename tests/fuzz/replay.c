/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay - main() for a fuzzer without libFuzzer: runs it once on each file named.
 * So the corpus is a test with any compiler.  A finding ends it by signal.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/arena.h"
#include "runtime/base/fd.h"
#include "runtime/base/scope.h"

#define INPUT_MAX (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int replay(const char *path)
{
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	char *text;
	size_t size;

	auto_fd int fd = fd_open_regular(path, &err);
	if (fd < 0 || fd_read_all(fd, INPUT_MAX, &a, &text, &size, path, &err) < 0) {
		(void)fprintf(stderr, "replay: %s\n", err.msg);
		return -1;
	}
	/* exactly as large as it is: the sanitizer sees who looks past the end */
	auto_free uint8_t *bytes = malloc(size ? size : 1);
	if (!bytes)
		return -1;
	memcpy(bytes, text, size);
	return LLVMFuzzerTestOneInput(bytes, size);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (replay(argv[i]) != 0)
			return 1;
	}
	(void)printf("replay: %d inputs\n", argc - 1);
	return argc > 1 ? 0 : 1; /* nothing replayed is nothing tested */
}
