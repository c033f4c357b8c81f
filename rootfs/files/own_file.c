/* SPDX-License-Identifier: Apache-2.0 */
#include "rootfs/files/own_file.h"

/* The Makefile makes an object of the files. */
extern const char py_start[] __asm__("_binary_profiles_tools_tools_py_start");
extern const char py_end[] __asm__("_binary_profiles_tools_tools_py_end");
extern const char mjs_start[] __asm__("_binary_profiles_tools_tools_mjs_start");
extern const char mjs_end[] __asm__("_binary_profiles_tools_tools_mjs_end");

struct blob own_file_bytes(enum own_file which)
{
	switch (which) {
	case OWN_FILE_TOOLS_PY:
		return (struct blob){ py_start, (size_t)(py_end - py_start) };
	case OWN_FILE_TOOLS_MJS:
		return (struct blob){ mjs_start, (size_t)(mjs_end - mjs_start) };
	default:
		return (struct blob){ 0 };
	}
}
