/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 as FIPS 180-4 says it, section numbers beside. */
#include "runtime/base/files/sha256.h"

/* 4.2.2: the first 32 bits of the fractions of the cube roots of the first 64 primes */
static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static inline uint32_t rotate(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static inline uint32_t load_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The schedule's words t-16..t-1 (6.2.2 step 1) in a ring of sixteen. */
#define LOAD(t) (w[t] = load_be32(block + 4 * (size_t)(t)))
#define EXTEND(t)                                                                                  \
	(w[t] += sigma(w[((t) + 1) & 15], 7, 18, 3) + w[((t) + 9) & 15] +                          \
		 sigma(w[((t) + 14) & 15], 17, 19, 10))

static inline uint32_t sigma(uint32_t x, unsigned first, unsigned second, unsigned shift)
{
	return rotate(x, first) ^ rotate(x, second) ^ x >> shift;
}

/*
 * 6.2.2 step 3.  The caller names the eight words anew each time instead of moving them.  The sums
 * are nested rotations: (e>>>14 ^ e)>>>5 ^ e, >>>6 is e>>>6 ^ e>>>11 ^ e>>>25.
 */
#define ROUND(a, b, c, d, e, f, g, h, word)                                                        \
	do {                                                                                       \
		uint32_t t1 = (h) + rotate(rotate(rotate(e, 14) ^ (e), 5) ^ (e), 6) +              \
			      ((g) ^ ((e) & ((f) ^ (g)))) + *k++ + (word);                         \
		(d) += t1;                                                                         \
		(h) = t1 + rotate(rotate(rotate(a, 9) ^ (a), 11) ^ (a), 2) +                       \
		      (((a) & (b)) | ((c) & ((a) | (b))));                                         \
	} while (0)

#define EIGHT_ROUNDS(WORD, t)                                                                      \
	do {                                                                                       \
		ROUND(a, b, c, d, e, f, g, h, WORD(t));                                            \
		ROUND(h, a, b, c, d, e, f, g, WORD((t) + 1));                                      \
		ROUND(g, h, a, b, c, d, e, f, WORD((t) + 2));                                      \
		ROUND(f, g, h, a, b, c, d, e, WORD((t) + 3));                                      \
		ROUND(e, f, g, h, a, b, c, d, WORD((t) + 4));                                      \
		ROUND(d, e, f, g, h, a, b, c, WORD((t) + 5));                                      \
		ROUND(c, d, e, f, g, h, a, b, WORD((t) + 6));                                      \
		ROUND(b, c, d, e, f, g, h, a, WORD((t) + 7));                                      \
	} while (0)

/* FIPS 180-4 has 64 rounds, and each is a macro;
 * NOLINTNEXTLINE(readability-function-cognitive-complexity) */
static void compress(uint32_t state[8], const uint8_t *block)
{
	const uint32_t *k = constants;
	uint32_t w[16];
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
	uint32_t e = state[4], f = state[5], g = state[6], h = state[7];

	EIGHT_ROUNDS(LOAD, 0);
	EIGHT_ROUNDS(LOAD, 8);
	for (int i = 0; i < 3; i++) {
		EIGHT_ROUNDS(EXTEND, 0);
		EIGHT_ROUNDS(EXTEND, 8);
	}
	state[0] += a, state[1] += b, state[2] += c, state[3] += d;
	state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void sha256_init(struct sha256 *h)
{
	/* 5.3.3: of the square roots of the first eight primes */
	*h = (struct sha256){
		.state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
			   0x1f83d9ab, 0x5be0cd19 },
	};
}

void sha256_update(struct sha256 *h, const void *bytes, size_t size)
{
	const uint8_t *p = bytes;
	size_t filled = h->bytes % sizeof(h->block);

	if (size == 0)
		return;
	h->bytes += size;
	if (filled > 0) {
		size_t room = sizeof(h->block) - filled;
		size_t n = size < room ? size : room;

		memcpy(h->block + filled, p, n);
		if (n < room)
			return;
		compress(h->state, h->block);
		p += n;
		size -= n;
	}
	for (; size >= sizeof(h->block); p += sizeof(h->block), size -= sizeof(h->block))
		compress(h->state, p);
	memcpy(h->block, p, size);
}

/* 5.1.1: a one bit, zeroes, and the length in bits at the end of a block */
static void pad(struct sha256 *h)
{
	static const uint8_t padding[64] = { 0x80 };
	uint64_t bits = h->bytes * 8;
	size_t filled = h->bytes % 64;
	uint8_t length[8];

	for (size_t i = 0; i < sizeof(length); i++)
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_update(h, padding, filled < 56 ? 56 - filled : 120 - filled);
	sha256_update(h, length, sizeof(length));
}

void sha256_final(struct sha256 *h, char out_hex[static SHA256_HEX_MAX])
{
	static const char hex[] = "0123456789abcdef";
	char *to = out_hex;

	pad(h);
	for (size_t i = 0; i < 8; i++) {
		for (int shift = 28; shift >= 0; shift -= 4)
			*to++ = hex[h->state[i] >> shift & 0xf];
	}
	*to = '\0';
}

void sha256_hex(const void *bytes, size_t size, char out_hex[static SHA256_HEX_MAX])
{
	struct sha256 h;

	sha256_init(&h);
	sha256_update(&h, bytes, size);
	sha256_final(&h, out_hex);
}
