/* SPDX-License-Identifier: Apache-2.0 */
/* Names that other programs execute or obey. */
#include "rootfs/files/autorun.h"

#include <assert.h>
#include <fcntl.h>
#include <strings.h>
#include <sys/stat.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

/* A directory stands before what is in it. */
static const struct autorun_row {
	const char *path;
	bool only_new; /* its owner changes it often: only a new one is reported */
} rows[] = {
	/* git(1), githooks(5) */
	{ ".git", true },
	{ ".git/config", false },
	{ ".git/config.worktree", false },
	{ ".git/hooks", false },
	{ ".git/hooks/commit-msg", false },
	{ ".git/hooks/fsmonitor-watchman", false },
	{ ".git/hooks/post-checkout", false },
	{ ".git/hooks/post-commit", false },
	{ ".git/hooks/post-merge", false },
	{ ".git/hooks/pre-commit", false },
	{ ".git/hooks/pre-push", false },
	{ ".git/hooks/pre-rebase", false },
	{ ".git/hooks/prepare-commit-msg", false },
	{ ".gitconfig", false },
	{ ".config/git/config", false },
	{ ".husky", false },
	{ ".pre-commit-config.yaml", false },
	/* direnv(1), package managers, editors, coding assistants */
	{ ".envrc", false },
	{ "pyvenv.cfg", false },
	{ ".npmrc", false },
	{ ".yarnrc.yml", false },
	{ ".cargo/config.toml", false },
	{ ".exrc", false },
	{ ".vimrc", false },
	{ ".nvim.lua", false },
	{ ".vscode", false },
	{ ".vscode/launch.json", false },
	{ ".vscode/settings.json", false },
	{ ".vscode/tasks.json", false },
	{ ".idea", true },
	{ ".devcontainer", false },
	{ ".devcontainer/devcontainer.json", false },
	{ ".devcontainer.json", false },
	{ ".mcp.json", false },
	{ ".claude", true },
	{ ".claude/settings.json", false },
	{ ".claude/settings.local.json", false },
	{ ".cursor", true },
	{ ".cursor/mcp.json", false },
	/* a shell's, a session's, ssh's and our own, in a home directory */
	{ ".bashrc", false },
	{ ".bash_profile", false },
	{ ".bash_login", false },
	{ ".bash_logout", false },
	{ ".profile", false },
	{ ".zshrc", false },
	{ ".zshenv", false },
	{ ".zprofile", false },
	{ ".zlogin", false },
	{ ".xprofile", false },
	{ ".xsessionrc", false },
	{ ".tmux.conf", false },
	{ ".config/autostart", false },
	{ ".config/fish/config.fish", false },
	{ ".config/systemd/user", false },
	{ ".config/cejail", false },
	{ ".config/cejail/profiles", false },
	{ ".local/bin", false },
	{ ".ssh", true },
	{ ".ssh/authorized_keys", false },
	{ ".ssh/config", false },
	{ ".ssh/rc", false },
};
static_assert(COUNT_OF(rows) <= AUTORUN_ROWS_MAX, "every row has a mark");

/* True when `path` begins with all components of `name`.  Some file systems ignore case. */
static bool begins_with(const char *path, const char *name)
{
	size_t length = strlen(name);
	return strncasecmp(path, name, length) == 0 &&
	       (path[length] == '/' || path[length] == '\0');
}

bool autorun_has_name(const char *path)
{
	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		for (size_t i = 0; i < COUNT_OF(rows); i++)
			if (begins_with(at, rows[i].path))
				return true;
	}
	return false;
}

static struct autorun_mark look_at(int dir_fd, const char *path)
{
	struct stat st;
	auto_fd int fd = sys_openat2(dir_fd, path, O_PATH | O_NOFOLLOW, 0,
				     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (fd >= 0 && fstat(fd, &st) == 0)
		return (struct autorun_mark){ .inode = st.st_ino, .changed = st.st_ctim };
	/* ELOOP: a link in the path.  It is a change when there was none before. */
	return (struct autorun_mark){ .inode = errno == ELOOP ? UINT64_MAX : 0 };
}

void autorun_look(int dir_fd, struct autorun_marks *out)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		out->of[i] = look_at(dir_fd, rows[i].path);
}

static bool is_changed(const struct autorun_row *row, const struct autorun_mark *before,
		       const struct autorun_mark *after)
{
	if (after->inode == 0)
		return false;
	if (before->inode != after->inode)
		return true;
	return !row->only_new && (before->changed.tv_sec != after->changed.tv_sec ||
				  before->changed.tv_nsec != after->changed.tv_nsec);
}

/* True when another row is reported instead: for a new directory it alone is reported; for a
 * changed one the rows in it, if one changed. */
static bool is_reported_by_other(const struct autorun_marks *before,
				 const struct autorun_marks *after, size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (begins_with(rows[row].path, rows[i].path) &&
		    before->of[i].inode != after->of[i].inode)
			return true;
	for (size_t i = row + 1;
	     i < COUNT_OF(rows) && before->of[row].inode == after->of[row].inode; i++)
		if (begins_with(rows[i].path, rows[row].path) &&
		    is_changed(&rows[i], &before->of[i], &after->of[i]))
			return true;
	return false;
}

const char *autorun_next_change(const struct autorun_marks *before,
				const struct autorun_marks *after, size_t *at)
{
	while (*at < COUNT_OF(rows)) {
		size_t row = (*at)++;
		if (is_changed(&rows[row], &before->of[row], &after->of[row]) &&
		    !is_reported_by_other(before, after, row))
			return rows[row].path;
	}
	return NULL;
}
