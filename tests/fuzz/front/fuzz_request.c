/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the body of POST /v1/runs.  What is taken keeps its caps, names no place twice and
 * nothing of the host without the right to; a plan made of it has no more than the request.
 */
#undef NDEBUG
#include <assert.h>

#include "profiles/settings.h"
#include "rootfs/files/artifacts.h"
#include "runtime/base/json/json.h"
#include "runtime/base/text.h"
#include "runtime/run/request/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const struct request_caps caps = {
	.body_bytes = 1u << 20, .code_bytes = 64, .file_bytes = 16, .stdin_bytes = 8
};

static void check_told(const struct cj_error *err)
{
	assert(err->code > 0 && err->msg[0] != '\0');
}

/* Every byte of it is there to be read: the sanitizer looks. */
static void check_blob(const struct blob *b, size_t cap)
{
	volatile char sum = 0;
	assert(b->size <= cap);
	for (size_t i = 0; i < b->size; i++)
		sum = (char)(sum + b->bytes[i]);
}

static void check_files(const struct request *r)
{
	assert(r->nfiles <= REQUEST_FILES_MAX);
	for (size_t i = 0; i < r->nfiles; i++) {
		const char *path = r->files[i].target;
		const struct blob content = { r->files[i].bytes, r->files[i].size };
		check_blob(&content, caps.file_bytes);
		assert(path[0] == '/' && !strstr(path, "/../") && !strstr(path, "//"));
		assert(strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/dev/", 5) != 0);
		assert(i == 0 ||
		       strcmp(r->files[i - 1].target, path) != 0); /* equal ones are neighbours */
	}
}

static void check_request(const struct request *r)
{
	struct arena a = { 0 };
	struct cj_error err = { 0 };
	const struct json_node *root;
	assert(is_name(r->profile) && r->has_code != r->is_command);
	assert(!r->id || strlen(r->id) < PLAN_ID_MAX);
	assert(r->fit <= FIT_COLD && (!r->is_command || r->fit >= FIT_JAIL));
	check_blob(&r->code, caps.code_bytes);
	check_blob(&r->stdin_bytes, caps.stdin_bytes);
	check_files(r);
	if (r->args_json) {
		int rc = json_parse("args", r->args_json, strlen(r->args_json), &a, &root, &err);
		assert(rc == 0);
	}
	arena_fini(&a);
}

static void check_plan(const struct request *r, struct config *c)
{
	static const char *const arguments[] = { "run", "{file}", "{args}" };
	struct cj_error err = { 0 };
	struct plan plan = { 0 };
	struct program program = { 0 };
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		int rc = setting_set(c, setting_by_key("command"), "command", arguments[i], &err);
		assert(rc == 0);
	}
	if (request_plan(r, c, &plan, &program, &err) < 0) {
		check_told(&err);
		return;
	}
	assert(program.nfiles == r->nfiles && plan.root.nbinds == 0 && !plan.tty);
	assert(plan.root.kind == ROOT_HOST && !plan.policy && !plan.cgroup_parent);
	assert(program.interactive == r->has_stdin && program.code_size == r->code.size);
	assert(program.collect_artifacts == r->wants_artifacts);
	assert(r->wants_artifacts == (r->artifacts_bytes > 0));
	assert(r->artifacts_bytes <= ARTIFACTS_INLINE_MAX);
}

/* With the right it is the same or more; without it nothing of the host is in the config. */
static void check_applied(const struct request *r)
{
	struct config with, without;
	struct cj_error err = { 0 };
	config_init(&with);
	config_init(&without);
	int rc = request_apply(r, false, &without, &err);
	if (rc < 0)
		check_told(&err);
	int more = request_apply(r, true, &with, &err);
	if (more < 0)
		check_told(&err);
	assert(rc < 0 || more == 0);
	assert(without.files.count + without.ro_binds.count + without.binds.count == 0);
	assert(without.connects.count == 0 && without.upstreams.count == 0 &&
	       !without.allow_private && !without.cgroup_parent);
	assert(strcmp(without.rootfs, "host") == 0 && strcmp(without.seccomp, "default") == 0);
	assert(with.profile_name[0] == '\0' && !with.tty && !with.audit_required && !with.json);
	if (rc == 0)
		check_plan(r, &without);
	config_fini(&with);
	config_fini(&without);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct arena a = { 0 };
	struct request r;
	struct cj_error err = { 0 };
	if (request_parse((struct blob){ (const char *)bytes, size }, &caps, &a, &r, &err) < 0) {
		check_told(&err);
	} else {
		check_request(&r);
		check_applied(&r);
	}
	arena_fini(&a);
	return 0;
}
