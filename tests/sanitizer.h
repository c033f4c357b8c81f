/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sanitizer - whether AddressSanitizer is in this build.
 *
 * Its shadow is larger than any memory, and limits of memory count it: what needs such a limit has
 * none, or is left out.  tests/check runs every unit test without it, too.
 */
#pragma once

#if defined(__SANITIZE_ADDRESS__) /* gcc's */
#define HAS_SANITIZER true
#elif defined(__has_feature)
#define HAS_SANITIZER __has_feature(address_sanitizer)
#else
#define HAS_SANITIZER false
#endif
