/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look - prints what a program sees of its sandbox, as one JSON object, and ends as it is told.
 *
 *	look [STATUS | KILL | TERM]
 *
 * Python needs ten times as long to start, and tests/system/bwrap starts thousands of these.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES 8192
#define GROUPS_MAX     64

extern char **environ;

static void put_text(const char *text)
{
	putchar('"');
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if (*c == '"' || *c == '\\' || *c < ' ' || *c > '~')
			printf("\\u%04x", *c);
		else
			putchar(*c);
	putchar('"');
}

/* "NAME": of an object; `is_first` is where its comma is kept. */
static void put_key(bool *is_first, const char *name)
{
	printf("%s", *is_first ? "" : ",\n");
	*is_first = false;
	put_text(name);
	putchar(':');
}

static char type_of(mode_t mode)
{
	return S_ISDIR(mode)    ? 'd'
	       : S_ISLNK(mode)  ? 'l'
	       : S_ISCHR(mode)  ? 'c'
	       : S_ISBLK(mode)  ? 'b'
	       : S_ISFIFO(mode) ? 'p'
	       : S_ISSOCK(mode) ? 's'
				: '-';
}

/* [type and mode, owner, group, target], or errno.  Returns the mode, 0: none. */
static mode_t put_entry(const char *path)
{
	struct stat st;
	char target[LINE_MAX_BYTES];
	if (lstat(path, &st) < 0) {
		printf("%d", errno);
		return 0;
	}
	printf("[\"%c%04o\",%u,%u,", type_of(st.st_mode), st.st_mode & 07777u, st.st_uid,
	       st.st_gid);
	ssize_t size = S_ISLNK(st.st_mode) ? readlink(path, target, sizeof(target) - 1) : -1;
	if (size >= 0) {
		target[size] = '\0';
		put_text(target);
	} else {
		printf("null");
	}
	putchar(']');
	return st.st_mode;
}

static void walk(const char *path, int depth, bool *is_first)
{
	DIR *dir = opendir(*path ? path : "/");
	char one[LINE_MAX_BYTES];
	if (!dir) {
		(void)snprintf(one, sizeof(one), "%s/", path);
		put_key(is_first, one);
		printf("%d", errno);
		return;
	}
	for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		(void)snprintf(one, sizeof(one), "%s/%s", path, e->d_name);
		put_key(is_first, one);
		bool is_dir = S_ISDIR(put_entry(one));
		if (depth > 0 && is_dir && strcmp(one, "/usr") != 0 && strcmp(one, "/sys") != 0 &&
		    strcmp(one, "/proc") != 0)
			walk(one, depth - 1, is_first);
	}
	(void)closedir(dir);
}

/* Lines of a file as a list, or errno; with `wanted` those that begin with one of them. */
static void put_lines(const char *path, const char *const *wanted)
{
	char line[LINE_MAX_BYTES];
	bool is_first = true;
	FILE *file = fopen(path, "re");
	if (!file) {
		printf("%d", errno);
		return;
	}
	putchar('[');
	while (fgets(line, sizeof(line), file)) {
		bool is_wanted = !wanted;
		for (size_t i = 0; wanted && wanted[i]; i++)
			is_wanted |= strncmp(line, wanted[i], strlen(wanted[i])) == 0;
		line[strcspn(line, "\n")] = '\0';
		if (!is_wanted)
			continue;
		printf("%s", is_first ? "" : ",\n");
		is_first = false;
		put_text(line);
	}
	putchar(']');
	(void)fclose(file);
}

static void put_descriptors(void)
{
	char path[64], target[LINE_MAX_BYTES];
	bool is_first = true;
	putchar('{');
	for (int fd = 0; fd < 256; fd++) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t size = readlink(path, target, sizeof(target) - 1);
		if (size < 0)
			continue;
		target[size] = '\0';
		(void)snprintf(path, sizeof(path), "%d", fd);
		put_key(&is_first, path);
		put_text(target);
	}
	putchar('}');
}

static void put_environment(void)
{
	bool is_first = true;
	putchar('{');
	for (char **e = environ; *e; e++) {
		char name[LINE_MAX_BYTES];
		size_t size = strcspn(*e, "=");
		(void)snprintf(name, sizeof(name), "%.*s", (int)size, *e);
		put_key(&is_first, name);
		put_text((*e)[size] ? *e + size + 1 : "");
	}
	putchar('}');
}

static void put_links(void)
{
	struct if_nameindex *links = if_nameindex();
	printf("[");
	for (size_t i = 0; links && links[i].if_name; i++) {
		printf("%s", i > 0 ? "," : "");
		put_text(links[i].if_name);
	}
	printf("]");
	if (links)
		if_freenameindex(links);
}

static void put_ids(void)
{
	gid_t groups[GROUPS_MAX];
	int count = getgroups(GROUPS_MAX, groups);
	printf("[%u,%u,[", getuid(), getgid());
	for (int i = 0; i < count; i++)
		printf("%s%u", i > 0 ? "," : "", groups[i]);
	printf("]]");
}

static void put_files(void)
{
	static const char *const status[] = { "CapInh:", "CapPrm:",     "CapEff:",  "CapAmb:",
					      "Umask:",  "NoNewPrivs:", "Seccomp:", NULL };
	printf(",\n\"mounts\":");
	put_lines("/proc/self/mountinfo", NULL);
	printf(",\n\"maps\":[");
	put_lines("/proc/self/uid_map", NULL);
	putchar(',');
	put_lines("/proc/self/gid_map", NULL);
	putchar(',');
	put_lines("/proc/self/setgroups", NULL);
	printf("],\n\"status\":");
	put_lines("/proc/self/status", status);
}

int main(int argc, char **argv)
{
	const char *end = argc > 1 ? argv[1] : "0";
	char text[LINE_MAX_BYTES] = "";
	bool is_first = true;
	printf("{\"tree\":{");
	put_key(&is_first, "/");
	(void)put_entry("/");
	walk("", 2, &is_first);
	printf("}");
	put_files();
	printf(",\n\"env\":");
	put_environment();
	printf(",\n\"fds\":");
	put_descriptors();
	printf(",\n\"links\":");
	put_links();
	printf(",\n\"ids\":");
	put_ids();
	printf(",\n\"cwd\":");
	put_text(getcwd(text, sizeof(text)) ? text : "");
	printf(",\n\"host\":");
	put_text(gethostname(text, sizeof(text)) == 0 ? text : "");
	printf(",\n\"argv0\":");
	put_text(argv[0]);
	printf(",\n\"pid\":%d,\"session\":%d}\n", getpid() < 3 ? getpid() : 0,
	       getsid(0) == getpid());
	(void)fflush(stdout);
	if (strcmp(end, "KILL") == 0 || strcmp(end, "TERM") == 0)
		(void)kill(getpid(), strcmp(end, "KILL") == 0 ? SIGKILL : SIGTERM);
	return (int)strtol(end, NULL, 10);
}
