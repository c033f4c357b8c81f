/* SPDX-License-Identifier: Apache-2.0 */
/* Options, verbs and names of other programs.  Pure. */
#include "runtime/run/options/habits.h"

#include <stddef.h>
#include <string.h>

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

struct habit {
	const char *names; /* separated by blanks */
	const char *answer;
};

/* clang-format off */
static const struct habit option_habits[] = {
	/* files */
	{ "--volume --volumes-from --bind-mount --bindmount",
	  "write --bind SRC:DST, or --ro-bind SRC:DST for a read-only view" },
	{ "--mount",
	  "write --bind SRC:DST, --ro-bind SRC:DST or --tmpfs DST" },
	{ "--bindmount-ro", "write --ro-bind SRC:DST" },
	{ "--tmpfsmount", "write --tmpfs DST" },
	{ "--ro-bind-try", "write --ro-bind SRC:DST; a source that is missing is an error" },
	{ "--bind-try", "write --bind SRC:DST; a source that is missing is an error" },
	{ "--read-only --readonly --ro --remount-ro",
	  "not needed: the root is read-only, unless --writable is given" },
	{ "--read-write --rw", "write --bind SRC:DST for a path of the host, or --writable for the root" },
	{ "--whitelist --blacklist --noblacklist --nowhitelist --mkdir --mkfile",
	  "not needed: a jail sees nothing of the caller's files; open one with --ro-bind or --bind" },
	{ "--private --private-home --private-tmp --private-dev --private-etc --private-cache --private-cwd",
	  "not needed: /box, /tmp, /dev and /etc are the jail's own, and /home is not there" },
	{ "--private-bin --private-lib --private-opt --private-srv",
	  "not available: the jail sees this host's /usr, or the directory of --rootfs" },
	{ "--dev --proc --mqueue",
	  "not needed: every jail has a /dev and a /proc of its own" },
	{ "--dev-bind --dev-bind-try --device --device-cgroup-rule --gpus",
	  "not available: a jail has only the devices null, zero, full, random and urandom" },
	{ "--dir", "write --tmpfs DST for an empty writable directory" },
	{ "--symlink", "write --ro-bind SRC:DST to show a path in another place" },
	{ "--chdir --working-directory --same-dir --cwd --pwd",
	  "write --workdir DIR" },
	{ "--chroot --root --image --image-volume",
	  "write --rootfs DIR, or --rootfs NAME for an image: cejail-image(1)" },
	{ "--pull --platform --arch --os --tls-verify",
	  "not available: get images with skopeo, then 'cejail image import': cejail-image(1)" },
	{ "--overlay-src --overlay-tmpfs --tmp-overlay", "write --overlay SRC[:DST] for a directory, or --writable for the root" },
	{ "--output --out --copy-out", "write --artifacts DIR; the program writes to /box/out" },

	/* variables */
	{ "--setenv -E", "write --env NAME=VALUE" },
	{ "--env-host --env-merge --keep-env", "write --env NAME for each variable to take from the caller" },
	{ "--unsetenv --unsetenv-all --clearenv --rmenv",
	  "not needed: no variable of the caller's is inherited" },

	/* identity and privileges */
	{ "--user -u --uid --gid --group-add --userns --uidmap --gidmap --subuidname --noroot",
	  "not needed: the program is user 'jail' with id 1000, and has no privileges on the host" },
	{ "--privileged --cap-add --add-caps --keep-caps",
	  "not available: no program in a jail has a capability" },
	{ "--cap-drop --caps --caps.drop --drop-caps",
	  "not needed: no program in a jail has a capability" },
	{ "--no-new-privs --nonewprivs --no-new-privileges",
	  "not needed: no program in a jail can gain privileges" },
	{ "--security-opt --seccomp-policy --seccomp-string --seccomp.drop --seccomp.keep --apparmor --selinux",
	  "not needed: every jail has a system call filter; write --seccomp FILE for another" },
	{ "--sysctl --cgroupns --isolation", "not available: these settings are the same in every jail" },

	/* start and end */
	{ "--mode", "not needed: 'cejail run' runs one program, as nsjail's mode 'o' does; 'cejail serve' listens" },
	{ "--rm --remove --collect", "not needed: every jail is removed at its end" },
	{ "--name --unit --container-name --cidfile", "write --id ID" },
	{ "-d --detach --no-block --background",
	  "not available: cejail waits for the program; add '&' in the shell, or see cejail-serve(8)" },
	{ "--restart --health-cmd --no-healthcheck",
	  "not available: a jail runs one program once" },
	{ "--init", "not needed: every jail has an init that reaps its processes" },
	{ "--die-with-parent --kill-on-parent-death", "not needed: the jail ends when its cejail process ends" },
	{ "--new-session --as-pid-1 --deterministic-shutdown",
	  "not needed: a jail has a session and an init of its own" },
	{ "--wait", "not needed: cejail waits for the program" },
	{ "--stop-signal --stop-timeout --sig-proxy",
	  "not needed: a signal to cejail ends the jail" },
	{ "--unshare-all --unshare-user --unshare-user-try --unshare-pid --unshare-ipc --unshare-uts "
	  "--unshare-cgroup --unshare-cgroup-try --ipc --pid --uts --disable-userns --ipc-namespace",
	  "not needed: every jail has its own namespaces, and the program cannot create others" },
	{ "--entrypoint --command --cmd --exec",
	  "write the command after '--': cejail run [OPTION...] -- COMMAND [ARG...]" },
	{ "--label --annotation --log-driver --log-opt --attach-log",
	  "not available: see --json for a record of the run" },
	{ "--version", "write 'cejail version'" },

	/* standard streams */
	{ "--stdin -a --attach --pipe --piped", "write --interactive (-i)" },
	{ "--terminal --pty --shell", "write --tty --interactive" },
	{ "-P", "write --interactive (-i) for a pipe on standard input; ports can't be published" },

	/* network */
	{ "--net --netns --network-mode", "write --network public or --network none" },
	{ "--unshare-net --unshare-network --no-network --no-net --offline --disable-network",
	  "write --network none" },
	{ "--share-net --allow-net --disable-clone-newnet", "write --network public; --allow HOST:PORT for parts of it" },
	{ "--publish --publish-all --expose --port",
	  "not available: no process outside can connect to a jail; see --connect for the other direction" },
	{ "--dns --dns-search --dns-option --dns-opt --add-host --ip --ip6 --mac-address --link "
	  "--network-alias --net-alias",
	  "not available: every jail has the same addresses and uses the name servers of this host" },
	{ "--socket", "write --connect unix:PATH" },

	/* limits */
	{ "--mem --mem-limit --memory-limit --memory-max --rlimit-as --cgroup-mem-max",
	  "write --memory SIZE (-m)" },
	{ "--memory-swap --memory-swappiness --swap",
	  "not needed: a jail has no swap" },
	{ "--memory-reservation --kernel-memory --oom-kill-disable --oom-score-adj",
	  "not available: --memory SIZE is the only limit on memory" },
	{ "--pids --max-processes --nproc --rlimit-nproc --tasks-max --cgroup-pids-max", "write --pids-limit N" },
	{ "--time --time-limit --wall-time --stop-after", "write --timeout DUR (-t)" },
	{ "--rlimit-cpu", "write --cpu-time DUR" },
	{ "--ulimit --rlimit", "write --nofile N, --pids-limit N, --cpu-time DUR or --disk SIZE" },
	{ "--rlimit-nofile", "write --nofile N" },
	{ "--rlimit-fsize --fsize --storage-opt --shm-size --size",
	  "write --disk SIZE: one limit for /box, /tmp and /dev/shm" },
	{ "--cpu --max-cpus --cgroup-cpu-ms-per-sec --cpu-quota --cpu-period --cpu-shares --cpu-count --cpu-rt-runtime --nice",
	  "write --cpus N" },
	{ "--cpuset-cpus --cpuset-mems --cpuset",
	  "not available: start cejail itself with taskset(1)" },
	{ "--blkio-weight --device-read-bps --device-write-bps",
	  "not available: a jail's own files are in memory" },
	{ "--property --slice-inherit",
	  "write --memory SIZE, --cpus N, --pids-limit N or --timeout DUR" },
	{ "--slice --scope --cgroup", "write --cgroup-parent PATH" },

	/* what to run */
	{ "--lang --language --runtime --interpreter", "write --profile NAME (-p)" },
	{ "--config --config-file", "write --profile FILE (-p)" },
};

/* For `cejail mcp`, before the others: it has a standard input and no port. */
static const struct habit mcp_habits[] = {
	{ "--port --host --listen --http --transport --sse --stdio",
	  "an MCP client starts 'cejail mcp' and uses its standard input and output; for HTTP, a "
	  "service has POST /mcp: cejail-serve(8)" },
};

static const struct habit verb_habits[] = {
	{ "exec attach", "a jail runs one program: write 'cejail run' or 'cejail shell'" },
	{ "create start up", "write 'cejail run'" },
	{ "stop end", "write 'cejail kill ID'" },
	{ "rm remove", "not needed: every jail is removed at its end" },
	{ "prune clean cleanup", "write 'cejail gc'" },
	{ "list ls containers", "write 'cejail ps'" },
	{ "info check status", "write 'cejail doctor'" },
	{ "logs inspect", "not available: cejail gives output and result to the caller; see --json" },
	{ "images", "write 'cejail image list'" },
	{ "rmi", "write 'cejail image rm NAME'" },
	{ "load import", "write 'cejail image import NAME FILE'" },
	{ "pull build push",
	  "not available: get images with skopeo, then 'cejail image import': cejail-image(1)" },
	{ "profiles", "write 'cejail profile list'" },
	{ "sh bash", "write 'cejail shell'" },
	{ "daemon service server", "write 'cejail serve'" },
};

/* Images whose names are not commands.  habit_is_image() recognises a tag or a registry itself. */
static const char *const image_names[] = {
	"ubuntu", "debian", "alpine", "fedora", "centos", "archlinux", "rockylinux", "almalinux",
	"hello-world", "scratch", "golang", "rust", "openjdk", "postgres", "redis", "nginx",
};
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

/* --- values of our own options ------------------------------------------------------ */

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

/* systemd-run's -p MemoryMax=1G; a file has a slash. */
static bool is_property(const char *text)
{
	return text[0] >= 'A' && text[0] <= 'Z' && strchr(text, '=') && !strchr(text, '/');
}

static const char *profile_answer(const char *value)
{
	if (is_published_port(value))
		return "-p names a profile here, and no process outside can connect to a jail";
	if (is_property(value))
		return "-p names a profile here; write --memory SIZE, --cpus N, --pids-limit N or "
		       "--timeout DUR";
	return NULL;
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
	if (strcmp(option, "profile") == 0)
		return profile_answer(value);
	if (strcmp(option, "network") == 0)
		return network_answer(value);
	if (strcmp(option, "timeout") == 0 && (value[0] < '0' || value[0] > '9'))
		return "-t is --timeout here; write --tty -i for a terminal";
	return NULL;
}

/* --- operands that are not a FILE --------------------------------------------------- */

bool habit_is_volume(const char *word)
{
	const char *colon = strchr(word, ':');
	return colon && colon != word && colon[1] == '/' && strncmp(colon, "://", 3) != 0;
}

bool habit_is_image(const char *word)
{
	for (size_t i = 0; i < LENGTH(image_names); i++)
		if (strcmp(word, image_names[i]) == 0)
			return true;

	const char *colon = strrchr(word, ':');
	bool has_tag = colon && colon != word && colon[1] != '\0' && !strchr(colon, '/');
	bool has_registry = strncmp(word, "docker.io/", 10) == 0 ||
			    strncmp(word, "ghcr.io/", 8) == 0 || strncmp(word, "quay.io/", 8) == 0;
	return word[0] != '/' && word[0] != '.' && (has_tag || has_registry);
}
