/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run/options/habits.h"

#include <stddef.h>
#include <string.h>

#include "runtime/base/text.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

struct habit {
	const char *names; /* separated by blanks */
	const char *answer;
};

/* clang-format off */
static const struct habit option_habits[] = {
	{ "--volume --bind-mount --bindmount", "write --bind SRC:DST, or --ro-bind SRC:DST for a read-only view" },
	{ "--mount", "write --bind SRC:DST, --ro-bind SRC:DST or --tmpfs DST" },
	{ "--bindmount-ro", "write --ro-bind SRC:DST" },
	{ "--read-only", "not needed: the root is read-only, unless --writable is given" },
	{ "--dev --proc", "not needed: every jail has a /dev and a /proc of its own" },
	{ "--dev-bind --device --gpus",
	  "not available: a jail has only the devices null, zero, full, random and urandom" },
	{ "--chdir --cwd --working-directory", "write --workdir DIR" },
	{ "--chroot --root --image", "write --rootfs DIR, or --rootfs NAME for an image: cejail-image(1)" },
	{ "--setenv -E", "write --env NAME=VALUE" },
	{ "--user -u --uid --gid --userns",
	  "not needed: the program is user 'jail' with id 1000, and has no privileges on the host" },
	{ "--privileged --cap-add", "not available: no program in a jail has a capability" },
	{ "--cap-drop", "not needed: no program in a jail has a capability" },
	{ "--security-opt", "not needed: every jail has a system call filter; write --seccomp FILE for another" },
	{ "--mode", "not needed: 'cejail run' runs one program, as nsjail's mode 'o' does; 'cejail serve' listens" },
	{ "--rm --init --die-with-parent --new-session",
	  "not needed: every jail has an init and a session of its own, and is removed at its end" },
	{ "--name --unit", "write --id ID" },
	{ "-d --detach", "not available: cejail waits for the program; add '&' in the shell, or see cejail-serve(8)" },
	{ "--unshare-all --unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup",
	  "not needed: every jail has its own namespaces, and the program cannot create others" },
	{ "--entrypoint", "write the command after '--': cejail run [OPTION...] -- COMMAND [ARG...]" },
	{ "--version", "write 'cejail version'" },
	{ "--stdin -P --pipe", "write --interactive (-i); ports can't be published" },
	{ "--net", "write --network public or --network none" },
	{ "--unshare-net --no-network", "write --network none" },
	{ "--share-net --disable-clone-newnet", "write --network public; --allow HOST:PORT for parts of it" },
	{ "--publish --expose --port",
	  "not available: no process outside can connect to a jail; see --connect for the other direction" },
	{ "--mem --memory-limit --rlimit-as --cgroup-mem-max", "write --memory SIZE (-m)" },
	{ "--memory-swap", "not needed: a jail has no swap" },
	{ "--pids --rlimit-nproc --cgroup-pids-max", "write --pids-limit N" },
	{ "--time --time-limit", "write --timeout DUR (-t)" },
	{ "--ulimit --rlimit", "write --nofile N, --pids-limit N, --cpu-time DUR or --disk SIZE" },
	{ "--shm-size --rlimit-fsize", "write --disk SIZE: one limit for /box, /tmp and /dev/shm" },
	{ "--cpu --max-cpus", "write --cpus N" },
	{ "--cpuset-cpus", "not available: start cejail itself with taskset(1)" },
	{ "--property", "write --memory SIZE, --cpus N, --pids-limit N or --timeout DUR" },
};

/* For `cejail mcp`, before the others: it has a standard input and no port. */
static const struct habit mcp_habits[] = {
	{ "--port --host --listen --http --transport --sse --stdio",
	  "an MCP client starts 'cejail mcp' and uses its standard input and output; for HTTP, a "
	  "service has POST /mcp: cejail-serve(8)" },
};

static const struct habit verb_habits[] = {
	{ "exec attach", "a jail runs one program: write 'cejail run' or 'cejail shell'" },
	{ "create start", "write 'cejail run'" },
	{ "stop", "write 'cejail kill ID'" },
	{ "rm", "not needed: every jail is removed at its end" },
	{ "list ls", "write 'cejail ps'" },
	{ "logs inspect", "not available: cejail gives output and result to the caller; see --json" },
	{ "images", "write 'cejail image list'" },
	{ "pull build", "not available: get images with skopeo, then 'cejail image import': cejail-image(1)" },
};

/* Images whose names are not commands.  habit_is_image() recognises a tag or a registry itself. */
static const char *const image_names[] = { "ubuntu", "debian", "alpine", "fedora", "hello-world", NULL };
/* clang-format on */

static bool has_name(const char *names, const char *name)
{
	size_t size = strlen(name);

	for (const char *at = names; size > 0 && (at = strstr(at, name)); at++)
		if ((at == names || at[-1] == ' ') && (at[size] == '\0' || at[size] == ' '))
			return true;
	return false;
}

static const char *find_answer(const struct habit *table, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (has_name(table[i].names, name))
			return table[i].answer;
	return NULL;
}

const char *habit_for_option(const char *named)
{
	char dashed[64];
	size_t size = strlen(named);

	if (strchr(named, ' ') || size >= sizeof(dashed))
		return NULL;
	for (size_t i = 0; i <= size; i++) /* nsjail's have underscores */
		dashed[i] = (char)(named[i] == '_' ? '-' : named[i]);
	return find_answer(option_habits, LENGTH(option_habits), dashed);
}

const char *habit_of_mcp(const char *named)
{
	return find_answer(mcp_habits, LENGTH(mcp_habits), named);
}

const char *habit_for_verb(const char *verb)
{
	return strchr(verb, ' ') ? NULL : find_answer(verb_habits, LENGTH(verb_habits), verb);
}

/* "8080:80", "127.0.0.1:8080:80", "53:53/udp" */
static bool is_published_port(const char *text)
{
	const char *colon = strrchr(text, ':');
	if (!colon || colon == text || colon[1] < '0' || colon[1] > '9')
		return false;
	size_t digits = strspn(colon + 1, "0123456789");
	return strspn(text, "0123456789.:") >= (size_t)(colon - text) &&
	       (colon[1 + digits] == '\0' || colon[1 + digits] == '/');
}

static const char *network_answer(const char *value)
{
	if (strcmp(value, "host") == 0)
		return "a jail never has the host's network; write --network public, and "
		       "--connect tcp:127.0.0.1:PORT for a port of the host's loopback";
	return has_name("bridge default slirp4netns pasta private nat", value)
		   ? "write --network public"
		   : NULL;
}

const char *habit_for_value(const char *option, const char *value)
{
	bool is_profile = strcmp(option, "profile") == 0;
	if (is_profile && is_published_port(value))
		return "-p names a profile here, and no process outside can connect to a jail";
	/* systemd-run's -p MemoryMax=1G; a file has a slash */
	if (is_profile && value[0] >= 'A' && value[0] <= 'Z' && strchr(value, '=') &&
	    !strchr(value, '/'))
		return "-p names a profile here; write --memory SIZE, --cpus N, --pids-limit N or "
		       "--timeout DUR";
	if (strcmp(option, "network") == 0)
		return network_answer(value);
	if (strcmp(option, "timeout") == 0 && (value[0] < '0' || value[0] > '9'))
		return "-t is --timeout here; write --tty -i for a terminal";
	return NULL;
}

bool habit_is_volume(const char *word)
{
	const char *colon = strchr(word, ':');
	return colon && colon != word && colon[1] == '/' && strncmp(colon, "://", 3) != 0;
}

bool habit_is_image(const char *word)
{
	if (text_is_one_of(word, image_names))
		return true;
	const char *colon = strrchr(word, ':');
	bool has_tag = colon && colon != word && colon[1] != '\0' && !strchr(colon, '/');
	bool has_registry = strncmp(word, "docker.io/", 10) == 0 ||
			    strncmp(word, "ghcr.io/", 8) == 0 || strncmp(word, "quay.io/", 8) == 0;
	return word[0] != '/' && word[0] != '.' && (has_tag || has_registry);
}
