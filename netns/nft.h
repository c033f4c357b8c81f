/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nft - writes one nftables batch (libmnl), an object or a rule at a time.  Pure: bytes out.
 *
 * Errors are kept in the batch (ENOMEM, ENOBUFS): build everything, then ask once.
 * Follows: linux/netfilter/nf_tables.h.
 */
#pragma once

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nft_batch; /* owner of this header: complete me */
