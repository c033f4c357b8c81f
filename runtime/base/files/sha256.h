/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256 - the hash of FIPS 180-4, to name code, profiles and artefacts.
 * Proven against the NIST vectors in tests/base/files/test_sha256.c.
 */
#pragma once

#define SHA256_HEX_MAX 65 /* 64 digits and a NUL */

struct sha256 {
	uint32_t state[8];
	uint64_t bytes;
	uint8_t block[64];
};

void sha256_init(struct sha256 *h);
void sha256_update(struct sha256 *h, const void *bytes, size_t size);
void sha256_final(struct sha256 *h, char out_hex[static SHA256_HEX_MAX]);
void sha256_hex(const void *bytes, size_t size, char out_hex[static SHA256_HEX_MAX]);
