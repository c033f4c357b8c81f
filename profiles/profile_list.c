/* SPDX-License-Identifier: Apache-2.0 */
/* Which profiles there are, and which one a file asks for.  Acts: reads directories and files. */
#include "profiles/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiles/paths.h"
#include "profiles/profile_dirs.h"

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every name once, sorted. */
static int collect_names(struct arena *a, struct strings *out, struct cj_error *err)
{
	struct profile_dirs dirs = { 0 };
	int rc = profile_dirs_find(a, &dirs, err);
	for (size_t i = 0; rc == 0 && i < dirs.count; i++)
		rc = profile_dir_names(&dirs.items[i], a, out, err);
	if (rc < 0 || out->count == 0)
		return rc;

	qsort(out->items, out->count, sizeof(out->items[0]), compare_names);
	size_t kept = 1;
	for (size_t i = 1; i < out->count; i++)
		if (strcmp(out->items[i], out->items[kept - 1]) != 0)
			out->items[kept++] = out->items[i];
	out->count = kept;
	out->items[kept] = NULL;
	return 0;
}

/* --- profile_list ----------------------------------------------------------- */

static const char *describe_problem(struct arena *a, const struct cj_error *problem)
{
	if (problem->hint[0] == '\0')
		return arena_strdup(a, problem->msg);
	return arena_printf(a, "%s (%s)", problem->msg, problem->hint);
}

/* A profile that does not read well is an entry too: with its problem. */
static int make_entry(struct arena *a, const char *name, struct profile_entry *out,
		      struct cj_error *err)
{
	struct cj_error problem = { 0 };
	struct profile_source source = { .path = "" };
	struct config c;
	config_init(&c);

	*out = (struct profile_entry){ .name = name, .description = "" };
	int rc = profile_source_read(name, 0, &c.arena, &source, &problem);
	if (rc == 0)
		rc = profile_load(&c, name, &problem);
	if (rc < 0)
		out->problem = describe_problem(a, &problem);
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
	int rc = collect_names(a, &names, err);
	if (rc < 0)
		return rc;

	struct profile_entry *entries = arena_array(a, names.count + 1, sizeof(*entries));
	if (!entries)
		return cj_fail(err, ENOMEM, "list the profiles");
	for (size_t i = 0; rc == 0 && i < names.count; i++)
		rc = make_entry(a, names.items[i], &entries[i], err);
	if (rc < 0)
		return rc;
	*out = entries;
	*out_count = names.count;
	return 0;
}

/* --- profile_for_file ------------------------------------------------------- */

/*
 * The extensions in the profile's own file: a child does not inherit them for this, else
 * "mine extends python" would make every .py file ambiguous.
 */
static int own_extensions(const char *name, struct config *scratch, struct cj_error *err)
{
	struct profile_source source;
	const char *parent;
	int rc = profile_source_read(name, 0, &scratch->arena, &source, err);
	if (rc < 0)
		return rc;
	return profile_read_text(scratch, source.path, source.text, source.size, &parent, err);
}

/* What has been seen of the profiles while one is looked for. */
struct search {
	const char *extension;
	const char *found, *second; /* second: another one that claims the extension */
	struct cj_error problem;    /* of the first that does not read */
};

static void search_profile(struct search *search, const char *name)
{
	struct config scratch;
	struct cj_error problem = { 0 };
	config_init(&scratch);
	if (own_extensions(name, &scratch, &problem) < 0) {
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
	int rc;
	if (search->second) {
		rc = cj_reject(err, "'%s': profiles '%s' and '%s' both run '%s' files", file,
			       search->found, search->second, search->extension);
	} else if (search->problem.code != 0) {
		*err = search->problem; /* it may well be the one */
		rc = cj_wrap(err, "look for a profile that runs '%s' files", search->extension);
	} else {
		rc = cj_reject(err, "'%s': no profile runs '%s' files", file, search->extension);
	}
	cj_hint(err, "choose one with --profile ('cejail profile list' shows what there is), or "
		     "make the file executable");
	return rc;
}

static int reject_bare(const char *file, struct cj_error *err)
{
	(void)!cj_reject(err, "'%s' has no extension to choose a profile by", file);
	return cj_hint(err, "choose one with --profile, or make the file executable: chmod +x %s",
		       file);
}

/* A file that the kernel runs: machine code, or a script with a "#!" line. */
static bool is_executable(const char *file)
{
	struct stat st;
	return stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0;
}

static int search_all(struct search *search, struct config *c, struct cj_error *err)
{
	struct strings names = { 0 };
	int rc = collect_names(&c->arena, &names, err);
	for (size_t i = 0; rc == 0 && i < names.count; i++)
		search_profile(search, names.items[i]);
	return rc;
}

int profile_for_file(struct config *c, const char *file, const char **out_name,
		     struct cj_error *err)
{
	const char *name = paths_name(file);
	struct search search = { .extension = strrchr(name, '.') };
	bool has_extension = search.extension && search.extension != name;
	if (has_extension && search_all(&search, c, err) < 0)
		return -err->code;
	/* Without memory, who knows which profiles would claim it, too. */
	if (search.found && !search.second && search.problem.code != ENOMEM)
		*out_name = search.found;
	else if (!search.second && search.problem.code == 0 && is_executable(file))
		*out_name = PROFILE_BASE;
	else if (has_extension)
		return reject_search(&search, file, err);
	else
		return reject_bare(file, err);
	return 0;
}
