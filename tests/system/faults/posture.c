/* SPDX-License-Identifier: Apache-2.0 */
/*
 * posture - runs in a jail and prints what shows how strong the jail is, in lines that are the same
 * in every run.  Acts.
 *
 *	posture [ADDRESS...]
 *
 * The lines: files of /proc without what differs from run to run; descriptors; the kernel's answers
 * to attempts that a jail refuses; how a TCP connection to port 80 of each ADDRESS ends; a copy of
 * standard input.  Where there is a /box/out, it leaves a file there.  The exit status is 7, which
 * nothing else here uses.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/patience.h"

#define OUR_STATUS 7

static const char *word(long rc)
{
	return rc >= 0 ? "done" : strerrorname_np(errno);
}

/* --- /proc ------------------------------------------------------------------------------- */

/* Lines of a file, or those that begin with one of `wanted`. */
static void show_file(const char *path, const char *const *wanted)
{
	char line[1024];
	FILE *file = fopen(path, "re");
	if (!file)
		printf("%s: %s\n", path, strerrorname_np(errno));
	while (file && fgets(line, sizeof(line), file)) {
		bool is_wanted = !wanted;
		for (size_t i = 0; wanted && wanted[i]; i++)
			is_wanted |= strncmp(line, wanted[i], strlen(wanted[i])) == 0;
		if (is_wanted)
			printf("%s: %s", path, line);
	}
	if (file)
		(void)fclose(file);
}

/* Blanks out the digits behind `key`: which id or device it is differs from run to run. */
static void hide_number(char *line, const char *key)
{
	for (char *at = strstr(line, key); at; at = strstr(at + 1, key))
		for (char *c = at + strlen(key); isdigit((unsigned char)*c); c++)
			*c = '*';
}

/* Likewise the layers of an overlay, which are numbers of descriptors. */
static void drop_value(char *line, const char *key)
{
	char *at = strstr(line, key);
	if (!at)
		return;
	at += strlen(key);
	memmove(at, at + strcspn(at, ",\n"), strlen(at + strcspn(at, ",\n")) + 1);
}

/* From the root of each mount on: its numbers differ, and so do the options that name ids. */
static void show_mounts(void)
{
	char line[2048];
	int at = 0;
	FILE *file = fopen("/proc/self/mountinfo", "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*s %*s %*s %n", &at) < 0)
			continue;
		hide_number(line, "uid=");
		hide_number(line, "gid=");
		drop_value(line, "lowerdir=");
		drop_value(line, "upperdir=");
		drop_value(line, "workdir=");
		printf("mount: %s", line + at);
	}
	if (file)
		(void)fclose(file);
}

static void show_descriptors(void)
{
	struct stat st;
	for (int fd = 0; fd < 64; fd++)
		if (fstat(fd, &st) == 0)
			printf("descriptor %d: %s, flags %o\n", fd,
			       S_ISFIFO(st.st_mode)  ? "pipe"
			       : S_ISCHR(st.st_mode) ? "device"
						     : "other",
			       fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

static void show_directory(const char *path)
{
	struct dirent **names;
	int count = scandir(path, &names, NULL, alphasort);
	if (count < 0)
		printf("%s: %s\n", path, word(-1));
	for (int i = 0; i < count; i++)
		if (!isdigit((unsigned char)names[i]->d_name[0]))
			printf("%s has %s\n", path, names[i]->d_name);
}

static void show_processes(void)
{
	static const char *const status[] = { "Umask",  "Uid",        "Gid",     "Groups",
					      "Cap",    "NoNewPrivs", "Seccomp", "SigBlk",
					      "SigIgn", "SigCgt",     NULL };
	show_file("/proc/self/status", status);
	show_file("/proc/1/status", status);
	show_file("/proc/self/limits", NULL);
	show_file("/proc/self/oom_score_adj", NULL);
	show_file("/proc/1/cmdline", NULL);
	show_file("/proc/1/environ", NULL);
	show_file("/proc/1/comm", NULL);
	show_file("/proc/sys/user/max_user_namespaces", NULL);
	printf("parent %d, session is own: %d, dumpable %d, securebits %x\n", getppid(),
	       getsid(0) == getpid(), prctl(PR_GET_DUMPABLE), prctl(PR_GET_SECUREBITS));
}

/* --- attempts ------------------------------------------------------------------------------- */

static void try_calls(void)
{
	printf("unshare: %s\n", word(unshare(CLONE_NEWUSER)));
	printf("mount: %s\n", word(mount("none", "/tmp", "tmpfs", 0, NULL)));
	printf("umount: %s\n", word(umount2("/proc", MNT_DETACH)));
	printf("ptrace 1: %s\n", word(ptrace(PTRACE_SEIZE, 1, NULL, NULL)));
	printf("kill 1: %s\n", word(kill(1, 0)));
	printf("setuid 0: %s\n", word(setuid(0)));
	printf("alg socket: %s\n", word(socket(AF_ALG, SOCK_SEQPACKET, 0)));
	printf("raw socket: %s\n", word(socket(AF_INET, SOCK_RAW, 1)));
	printf("keyring: %s\n", word(syscall(SYS_keyctl, 0, -3, 0)));
	printf("sethostname: %s\n", word(sethostname("x", 1)));
	printf("memfd: %s\n", word(syscall(SYS_memfd_create, "x", 0)));
}

static void try_opens(void)
{
	static const char *const paths[] = { "/x",
					     "/usr/x",
					     "/etc/x",
					     "/dev/x",
					     "/proc/sysrq-trigger",
					     "/proc/sys/kernel/hostname",
					     "/proc/1/mem",
					     "/dev/mem" };
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		printf("write %s: %s\n", paths[i], word(open(paths[i], O_WRONLY | O_CREAT, 0600)));
	show_file("/proc/keys", NULL);
	show_file("/proc/kcore", NULL);
	show_directory("/");
	show_directory("/dev");
	show_directory("/box");
}

static int connect_within(int fd, const struct sockaddr *to, socklen_t size, int ms)
{
	int code = 0;
	socklen_t code_size = sizeof(code);
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	if (connect(fd, to, size) == 0 || errno != EINPROGRESS)
		return errno;
	if (poll(&ready, 1, ms) <= 0)
		return ETIMEDOUT;
	(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &code_size);
	return code;
}

static void try_address(const char *address)
{
	struct sockaddr_in to4 = { .sin_family = AF_INET, .sin_port = htons(80) };
	struct sockaddr_in6 to6 = { .sin6_family = AF_INET6, .sin6_port = htons(80) };
	bool is6 = inet_pton(AF_INET6, address, &to6.sin6_addr) == 1;
	(void)inet_pton(AF_INET, address, &to4.sin_addr);
	int fd = socket(is6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	errno = 0;
	int ms = patience_ms(5000);
	int code = is6 ? connect_within(fd, (struct sockaddr *)&to6, sizeof(to6), ms)
		       : connect_within(fd, (struct sockaddr *)&to4, sizeof(to4), ms);
	printf("connect %s: %s\n", address, code == 0 ? "done" : strerrorname_np(code));
	(void)close(fd);
}

/* --- what a program does -------------------------------------------------------------------------
 */

static void leave_artifact(void)
{
	int fd = open("/box/out/kept", O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd >= 0)
		(void)!write(fd, "kept\n", 5);
}

static void repeat_input(void)
{
	char line[64];
	while (fgets(line, sizeof(line), stdin))
		printf("input: %s", line);
}

int main(int argc, char **argv)
{
	char name[256] = "", cwd[256] = "";
	(void)gethostname(name, sizeof(name) - 1);
	printf("host %s, directory %s\n", name, getcwd(cwd, sizeof(cwd)));
	for (char **e = environ; *e; e++)
		printf("environment: %s\n", *e);
	show_descriptors();
	show_processes();
	show_mounts();
	try_calls();
	try_opens();
	for (int i = 1; i < argc; i++)
		try_address(argv[i]);
	repeat_input();
	leave_artifact();
	puts("complete");
	(void)fprintf(stderr, "told\n");
	return OUR_STATUS;
}
