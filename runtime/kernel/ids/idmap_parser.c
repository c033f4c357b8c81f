/* SPDX-License-Identifier: Apache-2.0 */
/* Id maps as text, and the choice of unused ids in them.  Pure. */
#include "runtime/kernel/ids/idmap_parser.h"

#define PREFERRED_FIRST 0x70000000u
#define PREFERRED_COUNT 0x10000u
#define SYSTEM_END      1000u  /* below: system accounts */
#define NAMED_FIRST     60000u /* systemd's own users, dynamic users, "nobody", (uid16_t)-1 */
#define NAMED_END       65536u

static const char *skip_blanks(const char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

/* One decimal number of at most 32 bits; NULL: there is none. */
static const char *take_number(const char *at, uint32_t *out)
{
	at = skip_blanks(at);
	if (*at < '0' || *at > '9')
		return NULL;

	uint64_t value = 0;
	for (; *at >= '0' && *at <= '9'; at++) {
		value = value * 10 + (uint64_t)(*at - '0');
		if (value > UINT32_MAX)
			return NULL;
	}
	*out = (uint32_t)value;
	return at;
}

static const char *take_line(const char *at, struct idrange *out)
{
	at = take_number(at, &out->inside);
	if (at)
		at = take_number(at, &out->outside);
	if (at)
		at = take_number(at, &out->count);
	if (!at)
		return NULL;

	at = skip_blanks(at);
	if (*at != '\n' && *at != '\0')
		return NULL;
	if (out->count == 0 || out->inside > UINT32_MAX - out->count ||
	    out->outside > UINT32_MAX - out->count)
		return NULL;
	return *at == '\n' ? at + 1 : at;
}

int idmap_parse(const char *name, const char *text, struct idmap_ranges *out, struct cj_error *err)
{
	size_t count = 0;
	for (const char *at = text; *at != '\0';) {
		if (count == IDMAP_LINES_MAX)
			return cj_reject(err, "'%s' has more than %d lines", name, IDMAP_LINES_MAX);
		at = take_line(at, &out->items[count]);
		if (!at)
			return cj_reject(err, "'%s' has an unexpected line %zu", name, count + 1);
		count++;
	}
	out->count = count;
	return 0;
}

bool idmap_outside(const struct idmap_ranges *map, uint32_t id, uint32_t *out)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct idrange *r = &map->items[i];
		if (id >= r->inside && id - r->inside < r->count) {
			*out = r->outside + (id - r->inside);
			return true;
		}
	}
	return false;
}

/* Ends are exclusive and 64 bits wide: inside + count may be 2^32 - 1 at most. */
struct stretch {
	uint64_t first, end;
};

static struct stretch overlap(struct stretch a, struct stretch b)
{
	struct stretch both = {
		.first = a.first > b.first ? a.first : b.first,
		.end = a.end < b.end ? a.end : b.end,
	};
	if (both.end < both.first)
		both.end = both.first;
	return both;
}

static uint64_t length(struct stretch s)
{
	return s.end - s.first;
}

static struct stretch of_range(const struct idrange *r)
{
	return (struct stretch){ r->inside, (uint64_t)r->inside + r->count };
}

/* Keeps the longest piece seen that lies in free_ids. */
static void keep_longest(struct stretch candidate, struct stretch free_ids, struct stretch *best)
{
	struct stretch piece = overlap(candidate, free_ids);
	if (length(piece) > length(*best))
		*best = piece;
}

static bool is_within(struct stretch inner, struct stretch outer)
{
	return inner.first >= outer.first && inner.end <= outer.end;
}

bool idmap_pick(const struct idmap_ranges *uids, const struct idmap_ranges *gids,
		struct idmap_block *out)
{
	const struct stretch preferred = { PREFERRED_FIRST, PREFERRED_FIRST + PREFERRED_COUNT };
	const struct stretch low = { SYSTEM_END, NAMED_FIRST }, high = { NAMED_END, UINT32_MAX };
	struct stretch best = { 0, 0 };

	for (size_t u = 0; u < uids->count; u++) {
		for (size_t g = 0; g < gids->count; g++) {
			struct stretch both =
			    overlap(of_range(&uids->items[u]), of_range(&gids->items[g]));
			if (is_within(preferred, both)) {
				*out = (struct idmap_block){ PREFERRED_FIRST, PREFERRED_COUNT };
				return true;
			}
			keep_longest(both, low, &best);
			keep_longest(both, high, &best);
		}
	}
	if (length(best) == 0)
		return false;

	uint64_t count = (length(best) + 1) / 2;
	if (count > PREFERRED_COUNT)
		count = PREFERRED_COUNT;
	*out = (struct idmap_block){ (uint32_t)(best.end - count), (uint32_t)count };
	return true;
}
