/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cejail report FILE...`: results and events of runs as one HTML page.
 *
 * The page is report.html, which the Makefile makes an object of; its script draws the records that
 * stand in it.  Programs wrote parts of a record.  So each record is checked to be JSON, and every
 * '<' in it is escaped: the browser finds no element in it, not even the end of the script.
 */
#include <assert.h>
#include <fcntl.h>

#include "runtime/base/arena.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/front/cli/cli.h"
#include "runtime/run/report/result_file.h"
#include "runtime/run/options/option_syntax.h"

#define FILE_BYTES_MAX (64u << 20)
#define PLACE          "@RECORDS@"

extern const char page_start[] __asm__("_binary_runtime_front_cli_report_html_start");
extern const char page_end[] __asm__("_binary_runtime_front_cli_report_html_end");
#define PAGE_SIZE ((size_t)(page_end - page_start))

struct page {
	FILE *to;
	unsigned records, results; /* written so far; those that are or have a result */
};

/* One object: a result, or an event of --events-fd. */
static int put_record(struct page *p, const char *name, const char *text, size_t size,
		      struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *node = NULL;
	if (json_parse_capped(name, text, size, &a, &node, err) < 0)
		return -err->code;

	const char *type = json_get_text(node, "type");
	const bool is_event = type && strcmp(type, "result") != 0;
	const struct json_node *result = type ? json_get_typed(node, "result", JSON_OBJECT) : node;
	const char *schema = json_get_text(result, "schema");
	if (!is_event && (!schema || strcmp(schema, "cejail.result/1") != 0))
		return json_reject(name, node, err, "this is no result and no event of a run");
	if (p->records++ > 0)
		(void)fputs(",\n", p->to);
	p->results += !is_event;
	for (size_t i = 0; i < size; i++) {
		if (text[i] == '<')
			(void)fputs("\\u003c", p->to);
		else
			(void)putc(text[i], p->to);
	}
	return 0;
}

static int put_records(struct page *p, const char *name, const char *text, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *node = NULL;
	struct cj_error ignored = { 0 };
	const unsigned before = p->results;

	/* the first line of JSON Lines is whole; of a result over several lines it is not */
	if (json_parse_capped("", text, strcspn(text, "\n"), &a, &node, &ignored) < 0)
		return put_record(p, name, text, strlen(text), err);
	for (unsigned line = 1; *text; line++) {
		char where[512];
		const size_t size = strcspn(text, "\n");
		(void)snprintf(where, sizeof(where), "%s: record %u", name, line);
		if (size > 0 && put_record(p, where, text, size, err) < 0)
			return -err->code;
		text += size + (text[size] == '\n');
	}
	if (p->results > before)
		return 0;
	cj_refuse(err, "'%s' has events and no result", name);
	cj_hint(err, "the last line of --events-fd is the result: has the run ended?");
	return -err->code;
}

static int put_file(struct page *p, const char *path, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	char *text = NULL;
	size_t size = 0;
	const bool is_stdin = strcmp(path, "-") == 0;
	auto_fd int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	if (fd_read_all(fd, FILE_BYTES_MAX, &a, &text, &size, path, err) < 0)
		return -err->code;
	if (strlen(text) < size)
		return cj_reject(err, "'%s' has a NUL byte: it is no JSON", path);
	return put_records(p, is_stdin ? "standard input" : path, text, err);
}

/* The page up to the place of the records, the records, and the rest of the page. */
static int write_page(FILE *to, const char *const *files, struct cj_error *err)
{
	struct page p = { .to = to };
	const char *place = memmem(page_start, PAGE_SIZE, PLACE, strlen(PLACE));
	assert(place);
	(void)fwrite(page_start, 1, (size_t)(place - page_start), to);
	(void)putc('[', to);
	for (; *files; files++)
		if (put_file(&p, *files, err) < 0)
			return -err->code;
	(void)putc(']', to);
	place += strlen(PLACE);
	(void)fwrite(place, 1, (size_t)(page_end - place), to);
	return 0;
}

static int make_page(const char *const *files, char **out_text, size_t *out_size,
		     struct cj_error *err)
{
	FILE *to = open_memstream(out_text, out_size);
	if (!to)
		return cj_fail(err, errno, "make the page");
	int rc = write_page(to, files, err);
	if (fclose(to) != 0 && rc == 0)
		rc = cj_fail(err, errno, "make the page");
	return rc;
}

static int write_file(const char *path, const char *text, size_t size, struct cj_error *err)
{
	struct result_file f = RESULT_FILE_NULL;
	int rc = result_file_open(path, &f, err);
	if (rc == 0)
		rc = result_file_commit(&f, text, size, err);
	result_file_fini(&f);
	return rc;
}

/* Takes --output off the arguments; the files remain. */
static int take_output(const struct cli *cli, struct strings *files, struct arena *a,
		       const char **out_path, struct cj_error *err)
{
	static const struct own_option rows[] = { { "output", 'o', "FILE", NULL, 0 } };
	const struct own_options own = {
		.verb = "report", .rows = rows, .count = 1, .out = out_path
	};
	bool only_files = false;
	for (const char *const *next = cli->args; *next;) {
		bool is_own = false;
		if (!only_files && own_options_take_one(&own, &next, &is_own, err) < 0)
			return -err->code;
		if (is_own)
			continue;
		const char *arg = *next++;
		if (!only_files && strcmp(arg, "--") == 0)
			only_files = true;
		else if (!only_files && arg[0] == '-' && arg[1] != '\0')
			return option_reject_unknown(arg, NULL, "report", err);
		else if (strings_add(files, a, arg) < 0)
			return cj_fail(err, ENOMEM, "read the arguments");
	}
	if (files->count > 0)
		return 0;
	cj_refuse(err, "'cejail report' takes one FILE or more");
	cj_hint(err, "a file is what 'cejail run --json=FILE' or --events-fd wrote");
	return -err->code;
}

int report_verb(const struct cli *cli)
{
	auto_arena struct arena a = { 0 };
	auto_free char *text = NULL;
	struct cj_error err = { 0 };
	struct strings files = { 0 };
	const char *path = NULL;
	size_t size = 0;

	if (take_output(cli, &files, &a, &path, &err) < 0 ||
	    (!path && cli_need_stdout(cli, &err) < 0) ||
	    make_page(files.items, &text, &size, &err) < 0 ||
	    (path && write_file(path, text, size, &err) < 0))
		return cli_fail(&err);
	if (!path)
		(void)fwrite(text, 1, size, stdout);
	return cli_finish(0);
}
