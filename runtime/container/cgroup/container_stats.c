/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of a container's cgroup as JSON, in the names and units that readers of `events
 * --stats` know: times in nanoseconds, bytes, swap with memory included.
 *
 * A counter that the cgroup does not have is left out.
 */
#include "runtime/container/cgroup/container_cgroup.h"

#include <fcntl.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/kernel/cgroup/cgroup.h"

#define NS_PER_US 1000
#define KEY_MAX   64

/* A file that may be long: memory.stat, io.stat. */
#define STAT_MAX 65536
struct stat_text {
	char text[STAT_MAX];
};

static const char *next_line(const char *at)
{
	at += strcspn(at, "\n");
	return at + (*at == '\n');
}

/* Each line "KEY NUMBER" as a member of the open object.  Other lines are skipped. */
static void write_raw(struct json_writer *w, const char *text)
{
	for (; *text; text = next_line(text)) {
		char key[KEY_MAX];
		uint64_t value;
		size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
		if (size == 0 || size >= sizeof(key) || text[size] != ' ' ||
		    !cgroup_text_digits(text + size + 1, "\n", &value))
			continue;
		memcpy(key, text, size);
		key[size] = '\0';
		json_member_u64(w, key, value);
	}
}

/*
 * Lines "MAJOR:MINOR rbytes=N wbytes=N dbytes=N rios=N ..." as an array of {"major", "minor", "op":
 * "Read"|"Write"|"Discard", "value"}.  `unit`: "bytes=" or "ios=".
 */
static void write_devices(struct json_writer *w, const char *name, const char *text,
			  const char *unit)
{
	json_member_array(w, name);
	for (; *text; text = next_line(text)) {
		uint64_t major = 0, minor = 0, value;
		const char *at = cgroup_text_digits(text, ":", &major);
		at = at && *at == ':' ? cgroup_text_digits(at + 1, " \n", &minor) : NULL;
		for (; at && *at == ' '; at += strcspn(at, " \n")) {
			const char *operation = at[1] == 'r'   ? "Read"
						: at[1] == 'w' ? "Write"
						: at[1] == 'd' ? "Discard"
							       : NULL;
			const char *number = operation ? text_after(at + 2, unit) : NULL;
			at++;
			if (!number || !cgroup_text_digits(number, " \n", &value))
				continue;
			json_open_object(w);
			json_member_u64(w, "major", major);
			json_member_u64(w, "minor", minor);
			json_member_text(w, "op", operation);
			json_member_u64(w, "value", value);
			json_close_object(w);
		}
	}
	json_close_array(w);
}

/* A limit; without one it is UINT64_MAX, as other runtimes print it. */
static bool read_limit(int dir_fd, const char *file, uint64_t *out)
{
	char text[64];
	if (system_file_read(dir_fd, file, text, sizeof(text)) <= 0)
		return false;
	if (!cgroup_text_number(text, out))
		*out = UINT64_MAX;
	return true;
}

struct counter {
	const char *name, *key; /* in JSON; in the file */
	uint64_t factor;
};

static void put_counters(struct json_writer *w, const char *text, const struct counter *rows,
			 size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value;
		if (cgroup_text_value(text, rows[i].key, &value) &&
		    !__builtin_mul_overflow(value, rows[i].factor, &value))
			json_member_u64(w, rows[i].name, value);
	}
}

static void put_object(struct json_writer *w, const char *name, const char *text,
		       const struct counter *rows, size_t count)
{
	json_member_object(w, name);
	put_counters(w, text, rows, count);
	json_close_object(w);
}

static const struct counter failures[] = { { "failcnt", "max", 1 } };

static void write_cpu(struct json_writer *w, int dir_fd)
{
	static const struct counter usage[] = {
		{ "total", "usage_usec", NS_PER_US },
		{ "user", "user_usec", NS_PER_US },
		{ "kernel", "system_usec", NS_PER_US },
	};
	static const struct counter throttling[] = {
		{ "periods", "nr_periods", 1 },
		{ "throttledPeriods", "nr_throttled", 1 },
		{ "throttledTime", "throttled_usec", NS_PER_US },
	};
	char text[SYSTEM_FILE_SMALL];
	if (system_file_read(dir_fd, "cpu.stat", text, sizeof(text)) <= 0)
		return;
	json_member_object(w, "cpu");
	put_object(w, "usage", text, usage, COUNT_OF(usage));
	put_object(w, "throttling", text, throttling, COUNT_OF(throttling));
	json_close_object(w);
}

static void write_entry(struct json_writer *w, const char *name, uint64_t limit, uint64_t usage)
{
	json_member_object(w, name);
	json_member_u64(w, "limit", limit);
	json_member_u64(w, "usage", usage);
}

static void write_memory_usage(struct json_writer *w, int dir_fd, uint64_t usage)
{
	uint64_t limit = UINT64_MAX, peak, swap, swap_limit = UINT64_MAX;
	char events[SYSTEM_FILE_SMALL];
	(void)read_limit(dir_fd, "memory.max", &limit); /* absent: none */
	write_entry(w, "usage", limit, usage);
	if (cgroup_read_number(dir_fd, "memory.peak", &peak))
		json_member_u64(w, "max", peak);
	if (system_file_read(dir_fd, "memory.events", events, sizeof(events)) > 0)
		put_counters(w, events, failures, 1);
	json_close_object(w);

	if (!cgroup_read_number(dir_fd, "memory.swap.current", &swap))
		return;
	(void)read_limit(dir_fd, "memory.swap.max", &swap_limit); /* absent: none */
	if (__builtin_add_overflow(limit, swap_limit, &limit))
		limit = UINT64_MAX;
	write_entry(w, "swap", limit, usage + swap);
	json_close_object(w);
}

static void write_memory(struct json_writer *w, int dir_fd, struct stat_text *stat)
{
	static const struct counter cache[] = { { "cache", "file", 1 } };
	uint64_t usage;
	if (!cgroup_read_number(dir_fd, "memory.current", &usage))
		return;
	json_member_object(w, "memory");
	write_memory_usage(w, dir_fd, usage);
	if (system_file_read(dir_fd, "memory.stat", stat->text, STAT_MAX) > 0) {
		put_counters(w, stat->text, cache, 1);
		json_member_object(w, "raw");
		write_raw(w, stat->text);
		json_close_object(w);
	}
	json_close_object(w);
}

static void write_pids(struct json_writer *w, int dir_fd)
{
	uint64_t current, limit;
	if (!cgroup_read_number(dir_fd, "pids.current", &current))
		return;
	json_member_object(w, "pids");
	json_member_u64(w, "current", current);
	if (cgroup_read_number(dir_fd, "pids.max", &limit))
		json_member_u64(w, "limit", limit);
	json_close_object(w);
}

static void write_io(struct json_writer *w, int dir_fd, struct stat_text *stat)
{
	if (system_file_read(dir_fd, "io.stat", stat->text, STAT_MAX) < 0)
		return;
	json_member_object(w, "blkio");
	write_devices(w, "ioServiceBytesRecursive", stat->text, "bytes=");
	write_devices(w, "ioServicedRecursive", stat->text, "ios=");
	json_close_object(w);
}

/* "hugetlb.2MB.current" */
static void write_page_size(struct json_writer *w, int dir_fd, const char *size, int length)
{
	char file[64], events[SYSTEM_FILE_SMALL];
	uint64_t usage;
	(void)snprintf(file, sizeof(file), "hugetlb.%.*s.current", length, size);
	if (!cgroup_read_number(dir_fd, file, &usage))
		return;
	(void)snprintf(file, sizeof(file), "%.*s", length, size);
	json_member_object(w, file);
	json_member_u64(w, "usage", usage);
	(void)snprintf(file, sizeof(file), "hugetlb.%.*s.events", length, size);
	if (system_file_read(dir_fd, file, events, sizeof(events)) > 0)
		put_counters(w, events, failures, 1);
	json_close_object(w);
}

static void write_huge_pages(struct json_writer *w, int dir_fd)
{
	auto_fd_dir struct fd_dir *dir = fd_open_dir(dir_fd, ".");
	bool is_open = false;
	for (const struct dirent *e; dir && (e = fd_next_entry(dir)) != NULL;) {
		const char *size = text_after(e->d_name, "hugetlb.");
		const char *end = size ? strchr(size, '.') : NULL;
		if (!end || strcmp(end, ".current") != 0)
			continue;
		if (!is_open)
			json_member_object(w, "hugetlb");
		is_open = true;
		write_page_size(w, dir_fd, size, (int)(end - size));
	}
	if (is_open)
		json_close_object(w);
}

void container_cgroup_stats_write(const struct container_cgroup *c, struct json_writer *w)
{
	auto_free struct stat_text *stat = malloc(sizeof(*stat));
	json_open_object(w);
	if (c->dir_fd >= 0 && stat) {
		write_cpu(w, c->dir_fd);
		write_memory(w, c->dir_fd, stat);
		write_pids(w, c->dir_fd);
		write_io(w, c->dir_fd, stat);
		write_huge_pages(w, c->dir_fd);
	}
	json_close_object(w);
}
