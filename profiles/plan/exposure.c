/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the listed paths exist, and what they are. */
#include "profiles/plan/plan_parts.h"

#include <fnmatch.h>
#include <glob.h>
#include <sys/stat.h>

#include "profiles/paths.h"

#define NAMED_MAX 3  /* sockets below a directory that a warning names */
#define KNOWN_MAX 64 /* of one pattern */

struct exposure {
	const char *path; /* a pattern of fnmatch(3), FNM_PATHNAME */
	const char *what; /* "hands the program ...": control of docker */
	/* A program that uses it controls this host, or a user's session: --strict refuses. */
	bool is_control;
};

/* clang-format off */
static const struct exposure directories[] = {
	{ "/",            "all of this host's files that its user may read", false },
	{ "/home",        "every home directory that its user may read", false },
	{ "/home/*",      "a home directory, with its keys and tokens", false },
	{ "/root",        "a home directory, with its keys and tokens", false },
	{ "/run",         "the sockets of this host's services", false },
	{ "/run/user",    "the sockets of the users' sessions", false },
	{ "/run/user/*",  "the sockets of a user's session", false },
	{ "/proc",        "the view of this host's processes", false },
	{ "/sys",         "the view of this host's devices and kernel settings", false },
};

static const struct exposure sockets[] = {
	{ "/run/docker.sock",                       "control of docker", true },
	{ "/run/user/*/docker.sock",                "control of docker", true },
	{ "/run/containerd/containerd.sock",        "control of containerd", true },
	{ "/run/containerd/s/*",                    "control of containerd", true },
	{ "/run/podman/podman.sock",                "control of podman", true },
	{ "/run/user/*/podman/podman.sock",         "control of podman", true },
	{ "/run/crio/crio.sock",                    "control of cri-o", true },
	{ "/run/k3s/containerd/containerd.sock",    "control of containerd", true },
	{ "/run/buildkit/buildkitd.sock",           "control of buildkit", true },
	{ "/run/systemd/private",                   "control of systemd", true },
	{ "/run/systemd/io.systemd.*",              "control of systemd", true },
	{ "/run/user/*/systemd/private",            "control of a user's systemd", true },
	{ "/run/dbus/system_bus_socket",            "the system's D-Bus", true },
	{ "/run/user/*/bus",                        "a user's D-Bus, and control of his systemd", true },
	{ "/run/snapd.socket",                      "control of snapd", true },
	{ "/run/libvirt/libvirt-sock",              "control of libvirt", true },
	{ "/run/libvirt/virtqemud-sock",            "control of libvirt", true },
	{ "/var/lib/lxd/unix.socket",               "control of lxd", true },
	{ "/var/snap/lxd/common/lxd/unix.socket",   "control of lxd", true },
	{ "/var/lib/incus/unix.socket",             "control of incus", true },
	{ "/run/cejail/api.sock",                   "runs at this host's cejail service", true },
	{ "/run/user/*/cejail/api.sock",            "runs at a user's cejail service", true },
	{ "/dev/shm/cejail-*/api.sock",             "runs at a user's cejail service", true },
	{ "/run/user/*/gnupg/S.gpg-agent*",         "the keys of a gpg-agent", false },
	{ "/run/user/*/gnupg/*/S.gpg-agent*",       "the keys of a gpg-agent", false },
	{ "/home/*/.gnupg/S.gpg-agent*",            "the keys of a gpg-agent", false },
	{ "/root/.gnupg/S.gpg-agent*",              "the keys of a gpg-agent", false },
	{ "/tmp/ssh-*/agent.*",                     "the keys of an ssh-agent", false },
	{ "/run/user/*/openssh_agent",              "the keys of an ssh-agent", false },
	{ "/run/user/*/ssh-agent*",                 "the keys of an ssh-agent", false },
	{ "/run/user/*/keyring/*",                  "the keys of a keyring", false },
	{ "/run/user/*/wayland-*",                  "a user's Wayland display", false },
	{ "/tmp/.X11-unix/X*",                      "an X11 display, its keys and windows", false },
	{ "/run/user/*/pulse/native",               "a user's sound and microphone", false },
	{ "/run/user/*/pipewire-*",                 "a user's sound and screen", false },
};

/* The names that such sockets have wherever they lie. */
static const struct exposure names[] = {
	{ "docker.sock",       "control of docker", true },
	{ "containerd.sock",   "control of containerd", true },
	{ "podman.sock",       "control of podman", true },
	{ "system_bus_socket", "the system's D-Bus", true },
	{ "S.gpg-agent*",      "the keys of a gpg-agent", false },
};
/* clang-format on */

static const struct exposure *find_row(const struct exposure *rows, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (fnmatch(rows[i].path, path, FNM_PATHNAME) == 0)
			return &rows[i];
	return NULL;
}

/* The row for the path of a socket or a directory; NULL: none.  Compares the text only. */
static const struct exposure *exposure_of(const char *path)
{
	const struct exposure *row = find_row(directories, COUNT_OF(directories), path);

	if (!row)
		row = find_row(sockets, COUNT_OF(sockets), path);
	return row ? row : find_row(names, COUNT_OF(names), paths_name(path));
}

struct finder {
	const char *source;
	struct stat st; /* of the source */
	struct arena *arena;
	const char *list; /* "control of docker (/run/docker.sock), ..."; NULL: nothing so far */
	const char *control;
	size_t named;
};

/* Each row once: many sockets of one kind are one warning. */
static int add(struct finder *f, const struct exposure *row, const char *path)
{
	bool is_itself = strcmp(path, f->source) == 0;
	const char *phrase = is_itself ? row->what
				       : arena_printf(f->arena, "%s (%s)", row->what, path);

	if (row->is_control && !f->control)
		f->control = phrase;
	if (!phrase || (f->list && strstr(f->list, row->what)))
		return phrase ? 0 : -ENOMEM;
	if (f->named++ >= NAMED_MAX)
		return 0;
	f->list = f->list ? arena_printf(f->arena, "%s, %s", f->list, phrase) : phrase;
	return f->list ? 0 : -ENOMEM;
}

static bool is_source(const struct finder *f, const char *path)
{
	struct stat st;
	return path && stat(path, &st) == 0 && st.st_dev == f->st.st_dev &&
	       st.st_ino == f->st.st_ino;
}

/* Could something that the pattern means lie at the source or below it? */
static bool is_near(const struct finder *f, const char *pattern)
{
	size_t literal = strcspn(pattern, "*"), size = strlen(f->source);
	/* the directory that the wildcards begin in, or the path itself */
	while (literal > 1 && pattern[literal] != '\0' && pattern[literal - 1] != '/')
		literal--;
	return strncmp(pattern, f->source, size < literal ? size : literal) == 0;
}

static int look_for(struct finder *f, const struct exposure *row)
{
	bool is_dir = S_ISDIR(f->st.st_mode);
	glob_t found = { 0 };
	int rc = 0;

	/* a socket may have another name, by a link or a mount: then it is the same file */
	if ((is_dir && !is_near(f, row->path)) || glob(row->path, GLOB_NOSORT, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; rc == 0 && i < found.gl_pathc && i < KNOWN_MAX; i++) {
		const char *path = found.gl_pathv[i];
		if (is_dir ? paths_is_below(path, f->source) : is_source(f, path))
			rc = add(f, row, path);
	}
	globfree(&found);
	return rc;
}

/* By its letters first, then by what it is, then by what lies below it. */
static int find_all(struct finder *f, const struct exposure_caller *caller)
{
	static const struct exposure home = { "", "a home directory, with its keys and tokens",
					      false };
	static const struct exposure agent = { "", "the keys of an ssh-agent", false };
	const struct exposure *row = exposure_of(f->source);
	int rc = row ? add(f, row, f->source) : 0;

	for (size_t i = 0; rc == 0 && S_ISDIR(f->st.st_mode) && i < COUNT_OF(directories); i++)
		if (!strchr(directories[i].path, '*') && is_source(f, directories[i].path))
			rc = add(f, &directories[i], f->source);
	if (rc == 0 && is_source(f, caller->home))
		rc = add(f, &home, f->source);
	if (rc == 0 && is_source(f, caller->ssh_agent))
		rc = add(f, &agent, f->source);
	for (size_t i = 0; rc == 0 && i < COUNT_OF(sockets); i++)
		rc = look_for(f, &sockets[i]);
	return rc;
}

int exposure_check(const char *option, const char *source, const struct exposure_caller *caller,
		   bool strict, struct arena *a, struct strings *warnings, struct cj_error *err)
{
	struct finder f = { .source = source, .arena = a };

	if (stat(source, &f.st) < 0 || S_ISREG(f.st.st_mode))
		return 0;
	if (find_all(&f, caller) < 0)
		return cj_fail(err, ENOMEM, "look at '%s'", source);
	if (strict && f.control) {
		cj_refuse(err, "--strict: %s '%s' hands the program %s", option, source, f.control);
		return cj_hint(err, "show the program less, or run it without --strict");
	}
	const char *phrase =
	    f.list ? arena_printf(a, "%s '%s' hands the program %s", option, source, f.list) : "";
	if (!phrase || (f.list && strings_add(warnings, a, phrase) < 0))
		return cj_fail(err, ENOMEM, "look at '%s'", source);
	return 0;
}
