/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the lines of memory.stat and io.stat.  Pure. */
#include "runtime/kernel/cgroup/cgroup_stat.h"

#include <string.h>

#define KEY_MAX 64

/* Digits up to one of `ends`: where they end, or NULL. */
static const char *take_digits(const char *at, const char *ends, uint64_t *out)
{
	uint64_t value = 0;
	const char *first = at;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
			return NULL;
	if (at == first || (*at != '\0' && !strchr(ends, *at)))
		return NULL;
	*out = value;
	return at;
}

static const char *next_line(const char *at)
{
	at += strcspn(at, "\n");
	return at + (*at == '\n');
}

void cgroup_stat_write_raw(struct json_writer *w, const char *text)
{
	for (; *text; text = next_line(text)) {
		char key[KEY_MAX];
		uint64_t value;
		size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
		if (size == 0 || size >= sizeof(key) || text[size] != ' ' ||
		    !take_digits(text + size + 1, "\n", &value))
			continue;
		memcpy(key, text, size);
		key[size] = '\0';
		json_member_u64(w, key, value);
	}
}

static const struct io_key {
	const char *key, *operation;
	enum cgroup_stat_kind kind;
} io_keys[] = {
	{ "rbytes=", "Read", CGROUP_STAT_BYTES },    { "wbytes=", "Write", CGROUP_STAT_BYTES },
	{ "dbytes=", "Discard", CGROUP_STAT_BYTES }, { "rios=", "Read", CGROUP_STAT_REQUESTS },
	{ "wios=", "Write", CGROUP_STAT_REQUESTS },  { "dios=", "Discard", CGROUP_STAT_REQUESTS },
};

static void write_item(struct json_writer *w, uint64_t major, uint64_t minor, const char *operation,
		       uint64_t value)
{
	json_open_object(w);
	json_member_u64(w, "major", major);
	json_member_u64(w, "minor", minor);
	json_member_text(w, "op", operation);
	json_member_u64(w, "value", value);
	json_close_object(w);
}

/* The words behind "MAJOR:MINOR" of one line. */
static void write_words(struct json_writer *w, const char *at, uint64_t major, uint64_t minor,
			enum cgroup_stat_kind kind)
{
	while (*at == ' ') {
		at++;
		for (size_t i = 0; i < sizeof(io_keys) / sizeof(io_keys[0]); i++) {
			const struct io_key *k = &io_keys[i];
			size_t size = strlen(k->key);
			uint64_t value;
			if (k->kind == kind && strncmp(at, k->key, size) == 0 &&
			    take_digits(at + size, " \n", &value))
				write_item(w, major, minor, k->operation, value);
		}
		at += strcspn(at, " \n");
	}
}

void cgroup_stat_write_io(struct json_writer *w, const char *text, enum cgroup_stat_kind kind)
{
	for (; *text; text = next_line(text)) {
		uint64_t major = 0, minor = 0;
		const char *at = take_digits(text, ":", &major);
		at = at && *at == ':' ? take_digits(at + 1, " \n", &minor) : NULL;
		if (at)
			write_words(w, at, major, minor, kind);
	}
}
