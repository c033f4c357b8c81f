/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where host paths land in the jail: binds, sockets, copies, and that none of them hides
 * or overwrites another.  Asks the host what each source is.  And what is copied out of the jail.
 */
#include "profiles/plan/plan_parts.h"

#include <limits.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "profiles/paths.h"
#include "profiles/plan/env_file.h"
#include "runtime/base/text.h"

#define TMPFS_MAX 16 /* --tmpfs */

#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

/* The jail's own directories can be written below, not replaced. */
static bool is_own(const char *target)
{
	return strcmp(target, PLACE_BOX) == 0 || strcmp(target, PLACE_TMP) == 0;
}

static int check_not_own(const char *target, struct cj_error *err)
{
	if (!is_own(target))
		return 0;
	cj_refuse(err, "'%s' is the jail's own", target);
	return cj_hint(err, "choose a place below it: '%s/NAME'", target);
}

/* A directory in every jail: another can lie on it or add to it.  source: NULL: no host path. */
static int check_out(const char *target, const char *source, struct cj_error *err)
{
	struct stat st;
	if (strcmp(target, PLACE_OUT) != 0)
		return 0;
	if (source && stat(source, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	cj_refuse(err, "'" PLACE_OUT "' is a directory in every jail");
	return cj_hint(err, "give the file another place, such as '" PLACE_BOX "/NAME'");
}

/* One row for each option that shows something of the host. */
struct bind_option {
	const char *option;
	enum bind_kind kind;
	const struct strings *texts;
	const char *prefix; /* before SRC */
	int (*check)(const char *source, const struct stat *st, struct cj_error *err);
	size_t target_max; /* characters */
};

static int check_host_path(const char *source, const struct stat *st, struct cj_error *err)
{
	if (S_ISSOCK(st->st_mode)) {
		cj_refuse(err, "'%s' is a socket", source);
		return cj_hint(err, "use --connect unix:%s", source);
	}
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		return cj_reject(err, "'%s' is neither a file nor a directory", source);
	return 0;
}

static int check_directory(const char *source, const struct stat *st, struct cj_error *err)
{
	if (S_ISDIR(st->st_mode))
		return 0;
	cj_refuse(err, "'%s' is not a directory", source);
	return cj_hint(err, "an overlay needs a directory; copy one file in with --file %s",
		       source);
}

/*
 * connect(2) asks for write permission on the socket.  A jail that root starts runs as a user
 * a user that owns no file of this host and is in no group.
 */
static int check_socket(const char *source, const struct stat *st, struct cj_error *err)
{
	if (!S_ISSOCK(st->st_mode))
		return cj_reject(err, "'%s' is not a socket", source);
	if (geteuid() == 0 && !(st->st_mode & S_IWOTH)) {
		cj_refuse(err, "the jail's user may not connect to '%s'", source);
		return cj_hint(err,
			       "chmod o+w it (its directory can stay closed), or start cejail as "
			       "the socket's owner");
	}
	return 0;
}

static int find_source(const struct bind_option *row, const char *text, struct arena *a,
		       const char **out, struct cj_error *err)
{
	struct stat st;
	if (paths_resolve(text, a, out, err) < 0)
		return -err->code;
	if (stat(*out, &st) < 0)
		return cj_fail(err, errno, "stat '%s'", *out);
	return row->check(*out, &st, err);
}

/* "SRC[:DST]" of something that is shown: the same path inside, unless DST says otherwise. */
static int find_bind(const struct bind_option *row, const char *text, struct arena *a,
		     struct bind_spec *bind, struct cj_error *err)
{
	const char *source, *target;
	if (paths_split(text + strlen(row->prefix), a, &source, &target, err) < 0 ||
	    find_source(row, source, a, &bind->source, err) < 0 ||
	    paths_target(target ? target : bind->source, a, &bind->target, err) < 0 ||
	    check_not_own(bind->target, err) < 0 || check_out(bind->target, bind->source, err) < 0)
		return -err->code;
	if (strlen(bind->target) > row->target_max)
		return cj_reject(err, "'%s' is longer than %zu characters: unix(7)", bind->target,
				 row->target_max);
	return 0;
}

static int add_binds(struct planner *p, const struct bind_option *row, struct bind_spec *binds,
		     size_t *count, struct cj_error *err)
{
	const struct exposure_caller caller = {
		.home = env_value(p->inv->environ, "HOME"),
		.ssh_agent = env_value(p->inv->environ, "SSH_AUTH_SOCK"),
	};
	for (size_t i = 0; i < row->texts->count; i++) {
		struct bind_spec bind = { .kind = row->kind };
		if (row->kind == BIND_SOCKET && plan_is_tcp(row->texts->items[i]))
			continue; /* the network's: plan_network.c */
		if (find_bind(row, row->texts->items[i], &p->c->arena, &bind, err) < 0)
			return cj_wrap(err, "%s", row->option);
		/* What it hands the program is the caller's choice, made knowingly. */
		if (exposure_check(row->option, bind.source, &caller, p->c->strict, &p->c->arena,
				   &p->plan.warnings, err) < 0)
			return -err->code;
		binds[(*count)++] = bind;
	}
	return 0;
}

/* The jail's own tmpfs has one size for all its directories: --disk. */
static int check_size(const struct planner *p, const char *text, struct cj_error *err)
{
	uint64_t bytes;
	char most[32];
	if (parse_size(text, &bytes, err) < 0)
		return -err->code;
	if (bytes <= p->c->limits.disk_bytes)
		return 0;
	cj_refuse(err, "'%s' is more than the %s of --disk", text,
		  text_format_size(p->c->limits.disk_bytes, most, sizeof(most)));
	return cj_hint(err, "raise it: --disk %s", text);
}

static int find_tmpfs(const struct planner *p, const char *text, struct bind_spec *bind,
		      struct cj_error *err)
{
	const char *target, *size;
	if (paths_split(text, &p->c->arena, &target, &size, err) < 0 ||
	    paths_target(target, &p->c->arena, &bind->target, err) < 0)
		return -err->code;
	if (is_own(bind->target) || strcmp(bind->target, PLACE_OUT) == 0)
		return cj_reject(err, "'%s' is an empty writable directory in every jail",
				 bind->target);
	return size ? check_size(p, size, err) : 0;
}

static int add_tmpfs(struct planner *p, struct bind_spec *binds, size_t *count,
		     struct cj_error *err)
{
	if (p->c->tmpfs.count > TMPFS_MAX)
		return cj_reject(err, "--tmpfs: %zu of them; a jail can have %d", p->c->tmpfs.count,
				 TMPFS_MAX);
	for (size_t i = 0; i < p->c->tmpfs.count; i++) {
		struct bind_spec bind = { .kind = BIND_TMPFS, .source = "tmpfs" };
		if (find_tmpfs(p, p->c->tmpfs.items[i], &bind, err) < 0)
			return cj_wrap(err, "--tmpfs");
		binds[(*count)++] = bind;
	}
	return 0;
}

static int compare_targets(const void *a, const void *b)
{
	const struct bind_spec *one = a, *other = b;
	return strcmp(one->target, other->target);
}

static int plan_binds(struct planner *p, struct cj_error *err)
{
	const struct config *c = p->c;
	const struct bind_option rows[] = {
		{ "--ro-bind", BIND_READ_ONLY, &c->ro_binds, "", check_host_path, PATH_MAX },
		{ "--bind", BIND_WRITABLE, &c->binds, "", check_host_path, PATH_MAX },
		{ "--cache", BIND_KEPT, &c->kept, "", check_directory, PATH_MAX },
		{ "--overlay", BIND_OVERLAY, &c->overlays, "", check_directory, PATH_MAX },
		{ "--connect", BIND_SOCKET, &c->connects, "unix:", check_socket, SOCKET_PATH_MAX },
	};

	size_t most = c->ro_binds.count + c->binds.count + c->overlays.count + c->connects.count +
		      c->tmpfs.count + c->kept.count;
	size_t count = 0;
	if (c->overlays.count + c->kept.count > OVERLAYS_MAX)
		return cj_reject(err, "--overlay: %zu of them; a jail can have %zu",
				 c->overlays.count, OVERLAYS_MAX - c->kept.count);
	struct bind_spec *binds = arena_array(&p->c->arena, most + 1, sizeof(*binds));
	if (!binds)
		return cj_fail(err, ENOMEM, "plan the jail's places");
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (add_binds(p, &rows[i], binds, &count, err) < 0)
			return -err->code;
	if (add_tmpfs(p, binds, &count, err) < 0)
		return -err->code;

	/* A directory sorts before what lies in it, so no mount hides one made before it. */
	qsort(binds, count, sizeof(*binds), compare_targets);
	p->plan.root.binds = binds;
	p->plan.root.nbinds = count;
	return 0;
}

static int check_copy_source(const char *source, bool *out_is_dir, struct cj_error *err)
{
	struct stat st;
	char real[PATH_MAX];
	if (lstat(source, &st) < 0)
		return cj_fail(err, errno, "find '%s'", source);
	if (S_ISLNK(st.st_mode) && !realpath(source, real))
		return cj_fail(err, errno, "follow the symbolic link '%s'", source);
	if (S_ISLNK(st.st_mode)) {
		cj_refuse(err, "'%s' is a symbolic link to '%s'", source, real);
		return cj_hint(err, "name the path that it leads to, if that is what the program "
				    "may read");
	}
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return cj_reject(err, "'%s' is neither a file nor a directory", source);
	*out_is_dir = S_ISDIR(st.st_mode);
	return 0;
}

/* A place that is the jail's own. */
static bool is_own_mount(const struct bind_spec *bind)
{
	return bind->kind == BIND_OVERLAY || bind->kind == BIND_TMPFS;
}

/* A directory may be copied *to* /box: it adds to what is there. */
static int check_copy_target(const struct planner *p, const char *target, bool is_dir,
			     struct cj_error *err)
{
	if (!is_dir && (check_not_own(target, err) < 0 || check_out(target, NULL, err) < 0))
		return -err->code;
	const struct rootfs_spec *root = &p->plan.root;
	bool is_writable = p->c->writable || paths_is_below(target, PLACE_BOX) ||
			   paths_is_below(target, PLACE_TMP);
	for (size_t i = 0; i < root->nbinds; i++)
		is_writable |= is_own_mount(&root->binds[i]) &&
			       paths_is_below(target, root->binds[i].target);
	if (is_writable)
		return 0;
	cj_refuse(err, "'%s' lies in the read-only root", target);
	return cj_hint(err, "copy to " PLACE_BOX " or " PLACE_TMP ", or add --writable");
}

/* As cp(1): a target that ends in a slash is the directory to copy into. */
static int find_copy_target(const char *source, const char *target, struct arena *a,
			    const char **out, struct cj_error *err)
{
	bool is_into = !target || target[strlen(target) - 1] == '/';
	const char *text = target;
	if (is_into) {
		const char *name = paths_name(source);
		if (name[0] == '\0')
			return cj_reject(err, "'/' can't be copied in (see --rootfs)");
		text = arena_printf(a, "%s/%s", target ? target : PLACE_BOX, name);
	}
	return text ? paths_target(text, a, out, err)
		    : cj_fail(err, ENOMEM, "plan the jail's places");
}

/* "SRC[:DST]" of --file. */
static int find_copy(const struct planner *p, const char *text, struct copy_spec *copy,
		     bool *out_is_dir, struct cj_error *err)
{
	struct arena *a = &p->c->arena;
	const char *source, *target;
	if (paths_split(text, a, &source, &target, err) < 0 ||
	    paths_absolute(source, a, &copy->source, err) < 0 ||
	    check_copy_source(copy->source, out_is_dir, err) < 0)
		return -err->code;
	return find_copy_target(copy->source, target, a, &copy->target, err);
}

static int find_stdin_copy(const struct planner *p, const char *text, struct copy_spec *copy,
			   struct cj_error *err)
{
	if (!p->inv->has_stdin)
		return cj_reject(err, "'%s': standard input is not the caller's here", text);
	*copy = (struct copy_spec){ .source = "-", .is_stdin = true };
	return plan_stdin_target(text, &p->c->arena, &copy->target, err);
}

static int add_copies(struct planner *p, struct copy_spec *files, struct cj_error *err)
{
	const struct strings *paths = &p->c->files, *texts = &p->c->file_texts;
	size_t n = 0, inputs = 0;

	for (size_t i = 0; i < paths->count; i++, n++) {
		const char *text = paths->items[i];
		bool is_stdin = plan_is_stdin(text), is_dir = false;
		int rc = is_stdin ? find_stdin_copy(p, text, &files[n], err)
				  : find_copy(p, text, &files[n], &is_dir, err);
		if (rc == 0)
			rc = check_copy_target(p, files[n].target, is_dir, err);
		if (rc == 0 && is_stdin && ++inputs > 1)
			rc = cj_reject(err, "'%s': standard input can be one file only", text);
		if (rc < 0)
			return cj_wrap(err, "--file");
	}
	for (size_t i = 0; i < texts->count; i++, n++)
		if (plan_file_text(texts->items[i], &p->c->arena, &files[n], err) < 0 ||
		    check_copy_target(p, files[n].target, false, err) < 0)
			return cj_wrap(err, "--file-text");
	for (size_t i = 0; i < p->inv->ncopies; i++, n++) {
		files[n] = p->inv->copies[i];
		if (paths_target(files[n].target, &p->c->arena, &files[n].target, err) < 0 ||
		    check_copy_target(p, files[n].target, false, err) < 0)
			return cj_wrap(err, "files");
	}
	if (p->program.tools)
		memcpy(&files[n], p->program.tool_files, sizeof(p->program.tool_files));
	return 0;
}

static int plan_copies(struct planner *p, struct cj_error *err)
{
	size_t count = p->c->files.count + p->c->file_texts.count + p->inv->ncopies +
		       (p->program.tools ? TOOL_FILES : 0);
	struct copy_spec *files = arena_array(&p->c->arena, count + 1, sizeof(*files));
	if (!files)
		return cj_fail(err, ENOMEM, "plan the jail's places");
	if (add_copies(p, files, err) < 0)
		return -err->code;
	p->program.files = files;
	p->program.nfiles = count;
	return 0;
}

/* Something that appears at a place in the jail. */
struct landing {
	const char *target;
	const char *what; /* as messages call it */
	bool is_mount;    /* covers all below it, and that is the host's: is_own_mount() is false */
};

static size_t collect_landings(const struct planner *p, struct landing *list)
{
	const struct program *program = &p->program;
	size_t count = 0;

	for (size_t i = 0; i < p->plan.root.nbinds; i++) {
		const struct bind_spec *bind = &p->plan.root.binds[i];
		list[count++] = (struct landing){ bind->target, bind->source, !is_own_mount(bind) };
	}
	for (size_t i = 0; i < program->nfiles; i++) {
		const struct copy_spec *file = &program->files[i];
		bool is_tools = program->tools && i + TOOL_FILES >= program->nfiles;
		list[count++] = (struct landing){ file->target, is_tools       ? "--tools"
								: file->source ? file->source
									       : "files" };
	}
	if (program->code_path)
		list[count++] = (struct landing){ program->code_path, "the program's code" };
	if (program->args_json)
		list[count++] = (struct landing){ PLACE_ARGS_JSON, "--args-json" };
	if (program->collect_artifacts)
		list[count++] = (struct landing){ PLACE_OUT, "--artifacts" };
	return count;
}

static int check_pair(const struct landing *one, const struct landing *other, struct cj_error *err)
{
	/* Only directories are copied to the jail's own places, and those add up. */
	if (strcmp(one->target, other->target) == 0 && !is_own(one->target))
		return cj_reject(err, "'%s' and '%s' both want '%s' in the jail", one->what,
				 other->what, one->target);
	if (one->is_mount && !other->is_mount && paths_is_below(other->target, one->target))
		return cj_reject(err, "'%s' would be written to '%s', into the host's '%s'",
				 other->what, other->target, one->what);
	return 0;
}

static int check_landings(const struct planner *p, struct cj_error *err)
{
	enum { OWN_LANDINGS = 3 }; /* code, --args-json, --artifacts */
	size_t most = p->plan.root.nbinds + p->program.nfiles + OWN_LANDINGS;
	struct landing *list = arena_array(&p->c->arena, most, sizeof(*list));
	if (!list)
		return cj_fail(err, ENOMEM, "plan the jail's places");

	size_t count = collect_landings(p, list);
	for (size_t i = 0; i < count; i++) /* mounts come first in the list */
		for (size_t j = i + 1; j < count; j++)
			if (check_pair(&list[i], &list[j], err) < 0)
				return -err->code;
	return 0;
}

int plan_places(struct planner *p, struct cj_error *err)
{
	const char *code_path = p->program.code_path;
	if ((code_path && check_out(code_path, NULL, err) < 0) || plan_binds(p, err) < 0 ||
	    plan_copies(p, err) < 0)
		return -err->code;
	return check_landings(p, err);
}

static bool is_strictly_below(const char *path, const char *ancestor)
{
	return strcmp(path, ancestor) != 0 && paths_is_below(path, ancestor);
}

static int check_place(const struct planner *p, const char *path, struct cj_error *err)
{
	const struct rootfs_spec *root = &p->plan.root;
	bool is_there = is_strictly_below(path, PLACE_BOX);
	for (size_t i = 0; i < root->nbinds; i++)
		is_there |= root->binds[i].kind == BIND_OVERLAY &&
			    is_strictly_below(path, root->binds[i].target);
	if (is_there)
		return 0;
	cj_refuse(err, "'%s' is neither below " PLACE_BOX " nor below an --overlay", path);
	return cj_hint(
	    err, "name a file or a directory there, or let the program copy it to " PLACE_OUT);
}

/* One inside another would be copied twice, to the same name. */
static int check_copied(const struct planner *p, const char *path, struct cj_error *err)
{
	const struct strings *paths = &p->program.artifact_paths;
	if (paths_is_below(path, PLACE_OUT))
		return cj_reject(err, "'%s' is copied without it: all of " PLACE_OUT " is", path);
	if (check_place(p, path, err) < 0)
		return -err->code;
	for (size_t i = 0; i < paths->count; i++)
		if (paths_is_below(path, paths->items[i]) || paths_is_below(paths->items[i], path))
			return cj_reject(err, "'%s' and '%s' are the same or lie in one another",
					 paths->items[i], path);
	return 0;
}

int plan_artifacts(struct planner *p, struct cj_error *err)
{
	for (size_t i = 0; i < p->c->artifact_paths.count; i++) {
		const char *path = NULL;
		if (paths_inside(p->c->artifact_paths.items[i], &p->c->arena, &path, err) < 0 ||
		    check_copied(p, path, err) < 0)
			return cj_wrap(err, "--artifact-path");
		if (plan_add(p, &p->program.artifact_paths, path, err) < 0)
			return -err->code;
	}
	return 0;
}

int plan_value(struct planner *p, struct cj_error *err)
{
	const char *path = p->c->value_path;
	if (path && check_place(p, path, err) < 0)
		return cj_wrap(err, "--value-path");
	p->program.value_path = path;
	return 0;
}
