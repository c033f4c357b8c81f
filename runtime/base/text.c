/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/text.h"

#include <inttypes.h>

#define QUOTED_MAX 64 /* of the user's text in a message: the remedy must still fit behind it */

/* The beginning of a text, in whole characters, for a message. */
struct quoted {
	char text[QUOTED_MAX + sizeof("...")];
};

static struct quoted quote(const char *text)
{
	struct quoted q;
	size_t size = strnlen(text, QUOTED_MAX + 1);

	if (size <= QUOTED_MAX) {
		memcpy(q.text, text, size + 1);
		return q;
	}
	size_t whole = utf8_prefix(text, QUOTED_MAX);
	if (whole + 4 <= QUOTED_MAX)
		whole = QUOTED_MAX; /* more is missing than a cut character: it is not UTF-8 */
	memcpy(q.text, text, whole);
	memcpy(q.text + whole, "...", sizeof("..."));
	return q;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* What keeps a text from being a number, as most people get it wrong; "" when it is less plain. */
static const char *oddity(const char *text)
{
	if (text[0] == '\0')
		return " (it is empty)";
	if (strpbrk(text, " \t\r\n"))
		return " (it has a blank in it)";
	if (text[0] == '-' || text[0] == '+')
		return " (it has a sign)";
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return " (it is hexadecimal)";
	if (strchr(text, ','))
		return " (it has a comma in it)";
	return "";
}

/* Reads digits up to the first other byte.  False: they are too many for *out, which saturates. */
static bool take_digits(const char **text, uint64_t *out)
{
	bool is_large = false;
	*out = 0;
	for (; is_digit(**text); ++*text)
		is_large = is_large || __builtin_mul_overflow(*out, 10, out) ||
			   __builtin_add_overflow(*out, (uint64_t)(**text - '0'), out);
	if (is_large)
		*out = UINT64_MAX;
	return !is_large;
}

int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out, struct cj_error *err)
{
	uint64_t value;
	const char *end = text;
	bool fits = take_digits(&end, &value);

	if (end == text || *end != '\0')
		return cj_reject(err, "'%s' is not a whole number%s; write decimal digits only",
				 quote(text).text, oddity(text));
	if (!fits || value > max)
		return cj_reject(err, "'%s' is too large; at most %" PRIu64 " is possible",
				 quote(text).text, max);
	if (value < min)
		return cj_reject(err, "'%s' is too small; at least %" PRIu64 " is needed",
				 quote(text).text, min);
	*out = value;
	return 0;
}

/* The factor of a size's unit, 0 when it is none: "", "k", "KB", "KiB", "B", ... */
static uint64_t size_factor(const char *unit)
{
	static const char letters[] = "kmgt";
	uint64_t factor = 1;

	if (*unit != '\0' && strchr("kKmMgGtT", *unit)) {
		const char *letter = strchr(letters, *unit | 0x20);

		factor = (uint64_t)1 << (10 * (letter - letters + 1));
		unit++;
		if (*unit == 'i' && (unit[1] == 'B' || unit[1] == 'b'))
			unit++;
	}
	if (*unit == 'B' || *unit == 'b')
		unit++;
	return *unit == '\0' ? factor : 0;
}

int parse_size(const char *text, uint64_t *out_bytes, struct cj_error *err)
{
	uint64_t value;
	const char *unit = text;
	bool fits = take_digits(&unit, &value);
	uint64_t factor = size_factor(unit);

	if (unit == text || factor == 0)
		return cj_reject(err,
				 "'%s' is not a size%s; write a whole number with K, M, G or T "
				 "behind it, such as 64M",
				 quote(text).text,
				 *unit == '.' ? " (it has a fraction)" : oddity(text));
	/* off_t and rlim_t, where sizes end up, are signed */
	if (!fits || __builtin_mul_overflow(value, factor, &value) || value > INT64_MAX)
		return cj_reject(err, "'%s' is too large a size; at most 8388607T is possible",
				 quote(text).text);
	if (value == 0)
		return cj_reject(err, "'%s' is too small a size; at least 1 byte is needed",
				 quote(text).text);
	*out_bytes = value;
	return 0;
}

int parse_size_within(const char *text, uint64_t min, uint64_t max, uint64_t *out_bytes,
		      struct cj_error *err)
{
	uint64_t bytes;
	int rc = parse_size(text, &bytes, err);
	if (rc < 0)
		return rc;

	char bound[32];
	text_format_size(bytes < min ? min : max, bound, sizeof(bound));
	if (bytes < min)
		return cj_reject(err, "'%s' is too little, %s is the least", text, bound);
	if (bytes > max)
		return cj_reject(err, "'%s' is too much, %s is the most", text, bound);
	*out_bytes = bytes;
	return 0;
}

#define MILLION         1000000u
#define WHOLE_MAX       (UINT64_C(1) << 40)
#define FRACTION_DIGITS 6

/*
 * Reads "12", "1.5" or ".5" in millionths, at most WHOLE_MAX.  Returns what stands behind it, or
 * NULL when there is no number.  Digits past the sixth are left standing, which refuses them.
 */
static const char *skip_decimal(const char *text, uint64_t *out_millionths)
{
	uint64_t whole, fraction = 0, weight = MILLION;
	const char *end = text;

	(void)take_digits(&end, &whole); /* what is too large is so after the cut below, too */
	if (*end == '.') {
		const char *digits = ++end;

		for (; is_digit(*end) && end - digits < FRACTION_DIGITS; end++) {
			weight /= 10;
			fraction += (uint64_t)(*end - '0') * weight;
		}
		if (end == digits)
			return NULL;
	} else if (end == text) {
		return NULL;
	}
	if (whole > WHOLE_MAX)
		whole = WHOLE_MAX;
	*out_millionths = whole * MILLION + fraction;
	return end;
}

static const struct duration_unit {
	const char *name;
	uint64_t ms;
} duration_units[] = {
	{ "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "", 1000 },
};

#define YEAR_MS (UINT64_C(365) * 24 * 3600000)

static uint64_t duration_factor(const char *unit)
{
	for (size_t i = 0; i < COUNT_OF(duration_units); i++) {
		if (strcmp(unit, duration_units[i].name) == 0)
			return duration_units[i].ms;
	}
	return 0;
}

int parse_duration(const char *text, uint64_t *out_ms, struct cj_error *err)
{
	uint64_t millionths = 0, ms;
	const char *unit = skip_decimal(text, &millionths);
	uint64_t factor = unit ? duration_factor(unit) : 0;

	if (factor == 0)
		return cj_reject(err,
				 "'%s' is not a duration%s; write a number with ms, s, m or h "
				 "behind it, such as 10s",
				 quote(text).text, oddity(text));
	if (__builtin_mul_overflow(millionths, factor, &ms) || ms / MILLION > YEAR_MS)
		return cj_reject(err, "'%s' is too long; at most a year (8760h) is possible",
				 quote(text).text);
	if (ms < MILLION)
		return cj_reject(err, "'%s' is too short; at least 1ms is needed",
				 quote(text).text);
	if (ms % MILLION != 0)
		return cj_reject(err, "'%s' is finer than a millisecond; write it in whole ms",
				 quote(text).text);
	*out_ms = ms / MILLION;
	return 0;
}

#define CPUS_MAX 1024

int parse_cpus(const char *text, uint64_t *out_millicpus, struct cj_error *err)
{
	uint64_t millionths = 0;
	const char *end = skip_decimal(text, &millionths);

	if (!end || *end != '\0')
		return cj_reject(err, "'%s' is not a number of CPUs%s; write one such as 0.5 or 2",
				 quote(text).text, oddity(text));
	if (millionths > (uint64_t)CPUS_MAX * MILLION)
		return cj_reject(err, "'%s' is too many CPUs; at most %d is possible",
				 quote(text).text, CPUS_MAX);
	if (millionths < MILLION / 100)
		return cj_reject(err, "'%s' is too little CPU; at least 0.01 is needed",
				 quote(text).text);
	if (millionths % 1000 != 0)
		return cj_reject(err,
				 "'%s' is finer than a thousandth of a CPU; write fewer digits",
				 quote(text).text);
	*out_millicpus = millionths / 1000;
	return 0;
}

int parse_bool(const char *text, bool *out, struct cj_error *err)
{
	static const struct {
		const char *text;
		bool value;
	} values[] = {
		{ "true", true },   { "yes", true }, { "1", true },
		{ "false", false }, { "no", false }, { "0", false },
	};

	for (size_t i = 0; i < COUNT_OF(values); i++) {
		if (strcmp(text, values[i].text) == 0) {
			*out = values[i].value;
			return 0;
		}
	}
	return cj_reject(err, "'%s' is neither yes nor no; write true or false", quote(text).text);
}

const char *text_take_u64(const char *at, uint64_t *out)
{
	const char *end = at;
	uint64_t value;
	if (!take_digits(&end, &value) || end == at)
		return NULL;
	*out = value;
	return end;
}

int text_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool text_has_control(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
			return true;
	return false;
}

const char *text_after(const char *text, const char *prefix)
{
	size_t size = strlen(prefix);
	return strncmp(text, prefix, size) == 0 ? text + size : NULL;
}

const char *text_path_below(const char *path, const char *ancestor)
{
	const char *rest = text_after(path, ancestor);
	return rest && (*rest == '\0' || *rest == '/') ? rest : NULL;
}

bool text_begins_with(const char *text, const char *prefix)
{
	return text_after(text, prefix) != NULL;
}

bool text_ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), end_size = strlen(end);
	return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

bool text_is_one_of(const char *text, const char *const *names)
{
	while (*names && strcmp(text, *names) != 0)
		names++;
	return *names != NULL;
}

bool text_has_line(const char *text, const char *line)
{
	size_t size = strlen(line);
	for (const char *at = text, *end; *at; at = *end ? end + 1 : end) {
		end = strchrnul(at, '\n');
		if ((size_t)(end - at) == size && memcmp(at, line, size) == 0)
			return true;
	}
	return false;
}

bool is_name(const char *text)
{
	size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-");

	return size >= 1 && size <= 32 && text[size] == '\0' && text[0] != '_' && text[0] != '-';
}

void text_append(char *out, size_t room, const char *fmt, ...)
{
	const size_t used = strlen(out);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(out + used, room - used, fmt, ap);
	va_end(ap);
}

const char *text_format_size(uint64_t bytes, char *out, size_t out_size)
{
	static const char units[] = "KMGT";

	for (int i = 3; i >= 0; i--) {
		unsigned shift = 10u * (unsigned)(i + 1);
		uint64_t whole = bytes >> shift;
		uint64_t rest = bytes & ((UINT64_C(1) << shift) - 1);

		if (whole == 0)
			continue;
		if (rest == 0) {
			(void)snprintf(out, out_size, "%" PRIu64 "%c", whole, units[i]);
			return out;
		}
		uint64_t tenths = rest / 2 * 10 >> (shift - 1); /* rest < 2^40: no overflow */
		(void)snprintf(out, out_size, "%" PRIu64 ".%" PRIu64 "%c", whole, tenths, units[i]);
		return out;
	}
	(void)snprintf(out, out_size, "%" PRIu64, bytes);
	return out;
}

const char *text_format_duration(uint64_t ms, char *out, size_t out_size)
{
	for (size_t i = 3; i >= 1; i--) {
		const struct duration_unit *unit = &duration_units[i];

		if (ms >= unit->ms && ms % unit->ms == 0) {
			(void)snprintf(out, out_size, "%" PRIu64 "%s", ms / unit->ms, unit->name);
			return out;
		}
	}
	if (ms > 1000 && ms % 100 == 0)
		(void)snprintf(out, out_size, "%" PRIu64 ".%" PRIu64 "s", ms / 1000,
			       ms % 1000 / 100);
	else
		(void)snprintf(out, out_size, "%" PRIu64 "ms", ms);
	return out;
}

#define NAME_MAX_COMPARED 32

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Levenshtein's distance, one row of his table at a time; both at most NAME_MAX_COMPARED. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t row[NAME_MAX_COMPARED + 1];

	for (size_t j = 0; j <= nb; j++)
		row[j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			size_t change = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			row[j] = smaller(change, smaller(row[j], row[j - 1]) + 1);
		}
	}
	return row[nb];
}

const char *text_nearest(const char *name, const char *const *names)
{
	const char *nearest = NULL;
	size_t size = strnlen(name, NAME_MAX_COMPARED + 1), best = SIZE_MAX;

	if (size > NAME_MAX_COMPARED)
		return NULL;
	for (; *names; names++) {
		size_t name_size = strnlen(*names, NAME_MAX_COMPARED + 1);
		if (name_size > NAME_MAX_COMPARED)
			continue;

		size_t d = distance(name, size, *names, name_size);
		size_t longer = size > name_size ? size : name_size;
		if (d < best && 3 * d <= longer) { /* more than a third: no typing error */
			best = d;
			nearest = *names;
		}
	}
	return nearest;
}
