/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nft_write - messages and attributes of a batch; for nft*.c only.  Pure.
 *
 * If an attribute does not fit into the batch, the batch keeps ENOBUFS as its error.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "netns/nftables/nft_batch.h"

/* Opens a message NFT_MSG_* with its table's name in attribute 1, as every object has it. */
void nft_message_begin(struct nft_batch *b, uint8_t message, uint16_t flags);
void nft_message_end(struct nft_batch *b);

/* The message that begins or ends the transaction: NFNL_MSG_BATCH_*. */
void nft_frame(struct nft_batch *b, uint8_t message);

void nft_put(struct nft_batch *b, uint16_t type, const void *bytes, size_t size);
void nft_put_text(struct nft_batch *b, uint16_t type, const char *text);
void nft_put_u16(struct nft_batch *b, uint16_t type, uint16_t value); /* big endian, as all of it */
void nft_put_u32(struct nft_batch *b, uint16_t type, uint32_t value);
void nft_put_u64(struct nft_batch *b, uint16_t type, uint64_t value);
void nft_put_value(struct nft_batch *b, uint16_t type, const void *bytes, size_t size);

/* NULL when it does not fit; nft_nest_end() accepts that. */
struct nlattr *nft_nest_begin(struct nft_batch *b, uint16_t type);
void nft_nest_end(struct nft_batch *b, struct nlattr *nest);
