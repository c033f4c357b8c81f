/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_bwrap - any arguments to bwrap, each ending with a NUL; --args gets the same bytes again.
 *
 * Asserted: a refusal has a message; what is taken has absolute places, modes and descriptors in
 * their range, a command, and a user namespace for a user.
 */
#include <linux/sched.h>

#include "runtime/front/bwrap/bwrap.h"
#include "tests/fuzz/bytes.h"

#define USER 1000

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static struct bytes all;

static int read_again(int fd, struct arena *a, char **out_text, size_t *out_size,
		      struct cj_error *err)
{
	(void)fd;
	*out_text = arena_strndup(a, "", 0);
	*out_size = all.left;
	if (all.left > 0)
		*out_text = memcpy(arena_alloc(a, all.left + 1), all.at, all.left);
	return *out_text ? 0 : cj_fail(err, ENOMEM, "copy");
}

static void check(const struct bwrap_config *c)
{
	assert(c->argv[0] && c->namespaces & CLONE_NEWUSER && !(c->optional & CLONE_NEWUSER));
	for (size_t i = 0; i < c->nops; i++) {
		const struct bwrap_op *op = &c->ops[i];
		assert(op->dest[0] == '/' && op->perms >= -1 && op->perms <= 07777 && op->fd >= -1);
		assert(op->size == 0 || op->kind == BWRAP_TMPFS);
		assert(op->source || (op->kind != BWRAP_BIND && op->kind != BWRAP_SYMLINK));
		assert((op->layers.count > 0) == (op->kind == BWRAP_OVERLAY));
		assert(!op->work || op->source);
	}
	for (size_t i = 0; i < c->nvariables; i++)
		assert(!c->variables[i].name || c->variables[i].name[0]);
	assert(c->uid >= -1 && c->uid <= INT32_MAX && c->gid >= -1 && c->gid <= INT32_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	auto_arena struct arena a = { 0 };
	struct strings args = { 0 };
	struct bwrap_config config;
	struct cj_error err = { 0 };
	all = (struct bytes){ bytes, size };
	for (struct bytes rest = all; rest.left > 0;) {
		struct bytes one = bytes_until(&rest, '\0');
		char *text = arena_strndup(&a, one.left ? (const char *)one.at : "", one.left);
		assert(text && strings_add(&args, &a, text) == 0);
	}
	static const char *const none[] = { NULL };
	int rc = bwrap_parse(args.items ? args.items : none, read_again, &a, &config, &err);
	if (rc == 0 && config.argv && config.argv[0]) {
		rc = bwrap_parse_variable(config.argv[0], &a, &config, &err);
		assert(rc == 0 || (err.code == -rc && err.msg[0]));
		rc = 0;
	}
	if (rc == 0 && config.request == BWRAP_RUN) {
		rc = bwrap_check(&config, USER, USER, &err);
		if (rc == 0)
			check(&config);
	}
	assert(rc == 0 || (err.code == -rc && err.msg[0]));
	return 0;
}
