/* SPDX-License-Identifier: Apache-2.0 */
/* nft_batch - the buffer that nft.h and nft_write.h write to. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Largest build is a list of ENDPOINTS_MAX plus all closed ranges: about 80 KiB.  Pages that are
 * not written cost nothing. */
#define NFT_BATCH_MAX (192 * 1024)
#define NFT_NAME_MAX  64

struct nl_msg;
struct nlattr;

struct nft_batch {
	uint8_t *bytes; /* whole netlink messages, ready for one sendmsg(2) */
	size_t size;
	uint32_t first_seq, last_seq; /* of its messages */
	int error;                    /* the first errno met, or 0 */
	const char *table;            /* borrowed */
	struct nl_msg *message;       /* the one that is being written, in memory of its own */
	struct nlattr *list;          /* its expressions or elements, or NULL */
};
