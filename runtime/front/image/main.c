/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cejail-image: `cejail image import|list|rm`.  A program of its own, because of libarchive.
 */
#include "runtime/front/image/image_parts.h"

#include <locale.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/run/options/option_syntax.h"

#define FAILED      125
#define LIST_SCHEMA "cejail.images/1"
#define SIZE_MIN    (1u << 20)
#define SIZE_MAX_   (1ull << 44)

static int fail(const struct cj_error *err)
{
	log_error(err);
	return FAILED;
}

static int finish(int status)
{
	struct cj_error err = { 0 };
	return fd_flush_stdout(&err) < 0 ? fail(&err) : status;
}

static int reject_argument(const char *action, const char *arg, struct cj_error *err)
{
	cj_refuse(err, "unknown argument '%s'", arg);
	return cj_hint(err, "see 'cejail image --help': %s", action);
}

struct import_options {
	const char *ref, *max_size;
};

static const struct own_option import_rows[] = {
	{ "ref", 0, "NAME", "choose one of several images in the source",
	  offsetof(struct import_options, ref) },
	{ "max-size", 0, "SIZE", "refuse an image that is larger when unpacked (default: 16G)",
	  offsetof(struct import_options, max_size) },
};

static int parse_import(const char *const *args, struct image_import *out, struct cj_error *err)
{
	struct import_options options = { 0 };
	const struct own_options own = { "image", import_rows, 2, &options };
	const char **operands[] = { &out->name, &out->path };
	size_t count = 0;
	bool is_own;

	*out = (struct image_import){ .bytes_max = IMAGE_BYTES_MAX };
	while (*args) {
		struct long_option o;
		if (own_options_take_one(&own, &args, &is_own, err) < 0)
			return -err->code;
		if (is_own)
			continue;
		const char *arg = *args++;
		if (option_split(arg, &o))
			return option_reject_unknown(arg, NULL, "image", err);
		if (count == 2 || (arg[0] == '-' && arg[1] != '\0'))
			return reject_argument("import", arg, err);
		*operands[count++] = arg;
	}
	if (count < 2) {
		cj_refuse(err, "'cejail image import' needs a NAME and a SOURCE");
		return cj_hint(err, "write 'cejail image import NAME image.tar'");
	}
	out->ref = options.ref;
	if (options.max_size &&
	    parse_size_within(options.max_size, SIZE_MIN, SIZE_MAX_, &out->bytes_max, err) < 0)
		return cj_wrap(err, "--max-size");
	return 0;
}

#define PROGRESS_COLUMNS 72

/* Written with spaces behind it, so that it needs nothing of a terminal but a carriage return. */
static void print_over_line(const char *text)
{
	(void)fprintf(stderr, "\r%-*s\r%s", PROGRESS_COLUMNS, "", text);
}

/* The numbers are the unpacker's and may be any: what is too long is cut. */
static void show_progress(const struct image_progress *at)
{
	static uint64_t next_ms; /* 0: nothing is shown */
	char text[PROGRESS_COLUMNS], read[32] = "0", total[32] = "";

	if (!at) {
		if (next_ms > 0)
			print_over_line("");
		return;
	}
	if (clock_ms() < next_ms)
		return;
	next_ms = clock_ms() + IMAGE_PROGRESS_MS;
	if (at->read_bytes > 0)
		text_format_size(at->read_bytes, read, sizeof(read));
	if (at->total_bytes > 0)
		text_format_size(at->total_bytes, total, sizeof(total));
	const char *of = total[0] ? " of " : "";
	if (at->layers == 0)
		(void)snprintf(text, sizeof(text), "read %s%s%s", read, of, total);
	else
		(void)snprintf(text, sizeof(text), "layer %u of %u: read %s%s%s, %llu files",
			       at->layer, at->layers, read, of, total,
			       (unsigned long long)at->entries);
	print_over_line(text);
}

/* A line that is longer than the terminal is wide could not be overwritten. */
static bool has_wide_terminal(void)
{
	struct winsize size = { 0 }; /* 0 columns: not known */
	return isatty(STDERR_FILENO) && (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 ||
					 size.ws_col == 0 || size.ws_col > PROGRESS_COLUMNS);
}

static int import_action(const char *const *args)
{
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	struct image_import what;
	struct image_record r;
	char size[32];
	size_t added = 0;

	if (parse_import(args, &what, &err) < 0)
		return fail(&err);
	what.on_progress = has_wide_terminal() ? show_progress : NULL;
	if (image_import(&what, &a, &r, &added, &err) < 0)
		return fail(&err);
	text_format_size(r.bytes, size, sizeof(size));
	(void)printf("%s: %zu layer%s, %zu new: %llu files, %s\n", r.name, r.layers.count,
		     r.layers.count == 1 ? "" : "s", added, (unsigned long long)r.entries,
		     r.bytes > 0 ? size : "0");
	if (r.left_out > 0)
		log_note("%llu device nodes, sockets and pipes were left out: a jail has its own "
			 "/dev",
			 (unsigned long long)r.left_out);
	return finish(0);
}

/* One that can't be read is reported; the others are listed. */
static int read_records(const struct image_store *store, struct arena *a, struct image_record **out,
			size_t *out_count, int *out_status, struct cj_error *err)
{
	struct strings names = { 0 };
	int rc = store->fd < 0 ? 0 : image_store_list(store, a, &names, err);
	if (rc < 0 && rc != -ENOENT) /* a store without images/ was never used */
		return rc;
	struct image_record *records = arena_array(a, names.count + 1, sizeof(*records));
	if (!records)
		return cj_fail(err, ENOMEM, "list the images");
	size_t count = 0;
	for (size_t i = 0; i < names.count; i++) {
		struct cj_error bad = { 0 };
		if (image_store_read(store, names.items[i], a, &records[count], &bad) == 0)
			count++;
		else
			*out_status = fail(&bad);
	}
	*out = records;
	*out_count = count;
	return 0;
}

static int list_action(const char *const *args)
{
	auto_image_store struct image_store store = IMAGE_STORE_NULL;
	auto_arena struct arena a = { 0 };
	struct image_record *records = NULL;
	struct cj_error err = { 0 };
	size_t count = 0;
	int status = 0;
	bool as_json = args[0] && strcmp(args[0], "--json") == 0;

	if (args[0] && (!as_json || args[1])) {
		(void)!reject_argument("list", args[as_json], &err);
		return fail(&err);
	}
	/* without a store there are no images */
	int rc = image_store_open(&store, false, &err);
	if ((rc < 0 && rc != -ENOENT) ||
	    read_records(&store, &a, &records, &count, &status, &err) < 0)
		return fail(&err);
	if (as_json) {
		auto_json_writer struct json_writer *w = json_writer_create(false);
		json_open_object(w);
		json_member_text(w, "schema", LIST_SCHEMA);
		json_member_array(w, "images");
		for (size_t i = 0; i < count; i++)
			image_record_write(w, &records[i]);
		json_close_array(w);
		json_close_object(w);
		return json_print(w, &err) < 0 ? fail(&err) : finish(status);
	}
	(void)printf("%-32s  %-12s  %6s  %7s  %s\n", "NAME", "DIGEST", "LAYERS", "SIZE",
		     "IMPORTED");
	for (size_t i = 0; i < count; i++) {
		char size[32], when[32] = "-";
		time_t imported = (time_t)records[i].imported_s;
		struct tm tm;
		text_format_size(records[i].bytes, size, sizeof(size));
		if (gmtime_r(&imported, &tm))
			(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
		(void)printf("%-32s  %.12s  %6zu  %7s  %s\n", records[i].name, records[i].digest,
			     records[i].layers.count, records[i].bytes > 0 ? size : "0", when);
	}
	return finish(status);
}

static int remove_action(const char *const *args)
{
	int status = 0;
	if (!args[0]) {
		struct cj_error err = { 0 };
		cj_refuse(&err, "'cejail image rm' needs a NAME");
		cj_hint(&err, "'cejail image list' shows the names");
		return fail(&err);
	}
	for (; *args; args++) {
		struct cj_error err = { 0 };
		if (image_import_undo(*args, &err) < 0)
			status = fail(&err);
	}
	return finish(status);
}

static const struct image_action {
	const char *name, *arguments;
	int (*run)(const char *const *args);
	const char *help;
} actions[] = {
	{ "import", "NAME SOURCE", import_action,
	  "add an image: a tar of an OCI layout, of docker save or of\n"
	  "                        a root file system, or a directory with one of these" },
	{ "list", "[--json]", list_action, "list the images" },
	{ "rm", "NAME...", remove_action, "remove images" },
};

static void print_usage(FILE *to)
{
	(void)fprintf(to, "Usage: cejail image ACTION ...\n\n");
	for (size_t i = 0; i < COUNT_OF(actions); i++)
		(void)fprintf(to, "  %-6s %-13s  %s\n", actions[i].name, actions[i].arguments,
			      actions[i].help);
	(void)fprintf(to, "\nOptions of import:\n");
	for (size_t i = 0; i < COUNT_OF(import_rows); i++)
		(void)fprintf(to, "  --%s %-*s  %s\n", import_rows[i].name,
			      17 - (int)strlen(import_rows[i].name), import_rows[i].value,
			      import_rows[i].help);
	(void)fprintf(to, "\n'cejail run --rootfs NAME' uses an image. The manual is "
			  "cejail-image(1).\n");
}

static bool is_help(const char *arg)
{
	return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

int main(int argc, char **argv)
{
	const char *const *args = (const char *const *)argv + 1;
	struct cj_error err = { 0 };
	unsigned open_streams;

	if (fd_claim_stdio(&open_streams, &err) < 0)
		return fail(&err);
	(void)signal(SIGPIPE, SIG_IGN); /* a write to a closed pipe then fails with EPIPE */
	(void)signal(SIGXFSZ, SIG_IGN);
	/* libarchive hands out names in the locale's encoding, and names are UTF-8 mostly */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	if (argc < 2) {
		print_usage(stderr);
		return FAILED;
	}
	if (is_help(args[0]) || (args[1] && is_help(args[1]))) {
		print_usage(stdout);
		return finish(0);
	}
	for (size_t i = 0; i < COUNT_OF(actions); i++)
		if (strcmp(actions[i].name, args[0]) == 0)
			return actions[i].run(args + 1);
	cj_refuse(&err, "unknown action '%s'", args[0]);
	cj_hint(&err, "write import, list or rm: see 'cejail image --help'");
	return fail(&err);
}
