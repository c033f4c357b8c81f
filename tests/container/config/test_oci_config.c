/* SPDX-License-Identifier: Apache-2.0 */
/* oci_config: what engines write is read whole; what can't be honoured is refused at its place. */
#include "runtime/container/config/oci_config.h"

#include <linux/ioprio.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "tests/container/config/oci_sample.h"

static struct arena arena;
static struct cj_error err;
static struct oci_config config;

static int empty_arena(void **state)
{
	(void)state;
	arena_fini(&arena);
	return 0;
}

static void take(const struct sample *s)
{
	err = (struct cj_error){ 0 };
	if (sample_read(s, &arena, &config, &err) < 0)
		fail_msg("%s", err.msg);
}

/* The message ends in `end`, behind the place. */
static void refuse(const struct sample *s, const char *end)
{
	struct oci_config before;
	memset(&config, 0x5a, sizeof(config));
	before = config;
	err = (struct cj_error){ 0 };

	if (sample_read(s, &arena, &config, &err) != -EINVAL)
		fail_msg("'%s' was taken", end);
	if (strncmp(err.msg, "config.json:1:", strlen("config.json:1:")) != 0 ||
	    !strstr(err.msg, end))
		fail_msg("'%s' lacks '%s'", err.msg, end);
	assert_memory_equal(&config, &before, sizeof(config));
}

/* --- versions ---------------------------------------------------------------------- */

static void every_version_1_is_taken_with_suffixes(void **state)
{
	static const char *const good[] = { "1.0.0",     "1.0.2-dev",   "1.1.0-rc.1", "1.2.0",
					    "1.99.1000", "1.0.0+build", "1.3.0-a+b" };
	static const char *const bad[] = { "",       "1",      "1.0",    "2.0.0", "0.9.0",
					   "10.0.0", "1.0.0x", "1..0",   "1.0.",  "1.a.0",
					   "v1.0.0", " 1.0.0", "1.01.0", "1.-1.0" };
	char text[32];
	(void)state;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		(void)snprintf(text, sizeof(text), "\"%s\"", good[i]);
		take(&(struct sample){ .version = text });
		assert_string_equal(config.oci_version, good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		(void)snprintf(text, sizeof(text), "\"%s\"", bad[i]);
		refuse(&(struct sample){ .version = text }, "is not a version 1.x.y");
	}
	refuse(&(struct sample){ .version = "1" }, "ociVersion must be a string");
}

static void fields_that_nobody_knows_are_ignored_at_every_level(void **state)
{
	(void)state;
	take(&(struct sample){
	    .process =
		"{\"args\": [\"a\"], \"cwd\": \"/\", \"new\": {\"x\": [1]},"
		" \"user\": {\"uid\": 1, \"gid\": 2, \"shell\": \"zsh\", \"username\": \"u\"},"
		" \"rlimits\": [{\"type\": \"RLIMIT_CPU\", \"soft\": 1, \"hard\": 2,"
		" \"why\": 0}]}",
	    .root = "{\"path\": \"r\", \"encrypted\": true}",
	    .mounts = "[{\"destination\": \"/x\", \"extra\": null}]",
	    .linux_ = SAMPLE_SPACES ", \"later\": 1, \"resources\": {\"gpu\": {\"limit\": 1}}",
	    .more = "\"org.example\": {\"a\": 1}" });
	assert_int_equal(config.process.user.uid, 1);
	assert_int_equal(config.nmounts, 1);
}

/* --- the process ------------------------------------------------------------------- */

#define WITH(member) "{\"args\": [\"a\"], \"cwd\": \"/\", " member "}"

static void every_field_of_the_process_is_read(void **state)
{
	const struct oci_process *p = &config.process;
	(void)state;

	take(&(struct sample){
	    .process =
		"{\"terminal\": true, \"consoleSize\": {\"height\": 25, \"width\": 80},"
		" \"user\": {\"uid\": 4294967294, \"gid\": 6, \"umask\": 18,"
		" \"additionalGids\": [6, 0]},"
		" \"args\": [\"sh\", \"-c\", \"\"], \"env\": [\"A=\", \"B=c=d\"], \"cwd\": \"/w\","
		" \"capabilities\": {\"bounding\": [\"CAP_KILL\", \"CAP_CHOWN\"],"
		" \"effective\": [\"CAP_KILL\"], \"inheritable\": null, \"ambient\": []},"
		" \"rlimits\": [{\"type\": \"RLIMIT_NOFILE\", \"hard\": 18446744073709551615,"
		" \"soft\": 1024}, {\"type\": \"RLIMIT_CORE\", \"hard\": 0, \"soft\": 0}],"
		" \"noNewPrivileges\": true, \"oomScoreAdj\": -1000,"
		" \"apparmorProfile\": \"unconfined\", \"selinuxLabel\": \"a:b:c:s0\","
		" \"scheduler\": {\"policy\": \"SCHED_DEADLINE\", \"nice\": -20, \"priority\": 3,"
		" \"flags\": [\"SCHED_FLAG_RECLAIM\", \"SCHED_FLAG_DL_OVERRUN\"],"
		" \"runtime\": 1, \"deadline\": 2, \"period\": 3},"
		" \"ioPriority\": {\"class\": \"IOPRIO_CLASS_BE\", \"priority\": 7}}" });
	assert_true(config.has_process && p->has_terminal);
	assert_int_equal(p->console_height * 1000 + p->console_width, 25080);
	assert_true(p->user.uid == OCI_ID_MAX && p->user.gid == 6);
	assert_true(p->user.umask.is_set && p->user.umask.value == 022);
	assert_true(p->user.ngroups == 2 && p->user.groups[0] == 6 && p->user.groups[1] == 0);
	assert_int_equal(p->args.count, 3);
	assert_string_equal(p->args.items[2], "");
	assert_null(p->args.items[3]);
	assert_string_equal(p->env.items[1], "B=c=d");
	assert_string_equal(p->cwd, "/w");
	assert_true(p->capabilities.is_given);
	assert_string_equal(p->capabilities.bounding.items[1], "CAP_CHOWN");
	assert_int_equal(p->capabilities.effective.count, 1);
	assert_int_equal(p->capabilities.inheritable.count + p->capabilities.permitted.count +
			     p->capabilities.ambient.count,
			 0);
	assert_int_equal(p->nrlimits, 2);
	assert_true(p->rlimits[0].resource == RLIMIT_NOFILE && p->rlimits[0].soft == 1024 &&
		    p->rlimits[0].hard == UINT64_MAX);
	assert_true(p->no_new_privileges);
	assert_true(p->oom_score_adj.is_set && p->oom_score_adj.value == -1000);
	assert_string_equal(p->apparmor_profile, "unconfined");
	assert_string_equal(p->selinux_label, "a:b:c:s0");
	assert_true(p->scheduler.is_given && p->scheduler.policy == SCHED_DEADLINE &&
		    p->scheduler.nice == -20 && p->scheduler.flags == 6 &&
		    p->scheduler.period_ns == 3);
	assert_true(p->io_priority.is_given && p->io_priority.io_class == IOPRIO_CLASS_BE &&
		    p->io_priority.level == 7);
}

static void what_the_process_leaves_out_is_not_set(void **state)
{
	const struct oci_process *p = &config.process;
	(void)state;

	take(&(struct sample){ .process =
				   "{\"args\": [\"a\"], \"cwd\": \"/\", \"env\": null,"
				   " \"rlimits\": null, \"user\": {\"uid\": 0, \"gid\": 0}}" });
	assert_false(p->has_terminal || p->user.umask.is_set || p->capabilities.is_given ||
		     p->no_new_privileges || p->oom_score_adj.is_set || p->scheduler.is_given ||
		     p->io_priority.is_given);
	assert_true(p->env.count == 0 && p->nrlimits == 0 && !p->apparmor_profile &&
		    !p->selinux_label);
	take(&(struct sample){ .process = "null" });
	assert_false(config.has_process);
}

static void mistakes_in_the_process_are_refused(void **state)
{
	static const struct {
		const char *process, *end;
	} rows[] = {
		{ "{\"cwd\": \"/\"}", "process.args is missing" },
		{ "{\"args\": [], \"cwd\": \"/\"}", "args is empty" },
		{ "{\"args\": [\"a\"]}", "process.cwd is missing" },
		{ "{\"args\": [\"a\"], \"cwd\": \"\"}", "cwd is empty" },
		{ "{\"args\": [\"a\"], \"cwd\": \"w\"}", "'w' is not an absolute path" },
		{ "{\"args\": \"a\", \"cwd\": \"/\"}", "process.args must be an array" },
		{ "{\"args\": [\"a\", 1], \"cwd\": \"/\"}", "process.args must be" },
		{ WITH("\"user\": {\"gid\": 1}"), "process.user.uid is missing" },
		{ WITH("\"user\": {\"uid\": 1}"), "process.user.gid is missing" },
		{ WITH("\"user\": {\"uid\": null, \"gid\": 1}"), "process.user.uid must be" },
		{ WITH("\"user\": {\"uid\": -1, \"gid\": 1}"), "process.user.uid: '-1'" },
		{ WITH("\"user\": {\"uid\": 4294967295, \"gid\": 1}"), "is too large" },
		{ WITH("\"user\": {\"uid\": 4294967296, \"gid\": 1}"), "is too large" },
		{ WITH("\"user\": {\"uid\": 1, \"gid\": 18446744073709551616}"), "is too large" },
		{ WITH("\"user\": {\"uid\": 1.5, \"gid\": 1}"), "process.user.uid: '1.5'" },
		{ WITH("\"user\": {\"uid\": \"1\", \"gid\": 1}"), "not a string" },
		{ WITH("\"user\": {\"uid\": 1, \"gid\": 1, \"umask\": 512}"), "too large" },
		{ WITH("\"user\": {\"uid\": 1, \"gid\": 1, \"additionalGids\": [-1]}"), "'-1'" },
		{ WITH("\"env\": [\"PATH\"]"), "'PATH' is not NAME=VALUE" },
		{ WITH("\"env\": [\"=x\"]"), "'=x' is not NAME=VALUE" },
		{ WITH("\"capabilities\": [\"CAP_KILL\"]"), "process.capabilities must be" },
		{ WITH("\"oomScoreAdj\": -1001"), "oomScoreAdj must be from -1000 to 1000" },
		{ WITH("\"oomScoreAdj\": 1001"), "oomScoreAdj must be from -1000 to 1000" },
		{ WITH("\"rlimits\": [{\"type\": \"RLIMIT_FOO\", \"soft\": 1, \"hard\": 1}]"),
		  "has no 'RLIMIT_FOO'" },
		{ WITH("\"rlimits\": [{\"type\": \"RLIMIT_AS\", \"soft\": 2, \"hard\": 1}]"),
		  "the soft limit is above the hard limit" },
		{ WITH("\"rlimits\": [{\"type\": \"RLIMIT_AS\", \"hard\": 1}]"),
		  "process.rlimits.soft is missing" },
		{ WITH("\"rlimits\": [{\"type\": \"RLIMIT_AS\", \"soft\": 1, \"hard\": 1},"
		       " {\"type\": \"RLIMIT_AS\", \"soft\": 1, \"hard\": 1}]"),
		  "rlimits has one type twice" },
		{ WITH("\"scheduler\": {\"policy\": \"SCHED_ISO\"}"), "has no 'SCHED_ISO'" },
		{ WITH("\"scheduler\": {\"nice\": 1}"), "process.scheduler.policy is missing" },
		{ WITH("\"scheduler\": {\"policy\": \"SCHED_RR\", \"nice\": 2147483648}"),
		  "too large" },
		{ WITH("\"ioPriority\": {\"class\": \"IOPRIO_CLASS_BE\", \"priority\": 8}"),
		  "too large" },
		{ WITH("\"execCPUAffinity\": {\"initial\": \"x\"}"),
		  "process.execCPUAffinity.initial: 'x' is no list" },
		{ WITH("\"execCPUAffinity\": {\"final\": \"8192\"}"), "is no list" },
		{ WITH("\"consoleSize\": {\"height\": 65536, \"width\": 1}"), "too large" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		refuse(&(struct sample){ .process = rows[i].process }, rows[i].end);
}

/* --- root, mounts, hooks ----------------------------------------------------------- */

static void root_mounts_and_hooks_are_read(void **state)
{
	const struct oci_mount *m = NULL;
	(void)state;

	take(&(struct sample){
	    .root = "{\"path\": \"/srv/r\", \"readonly\": true}",
	    .mounts = "[{\"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\","
		      " \"options\": [\"nosuid\", \"noexec\"]},"
		      " {\"destination\": \"data/x\", \"source\": \"/d\", \"options\": null,"
		      " \"uidMappings\": [{\"containerID\": 0, \"hostID\": 9, \"size\": 2}],"
		      " \"gidMappings\": [{\"containerID\": 1, \"hostID\": 8, \"size\": 3}]}]",
	    .more = "\"hostname\": \"h\", \"domainname\": \"d\","
		    " \"annotations\": {\"io.cejail.network\": \"public\", \"k\": \"\"},"
		    " \"hooks\": {\"prestart\": null, \"createRuntime\": [{\"path\": \"/h\"}],"
		    " \"poststop\": [{\"path\": \"/p\", \"args\": [\"p\", \"1\"],"
		    " \"env\": [\"A=B\"], \"timeout\": 10}, {\"path\": \"/q\"}]}" });
	assert_string_equal(config.root_path, "/srv/r");
	assert_true(config.root_is_readonly);
	assert_int_equal(config.nmounts, 2);
	m = &config.mounts[0];
	assert_string_equal(m->type, "proc");
	assert_string_equal(m->options.items[1], "noexec");
	m = &config.mounts[1];
	assert_string_equal(m->destination, "/data/x"); /* a relative one is below the root */
	assert_null(m->type);
	assert_true(m->uid_maps.count == 1 && m->uid_maps.items[0].host_id == 9 &&
		    m->gid_maps.items[0].size == 3);
	assert_string_equal(config.hostname, "h");
	assert_string_equal(config.domainname, "d");
	assert_string_equal(oci_pairs_get(&config.annotations, "io.cejail.network"), "public");
	assert_string_equal(oci_pairs_get(&config.annotations, "k"), "");
	assert_null(oci_pairs_get(&config.annotations, "K"));
	assert_int_equal(config.hooks[OCI_HOOK_PRESTART].count, 0);
	assert_string_equal(config.hooks[OCI_HOOK_CREATE_RUNTIME].items[0].path, "/h");
	assert_int_equal(config.hooks[OCI_HOOK_POSTSTOP].count, 2);
	assert_int_equal(config.hooks[OCI_HOOK_POSTSTOP].items[0].timeout_secs, 10);
	assert_string_equal(config.hooks[OCI_HOOK_POSTSTOP].items[0].args.items[1], "1");
}

static void mistakes_outside_the_process_are_refused(void **state)
{
	static const struct {
		struct sample sample;
		const char *end;
	} rows[] = {
		{ { .root = "{}" }, "root.path is missing" },
		{ { .root = "null" }, "root.path is missing" },
		{ { .root = "{\"path\": \"\"}" }, "root.path: the value is empty" },
		{ { .mounts = "[{\"type\": \"proc\"}]" }, "mounts.destination is missing" },
		{ { .mounts = "[{\"destination\": \"\"}]" }, "mounts.destination: the value is" },
		{ { .mounts = "{}" }, "mounts must be an array" },
		{ { .mounts = "[{\"destination\": \"/x\", \"uidMappings\": [{\"containerID\": 0,"
			      " \"hostID\": 0, \"size\": 1}]}]" },
		  "needs both or none of uidMappings and gidMappings" },
		{ { .more = "\"hooks\": {\"poststart\": [{\"args\": []}]}" },
		  "hooks.poststart.path is missing" },
		{ { .more = "\"hooks\": {\"poststart\": [{\"path\": \"h\"}]}" },
		  "'h' is not an absolute path" },
		{ { .more = "\"hooks\": {\"poststart\": [{\"path\": \"\"}]}" }, "path is empty" },
		{ { .more = "\"hooks\": {\"poststart\": [{\"path\": \"/h\", \"timeout\": 0}]}" },
		  "too small" },
		{ { .more = "\"hooks\": {\"poststart\": [{\"path\": \"/h\", \"timeout\": -1}]}" },
		  "hooks.poststart.timeout: '-1'" },
		{ { .more = "\"annotations\": {\"\": \"x\"}" }, "annotations: a name is empty" },
		{ { .more = "\"annotations\": {\"a\": 1}" }, "'a' must be a string, not a number" },
		{ { .more = "\"vm\": {\"kernel\": {\"path\": \"/k\"}}" }, "virtual machine" },
		{ { .more = "\"windows\": {\"layerFolders\": [\"x\"]}" }, "of Linux only" },
		{ { .more = "\"freebsd\": {\"devices\": [{\"path\": \"null\"}]}" },
		  "freebsd: cejail-oci makes containers of Linux only" },
		{ { .more = "\"hostname\": \"h\"",
		    .linux_ = "\"namespaces\": [{\"type\": \"mount\"}]" },
		  "hostname and domainname need a uts namespace" },
		{ { .linux_ = "\"namespaces\": []" }, "must have a mount namespace" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		refuse(&rows[i].sample, rows[i].end);
}

/* --- linux ------------------------------------------------------------------------- */

#define BESIDE(member) SAMPLE_SPACES ", " member

static void every_field_of_linux_is_read(void **state)
{
	const struct oci_linux *l = &config.on_linux;
	(void)state;

	take(&(struct sample){
	    .linux_ =
		"\"namespaces\": [{\"type\": \"pid\", \"path\": \"/proc/1/ns/pid\"},"
		" {\"type\": \"network\", \"path\": \"\"}, {\"type\": \"ipc\"}, {\"type\": \"uts\"},"
		" {\"type\": \"mount\"}, {\"type\": \"user\"}, {\"type\": \"cgroup\"},"
		" {\"type\": \"time\"}],"
		" \"uidMappings\": [{\"containerID\": 0, \"hostID\": 100000, \"size\": 65536}],"
		" \"gidMappings\": [{\"containerID\": 0, \"hostID\": 200000, \"size\": 65536}],"
		" \"timeOffsets\": {\"monotonic\": {\"secs\": -5, \"nanosecs\": 7},"
		" \"boottime\": {\"secs\": 9}},"
		" \"sysctl\": {\"net.ipv4.ip_forward\": \"1\"}, \"cgroupsPath\": \"/k8s.io/c1\","
		" \"devices\": [{\"path\": \"/dev/fuse\", \"type\": \"c\", \"major\": 10,"
		" \"minor\": 229, \"fileMode\": 8576, \"uid\": 0, \"gid\": 4},"
		" {\"path\": \"/dev/pipe\", \"type\": \"p\"}],"
		" \"rootfsPropagation\": \"rslave\", \"maskedPaths\": [\"/proc/kcore\"],"
		" \"readonlyPaths\": [\"/proc/sys\", \"/proc/bus\"],"
		" \"personality\": {\"domain\": \"LINUX32\", \"flags\": null},"
		" \"mountLabel\": \"\", \"intelRdt\": null, \"netDevices\": {}" });
	for (int i = 0; i < OCI_NS_COUNT; i++)
		assert_true(l->namespaces[i].is_wanted);
	assert_string_equal(l->namespaces[OCI_NS_PID].path, "/proc/1/ns/pid");
	assert_null(l->namespaces[OCI_NS_NETWORK].path);
	assert_true(l->uid_maps.items[0].host_id == 100000 && l->gid_maps.items[0].size == 65536);
	assert_true(l->monotonic.is_given && l->monotonic.secs == -5 &&
		    l->monotonic.nanosecs == 7 && l->boottime.secs == 9);
	assert_string_equal(oci_pairs_get(&l->sysctl, "net.ipv4.ip_forward"), "1");
	assert_string_equal(l->cgroups_path, "/k8s.io/c1");
	assert_int_equal(l->ndevices, 2);
	assert_int_equal(l->devices[0].file_mode.value, 0600); /* 020600 without its type */
	assert_true(l->devices[0].gid.is_set && l->devices[0].minor == 229);
	assert_false(l->devices[1].file_mode.is_set);
	assert_int_equal(l->rootfs_propagation, MS_SLAVE | MS_REC);
	assert_string_equal(l->readonly_paths.items[1], "/proc/bus");
	assert_true(l->personality.is_given && l->personality.domain == PER_LINUX32);
}

static void mistakes_in_linux_are_refused(void **state)
{
	static const struct {
		const char *linux_, *end;
	} rows[] = {
		{ "\"namespaces\": [{\"type\": \"mount\"}, {\"type\": \"mount\"}]",
		  "the type 'mount' stands here twice" },
		{ "\"namespaces\": [{\"type\": \"mnt\"}]", "there is no 'mnt'" },
		{ "\"namespaces\": [{\"path\": \"/x\"}]", "linux.namespaces.type is missing" },
		{ "\"namespaces\": [{\"type\": \"pid\", \"path\": \"x\"}]", "not an absolute" },
		{ "\"namespaces\": [{\"type\": \"mount\", \"path\": \"/x\"}]", "and joins none" },
		{ BESIDE("\"uidMappings\": [{\"containerID\": 0, \"hostID\": 0, \"size\": 1}],"
			 " \"gidMappings\": [{\"containerID\": 0, \"hostID\": 0, \"size\": 1}]"),
		  "need a new user namespace" },
		{ "\"namespaces\": [{\"type\": \"mount\"}, {\"type\": \"user\"}],"
		  " \"uidMappings\": [{\"containerID\": 0, \"hostID\": 0, \"size\": 1}]",
		  "uidMappings and gidMappings go together" },
		{ BESIDE("\"uidMappings\": [{\"containerID\": 1, \"hostID\": 0,"
			 " \"size\": 4294967295}]"),
		  "the range ends above the largest id" },
		{ BESIDE("\"uidMappings\": [{\"containerID\": 1, \"hostID\": 0, \"size\": 0}]"),
		  "too small" },
		{ BESIDE("\"timeOffsets\": {\"monotonic\": {\"secs\": 1}}"),
		  "timeOffsets needs a new time namespace" },
		{ BESIDE("\"timeOffsets\": {\"realtime\": {\"secs\": 1}}"), "unknown key" },
		{ BESIDE("\"timeOffsets\": {\"monotonic\": {\"nanosecs\": 1000000000}}"),
		  "too large" },
		{ BESIDE("\"sysctl\": {\"a\": 1}"), "'a' must be a string" },
		{ BESIDE("\"devices\": [{\"path\": \"/dev/x\", \"type\": \"d\"}]"),
		  "must be c, u, b or p" },
		{ BESIDE("\"devices\": [{\"path\": \"/dev/x\", \"type\": \"c\", \"major\": 1}]"),
		  "'/dev/x' needs major and minor" },
		{ BESIDE("\"devices\": [{\"path\": \"dev/x\", \"type\": \"p\"}]"), "absolute" },
		{ BESIDE("\"devices\": [{\"path\": \"\", \"type\": \"p\"}]"), "path is empty" },
		{ BESIDE("\"rootfsPropagation\": \"slavish\""), "has no 'slavish'" },
		{ BESIDE("\"maskedPaths\": [\"proc\"]"), "'proc' is not an absolute path" },
		{ BESIDE("\"readonlyPaths\": [\"\"]"), "'' is not an absolute path" },
		{ BESIDE("\"personality\": {\"domain\": \"BSD\"}"), "has no 'BSD'" },
		{ BESIDE("\"personality\": {\"domain\": \"LINUX\", \"flags\": [\"X\"]}"),
		  "no flags" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		refuse(&(struct sample){ .linux_ = rows[i].linux_ }, rows[i].end);
}

static void mistakes_in_what_version_1_3_added_are_refused(void **state)
{
	static const struct {
		const char *linux_, *end;
	} rows[] = {
		{ BESIDE("\"intelRdt\": {\"closID\": \"../c\"}"), "'../c' is no name of a class" },
		{ BESIDE("\"intelRdt\": {\"closID\": \"info\"}"), "'info' is no name of a class" },
		{ BESIDE("\"intelRdt\": {\"memBwSchema\": \"L3:0=1\"}"), "begin with 'MB:'" },
		{ BESIDE("\"intelRdt\": {\"schemata\": [\"MB:0=1\\nL3:0=1\"]}"), "one line" },
		{ BESIDE("\"intelRdt\": {\"enableCMT\": true}"), "enableMonitoring" },
		{ BESIDE("\"netDevices\": {\"eth0\": {}}"),
		  "netDevices needs a network namespace" },
		{ BESIDE("\"netDevices\": {\"eth0\": 1}"), "netDevices.eth0 must be an object" },
		{ BESIDE("\"netDevices\": {\"a/b\": {}}"), "'a/b' is no name of a device" },
		{ BESIDE("\"netDevices\": {\"a\": {\"name\": \"b c\"}}"), "'b c' is no name" },
		{ BESIDE("\"memoryPolicy\": {\"mode\": \"MPOL_X\"}"), "has no 'MPOL_X'" },
		{ BESIDE("\"memoryPolicy\": {\"nodes\": \"0\"}"), "mode is missing" },
		{ BESIDE("\"memoryPolicy\": {\"mode\": \"MPOL_BIND\", \"nodes\": \"2-1\"}"),
		  "'2-1' is no list" },
		{ BESIDE("\"memoryPolicy\": {\"mode\": \"MPOL_BIND\", \"nodes\": \"0,\"}"),
		  "'0,' is no list" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		refuse(&(struct sample){ .linux_ = rows[i].linux_ }, rows[i].end);
}

static void lists_of_nodes_and_cpus_are_sets(void **state)
{
	const struct oci_memory_policy *policy = &config.on_linux.memory_policy;
	const struct oci_affinity *cpus = &config.process.exec_affinity;
	(void)state;

	take(&(struct sample){
	    .process = WITH("\"execCPUAffinity\": {\"initial\": \"\", \"final\": \"8191\"}"),
	    .linux_ =
		BESIDE("\"memoryPolicy\": {\"mode\": \"MPOL_BIND\", \"nodes\": \"0-2,64\","
		       " \"flags\": [\"MPOL_F_STATIC_NODES\", \"MPOL_F_NUMA_BALANCING\"]}") });
	assert_true(policy->is_given && policy->mode == 2 && policy->flags == (1 << 15 | 1 << 13));
	assert_true(policy->nodes->bits[0] == 7 && policy->nodes->bits[1] == 1);
	assert_null(cpus->initial);
	assert_true(cpus->final->bits[0] == 0 && cpus->final->bits[127] == 1ul << 63);
}

static void no_processes_is_a_limit_from_version_1_3_on(void **state)
{
	static const struct {
		const char *version;
		int64_t limit;
	} rows[] = { { "\"1.0.2-dev\"", -1 },
		     { "\"1.2.1\"", -1 },
		     { "\"1.3.0\"", 0 },
		     { "\"1.10.0\"", 0 } };
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		take(&(struct sample){ .version = rows[i].version,
				       .linux_ =
					   BESIDE("\"resources\": {\"pids\": {\"limit\": 0}}") });
		assert_true(config.on_linux.resources.pids_limit.is_set);
		assert_int_equal(config.on_linux.resources.pids_limit.value, rows[i].limit);
	}
}

static void every_propagation_has_its_flags(void **state)
{
	static const struct {
		const char *name;
		unsigned flags;
	} rows[] = {
		{ "", 0 },
		{ "private", MS_PRIVATE },
		{ "rprivate", MS_PRIVATE | MS_REC },
		{ "slave", MS_SLAVE },
		{ "shared", MS_SHARED },
		{ "rshared", MS_SHARED | MS_REC },
		{ "unbindable", MS_UNBINDABLE },
		{ "runbindable", MS_UNBINDABLE | MS_REC },
	};
	char text[256];
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(text, sizeof(text), BESIDE("\"rootfsPropagation\": \"%s\""),
			       rows[i].name);
		take(&(struct sample){ .linux_ = text });
		assert_int_equal(config.on_linux.rootfs_propagation, rows[i].flags);
	}
}

/* --- limits of the reader ---------------------------------------------------------- */

static void a_file_that_is_too_large_is_refused_before_it_is_parsed(void **state)
{
	(void)state;
	err = (struct cj_error){ 0 };
	assert_int_equal(
	    oci_config_read("config.json", "", OCI_CONFIG_BYTES_MAX + 1, &arena, &config, &err),
	    -EFBIG);
	assert_non_null(strstr(err.msg, "config.json"));
}

static void a_text_that_is_no_object_is_refused(void **state)
{
	static const char *const texts[] = {
		"", "[]", "null", "\"x\"", "{", "{} {}", "{\"root\": {}, \"root\": {}}"
	};
	(void)state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		err = (struct cj_error){ 0 };
		assert_int_equal(oci_config_read("config.json", texts[i], strlen(texts[i]), &arena,
						 &config, &err),
				 -EINVAL);
		assert_int_equal(strncmp(err.msg, "config.json:1:", 14), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_version_1_is_taken_with_suffixes),
		cmocka_unit_test(fields_that_nobody_knows_are_ignored_at_every_level),
		cmocka_unit_test(every_field_of_the_process_is_read),
		cmocka_unit_test(what_the_process_leaves_out_is_not_set),
		cmocka_unit_test(mistakes_in_the_process_are_refused),
		cmocka_unit_test(root_mounts_and_hooks_are_read),
		cmocka_unit_test(mistakes_outside_the_process_are_refused),
		cmocka_unit_test(every_field_of_linux_is_read),
		cmocka_unit_test(mistakes_in_linux_are_refused),
		cmocka_unit_test(mistakes_in_what_version_1_3_added_are_refused),
		cmocka_unit_test(lists_of_nodes_and_cpus_are_sets),
		cmocka_unit_test(no_processes_is_a_limit_from_version_1_3_on),
		cmocka_unit_test(every_propagation_has_its_flags),
		cmocka_unit_test(a_file_that_is_too_large_is_refused_before_it_is_parsed),
		cmocka_unit_test(a_text_that_is_no_object_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, empty_arena);
}
