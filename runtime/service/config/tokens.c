/* SPDX-License-Identifier: Apache-2.0 */
/* Token files, read once, kept as digests. */
#include "runtime/service/config/tokens.h"

#include <sys/stat.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define CREDENTIAL "token"

/*
 * systemd grants access to files there by an ACL, which shows as the group bits: systemd.exec(5).
 */
static bool is_credential(const char *path)
{
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	size_t size = dir ? strlen(dir) : 0;

	return size > 0 && dir[0] == '/' && strncmp(path, dir, size) == 0 && path[size] == '/' &&
	       !strchr(path + size + 1, '/');
}

/* Only root and the service may read it: a group that could read it may contain callers. */
static int check_access(int fd, const char *path, struct cj_error *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "stat '%s'", path);

	mode_t forbidden = is_credential(path) ? S_IWGRP | S_IRWXO : S_IRWXG | S_IRWXO;
	if (st.st_uid != 0 && st.st_uid != geteuid()) {
		cj_refuse(err, "'%s' belongs to uid %u, which can read the token", path,
			  (unsigned)st.st_uid);
		return cj_hint(err, "chown it to root or to the service's user");
	}
	if ((st.st_mode & forbidden) == 0)
		return 0;
	cj_refuse(err, "other users can access '%s' (mode 0%03o)", path,
		  (unsigned)st.st_mode & 0777);
	return cj_hint(err, "chmod 600 it; if only root may read it, LoadCredential= in the unit "
			    "passes it to the service of another user");
}

struct token {
	char text[TOKEN_MAX + 2]; /* for a newline, and one byte more to notice a longer token */
	size_t size;
};

/* One newline at the end, as editors write it, is not part of the token. */
static int read_token(int fd, const char *path, struct token *out, struct cj_error *err)
{
	out->size = 0;
	while (out->size < sizeof(out->text)) {
		ssize_t got = sys_read(fd, out->text + out->size, sizeof(out->text) - out->size);
		if (got < 0)
			return cj_fail(err, errno, "read '%s'", path);
		if (got == 0)
			break;
		out->size += (size_t)got;
	}
	if (out->size > 0 && out->text[out->size - 1] == '\n')
		out->size--;
	return 0;
}

static int load(const char *path, char out_sha256[static SHA256_HEX_MAX], struct cj_error *err)
{
	struct token token = { .size = 0 };
	auto_fd int fd = fd_open_regular(path, err);
	if (fd < 0)
		return fd;
	int rc = check_access(fd, path, err);
	if (rc < 0)
		return rc;

	rc = read_token(fd, path, &token, err);
	if (rc == 0 && token_check(token.text, token.size, err) < 0)
		rc = cj_wrap(err, "'%s'", path);
	if (rc == 0)
		sha256_hex(token.text, token.size, out_sha256);
	explicit_bzero(&token, sizeof(token));
	return rc;
}

/* The path of systemd's credential, or NULL without one. */
static int find_credential(struct service_config *c, const char **out, struct cj_error *err)
{
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	*out = NULL;
	if (!dir || dir[0] != '/')
		return 0;
	const char *path = arena_printf(&c->arena, "%s/" CREDENTIAL, dir);
	if (!path)
		return cj_fail(err, ENOMEM, "read the credential '" CREDENTIAL "'");
	if (access(path, F_OK) == 0 ||
	    errno != ENOENT) /* open(2) reports what access(2) can't look at */
		*out = path;
	return 0;
}

/* Sets the file of the row TOKEN_DEFAULT_NAME, and adds that row if the configuration has none. */
static int name_default(struct service_config *c, struct cj_error *err)
{
	const size_t at = callers_find(&c->callers, TOKEN_DEFAULT_NAME);
	struct caller_row *row = at < c->callers.count ? &c->callers.rows[at] : NULL;
	const char *path = c->token_file;

	if (path && row && row->token_file)
		return cj_reject(err, "token_file: callers." TOKEN_DEFAULT_NAME
				      " has a token_file, too; set only one of them");
	if (row && row->token_file)
		return 0;
	int rc = path ? 0 : find_credential(c, &path, err);
	if (rc < 0 || !path)
		return rc;
	if (!row) {
		if (c->callers.count == CALLERS_MAX)
			return cj_reject(err, "callers: more than %d", CALLERS_MAX);
		row = &c->callers.rows[c->callers.count++];
		*row = (struct caller_row){ .name = TOKEN_DEFAULT_NAME,
					    .rights = c->callers.standard };
	}
	row->token_file = path;
	return 0;
}

static int load_row(const struct callers *c, struct caller_row *row, struct cj_error *err)
{
	if (!row->token_file) {
		cj_refuse(err, "callers.%s: it has no token", row->name);
		return cj_hint(err, "give it a \"token_file\"");
	}
	int rc = load(row->token_file, row->token_sha256, err);
	if (rc < 0)
		return cj_wrap(err, "callers.%s: token_file", row->name);
	row->has_token = true;
	for (const struct caller_row *other = c->rows; other < row; other++)
		if (other->has_token && strcmp(other->token_sha256, row->token_sha256) == 0)
			return cj_reject(err, "callers.%s has the same token as callers.%s",
					 row->name, other->name);
	return 0;
}

int tokens_load(struct service_config *c, struct cj_error *err)
{
	size_t tokens = 0;
	int rc = name_default(c, err);
	for (size_t i = 0; i < c->callers.count && rc == 0; i++) {
		struct caller_row *row = &c->callers.rows[i];
		if (strncmp(row->name, "token:", 6) != 0)
			continue;
		rc = load_row(&c->callers, row, err);
		tokens++;
	}
	if (rc < 0 || !c->tcp || tokens > 0)
		return rc;
	cj_refuse(err, "tcp: callers need a token, and none is configured");
	return cj_hint(err, "set \"token_file\", or LoadCredential=token:FILE in the unit");
}
