/* SPDX-License-Identifier: Apache-2.0 */
/* The host's part of the tree.  Only the first two tables decide what is shown. */
#include "rootfs/rootfs_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

/* clang-format off */
const char *const host_paths[] = {
	/* directories, or links into /usr that are made again */
	"/usr",
	"/bin",
	"/sbin",
	"/lib",
	"/lib32",
	"/lib64",
	"/libx32",

	/* libraries outside the dynamic loader's built-in directories: ld.so(8) */
	"/etc/ld.so.cache",
	/* public certificates, and the defaults of TLS: Debian's, then Fedora's */
	"/etc/ssl/certs",
	"/etc/ssl/openssl.cnf",
	"/etc/pki/ca-trust/extracted",
	"/etc/pki/tls/certs",
	"/etc/pki/tls/openssl.cnf",
	"/etc/crypto-policies",

	/* local time, most often a link into /usr/share/zoneinfo; its name: tzlocal, R */
	"/etc/localtime",
	"/etc/timezone",
	/* which distribution this is: configure scripts, dpkg-vendor(1), Python's platform */
	"/etc/os-release",
	"/etc/lsb-release",
	"/etc/debian_version",
	"/etc/dpkg/origins",

	/* getservbyname(3), getprotobyname(3); types of files by their names: Python's mimetypes */
	"/etc/services",
	"/etc/protocols",
	"/etc/mime.types",
	/* what awk, cc, java, editor in /usr/bin point to: update-alternatives(1) */
	"/etc/alternatives",
	/* fonts of plots, browsers and converters: fontconfig; matplotlib does not start without */
	"/etc/fonts",
	"/etc/matplotlibrc",

	/* catalogues of XML and SGML: document types from /usr/share instead of the network */
	"/etc/xml",
	/* macros of manual pages; formats, maps and paths of TeX, which packages generate */
	"/etc/texmf",
	"/var/lib/texmf",

	/* languages whose /usr leads here: Maven, Groovy, R, Free Pascal, COBOL, .NET, Haskell */
	"/etc/maven/m2.conf",
	"/etc/maven/logging",
	"/etc/groovy",
	"/etc/R/ldpaths",
	"/etc/R/Makeconf",
	"/etc/R/Renviron",
	"/etc/R/repositories",
	"/etc/fpc.cfg",
	"/etc/gnucobol",
	"/etc/dotnet",
	"/var/lib/ghc/package.conf.d",
};

const struct host_family host_families[] = {
	/* Java: security providers, virtual machines, defaults of logging and networking */
	{ "java-", "-openjdk",
	  { "security", "jvm-amd64.cfg", "jvm-arm64.cfg", "jvm-aarch64.cfg",
	    "logging.properties", "net.properties" } },
	/* ImageMagick: programs for other formats, fonts, dithering */
	{ "ImageMagick-", "",
	  { "delegates.xml", "type.xml", "type-ghostscript.xml", "type-dejavu.xml",
	    "type-urw-base35.xml", "thresholds.xml" } },
	/* Free Pascal: where its units lie; /etc/fpc.cfg leads here */
	{ "fpc-", ".cfg", { NULL } },
};
/* clang-format on */

const size_t host_paths_count = COUNT_OF(host_paths);
const size_t host_families_count = COUNT_OF(host_families);

/* A copy costs a run less than a mount if the file has a few pages only. */
#define COPY_BYTES_MAX   (16u << 10)
#define COPIES_BYTES_MAX (256u << 10) /* all together, in whole pages */

/* Rows of all families together: more would be a mistake, and are left out. */
#define FAMILY_ROWS_MAX 64

struct host {
	struct rootfs_entries *list;
	size_t first;    /* of its entries: "/usr" */
	size_t copied;   /* bytes of all copies */
	size_t copy_max; /* bytes of one copy */
	/* The first bytes of a path: all users may pass the directories that they name. */
	const char *passed;
	size_t passed_size;
	int root_fd;
	/* Rows below /etc: its first component is there; all of it is a link, or a directory. */
	bool is_present[COUNT_OF(host_paths)], is_link[COUNT_OF(host_paths)],
	    is_dir[COUNT_OF(host_paths)];
};

static const char *read_link(int dir_fd, const char *name, struct arena *a)
{
	char text[PATH_MAX];
	ssize_t size = readlinkat(dir_fd, name, text, sizeof(text));
	if (size < 0)
		return NULL;
	if ((size_t)size == sizeof(text)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	return arena_strndup(a, text, (size_t)size);
}

/* Missing, or behind a link of a distribution that keeps it elsewhere: the jail does not get it. */
static bool is_absent(int code)
{
	return code == ENOENT || code == ELOOP || code == ENOTDIR;
}

/* Public files are those that every user of the host may read. */
static bool is_public(mode_t mode)
{
	mode_t wanted = S_ISDIR(mode) ? S_IROTH | S_IXOTH : S_IROTH;
	return S_ISLNK(mode) || (mode & wanted) == wanted;
}

/* Returns 1 when all users may pass the directories above `path`, else 0.  Root always may. */
static int is_reachable(struct host *h, const char *path, struct cj_error *err)
{
	const char *below = path + 1, *slash = strchr(below, '/');
	size_t above = (size_t)(strrchr(path, '/') - path) + 1;
	if (above == h->passed_size && memcmp(path, h->passed, above) == 0)
		return 1;
	while (slash && (slash = strchr(slash + 1, '/'))) { /* "/etc" and "/var" are open */
		char parent[PATH_MAX];
		struct stat st;
		size_t size = (size_t)(slash - below);
		if (size >= sizeof(parent))
			return cj_fail(err, ENAMETOOLONG, "look at '%s'", path);
		memcpy(parent, below, size);
		parent[size] = '\0';
		if (fstatat(h->root_fd, parent, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return cj_fail(err, errno, "look at '/%s'", parent);
		if (!(st.st_mode & S_IXOTH))
			return 0;
	}
	h->passed = path;
	h->passed_size = above;
	return 1;
}

/* A small file, in whole pages, as the skeleton counts it.  A large one is mounted, and one of no
 * bytes: a file of the kernel's own says so, and has some. */
static bool is_copied(struct host *h, const struct stat *st)
{
	const size_t page = (size_t)getpagesize(), bytes = (size_t)st->st_size;
	const size_t taken = (bytes + page - 1) / page * page;
	if (!S_ISREG(st->st_mode) || bytes == 0 || bytes > h->copy_max ||
	    h->copied + taken > COPIES_BYTES_MAX)
		return false;
	h->copied += taken;
	return true;
}

/* Without O_PATH, so that a small file can be read; a link has to be opened with it. */
static int open_path(const struct host *h, const char *path)
{
	const uint64_t beneath = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
	int fd = sys_openat2(h->root_fd, path + 1, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, beneath);
	if (fd < 0 && errno == ELOOP)
		fd = sys_openat2(h->root_fd, path + 1, O_PATH | O_NOFOLLOW, 0, beneath);
	return fd;
}

/* Fills an entry from `fd`: a link, a file to copy, or what is mounted. */
static int take_row(struct host *h, int *fd, const struct stat *st, struct rootfs_entry *out,
		    struct cj_error *err)
{
	if (S_ISLNK(st->st_mode)) {
		out->link = read_link(*fd, "", h->list->arena);
		fd_bag_add(&h->list->opened, take_fd(fd));
		return out->link ? 0 : cj_fail(err, errno, "read the link '%s'", out->path);
	}
	if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
		return cj_reject(err, "'%s' is neither a directory nor a file", out->path);
	out->is_dir = S_ISDIR(st->st_mode);
	out->is_copied = is_copied(h, st);
	out->size = out->is_copied ? (size_t)st->st_size : 0;
	out->fd = take_fd(fd);
	return 0;
}

/* One path, if this host has it and it is public: an entry of the list. */
static int open_row(struct host *h, const char *path, struct cj_error *err)
{
	bool is_usr = strcmp(path, host_paths[0]) == 0;
	struct stat st;
	auto_fd int fd = open_path(h, path);
	/* Configuration may be unreadable; programs and libraries may not. */
	bool is_closed = fd < 0 && errno == EACCES &&
			 (strncmp(path, "/etc/", 5) == 0 || strncmp(path, "/var/", 5) == 0);
	if (fd < 0 && (is_closed || is_absent(errno)) && !is_usr)
		return 0;
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "look at '%s'", path);
	if (!is_public(st.st_mode) && !is_usr)
		return 0;
	int rc = is_reachable(h, path, err);
	if (rc <= 0)
		return rc;

	struct rootfs_entry entry = { .path = path, .fd = -1 };
	if (take_row(h, &fd, &st, &entry, err) < 0)
		return -err->code;
	return rootfs_entries_add(h->list, &entry, err);
}

static bool is_of(const struct host_family *family, const char *name)
{
	return strlen(name) > strlen(family->prefix) + strlen(family->suffix) &&
	       text_begins_with(name, family->prefix) && text_ends_with(name, family->suffix);
}

/* The family's rows at "/etc/NAME". */
static int open_member(struct host *h, const struct host_family *family, const char *name,
		       struct cj_error *err)
{
	for (size_t i = 0; i == 0 || family->names[i]; i++) {
		const char *below = family->names[i];
		const char *path = arena_printf(h->list->arena, "/etc/%s%s%s", name,
						below ? "/" : "", below ? below : "");
		if (!path)
			return cj_fail(err, ENOMEM, "list the host's directories");
		/* "/usr" and theirs; the others follow */
		if (h->list->count - h->first > FAMILY_ROWS_MAX)
			return 0;
		int rc = open_row(h, path, err);
		if (rc < 0 || !below)
			return rc;
	}
	return 0;
}

/* Most rows belong to packages that a host does not have, and this is faster than a failed open. */
static void note_name(struct host *h, const struct dirent *e)
{
	const size_t prefix = strlen("/etc/"), size = strlen(e->d_name);
	for (size_t i = 0; i < COUNT_OF(host_paths); i++) {
		const char *path = host_paths[i];
		if (strncmp(path, "/etc/", prefix) != 0 ||
		    strncmp(path + prefix, e->d_name, size) != 0 ||
		    (path[prefix + size] != '\0' && path[prefix + size] != '/'))
			continue;
		const bool is_whole = path[prefix + size] == '\0';
		h->is_present[i] = true;
		h->is_link[i] = is_whole && e->d_type == DT_LNK;
		h->is_dir[i] = is_whole && e->d_type == DT_DIR;
	}
}

/* Also opens the rows of the families. */
static int list_etc(struct host *h, struct fd_dir *dir, struct cj_error *err)
{
	for (const struct dirent *entry; (entry = fd_next_entry(dir)) != NULL;) {
		note_name(h, entry);
		for (size_t i = 0; i < host_families_count; i++)
			if (is_of(&host_families[i], entry->d_name) &&
			    open_member(h, &host_families[i], entry->d_name, err) < 0)
				return -err->code;
	}
	return errno == 0 ? 0 : cj_fail(err, errno, "list '/etc'");
}

/*
 * Reads a link in one call, where open_row() makes five.  Returns 1: the row is added, or the host
 * has none; 0: it is no link.  Only for a name without '/': the last component is never followed.
 */
static int take_link(struct host *h, int dir_fd, const char *name, const char *path,
		     struct cj_error *err)
{
	const struct rootfs_entry entry = { .path = path,
					    .fd = -1,
					    .link = read_link(dir_fd, name, h->list->arena) };
	if (!entry.link && errno == ENOMEM)
		return cj_fail(err, ENOMEM, "read the link '%s'", path);
	if (!entry.link)
		return errno == ENOENT; /* of other errors open_row() says why */
	return rootfs_entries_add(h->list, &entry, err) < 0 ? -err->code : 1;
}

/*
 * Opens a directory in two calls, where open_row() makes three.  Returns as take_link(); 0: it is
 * no directory, or not public, or can't be opened by this name, and open_row() says why.
 */
static int take_dir(struct host *h, int dir_fd, const char *name, const char *path,
		    struct cj_error *err)
{
	struct rootfs_entry entry = { .path = path, .is_dir = true };
	struct stat st;
	auto_fd int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !is_public(st.st_mode))
		return 0;
	entry.fd = take_fd(&fd);
	return rootfs_entries_add(h->list, &entry, err) < 0 ? -err->code : 1;
}

/* "/usr" first, which must exist.  Rows beside it, such as "/bin", are likely links. */
static int open_rows(struct host *h, struct cj_error *err)
{
	const char *usr = host_paths[0];
	int rc = take_dir(h, h->root_fd, usr + 1, usr, err);
	if (rc < 0 || (rc == 0 && open_row(h, usr, err) < 0))
		return -err->code;
	auto_fd_dir struct fd_dir *dir = fd_open_dir(h->root_fd, "etc");
	if (!dir && !is_absent(errno) && errno != EACCES)
		return cj_fail(err, errno, "list '/etc'");
	if (dir && list_etc(h, dir, err) < 0)
		return -err->code;
	if (!dir) /* it may be passed through */
		memset(h->is_present, true, sizeof(h->is_present));
	for (size_t i = 1; i < COUNT_OF(host_paths); i++) {
		const char *path = host_paths[i];
		rc = 0;
		if (strncmp(path, "/etc/", 5) == 0 && !h->is_present[i])
			continue;
		if (!strchr(path + 1, '/'))
			rc = take_link(h, h->root_fd, path + 1, path, err);
		else if (h->is_link[i])
			rc = take_link(h, dir->fd, path + 5, path, err);
		else if (h->is_dir[i])
			rc = take_dir(h, dir->fd, path + 5, path, err);
		if (rc < 0 || (rc == 0 && open_row(h, path, err) < 0))
			return -err->code;
	}
	if (dir)
		fd_bag_add(&h->list->opened, take_fd(&dir->fd));
	return 0;
}

int host_open(struct rootfs_entries *list, struct cj_error *err)
{
	auto_fd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return cj_fail(err, errno, "open '/'");

	/* The caller's limit of file size also applies to files that init writes. */
	struct rlimit file_size;
	if (getrlimit(RLIMIT_FSIZE, &file_size) < 0)
		return cj_fail(err, errno, "get the limit of a file's size");
	bool is_lower = file_size.rlim_cur < COPY_BYTES_MAX;
	struct host h = { .list = list,
			  .first = list->count,
			  .copy_max = is_lower ? (size_t)file_size.rlim_cur : COPY_BYTES_MAX,
			  .root_fd = root_fd };
	if (open_rows(&h, err) < 0)
		return -err->code;
	fd_bag_add(&list->opened, take_fd(&root_fd));
	return 0;
}
