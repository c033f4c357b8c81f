/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nft - writes one nftables batch (libmnl), an object or a rule at a time.
 *
 * Everything belongs to one table of the inet family.  Errors are kept in the batch (ENOBUFS when
 * it is full, ENOMEM): build everything, then look at `error` once, as firewall_load() does.
 * Follows: linux/netfilter/nf_tables.h, linux/netfilter/nfnetlink.h.
 */
#pragma once

#include <netinet/in.h> /* before linux/: they agree in this order only */

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

/* Largest build is a list of ENDPOINTS_MAX plus all closed ranges: about 80 KiB.  Pages that are
 * not written cost nothing. */
#define NFT_BATCH_MAX (192 * 1024)
#define NFT_NAME_MAX  64

struct mnl_nlmsg_batch;
struct nlattr;
struct nlmsghdr;

/* All zero is the empty batch. */
struct nft_batch {
	uint8_t *bytes;               /* whole netlink messages, ready for one sendmsg(2) */
	size_t size;                  /* of these */
	uint32_t first_seq, last_seq; /* of its messages */
	int error;                    /* the first errno met, or 0 */
	const char *table;            /* borrowed */
	struct mnl_nlmsg_batch *mnl;  /* the same bytes */
	struct nlmsghdr *last;        /* its last whole message */
	struct nlmsghdr *message;     /* the one behind it, which is being written */
	struct nlattr *list;          /* its expressions or elements, or NULL */
};

void nft_batch_fini(struct nft_batch *b);
#define auto_nft_batch __attribute__((cleanup(nft_batch_fini)))

/* Empties the batch, and opens the transaction for objects of `table`. */
void nft_batch_begin(struct nft_batch *b, const char *table);

/* Closes the transaction; the kernel acknowledges its last object, and every failure. */
void nft_batch_end(struct nft_batch *b);

/* "rule 3 of chain 'filter'": the object of the message with this sequence number, for errors. */
void nft_batch_describe(const struct nft_batch *b, uint32_t seq, char *out, size_t out_size);

/* --- objects --- */

void nft_add_table(struct nft_batch *b, uint32_t flags);
void nft_ensure_table(struct nft_batch *b); /* unless it exists */
void nft_delete_table(struct nft_batch *b); /* with all that is in it */
void nft_add_chain(struct nft_batch *b, const char *name);
void nft_empty_chain(struct nft_batch *b, const char *name); /* of its rules */

struct nft_hook {
	const char *name, *type; /* "filter", "nat" */
	enum nf_inet_hooks hook;
	int priority;
	int policy; /* NF_ACCEPT, NF_DROP */
};
void nft_add_base_chain(struct nft_batch *b, const struct nft_hook *hook);

/* --- sets --- */

struct nft_set {
	const char *name;
	uint32_t flags;      /* NFT_SET_* */
	uint32_t key_type;   /* nft(8)'s number of the data type: only `nft list` uses it */
	uint32_t key_bytes;  /* fields of a concatenation are padded to 4 each */
	uint8_t fields[2];   /* bytes of each with NFT_SET_CONCAT */
	uint32_t size;       /* at most so many elements; 0: no limit */
	bool has_data;       /* a map to 4 bytes */
	bool has_counters;   /* a counter for each element */
	uint64_t timeout_ms; /* how long an element stays after it was added, or nft_refresh() */
};
void nft_add_set(struct nft_batch *b, const struct nft_set *set);
void nft_delete_set(struct nft_batch *b, const char *name); /* which no rule names any more */

/* Elements of a set stand between begin and end. */
struct nft_element {
	const void *key, *key_end; /* key_end: of an interval in a concatenation, else NULL */
	uint32_t key_bytes;
	const uint32_t *data; /* of a map, else NULL */
	uint32_t flags;       /* NFT_SET_ELEM_* */
};
void nft_elements_begin(struct nft_batch *b, const char *set);
/* Those that stand between are deleted.  One that is not there fails the whole batch. */
void nft_elements_delete(struct nft_batch *b, const char *set);
void nft_element(struct nft_batch *b, const struct nft_element *element);
void nft_elements_end(struct nft_batch *b);

/* --- rules: expressions stand between begin and end, and work from left to right; one
 * that does not match ends its rule.  Registers are NFT_REG32_*. --- */

void nft_rule_begin(struct nft_batch *b, const char *chain);
void nft_rule_end(struct nft_batch *b);
/* nft_verdict(), then the end. */
void nft_rule_end_with(struct nft_batch *b, int code, const char *chain);
/* A whole rule, for every packet. */
void nft_add_verdict(struct nft_batch *b, const char *chain, int code, const char *to);

void nft_load_meta(struct nft_batch *b, enum nft_meta_keys key, uint32_t reg);
void nft_load_payload(struct nft_batch *b, enum nft_payload_bases base, uint32_t offset,
		      uint32_t bytes, uint32_t reg);
void nft_load_value(struct nft_batch *b, const void *value, uint32_t bytes, uint32_t reg);

/* `fib daddr type` (NFTA_FIB_F_DADDR) or `fib saddr type` (_SADDR), as RTN_* of rtnetlink(7). */
void nft_load_address_type(struct nft_batch *b, enum nft_fib_flags which);

/* Matches a packet that came in on the link that an answer to its source would leave by: `fib saddr
 * . iif oif exists`. */
void nft_match_reverse_path(struct nft_batch *b);

/* These use NFT_REG32_00. */
void nft_compare(struct nft_batch *b, enum nft_cmp_ops op, const void *value, uint32_t bytes);
void nft_match_meta(struct nft_batch *b, enum nft_meta_keys key, enum nft_cmp_ops op,
		    const void *value, uint32_t bytes);
void nft_match_payload(struct nft_batch *b, enum nft_payload_bases base, uint32_t offset,
		       enum nft_cmp_ops op, const void *value, uint32_t bytes);
/* Of one byte, these bits have this value. */
void nft_match_payload_bits(struct nft_batch *b, enum nft_payload_bases base, uint32_t offset,
			    uint8_t bits, uint8_t value);
void nft_match_ct_state(struct nft_batch *b, uint32_t states); /* any of them */
/* Matches a packet of a known connection that goes to the side which opened it. */
void nft_match_ct_reply(struct nft_batch *b);
/* Matches a packet of a connection whose destination was replaced. */
void nft_match_ct_redirected(struct nft_batch *b);

void nft_match_range(struct nft_batch *b, const void *first, const void *last, uint32_t bytes);

/* The key is in NFT_REG32_00 and on. */
void nft_match_set(struct nft_batch *b, const char *set);
/* After nft_match_set(): the element stays for the set's time from now on. */
void nft_refresh(struct nft_batch *b, const char *set);
void nft_lookup_map(struct nft_batch *b, const char *map, uint32_t to_reg);

void nft_set_mark(struct nft_batch *b, uint32_t from_reg);

/* Matches packets above the rate, or with `is_above` false, those below it. */
void nft_match_rate(struct nft_batch *b, uint64_t packets_second, uint32_t burst, bool is_above);
/* Matches a new connection when more than `count` are tracked already. */
void nft_match_connections_above(struct nft_batch *b, uint32_t count);

struct nft_log {
	uint16_t group;
	uint32_t packet_bytes;
	const char *prefix;
};
void nft_log(struct nft_batch *b, const struct nft_log *log);

void nft_reject(struct nft_batch *b, enum nft_reject_types type, uint8_t code);
/* To this port of this host, on the link that the packet came in by; in network order.  It ends the
 * rule.  Uses NFT_REG32_00. */
void nft_redirect(struct nft_batch *b, uint16_t port);
void nft_masquerade(struct nft_batch *b);
void nft_notrack(struct nft_batch *b); /* before priority -200: the packet is not tracked */
void nft_verdict(struct nft_batch *b, int code,
		 const char *chain); /* NF_*, NFT_*; NULL: no chain */
