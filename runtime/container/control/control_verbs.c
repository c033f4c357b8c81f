/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs pause, resume, ps and update.  Acts. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/container/container/container_config.h"
#include "runtime/container/control/control.h"
#include "runtime/container/control/control_target.h"
#include "runtime/container/control/update_flags.h"

int control_pause(struct oci_call *call, struct cj_error *err)
{
	auto_control_target struct control_target t = CONTROL_TARGET_NULL;
	int rc = control_target_open(call, true, &t, err);
	return rc < 0 ? rc : container_cgroup_freeze(&t.cgroup, err);
}

int control_resume(struct oci_call *call, struct cj_error *err)
{
	auto_control_target struct control_target t = CONTROL_TARGET_NULL;
	int rc = control_target_open(call, true, &t, err);
	return rc < 0 ? rc : container_cgroup_thaw(&t.cgroup, err);
}

/* --- ps ----------------------------------------------------------------------------------- */

static int print_json(const pid_t *pids, size_t count, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	if (!w)
		return cj_fail(err, ENOMEM, "print the processes");
	json_open_array(w);
	for (size_t i = 0; i < count; i++)
		json_put_u64(w, (uint64_t)pids[i]);
	json_close_array(w);
	return json_print(w, err);
}

int control_ps(struct oci_call *call, struct cj_error *err)
{
	auto_control_target struct control_target t = CONTROL_TARGET_NULL;
	pid_t *pids = NULL;
	size_t count = 0;
	if (call->options->operands.count > 0)
		return cj_reject(err, "ps takes no options of ps(1): print the pids and give them "
				      "to 'ps -p'");
	int rc = control_target_open(call, false, &t, err);
	if (rc == 0)
		rc = container_cgroup_pids(&t.cgroup, call->arena, &pids, &count, err);
	if (rc < 0)
		return rc;
	if (call->options->is_json)
		return print_json(pids, count, err);
	(void)printf("PID\n");
	for (size_t i = 0; i < count; i++)
		(void)printf("%d\n", (int)pids[i]);
	return 0;
}

/* --- update --------------------------------------------------------------------------------- */

/* "-" is standard input; any other file that can be read will do, a pipe as well. */
static int read_resources(const char *path, struct arena *a, struct oci_resources *out,
			  struct cj_error *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	const char *name = is_stdin ? "standard input" : path;
	auto_fd int file_fd = is_stdin ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	char *text;
	size_t size;
	if (!is_stdin && file_fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	int rc = fd_read_all(is_stdin ? STDIN_FILENO : file_fd, JSON_BYTES_MAX, a, &text, &size,
			     name, err);
	return rc < 0 ? rc : oci_resources_read(name, text, size, a, out, err);
}

int control_update(struct oci_call *call, struct cj_error *err)
{
	auto_control_target struct control_target t = CONTROL_TARGET_NULL;
	struct oci_resources resources = { 0 };
	struct oci_config config;
	const struct oci_options *o = call->options;
	bool has_flags = false;
	int rc = update_flags_read(o, &resources, &has_flags, err);
	if (rc < 0)
		return rc;
	if (o->resources && has_flags)
		return cj_reject(err, "update takes --resources or limits by option, not both");
	if (!o->resources && !has_flags)
		return cj_reject(err, "update: no limit is given: use --resources FILE or an "
				      "option such as --memory");
	if (o->resources)
		rc = read_resources(o->resources, call->arena, &resources, err);
	if (rc == 0)
		rc = control_target_open(call, true, &t, err);
	if (rc == 0 && o->resources)
		rc = container_config_stored(&t.state, call->arena, &config, err);
	if (rc < 0)
		return rc;
	if (o->resources)
		oci_config_settle_pids(&config, &resources);
	return container_cgroup_update(&t.cgroup, &resources, err);
}
