/* SPDX-License-Identifier: Apache-2.0 */
/* file_bench - directories that stand for a jail's /box and /tmp, and programs that attack them. */
#pragma once

#include "tests/rootfs/inside.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "runtime/base/files/fd.h"
#include "runtime/jail/jail_state.h"
#include "runtime/session/files/session_files.h"
#include "tests/forked.h"

#define ROUNDS 3000 /* of an operation, while a program attacks it */

struct bench {
	char *place; /* "box", "tmp", "outside/secret" below it */
	struct jail jail;
	struct arena arena;
	struct cj_error err;
	pid_t attacker;
};

static inline void make_link(const char *target, const char *path)
{
	assert_int_equal(symlink(target, path), 0);
}

static inline struct bench make_bench(void)
{
	struct bench b = { .place = make_place() };
	mkdir(at(b.place, "box"), 0755);
	mkdir(at(b.place, "tmp"), 01777);
	mkdir(at(b.place, "outside"), 0755);
	make_file(at(b.place, "outside/secret"), "SECRET");
	if (has_ids()) { /* so that a test may step down */
		assert_int_equal(chown(at(b.place, "box"), INSIDE_ID, INSIDE_ID), 0);
		assert_int_equal(chown(at(b.place, "outside"), INSIDE_ID, INSIDE_ID), 0);
	}
	b.jail.handles.root_fd = open(b.place, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(b.jail.handles.root_fd >= 0);
	return b;
}

static inline void end_attack(struct bench *b)
{
	int status;
	if (b->attacker <= 0)
		return;
	(void)kill(b->attacker, SIGKILL);
	assert_int_equal(waitpid(b->attacker, &status, 0), b->attacker);
	b->attacker = 0;
}

static inline void end_bench(struct bench *b)
{
	end_attack(b);
	assert_true(reads_as(at(b->place, "outside/secret"), "SECRET"));
	cj_close(&b->jail.handles.root_fd);
	arena_fini(&b->arena);
	end_place(b->place);
}

/* Repeats `act` in another process, in the directory "box", until end_attack(). */
static inline void begin_attack(struct bench *b, void (*act)(void))
{
	b->attacker = test_fork();
	assert_true(b->attacker >= 0);
	if (b->attacker > 0)
		return;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (chdir(at(b->place, "box")) < 0)
		_exit(1);
	for (;;)
		act();
}

/* Root may read and write everything, so it steps down; skips where it can't. */
static inline void step_down(void)
{
	if (geteuid() == 0 && !has_ids()) {
		print_message("skipped: root of a namespace with one id can't become another\n");
		skip();
	}
	if (has_ids())
		assert_int_equal(seteuid(INSIDE_ID), 0);
}

static inline void step_up(void)
{
	if (geteuid() != 0 && getuid() == 0)
		assert_int_equal(seteuid(0), 0);
}

/* --- the calls, each of which leaves no descriptor ------------------------------------------ */

struct session_content {
	struct session_file file;
	char *bytes;
	size_t size;
};

static inline int read_path(struct bench *b, const char *path, size_t max_bytes,
			    struct session_content *out)
{
	int before = open_count();
	memset(&b->err, 0, sizeof(b->err));
	int rc = session_file_open(&b->jail, path, max_bytes, &b->arena, &out->file, &b->err);
	int fd = rc;
	if (fd >= 0)
		rc = fd_read_all(fd, max_bytes, &b->arena, &out->bytes, &out->size, path, &b->err);
	cj_close(&fd);
	assert_int_equal(open_count(), before);
	assert_int_equal(rc, -b->err.code);
	return rc;
}

static inline int list_path(struct bench *b, const char *path, unsigned depth, size_t max_entries,
			    struct session_listing *out)
{
	const struct session_list_request request = { path, depth, max_entries };
	int before = open_count();
	memset(&b->err, 0, sizeof(b->err));
	int rc = session_file_list(&b->jail, &request, &b->arena, out, &b->err);
	assert_int_equal(open_count(), before);
	return rc;
}

static inline int remove_path(struct bench *b, const char *path)
{
	int before = open_count();
	memset(&b->err, 0, sizeof(b->err));
	int rc = session_file_remove(&b->jail, path, &b->err);
	assert_int_equal(open_count(), before);
	return rc;
}

/* The errno with which the path can't be read. */
static inline int read_fault(struct bench *b, const char *path)
{
	struct session_content content;
	return -read_path(b, path, 1 << 20, &content);
}
