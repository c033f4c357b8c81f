/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and reads the configuration.  Acts. */
#include "runtime/service/config/setup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

/* Only root and the service's own user may write it. */
static int check_owner(int fd, const char *path, struct cj_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "stat '%s'", path);
	bool is_ours = st.st_uid == 0 || st.st_uid == geteuid();
	if (is_ours && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0)
		return 0;
	int rc = cj_reject(err, "other users than root and this one can write '%s'", path);
	cj_hint(err, "chown and chmod it: its writers decide what callers may do");
	return rc;
}

static int read_file(struct service_config *c, const char *path, struct cj_error *err)
{
	char *text = NULL;
	size_t size = 0;
	auto_fd int fd = fd_open_regular(path, err);

	if (fd < 0)
		return fd;
	if (check_owner(fd, path, err) < 0 ||
	    fd_read_all(fd, SERVICE_CONFIG_BYTES_MAX, &c->arena, &text, &size, path, err) < 0)
		return -err->code;
	return service_config_read(c, path, text, size, err);
}

/* $XDG_CONFIG_HOME/cejail/serve.json for a user who has one; else the host's, if there is one. */
static const char *users_file(struct arena *a)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		return NULL;
	if (config && config[0] == '/')
		return arena_printf(a, "%s/cejail/serve.json", config);
	return home && home[0] == '/' ? arena_printf(a, "%s/.config/cejail/serve.json", home)
				      : NULL;
}

static int read_first(struct service_config *c, struct cj_error *err)
{
	const char *const paths[] = { users_file(&c->arena), SERVICE_CONFIG_FILE };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (!paths[i] ||
		    (access(paths[i], F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR)))
			continue;
		return read_file(c, paths[i], err);
	}
	return 0;
}

int setup_read(const struct serve_options *o, struct service_config **out, struct cj_error *err)
{
	struct service_config *c = malloc(sizeof(*c));

	if (!c)
		return cj_fail(err, ENOMEM, "read the configuration");
	service_config_init(c);
	int rc = o->config ? read_file(c, o->config, err) : read_first(c, err);
	if (rc == 0)
		rc = serve_options_apply(o, c, err);
	if (rc == 0)
		rc = service_config_check(c, err);
	if (rc < 0)
		setup_free(&c);
	*out = c;
	return rc;
}

void setup_free(struct service_config **c)
{
	if (!*c)
		return;
	service_config_fini(*c);
	free(*c);
	*c = NULL;
}
