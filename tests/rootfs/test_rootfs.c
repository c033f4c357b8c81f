/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of a jail with the root "host": what is there, what is not, what can be written. */
#include "tests/rootfs/inside.h"

#include <dirent.h>
#include <fnmatch.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "tests/forked.h"

static bool has_name(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (fnmatch(*names, name, 0) == 0)
			return true;
	return false;
}

/* Everything in `path` is in `names`; returns how many there are. */
static int count_listed(const char *path, const char *const *names)
{
	int count = 0;
	DIR *dir = opendir(path);
	check(dir != NULL);
	for (struct dirent *e; (e = readdir(dir));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (!has_name(names, e->d_name))
			(void)fprintf(stderr, "unexpected '%s' in '%s'\n", e->d_name, path);
		check(has_name(names, e->d_name));
		count++;
	}
	closedir(dir);
	return count;
}

static size_t slurp(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	check(fd >= 0);
	size_t used = 0;
	for (ssize_t got; used < size - 1 && (got = read(fd, buf + used, size - 1 - used)) > 0;)
		used += (size_t)got;
	close(fd);
	buf[used] = '\0';
	return used;
}

/* --- what is there -------------------------------------------------------------- */

static void look_at_root(void *arg)
{
	(void)arg;
	static const char *const allowed[] = { "bin",   "box",   "dev",    "etc",  "lib",
					       "lib32", "lib64", "libx32", "proc", "run",
					       "sbin",  "tmp",   "usr",    "var",  NULL };
	static const char *const in_var[] = { "lib", "run", "tmp", NULL }, *const nothing[] = {
		NULL
	};
	static const char *const in_box[] = { "out", NULL };
	check(count_listed("/", allowed) >= 9);
	check(count_listed("/var", in_var) >= 2);
	check(count_listed("/run", nothing) == 0);
	check(count_listed("/box", in_box) == 1);
	check(count_listed("/box/out", nothing) == 0);
	check(count_listed("/tmp", nothing) == 0);
	check(exists("/usr/bin/env"));
	check(exists("/bin/sh"));
}

static void the_root_has_only_the_files_that_a_jail_needs(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	run_as_each(&spec, look_at_root, NULL);
}

static void look_at_etc(void *arg)
{
	(void)arg;
	static const char *const allowed[] = {
		"alternatives",
		"ca-certificates",
		"crypto-policies",
		"debian_version",
		"dotnet",
		"dpkg",
		"fonts",
		"fpc-*.cfg",
		"fpc.cfg",
		"gnucobol",
		"groff",
		"groovy",
		"group",
		"hostname",
		"host.conf",
		"hosts",
		"ImageMagick-*",
		"java-*-openjdk",
		"ld.so.cache",
		"ld.so.conf",
		"ld.so.conf.d",
		"localtime",
		"lsb-release",
		"matplotlibrc",
		"maven",
		"mime.types",
		"mtab",
		"nsswitch.conf",
		"os-release",
		"passwd",
		"pki",
		"protocols",
		"R",
		"resolv.conf",
		"services",
		"sgml",
		"ssl",
		"texmf",
		"timezone",
		"xml",
		NULL,
	};
	static const char *const in_ssl[] = { "certs", "openssl.cnf", NULL };
	char text[4096];
	count_listed("/etc", allowed);
	if (exists("/etc/ssl"))
		count_listed("/etc/ssl", in_ssl); /* "private" is not among them */

	slurp("/etc/passwd", text, sizeof(text));
	check(strstr(text, "\njail:x:1000:1000:jail:/box:") != NULL);
	slurp("/etc/hosts", text, sizeof(text));
	check(strstr(text, "localhost box1\n") != NULL);
	check(slurp("/etc/resolv.conf", text, sizeof(text)) == 0);
	slurp("/etc/hostname", text, sizeof(text));
	check(strcmp(text, "box1\n") == 0);
}

static void etc_is_generated_and_names_the_jails_user(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	run_as_each(&spec, look_at_etc, NULL);
}

static void look_at_names(void *arg)
{
	const char *more_hosts = arg;
	auto_free char *text = malloc(1u << 17);
	check(text != NULL);
	size_t size = slurp("/etc/hosts", text, 1u << 17);
	check(size > strlen(more_hosts));
	check(strncmp(text, "127.0.0.1\tlocalhost ", 20) == 0);
	check(strcmp(text + size - strlen(more_hosts), more_hosts) == 0);
	slurp("/etc/resolv.conf", text, 1u << 17);
	check(strcmp(text, "nameserver 198.18.0.3\n") == 0);
}

static void etc_hosts_has_all_names_of_the_network(void **state)
{
	(void)state;
	enum { LINES = 1500 };
	static const char line[] = "2001:db8::1\ta-name.of-usual-length.example\n";
	auto_free char *hosts = malloc(LINES * sizeof(line));
	assert_non_null(hosts);
	for (size_t i = 0; i < LINES; i++)
		memcpy(hosts + i * (sizeof(line) - 1), line, sizeof(line));

	struct rootfs_spec spec = host_spec();
	spec.hosts = hosts;
	spec.resolv_conf = "nameserver 198.18.0.3\n";
	run_as_each(&spec, look_at_names, hosts);
}

/* --- mounts ---------------------------------------------------------------------- */

struct mount_line {
	char target[512], options[256], type[64];
};

static bool read_mount(FILE *file, struct mount_line *out)
{
	char line[4096];
	if (!fgets(line, sizeof(line), file))
		return false;
	check(sscanf(line, "%*d %*d %*s %*s %511s %255s", out->target, out->options) == 2);
	check(!strstr(line, " shared:") && !strstr(line, " master:")); /* nothing arrives later */
	const char *rest = strstr(line, " - ");
	check(rest && sscanf(rest, " - %63s", out->type) == 1);
	return true;
}

static bool has_option(const struct mount_line *m, const char *option)
{
	size_t length = strlen(option);
	for (const char *p = m->options; (p = strstr(p, option)); p++)
		if ((p == m->options || p[-1] == ',') && (p[length] == ',' || p[length] == '\0'))
			return true;
	return false;
}

static bool is_device(const char *target)
{
	struct stat st;
	check(stat(target, &st) == 0);
	return S_ISCHR(st.st_mode);
}

static void look_at_mounts(void *arg)
{
	/* --writable adds the last two, and nothing of the host's /etc */
	static const char *const writable[] = { "/box",  "/tmp", "/dev/shm", "/dev/pts",
						"/proc", "/",    "/usr",     NULL };
	FILE *file = fopen("/proc/self/mountinfo", "re");
	check(file != NULL);
	int count = 0;
	for (struct mount_line m; read_mount(file, &m); count++) {
		check(has_option(&m, "nosuid"));
		check(has_option(&m, "nodev") || strcmp(m.target, "/dev/pts") == 0 ||
		      is_device(m.target));
		bool is_writable =
		    has_name(writable, m.target) &&
		    (arg || (strcmp(m.target, "/") != 0 && strcmp(m.target, "/usr") != 0));
		check(has_option(&m, is_writable ? "rw" : "ro"));
		check(strncmp(m.target, "/home", 5) != 0);
	}
	check(count > 20);
	fclose(file);
}

static void every_mount_is_nosuid_and_nodev_and_read_only_but_the_scratch(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	run_as_each(&spec, look_at_mounts, NULL);
	spec.writable = true;
	run_as_each(&spec, look_at_mounts, &spec);
}

static void look_for_old_root(void *arg)
{
	const char *place = arg;
	struct stat root, up;
	char where[PATH_MAX];
	check(stat("/", &root) == 0 && stat("/../..", &up) == 0);
	check(root.st_dev == up.st_dev && root.st_ino == up.st_ino);
	check(getcwd(where, sizeof(where)) && strcmp(where, "/") == 0);
	check(!exists(place));
	check(!exists("/root") && !exists("/home") && !exists("/sys") && !exists("/boot"));

	/* Were something stacked on our root, detaching it would show what lies below. */
	check(umount2("/", MNT_DETACH) < 0 || !exists("/root"));
}

static void the_old_root_is_detached(void **state)
{
	(void)state;
	char *place = make_place();
	struct rootfs_spec spec = host_spec();
	run_as_each(&spec, look_for_old_root, place);
	end_place(place);
}

static bool may_write(const char *path)
{
	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	return fd >= 0;
}

static void try_to_write(void *arg)
{
	(void)arg;
	static const char *const paths[] = {
		"/x",           "/etc/passwd",      "/etc/x", "/usr/x",
		"/usr/bin/x",   "/dev/x",           "/run/x", "/proc/sys/vm/swappiness",
		"/proc/acpi/x", "/etc/ssl/certs/x", NULL
	};
	for (size_t i = 0; paths[i]; i++) {
		if (may_write(paths[i]))
			(void)fprintf(stderr, "could write '%s'\n", paths[i]);
		check(!may_write(paths[i]));
	}
	check(chmod("/etc/passwd", 0666) < 0 && errno == EROFS);
	check(unlink("/etc/hosts") < 0 && errno == EROFS);
	check(mkdir("/new", 0755) < 0 && errno == EROFS);
	check(chmod("/dev/null", 0600) < 0);
	check(may_write("/box/x") && may_write("/tmp/x") && may_write("/dev/shm/x"));
}

static void nothing_outside_the_scratch_can_be_written(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	run_as_each(&spec, try_to_write, NULL);
}

/* --- /dev ------------------------------------------------------------------------- */

static void look_at_devices(void *arg)
{
	bool with_tty = arg != NULL;
	static const char *const allowed[] = { "null", "zero",  "full",   "random", "urandom",
					       "fd",   "stdin", "stdout", "stderr", "ptmx",
					       "pts",  "shm",   NULL },
				 *const with[] = { "null", "zero",  "full",   "random", "urandom",
						   "fd",   "stdin", "stdout", "stderr", "ptmx",
						   "pts",  "shm",   "tty",    NULL },
				 *const in_pts[] = { "ptmx", NULL };
	check(count_listed("/dev", with_tty ? with : allowed) == (with_tty ? 13 : 12));
	check(count_listed("/dev/pts", in_pts) == 1);

	char zeros[4] = "xxx";
	int zero_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	check(zero_fd >= 0 && read(zero_fd, zeros, 4) == 4 && zeros[0] == 0);
	int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	check(null_fd >= 0 && write(null_fd, "x", 1) == 1);
	int full_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	check(full_fd >= 0 && write(full_fd, "x", 1) < 0 && errno == ENOSPC);
	int random_fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	check(random_fd >= 0 && read(random_fd, zeros, 4) == 4);
}

static void dev_holds_five_harmless_devices_that_work(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	run_as_each(&spec, look_at_devices, NULL);
}

static void dev_tty_is_there_only_when_it_is_wanted(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	spec.tty = true;
	run_as_each(&spec, look_at_devices, (void *)"tty");
}

static void open_terminal(void *arg)
{
	(void)arg;
	int main_fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	check(main_fd >= 0);
	check(unlockpt(main_fd) == 0);
	const char *name = ptsname(main_fd);
	check(name && strcmp(name, "/dev/pts/0") == 0); /* the first: nobody else's are here */
	check(open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0);
}

static void terminals_are_the_jails_own(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	run_as_each(&spec, open_terminal, NULL);
}

static void make_device(void *arg)
{
	(void)arg;
	/* Either the kernel makes none in a user namespace, or nodev keeps it shut. */
	int rc = mknod("/box/null", S_IFCHR | 0666, makedev(1, 3));
	check(rc < 0 || open("/box/null", O_RDONLY | O_CLOEXEC) < 0);
}

static void a_created_device_node_can_not_be_opened(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	run_as_each(&spec, make_device, NULL);
}

/* --- /proc ------------------------------------------------------------------------ */

static bool tells_nothing(const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == EACCES || errno == EPERM;
	ssize_t got = read(fd, &byte, 1);
	close(fd);
	return got == 0;
}

static void look_at_proc(void *arg)
{
	(void)arg;
	static const char *const masked[] = { "kallsyms",   "kcore",       "iomem",
					      "ioports",    "modules",     "slabinfo",
					      "timer_list", "vmallocinfo", "latency_stats",
					      "kmsg",       "cmdline",     "bootconfig",
					      "config.gz",  "keys",        "key-users",
					      "diskstats",  "partitions",  "interrupts",
					      NULL };
	static const char *const nothing[] = { NULL }, *const hidden[] = {
		"/proc/acpi", "/proc/asound", "/proc/scsi", "/proc/pressure", NULL
	};
	char path[64], text[256];
	for (size_t i = 0; masked[i]; i++) {
		(void)snprintf(path, sizeof(path), "/proc/%s", masked[i]);
		if (!tells_nothing(path))
			(void)fprintf(stderr, "'%s' tells something\n", path);
		check(tells_nothing(path));
	}
	for (size_t i = 0; hidden[i]; i++)
		check(!exists(hidden[i]) || count_listed(hidden[i], nothing) == 0);
	static const char *const kept[] = { "/proc/meminfo",     "/proc/cpuinfo",
					    "/proc/stat",        "/proc/uptime",
					    "/proc/loadavg",     "/proc/version",
					    "/proc/self/status", NULL };
	for (size_t i = 0; kept[i]; i++)
		check(slurp(kept[i], text, sizeof(text)) > 0);
	check(exists("/proc/1") && !exists("/proc/2")); /* nobody else's processes */

	static const char *const fixed[] = { "/proc/sys", "/proc/bus",           "/proc/fs",
					     "/proc/irq", "/proc/sysrq-trigger", NULL };
	struct statvfs fs;
	for (size_t i = 0; fixed[i]; i++)
		check(!exists(fixed[i]) ||
		      (statvfs(fixed[i], &fs) == 0 && (fs.f_flag & ST_RDONLY)));
}

static void proc_shows_the_jails_processes_and_masks_the_machine(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	run_as_each(&spec, look_at_proc, NULL);
}

/* --- the scratch -------------------------------------------------------------------- */

static bool fill(const char *path, size_t size)
{
	static char block[4096];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	check(fd >= 0);
	for (size_t done = 0; done < size; done += sizeof(block))
		if (write(fd, block, sizeof(block)) != sizeof(block)) {
			check(errno == ENOSPC);
			close(fd);
			return false;
		}
	close(fd);
	return true;
}

static void fill_scratch(void *arg)
{
	(void)arg;
	check(fill("/box/a", 400 << 10));
	check(fill("/tmp/b", 400 << 10));
	check(!fill("/dev/shm/c", 400 << 10)); /* 1 MiB for the three of them */
	check(unlink("/box/a") == 0);
	check(fill("/dev/shm/d", 300 << 10));
}

static void box_tmp_and_shm_share_one_limit_of_bytes(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	spec.scratch_bytes = 1 << 20;
	run_as_each(&spec, fill_scratch, NULL);
}

static void use_inodes(void *arg)
{
	(void)arg;
	char path[64];
	int made = 0;
	for (; made < 100; made++) {
		(void)snprintf(path, sizeof(path), "/tmp/%d", made);
		if (mkdir(path, 0755) < 0)
			break;
	}
	check(errno == ENOSPC && made > 5 && made < 32);
	check(mkdir("/box/one", 0755) < 0 && errno == ENOSPC);
	check(mkdir("/dev/shm/one", 0755) < 0 && errno == ENOSPC);
}

static void box_tmp_and_shm_share_one_limit_of_inodes(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	spec.scratch_inodes = 32;
	run_as_each(&spec, use_inodes, NULL);
}

static void a_scratch_without_a_limit_is_refused(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	spec.scratch_bytes = 0;
	expect_failure(&spec, "build", "needs a size");
	spec = host_spec();
	spec.scratch_inodes = 0;
	expect_failure(&spec, "build", "needs a size");
}

static void look_at_modes(void *arg)
{
	(void)arg;
	struct stat st;
	check(stat("/box", &st) == 0 && st.st_mode == (S_IFDIR | 0755) && st.st_uid == INSIDE_ID);
	check(stat("/tmp", &st) == 0 && st.st_mode == (S_IFDIR | 01777));
	check(stat("/dev/shm", &st) == 0 && st.st_mode == (S_IFDIR | 01777));
	check(stat("/", &st) == 0 && st.st_mode == (S_IFDIR | 0755));
	check(stat("/etc/passwd", &st) == 0 && st.st_mode == (S_IFREG | 0644));
	mode_t mask = umask(0);
	check(mask == 022);
}

static void modes_do_not_depend_on_the_callers_umask(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	mode_t saved = umask(077);
	run_as_each(&spec, look_at_modes, NULL);
	umask(saved);
}

static bool is_executable(const char *path)
{
	char text[64];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	check(fd >= 0);
	check(write(fd, "#!/bin/true\n", 12) == 12);
	close(fd);
	pid_t pid = test_fork();
	if (pid == 0) {
		(void)snprintf(text, sizeof(text), "%s", path);
		execve(path, (char *[]){ text, NULL }, (char *[]){ NULL });
		_exit(99);
	}
	int status;
	check(waitpid(pid, &status, 0) == pid);
	return status == 0;
}

static void execute_scratch(void *arg)
{
	bool expected = arg != NULL;
	check(is_executable("/box/run") == expected);
	check(is_executable("/tmp/run") == expected);
	check(is_executable("/dev/shm/run") == expected);
}

static void noexec_applies_to_all_of_the_scratch(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	run_as_each(&spec, execute_scratch, (void *)"yes");
	spec.noexec_scratch = true;
	run_as_each(&spec, execute_scratch, NULL);
}

static void look_at_handles(void *arg)
{
	(void)arg;
	struct rootfs_handles handles;
	struct cj_error err;
	struct statfs fs;
	int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	check(rootfs_open_handles(&(struct rootfs_spec){ 0 }, root_fd, &handles, &err) == 0);
	check(handles.root_fd == root_fd);
	check(fstatfs(handles.proc_fd, &fs) == 0 && fs.f_type == 0x9fa0);
	check(openat(handles.box_fd, "x", O_WRONLY | O_CREAT | O_CLOEXEC, 0644) >= 0);
	check(exists("/box/x"));
	check(fcntl(handles.box_fd, F_GETFD) & FD_CLOEXEC);
	check(openat(handles.root_fd, "tmp/y", O_WRONLY | O_CREAT | O_CLOEXEC, 0644) >= 0);
	check(exists("/tmp/y"));
	check(fcntl(handles.root_fd, F_GETFD) & FD_CLOEXEC);
	check(fcntl(handles.proc_fd, F_GETFD) & FD_CLOEXEC);
}

static void the_handles_are_open_on_box_root_and_proc(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	run_as_each(&spec, look_at_handles, NULL);
}

/* This and the next change what this process itself sees: they come last. */
static void later_mounts_of_the_host_do_not_propagate(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("skipped: only root can share its mounts, as systemd does\n");
		skip();
	}
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL), 0);
	struct rootfs_spec spec = host_spec();
	run_as_each(&spec, look_at_mounts, NULL);
}

/* "\040" stands for a blank in /proc/self/mountinfo: proc(5). */
static void unescape(char *path)
{
	char *to = path;
	for (const char *from = path; *from; to++) {
		unsigned code;
		bool is_code = sscanf(from, "\\%3o", &code) == 1;
		*to = is_code ? (char)code : *from;
		from += is_code ? 4 : 1;
	}
	*to = '\0';
}

/* Detaches one other mount of a proc file system; false: there is none, or it is not ours. */
static bool detach_other_proc(void)
{
	char line[4096], place[4096];
	bool is_detached = false;
	FILE *file = fopen("/proc/self/mountinfo", "re");

	while (file && !is_detached && fgets(line, sizeof(line), file)) {
		if (!strstr(line, " - proc ") || sscanf(line, "%*s %*s %*s / %4095s", place) != 1 ||
		    strcmp(place, "/proc") == 0)
			continue;
		unescape(place);
		is_detached = umount2(place, MNT_DETACH) == 0;
	}
	if (file)
		(void)fclose(file);
	return is_detached;
}

/* It masks part of /proc for this process, as container engines do.  The kernel would allow a new
 * one if another whole one were mounted anywhere: mount_namespaces(7). */
static void a_masked_outer_proc_is_an_error_with_the_remedy(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("skipped: only root can mask a part of /proc to try it\n");
		skip();
	}
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	while (detach_other_proc())
		;
	assert_int_equal(mount("/dev/null", "/proc/uptime", NULL, MS_BIND, NULL), 0);
	struct rootfs_spec spec = host_spec();
	expect_failure(&spec, "build", "mount a 'proc' file system");
	assert_non_null(strstr(inside_result->err.hint, "'cejail doctor'"));
}

static void only_writable_binds_overlays_and_tmpfs_may_be_changed(void **state)
{
	(void)state;
	static const struct bind_spec binds[] = {
		{ BIND_READ_ONLY, "/host/usr", "/usr" }, { BIND_WRITABLE, "/host", "/bound" },
		{ BIND_OVERLAY, "/host/a", "/over" },    { BIND_SOCKET, "/run/s", "/socket" },
		{ BIND_TMPFS, NULL, "/empty" },
	};
	const struct rootfs_spec spec = { .binds = binds, .nbinds = 5 };
	const char *places[5];
	assert_int_equal(rootfs_list_writable(&spec, places), 3);
	assert_string_equal(places[0], "/bound");
	assert_string_equal(places[1], "/over");
	assert_string_equal(places[2], "/empty");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_writable_binds_overlays_and_tmpfs_may_be_changed),
		cmocka_unit_test(the_root_has_only_the_files_that_a_jail_needs),
		cmocka_unit_test(etc_is_generated_and_names_the_jails_user),
		cmocka_unit_test(etc_hosts_has_all_names_of_the_network),
		cmocka_unit_test(every_mount_is_nosuid_and_nodev_and_read_only_but_the_scratch),
		cmocka_unit_test(the_old_root_is_detached),
		cmocka_unit_test(nothing_outside_the_scratch_can_be_written),
		cmocka_unit_test(dev_holds_five_harmless_devices_that_work),
		cmocka_unit_test(dev_tty_is_there_only_when_it_is_wanted),
		cmocka_unit_test(terminals_are_the_jails_own),
		cmocka_unit_test(a_created_device_node_can_not_be_opened),
		cmocka_unit_test(proc_shows_the_jails_processes_and_masks_the_machine),
		cmocka_unit_test(box_tmp_and_shm_share_one_limit_of_bytes),
		cmocka_unit_test(box_tmp_and_shm_share_one_limit_of_inodes),
		cmocka_unit_test(a_scratch_without_a_limit_is_refused),
		cmocka_unit_test(modes_do_not_depend_on_the_callers_umask),
		cmocka_unit_test(noexec_applies_to_all_of_the_scratch),
		cmocka_unit_test(the_handles_are_open_on_box_root_and_proc),
		cmocka_unit_test(later_mounts_of_the_host_do_not_propagate),
		cmocka_unit_test(a_masked_outer_proc_is_an_error_with_the_remedy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
