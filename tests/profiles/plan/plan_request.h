/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_request - what the tests of plan_make() share: one request with its answer, and a
 * small tree of files, links and sockets to plan with.
 */
#pragma once

#include "profiles/plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "profiles/settings.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

/* One request and its answer. */
struct request {
	struct config c;
	struct invocation inv;
	struct plan plan;
	struct program program;
	struct cj_error err;
};

static char top[] = "/tmp/cejail-plan-XXXXXX";

static inline void put_file(const char *path, const char *text)
{
	struct cj_error err;
	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text), path, &err), 0);
}

/* A bound socket at `path`; the inode stays when the descriptor is closed. */
static inline int put_socket(const char *path, mode_t mode)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return chmod(path, mode);
}

/* The tree every test plans with; tests only read it. */
static inline int tree_setup(void **state)
{
	(void)state;
	if (!mkdtemp(top) || chdir(top) < 0)
		return -1;
	put_file("a.txt", "a");
	put_file("args.json", "{\"n\": 1}");
	put_file("bad.json", "{\"n\": }");
	put_file("with:colon", "x");
	if (mkdir("dir", 0755) < 0 || mkdir("dir/sub", 0755) < 0 || mkfifo("fifo", 0644) < 0)
		return -1;
	if (symlink("dir", "link") < 0 || symlink("a.txt", "link.txt") < 0)
		return -1;
	return put_socket("open.sock", 0666) < 0 || put_socket("closed.sock", 0600) < 0 ? -1 : 0;
}

static inline int tree_teardown(void **state)
{
	(void)state;
	static const char *const names[] = { "a.txt",      "args.json", "bad.json",
					     "with:colon", "fifo",      "link",
					     "link.txt",   "open.sock", "closed.sock" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlink(names[i]);
	(void)rmdir("dir/sub");
	(void)rmdir("dir");
	return chdir("/") == 0 && rmdir(top) == 0 ? 0 : -1;
}

static inline int request_setup(void **state)
{
	static struct request r;
	memset(&r, 0, sizeof(r));
	config_init(&r.c);
	*state = &r;
	return 0;
}

static inline int request_teardown(void **state)
{
	struct request *r = *state;
	config_fini(&r->c);
	return 0;
}

static inline void set(struct request *r, const char *option, const char *text)
{
	if (setting_set(&r->c, setting_by_option(option), option, text, &r->err) < 0)
		fail_msg("%s", r->err.msg);
}

static inline void set_key(struct request *r, const char *key, const char *text)
{
	if (setting_set(&r->c, setting_by_key(key), key, text, &r->err) < 0)
		fail_msg("%s", r->err.msg);
}

/* A profile that runs "run -x FILE ARGS". */
static inline void use_interpreter(struct request *r)
{
	static const char *const arguments[] = { "run", "-x", "{file}", "{args}" };
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++)
		set_key(r, "command", arguments[i]);
	set_key(r, "extensions", ".py");
	set_key(r, "extensions", ".pyw");
	set_key(r, "file_name", "main.py");
}

static inline void use_command(struct request *r)
{
	static const char *const arguments[] = { "true", NULL };
	r->inv.is_command = true;
	r->inv.args = arguments;
}

static inline int make(struct request *r)
{
	r->err = (struct cj_error){ 0 };
	return plan_make(&r->c, &r->inv, &r->plan, &r->program, &r->err);
}

static inline void assert_made(struct request *r)
{
	if (make(r) < 0)
		fail_msg("%s", r->err.msg);
}

static inline void assert_refused(struct request *r, const char *said)
{
	if (make(r) == 0)
		fail_msg("it was planned; expected '%s'", said);
	if (!strstr(r->err.msg, said) && !strstr(r->err.hint, said))
		fail_msg("'%s (%s)' does not say '%s'", r->err.msg, r->err.hint, said);
}

static inline void assert_words(const struct strings *list, const char *const *expected)
{
	for (size_t i = 0; i < list->count; i++) {
		assert_non_null(expected[i]);
		assert_string_equal(list->items[i], expected[i]);
	}
	assert_null(expected[list->count]);
}

#define REQUEST_TEST(name) cmocka_unit_test_setup_teardown(name, request_setup, request_teardown)
