/* SPDX-License-Identifier: Apache-2.0 */
/* Where profiles lie, reading one file of them, and which profile a program asks for. */
#include "profiles/profile.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "profiles/paths.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/libexec.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define SUFFIX ".json"

/* What can't be looked at counts as there: opening it says why, and no other is taken for it. */
static bool is_directory(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return errno != ENOENT && errno != ENOTDIR;
	return S_ISDIR(st.st_mode);
}

/* Cuts the last `n` components off an absolute path. */
static void cut_components(char *path, unsigned n)
{
	while (n-- > 0) {
		char *slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
	}
}

/*
 * PREFIX/bin/cejail and PREFIX/libexec/cejail/serve have PREFIX/share/cejail/profiles;
 * TREE/build/VARIANT/... has TREE/profiles.
 * Nothing else above the program is looked at: a program copied to /tmp must not read
 * profiles that anybody can put into /tmp.
 */
static bool find_beside_program(char *out, size_t out_size)
{
	char exe[PATH_MAX], prefix[PATH_MAX];
	struct cj_error unknown = { 0 };
	if (libexec_self(exe, &unknown) < 0)
		return false;

	memcpy(prefix, exe, strlen(exe) + 1);
	cut_components(prefix, 1);
	cut_components(prefix, text_ends_with(prefix, "/libexec/cejail") ? 2 : 1);
	int n = snprintf(out, out_size, "%s/share/cejail/profiles", prefix);
	if (n > 0 && (size_t)n < out_size && is_directory(out))
		return true;

	char *build = NULL; /* the last one */
	for (char *at = exe; (at = strstr(at, "/build/")); at++)
		build = at;
	if (!build)
		return false;
	*build = '\0';
	n = snprintf(out, out_size, "%s/profiles", exe);
	return n > 0 && (size_t)n < out_size && is_directory(out);
}

const char *profile_shipped_dir(void)
{
	/* A cache, not state: the answer is the same for as long as the program runs. */
	static char beside[PATH_MAX + 32];
	if (beside[0] != '\0')
		return beside;
	if (find_beside_program(beside, sizeof(beside)))
		return beside;
	beside[0] = '\0';
	return CJ_DATADIR "/profiles";
}

int profile_dirs_find(struct arena *a, struct profile_dirs *out, struct cj_error *err)
{
	struct profile_dirs dirs = { 0 };
	const char *config_home = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME"), *users = NULL;

	/* A relative path means nothing here: the XDG base directory specification. */
	const bool has_config_home = config_home && config_home[0] == '/';
	const bool has_home = home && home[0] == '/';
	if (has_config_home)
		users = arena_printf(a, "%s/cejail/profiles", config_home);
	else if (has_home)
		users = arena_printf(a, "%s/.config/cejail/profiles", home);
	if ((has_config_home || has_home) && !users)
		return cj_fail(err, ENOMEM, "list the profile directories");
	if (users)
		dirs.items[dirs.count++] = (struct profile_dir){ users, true };
	dirs.items[dirs.count++] = (struct profile_dir){ "/etc/cejail/profiles", false };
	dirs.items[dirs.count++] = (struct profile_dir){ profile_shipped_dir(), false };
	*out = dirs;
	return 0;
}

/*
 * *out_fd is -1 where there is no such directory.  The user's own is not there either when it
 * may not be searched: nothing of the caller's can be in it (HOME is often still root's after
 * a change of user).  The administrator's is never passed over for that.
 */
static int open_dir(const struct profile_dir *dir, int *out_fd, struct cj_error *err)
{
	*out_fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*out_fd >= 0 || errno == ENOENT || errno == ENOTDIR)
		return 0;
	if (errno == EACCES && dir->is_users)
		return 0;
	return cj_fail(err, errno, "open '%s'", dir->path);
}

int profile_dir_names(const struct profile_dir *where, struct arena *a, struct strings *out,
		      struct cj_error *err)
{
	int dir_fd = -1;
	if (open_dir(where, &dir_fd, err) < 0)
		return -err->code;
	if (dir_fd < 0)
		return 0;
	auto_fd_dir struct fd_dir *dir = fd_take_dir(dir_fd);
	if (!dir)
		return cj_fail(err, errno, "list '%s'", where->path);

	for (const struct dirent *entry; (entry = fd_next_entry(dir)) != NULL;) {
		size_t size = strlen(entry->d_name);
		size_t stem = size > strlen(SUFFIX) ? size - strlen(SUFFIX) : 0;
		if (stem == 0 || strcmp(entry->d_name + stem, SUFFIX) != 0)
			continue;
		const char *name = arena_strndup(a, entry->d_name, stem);
		if (!name || (is_name(name) && strings_add(out, a, name) < 0))
			return cj_fail(err, ENOMEM, "list '%s'", where->path);
	}
	return errno == 0 ? 0 : cj_fail(err, errno, "list '%s'", where->path);
}

/* After sudo(8), HOME may still be another user's, whose files the caller has not chosen. */
static int check_file(int fd, const char *path, bool is_from_home, size_t *out_size,
		      struct cj_error *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "fstat '%s'", path);
	*out_size = (size_t)st.st_size;
	if (!S_ISREG(st.st_mode))
		return cj_reject(err, "'%s' is not a regular file", path);
	if (is_from_home && st.st_uid != 0 && st.st_uid != geteuid()) {
		cj_refuse(err, "'%s' belongs to user %u, who is neither you nor root", path,
			  st.st_uid);
		return cj_hint(err,
			       "HOME or XDG_CONFIG_HOME may still be another user's; to trust the "
			       "file, name it by its path");
	}
	/*
	 * Group write is taken for the convention that each user has a group of his own with the
	 * same number (umask 002); any other group is other people.
	 */
	if ((st.st_mode & S_IWOTH) || ((st.st_mode & S_IWGRP) && st.st_gid != st.st_uid)) {
		cj_refuse(err, "'%s' can be written by others than its owner", path);
		return cj_hint(err, "chmod go-w '%s'", path);
	}
	return 0;
}

static int read_fd(int fd, bool is_from_home, struct arena *a, struct profile_source *source,
		   struct cj_error *err)
{
	size_t size = 0;
	if (check_file(fd, source->path, is_from_home, &size, err) < 0)
		return -err->code;
	return fd_read_sized(fd, size, PROFILE_BYTES_MAX, a, &source->text, &source->size,
			     source->path, err);
}

/* 1: found and opened; 0: this directory has no such profile, as open_dir() says. */
static int open_in_dir(const struct profile_dir *dir, const char *name, struct arena *a,
		       const char **out_path, int *out_fd, struct cj_error *err)
{
	const char *path = arena_printf(a, "%s/%s" SUFFIX, dir->path, name);
	if (!path)
		return cj_fail(err, ENOMEM, "open profile '%s'", name);

	*out_fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (*out_fd >= 0) {
		*out_path = path;
		return 1;
	}
	int code = errno;
	if (code == ENOENT || code == ENOTDIR)
		return 0;
	if (code == EACCES && dir->is_users && access(dir->path, X_OK) < 0)
		return 0;
	if (code == ELOOP) {
		cj_refuse(err, "'%s' is a symbolic link", path);
		return cj_hint(err, "put the file itself there, or name it: --profile FILE");
	}
	return cj_fail(err, code, "open '%s'", path);
}

/* Most callers have only the shipped directory.  Not asked of that one, where the search ends. */
static bool is_known_absent(struct profile_source *source, const struct profile_dirs *dirs,
			    size_t i)
{
	const unsigned bit = 1u << i;
	struct stat st;
	if (i + 1 < dirs->count && !(source->known_dirs & bit)) {
		source->known_dirs |= bit;
		if (stat(dirs->items[i].path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
			source->absent_dirs |= bit;
	}
	return source->absent_dirs & bit;
}

static int reject_absent(const struct profile_dirs *dirs, const char *name, struct arena *a,
			 struct cj_error *err)
{
	struct strings names = { 0 };
	struct cj_error ignored; /* the hint is a courtesy */
	for (size_t i = 0; i < dirs->count; i++)
		(void)profile_dir_names(&dirs->items[i], a, &names, &ignored);
	const char *near = names.count > 0 ? text_nearest(name, names.items) : NULL;

	cj_refuse_as(err, ENOENT, "there is no profile '%s'", name);
	if (near)
		return cj_hint(err, "did you mean '%s'?", near);
	return cj_hint(err, "'cejail profile list' shows what there is");
}

static int read_named(struct arena *a, struct profile_source *source, struct cj_error *err)
{
	if (!is_name(source->name)) {
		cj_refuse(err, "'%s' is not a profile's name (a-z 0-9 _ -)", source->name);
		return cj_hint(err, "for a file, write a path with a slash: './%s'", source->name);
	}

	struct profile_dirs dirs = { 0 };
	int rc = profile_dirs_find(a, &dirs, err);
	for (size_t i = source->next_dir; rc == 0 && i < dirs.count; i++) {
		auto_fd int fd = -1;
		source->next_dir = i + 1;
		if (is_known_absent(source, &dirs, i))
			continue;
		rc = open_in_dir(&dirs.items[i], source->name, a, &source->path, &fd, err);
		if (rc > 0)
			return read_fd(fd, dirs.items[i].is_users, a, source, err);
	}
	return rc < 0 ? rc : reject_absent(&dirs, source->name, a, err);
}

int profile_source_read(const char *name, size_t first_dir, struct arena *a,
			struct profile_source *out, struct cj_error *err)
{
	struct profile_source source = { .name = name,
					 .path = name,
					 .next_dir = first_dir,
					 .known_dirs = out->known_dirs,
					 .absent_dirs = out->absent_dirs };

	if (strchr(name, '/')) {
		auto_fd int fd = fd_open_regular(name, err);
		if (fd < 0 || read_fd(fd, false, a, &source, err) < 0)
			return -err->code;
	} else if (read_named(a, &source, err) < 0) {
		return -err->code;
	}
	*out = source;
	return 0;
}

/* Every name once, sorted. */
static int collect_names(struct arena *a, struct strings *out, struct cj_error *err)
{
	struct profile_dirs dirs = { 0 };
	if (profile_dirs_find(a, &dirs, err) < 0)
		return -err->code;
	for (size_t i = 0; i < dirs.count; i++)
		if (profile_dir_names(&dirs.items[i], a, out, err) < 0)
			return -err->code;
	if (out->count == 0)
		return 0;

	strings_sort(out);
	size_t kept = 1;
	for (size_t i = 1; i < out->count; i++)
		if (strcmp(out->items[i], out->items[kept - 1]) != 0)
			out->items[kept++] = out->items[i];
	out->count = kept;
	out->items[kept] = NULL;
	return 0;
}

/* A profile that does not read well is an entry too: with its problem. */
static int make_entry(struct arena *a, const char *name, struct profile_entry *out,
		      struct cj_error *err)
{
	struct cj_error problem = { 0 };
	char text[CJ_ERROR_TEXT_MAX];
	struct profile_source source = { .path = "" };
	struct config c;
	config_init(&c);

	*out = (struct profile_entry){ .name = name, .description = "" };
	int rc = profile_source_read(name, 0, &c.arena, &source, &problem);
	if (rc == 0)
		rc = profile_load(&c, name, &problem);
	if (rc < 0)
		out->problem = arena_strdup(a, cj_error_text(&problem, text));
	else if (c.description)
		out->description = arena_strdup(a, c.description);
	out->path = arena_strdup(a, source.path);
	config_fini(&c);

	if (!out->path || !out->description || (rc < 0 && !out->problem) || rc == -ENOMEM)
		return cj_fail(err, ENOMEM, "list the profiles");
	return 0;
}

int profile_list(struct arena *a, struct profile_entry **out, size_t *out_count,
		 struct cj_error *err)
{
	struct strings names = { 0 };
	if (collect_names(a, &names, err) < 0)
		return -err->code;

	struct profile_entry *entries = arena_array(a, names.count + 1, sizeof(*entries));
	if (!entries)
		return cj_fail(err, ENOMEM, "list the profiles");
	for (size_t i = 0; i < names.count; i++)
		if (make_entry(a, names.items[i], &entries[i], err) < 0)
			return -err->code;
	*out = entries;
	*out_count = names.count;
	return 0;
}

/* What has been seen of the profiles while one is looked for. */
struct search {
	const char *extension;
	const char *found, *second; /* second: another one that claims the extension */
	struct cj_error problem;    /* of the first that does not read */
	struct profile_source source;
};

/*
 * The extensions in the profile's own file: a child does not inherit them for this, else
 * "mine extends python" would make every .py file ambiguous.
 */
static void search_profile(struct search *search, const char *name)
{
	struct config scratch;
	struct profile_source *source = &search->source;
	struct cj_error problem = { 0 };
	const char *parent;
	config_init(&scratch);
	if (profile_source_read(name, 0, &scratch.arena, source, &problem) < 0 ||
	    profile_read_text(&scratch, source->path, source->text, source->size, &parent,
			      &problem) < 0) {
		if (search->problem.code == 0 || problem.code == ENOMEM)
			search->problem = problem;
	} else if (strings_has(&scratch.extensions, search->extension)) {
		if (!search->found)
			search->found = name;
		else
			search->second = name;
	}
	config_fini(&scratch);
}

static int reject_search(const struct search *search, const char *file, struct cj_error *err)
{
	if (search->second) {
		cj_refuse(err, "'%s': profiles '%s' and '%s' both run '%s' files", file,
			  search->found, search->second, search->extension);
	} else if (search->problem.code != 0) {
		*err = search->problem; /* it may well be the one */
		(void)!cj_wrap(err, "look for a profile that runs '%s' files", search->extension);
	} else {
		cj_refuse(err, "'%s': no profile runs '%s' files", file, search->extension);
	}
	return cj_hint(err, "choose one with --profile ('cejail profile list' shows what there "
			    "is), or make the file executable");
}

/* A file that the kernel runs: machine code, or a script with a "#!" line. */
static bool is_executable(const char *file)
{
	struct stat st;
	return stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0;
}

int profile_for_file(struct config *c, const char *file, const char **out_name,
		     struct cj_error *err)
{
	const char *name = paths_name(file);
	struct search search = { .extension = strrchr(name, '.') };
	bool has_extension = search.extension && search.extension != name;
	struct strings names = { 0 };
	if (has_extension && collect_names(&c->arena, &names, err) < 0)
		return -err->code;
	for (size_t i = 0; i < names.count; i++)
		search_profile(&search, names.items[i]);
	/* Without memory, who knows which profiles would claim it, too. */
	if (search.found && !search.second && search.problem.code != ENOMEM) {
		*out_name = search.found;
	} else if (!search.second && search.problem.code == 0 && is_executable(file)) {
		*out_name = PROFILE_BASE;
	} else if (has_extension) {
		return reject_search(&search, file, err);
	} else {
		cj_refuse(err, "'%s' has no extension to choose a profile by", file);
		return cj_hint(
		    err, "choose one with --profile, or make the file executable: chmod +x %s",
		    file);
	}
	return 0;
}
