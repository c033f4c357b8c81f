/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs features and spec.  Acts: prints, writes one file. */
#include "runtime/container/oci_show.h"

#include <fcntl.h>
#include <unistd.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/container/config/oci_features.h"
#include "runtime/container/config/oci_spec.h"

#define SPEC_NAME "config.json"
#define SPEC_MODE 0666 /* under the umask */

int oci_show_features(struct oci_call *call, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(true);

	(void)call;
	if (!w)
		return cj_fail(err, ENOMEM, "print the features");
	oci_features_write(w);
	return json_print(w, err);
}

static int write_new(int dir_fd, const char *text, size_t size, struct cj_error *err)
{
	auto_fd int fd = openat(dir_fd, SPEC_NAME,
				O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, SPEC_MODE);
	if (fd < 0) {
		int rc = cj_fail(err, errno, "create '%s'", SPEC_NAME);
		if (rc == -EEXIST)
			cj_hint(err, "remove it first, or choose another --bundle");
		return rc;
	}
	int rc = fd_write_all(fd, text, size, SPEC_NAME, err);
	if (rc == 0)
		rc = fd_write_all(fd, "\n", 1, SPEC_NAME, err);
	if (rc < 0)
		(void)unlinkat(dir_fd, SPEC_NAME, 0); /* half a file is worse than none */
	return rc;
}

int oci_show_spec(struct oci_call *call, struct cj_error *err)
{
	const struct oci_spec_caller caller = { call->options->rootless, geteuid(), getegid() };
	const char *bundle = call->options->bundle ? call->options->bundle : ".";
	auto_json_writer struct json_writer *w = json_writer_create(true);
	const char *text = NULL;
	size_t size = 0;

	if (!w)
		return cj_fail(err, ENOMEM, "write '%s'", SPEC_NAME);
	oci_spec_write(w, &caller);
	if (json_writer_take(w, &text, &size, err) < 0)
		return -err->code;
	auto_fd int dir_fd = open(bundle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return cj_fail(err, errno, "open the bundle '%s'", bundle);
	return write_new(dir_fd, text, size, err);
}
