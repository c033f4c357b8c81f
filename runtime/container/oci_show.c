/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs features and spec. */
#include "runtime/container/oci_show.h"

#include <fcntl.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/json/json_template.h"
#include "runtime/base/scope.h"
#include "runtime/container/config/oci_config.h"
#include "runtime/container/plan/mount_options.h"

#define SHOW_NAME "oci_show.json"
#define SPEC_NAME "config.json"
#define SPEC_MODE 0666 /* under the umask */

/* The Makefile makes an object of oci_show.json. */
extern const char show_start[] __asm__("_binary_runtime_container_oci_show_json_start");
extern const char show_end[] __asm__("_binary_runtime_container_oci_show_json_end");

#define TEXT(its_name, its_text)                                                                   \
	{                                                                                          \
		.name = its_name, .kind = JSON_VALUE_TEXT, .text = (its_text)                      \
	}
#define TEXTS(its_name, column, its_count)                                                         \
	{                                                                                          \
		.name = its_name, .kind = JSON_VALUE_TEXTS, .texts = &(column),                    \
		.stride = sizeof((column)), .count = (its_count)                                   \
	}
#define NAMES_OF(its_name, names)                                                                  \
	{                                                                                          \
		.name = its_name, .kind = JSON_VALUE_TEXTS, .texts = &(names).items[0].name,       \
		.stride = sizeof((names).items[0]), .count = (names).count                         \
	}

int oci_show_write(struct json_writer *w, const char *verb, const struct oci_show_caller *caller,
		   struct cj_error *err)
{
	const char *mount_options[MOUNT_OPTIONS_MAX];
	const struct json_value values[] = {
		TEXT("version", CJ_VERSION),
		TEXT("version_min", OCI_VERSION_MIN),
		TEXT("version_max", OCI_VERSION_MAX),
		TEXTS("hooks", oci_hook_names[0], OCI_HOOK_COUNT),
		TEXTS("mount_options", mount_options[0], mount_options_names(mount_options)),
		TEXTS("namespaces", oci_namespace_names[0], OCI_NS_COUNT),
		TEXTS("seccomp_operators", policy_op_names[0], POLICY_OP_COUNT),
		NAMES_OF("seccomp_actions", oci_seccomp_actions),
		NAMES_OF("seccomp_archs", oci_seccomp_archs),
		NAMES_OF("seccomp_flags", oci_seccomp_flags),
		NAMES_OF("memory_modes", oci_memory_modes),
		NAMES_OF("memory_flags", oci_memory_flags),
		{ "rootless", JSON_VALUE_BOOL, .number = caller->is_rootless },
		{ "rootful", JSON_VALUE_BOOL, .number = !caller->is_rootless },
		{ "uid", JSON_VALUE_U64, .number = caller->uid },
		{ "gid", JSON_VALUE_U64, .number = caller->gid },
	};
	struct json_template template = { SHOW_NAME, NULL, values, COUNT_OF(values) };
	auto_arena struct arena a = { 0 };

	if (json_parse(SHOW_NAME, show_start, (size_t)(show_end - show_start), &a, &template.root,
		       err) < 0)
		return -err->code;
	return json_template_write(w, &template, verb, err);
}

int oci_show_features(struct oci_call *call, struct cj_error *err)
{
	const struct oci_show_caller nobody = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(true);

	(void)call;
	if (!w)
		return cj_fail(err, ENOMEM, "print the features");
	return oci_show_write(w, "features", &nobody, err) < 0 ? -err->code : json_print(w, err);
}

static int write_new(int dir_fd, const char *text, size_t size, struct cj_error *err)
{
	auto_fd int fd = openat(dir_fd, SPEC_NAME,
				O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, SPEC_MODE);
	if (fd < 0) {
		(void)!cj_fail(err, errno, "create '%s'", SPEC_NAME);
		return cj_hint_for(err, EEXIST, "remove it first, or choose another --bundle");
	}
	int rc = fd_write_line(fd, text, size, SPEC_NAME, err);
	if (rc < 0)
		(void)unlinkat(dir_fd, SPEC_NAME, 0); /* half a file is worse than none */
	return rc;
}

int oci_show_spec(struct oci_call *call, struct cj_error *err)
{
	const struct oci_show_caller caller = { call->options->rootless, geteuid(), getegid() };
	const char *bundle = call->options->bundle ? call->options->bundle : ".";
	auto_json_writer struct json_writer *w = json_writer_create(true);
	struct blob text = { 0 };

	if (!w)
		return cj_fail(err, ENOMEM, "write '%s'", SPEC_NAME);
	if (oci_show_write(w, "spec", &caller, err) < 0 || json_writer_take(w, &text, err) < 0)
		return -err->code;
	auto_fd int dir_fd = open(bundle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return cj_fail(err, errno, "open the bundle '%s'", bundle);
	return write_new(dir_fd, text.bytes, text.size, err);
}
