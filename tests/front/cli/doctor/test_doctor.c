/* SPDX-License-Identifier: Apache-2.0 */
/* Doctor names the true cause of a refusal, and what mends it. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <netinet/in.h> /* before linux/: they agree in this order only */
#include <linux/netfilter.h>
#include <sys/mman.h>

/* the front end is in no library */
#include "runtime/front/cli/doctor/doctor.c"
#include "runtime/front/cli/doctor/doctor_host.c"
#include "runtime/front/cli/doctor/doctor_kernel.c"
#include "runtime/front/cli/doctor/doctor_network.c"
#include "runtime/front/cli/doctor/doctor_place.c"
#include "runtime/front/cli/doctor/doctor_probe.c"

/* Of main.c, which has a main() of its own. */
int cli_fail(const struct cj_error *err)
{
	(void)err;
	return CLI_FAILED;
}

int cli_need_stdout(const struct cli *cli, struct cj_error *err)
{
	(void)cli;
	(void)err;
	return 0;
}

int cli_finish(int status)
{
	return status;
}

int cli_take_only(const struct cli *cli, const char *flag, bool *out_given, struct cj_error *err)
{
	(void)flag;
	(void)err;
	*out_given = cli->args[0] != NULL;
	return 0;
}

/* WRAP: sys_clone3 sys_mount_setattr landlock_abi cgroup_parent_reports loader_join_links */
/* WRAP: gateway_start_loader loader_join loader_give_sockets loader_apply_jail */
/* WRAP: uplink_helper_find uplink_helper_try_tun uplink_probe */
static int clone_errno; /* 0: as the host does */
static bool has_no_setattr;
static int fence = -1; /* likewise */
static const struct cgroup_parent_report *ways;
static size_t way_count;
static int rules_errno, links_errno; /* 0: as the host does */

static bool has_loader(void)
{
	return rules_errno != 0 || links_errno != 0;
}
static bool is_faked; /* the three below are asked, not the host */
static bool has_helper[UPLINK_COUNT], has_tun;
static const char *tun_problem;
static const char *pasta_reason = "";

pid_t __real_sys_clone3(const struct clone_args *args);
pid_t __wrap_sys_clone3(const struct clone_args *args);
pid_t __wrap_sys_clone3(const struct clone_args *args)
{
	if (clone_errno == 0)
		return __real_sys_clone3(args);
	errno = clone_errno;
	return -1;
}

int __real_sys_mount_setattr(int dir_fd, const char *path, unsigned flags, struct mount_attr *attr);
int __wrap_sys_mount_setattr(int dir_fd, const char *path, unsigned flags, struct mount_attr *attr);
int __wrap_sys_mount_setattr(int dir_fd, const char *path, unsigned flags, struct mount_attr *attr)
{
	if (!has_no_setattr)
		return __real_sys_mount_setattr(dir_fd, path, flags, attr);
	errno = ENOSYS;
	return -1;
}

int __real_landlock_abi(void);
int __wrap_landlock_abi(void);
int __wrap_landlock_abi(void)
{
	return fence < 0 ? __real_landlock_abi() : fence;
}

size_t __real_cgroup_parent_reports(struct cgroup_parent_report *out, size_t max);
size_t __wrap_cgroup_parent_reports(struct cgroup_parent_report *out, size_t max);
size_t __wrap_cgroup_parent_reports(struct cgroup_parent_report *out, size_t max)
{
	if (!ways)
		return __real_cgroup_parent_reports(out, max);
	memcpy(out, ways, way_count * sizeof(*ways));
	return way_count;
}

/* The program is not where a test lies. */
int __real_gateway_start_loader(struct loader *out, struct cj_error *err);
int __wrap_gateway_start_loader(struct loader *out, struct cj_error *err);
int __wrap_gateway_start_loader(struct loader *out, struct cj_error *err)
{
	*out = LOADER_NONE;
	return has_loader() ? 0 : __real_gateway_start_loader(out, err);
}

int __real_loader_join(struct loader *l, struct cj_error *err);
int __wrap_loader_join(struct loader *l, struct cj_error *err);
int __wrap_loader_join(struct loader *l, struct cj_error *err)
{
	return has_loader() ? 0 : __real_loader_join(l, err);
}

int __real_loader_give_sockets(struct loader *l, const int *fds, size_t n, struct cj_error *err);
int __wrap_loader_give_sockets(struct loader *l, const int *fds, size_t n, struct cj_error *err);
int __wrap_loader_give_sockets(struct loader *l, const int *fds, size_t n, struct cj_error *err)
{
	return has_loader() ? 0 : __real_loader_give_sockets(l, fds, n, err);
}

int __real_loader_apply_jail(struct loader *l, const struct firewall_spec *spec,
			     struct cj_error *err);
int __wrap_loader_apply_jail(struct loader *l, const struct firewall_spec *spec,
			     struct cj_error *err);
int __wrap_loader_apply_jail(struct loader *l, const struct firewall_spec *spec,
			     struct cj_error *err)
{
	return rules_errno == 0 ? __real_loader_apply_jail(l, spec, err)
				: cj_fail(err, rules_errno, "load");
}

int __real_loader_join_links(struct loader *l, int jail_netns_fd, const struct links_spec *spec,
			     struct cj_error *err);
int __wrap_loader_join_links(struct loader *l, int jail_netns_fd, const struct links_spec *spec,
			     struct cj_error *err);
int __wrap_loader_join_links(struct loader *l, int jail_netns_fd, const struct links_spec *spec,
			     struct cj_error *err)
{
	return links_errno == 0 ? __real_loader_join_links(l, jail_netns_fd, spec, err)
				: cj_fail(err, links_errno, "join");
}

static int answer(bool is_there, int code, const char *why, const char *hint, struct cj_error *err)
{
	if (is_there)
		return 0;
	(void)!cj_reject_as(err, code, "%s", why);
	return cj_hint(err, "%s", hint);
}

int __real_uplink_helper_find(const struct uplink_helper *h, const char *path, char *out_path,
			      struct cj_error *err);
int __wrap_uplink_helper_find(const struct uplink_helper *h, const char *path, char *out_path,
			      struct cj_error *err);
int __wrap_uplink_helper_find(const struct uplink_helper *h, const char *path, char *out_path,
			      struct cj_error *err)
{
	if (!is_faked)
		return __real_uplink_helper_find(h, path, out_path, err);
	(void)snprintf(out_path, UPLINK_PATH_MAX, "/usr/bin/%s", h->name);
	bool is_pasta = strcmp(h->name, "pasta") == 0;
	return answer(has_helper[is_pasta ? UPLINK_PASTA : UPLINK_SLIRP4NETNS], ENOENT,
		      "it is not installed", "apt install it", err);
}

int __real_uplink_helper_try_tun(struct cj_error *err);
int __wrap_uplink_helper_try_tun(struct cj_error *err);
int __wrap_uplink_helper_try_tun(struct cj_error *err)
{
	if (!is_faked)
		return __real_uplink_helper_try_tun(err);
	return answer(has_tun, EACCES, tun_problem, "chmod", err);
}

int __real_uplink_probe(enum uplink_kind kind, const char *path, struct cj_error *err);
int __wrap_uplink_probe(enum uplink_kind kind, const char *path, struct cj_error *err);
int __wrap_uplink_probe(enum uplink_kind kind, const char *path, struct cj_error *err)
{
	if (!is_faked)
		return __real_uplink_probe(kind, path, err);
	return answer(has_helper[kind], ENOENT, "is not there", "get it", err);
}

static int as_the_host_is(void **state)
{
	(void)state;
	clone_errno = 0;
	has_no_setattr = false;
	fence = -1;
	ways = NULL;
	rules_errno = links_errno = 0;
	is_faked = has_tun = false;
	memset(has_helper, 0, sizeof(has_helper));
	tun_problem = "'/dev/net/tun' can't be opened: Permission denied";
	return 0;
}

static void a_build_date_is_read_in_either_form(void **state)
{
	(void)state;
	static const struct {
		const char *version;
		unsigned year, month;
	} rows[] = {
		{ "#1 SMP PREEMPT_DYNAMIC Debian 6.1.140-1 (2025-05-22)", 2025, 5 },
		{ "#183-Ubuntu SMP Fri Mar 6 13:29:34 UTC 2026", 2026, 3 },
		{ "#1 SMP PREEMPT_DYNAMIC Thu Dec 31 23:59:59 UTC 2026", 2026, 12 },
		{ "#1 SMP Tue Jan  6 01:02:03 UTC 2026", 2026, 1 },
	};
	unsigned year = 0, month = 0;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(read_build_date(rows[i].version, &year, &month));
		assert_int_equal(year, rows[i].year);
		assert_int_equal(month, rows[i].month);
	}
	assert_false(read_build_date("", &year, &month));
	assert_false(read_build_date("#1 SMP", &year, &month));
	assert_false(read_build_date("#1 SMP Xyz 6 01:02:03 UTC 2026", &year, &month));
}

static void the_missing_fixes_are_found_by_the_kernel_version(void **state)
{
	(void)state;
	static const struct {
		const char *release, *version;
		enum fixes_verdict verdict;
		const char *open, *closed; /* named, not named */
	} rows[] = {
		{ "5.15.0", "#1 SMP", FIXES_LACKING, "CVE-2022-0847 (fixed in 5.15.25)",
		  "CVE-2026" },
		{ "5.15.24", "#1 SMP", FIXES_LACKING, "CVE-2022-0847", "CVE-2022-0185" },
		{ "5.15.149", "#1 SMP", FIXES_ALL, "", "CVE" },
		{ "5.10.209", "#1 SMP", FIXES_LACKING, "CVE-2024-1086 (fixed in 5.10.210)",
		  "2023" },
		{ "6.1.27-cloud", "#1 SMP", FIXES_LACKING, "CVE-2023-32233", "2022" },
		{ "6.5.13", "#1 SMP", FIXES_LACKING, "CVE-2024-1086 (fixed in 6.8.0)", "2023" },
		{ "6.18.0", "#1 SMP", FIXES_ALL, "", "CVE" },
		{ "6.1.0-18-amd64", "#1 SMP Debian 6.1.76-1 (2024-02-01)", FIXES_ALL, "", "CVE" },
		{ "6.1.0-17-amd64", "#1 SMP Debian 6.1.69-1", FIXES_LACKING, "CVE-2024-1086",
		  "2023" },
		{ "5.15.0-91-generic", "#101-Ubuntu SMP", FIXES_UNKNOWN, "", "CVE" },
		{ "next", "", FIXES_UNKNOWN, "", "CVE" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char out[256];
		assert_int_equal(fixes_check(rows[i].release, rows[i].version, out, sizeof(out)),
				 rows[i].verdict);
		assert_non_null(strstr(out, rows[i].open));
		assert_null(strstr(out, rows[i].closed));
	}
	char room[8];
	assert_int_equal(fixes_check("5.15.0", "", room, sizeof(room)), FIXES_LACKING);
	assert_string_equal(room, "CVE-202");
}

static void an_old_kernel_is_a_note_that_asks_the_distribution(void **state)
{
	(void)state;
	struct utsname name = { .release = "5.15.20", .version = "#1 SMP" };
	struct finding f = { 0 };
	report_fixes(&f, &name);
	assert_int_equal(f.level, FINDING_NOTE);
	assert_non_null(strstr(f.text, "Linux 5.15.20 lacks the fixes for CVE-2022-0847"));
	assert_non_null(strstr(f.remedy, "distribution"));

	name = (struct utsname){ .release = "5.15.0-91-generic", .version = "#101-Ubuntu SMP" };
	report_fixes(&f, &name);
	assert_int_equal(f.level, FINDING_OK);
	assert_non_null(strstr(f.text, "ask your distribution"));

	name = (struct utsname){ .release = "6.18.3",
				 .version = "#1 SMP Thu Dec 31 23:59:59 UTC 2025" };
	report_fixes(&f, &name);
	assert_int_equal(f.level, FINDING_NOTE);
	assert_non_null(strstr(f.text, "built in 2025-12, before the fixes for CVE-2026-31431"));
}

/* --- places ------------------------------------------------------------------------ */

static struct doctor_place place_of(struct place_facts facts)
{
	struct doctor_place p = { 0 };
	place_classify(&facts, &p);
	return p;
}

static void a_place_is_classified_by_its_files_and_variables(void **state)
{
	(void)state;
	static const char service[] = "1:name=systemd:/\n0::/system.slice/judge.service/x\n";
	struct doctor_place p = place_of((struct place_facts){ .cgroup = service });
	assert_int_equal(p.kind, PLACE_SERVICE);
	assert_string_equal(p.unit, "judge.service");

	static const char *const hosts[] = {
		NULL,
		"",
		"0::/\n",
		"0::/user.slice/user-0.slice/session-1.scope\n",
		"0::/user.slice/user-1.slice/user@1.service/app.slice/x.service\n",
		"0::/system.slice/some.scope\n",
		"0::/x/system.slice/a.service\n",
		"0::/system.slice/.service\n",
	};
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		assert_int_equal(place_of((struct place_facts){ .cgroup = hosts[i] }).kind,
				 PLACE_HOST);

	struct place_facts facts = { .cgroup = service, .container = "systemd-nspawn" };
	assert_int_equal(place_of(facts).kind, PLACE_CONTAINER);
	facts.container = "lxc";
	assert_int_equal(place_of(facts).kind, PLACE_LXC);
	facts = (struct place_facts){ .has_lxc = true };
	assert_int_equal(place_of(facts).kind, PLACE_LXC);
	facts = (struct place_facts){ .release = "5.15.153.1-microsoft-standard-WSL2" };
	assert_int_equal(place_of(facts).kind, PLACE_WSL);
	facts.container = "wsl"; /* as systemd calls it */
	assert_int_equal(place_of(facts).kind, PLACE_WSL);
	facts.has_dockerenv = true;
	assert_int_equal(place_of(facts).kind, PLACE_DOCKER);
	facts.container = "podman";
	assert_int_equal(place_of(facts).kind, PLACE_PODMAN);
	facts = (struct place_facts){ .has_containerenv = true };
	assert_int_equal(place_of(facts).kind, PLACE_PODMAN);
	facts.has_kubernetes = true;
	assert_int_equal(place_of(facts).kind, PLACE_KUBERNETES);
}

static void a_missing_cgroup_has_the_remedy_of_its_place(void **state)
{
	(void)state;
	static const struct {
		struct doctor_place place;
		const char *remedy, *not ;
	} rows[] = {
		{ { PLACE_SERVICE, "judge.service", false, true, false },
		  "judge.service.d",
		  "--user" },
		{ { PLACE_SERVICE, "judge.service", true, true, false },
		  "Delegate=yes",
		  "systemd-run" },
		{ { PLACE_HOST, "", true, true, false }, "systemd-run --pty", "--user" },
		{ { PLACE_HOST, "", false, true, false }, "enable-linger", "docker" },
		{ { PLACE_HOST, "", false, true, true }, "user@.service.d", "docker" },
		{ { PLACE_HOST, "", true, false, true }, "boot with systemd.unified", "container" },
		{ { PLACE_DOCKER, "", true, true, false }, "docker run", "systemd" },
		{ { PLACE_PODMAN, "", true, true, false }, "podman run", "systemd" },
		{ { PLACE_KUBERNETES, "", true, true, false }, "the pod", "systemd" },
		{ { PLACE_CONTAINER, "", true, true, false }, "/sys/fs/cgroup", "systemd" },
		{ { PLACE_DOCKER, "", true, false, false }, "container's host", "docker run" },
		{ { PLACE_LXC, "", true, true, false }, "systemd-run --pty", "docker" },
		{ { PLACE_LXC, "", true, false, false }, "container's host", "--pty" },
		{ { PLACE_WSL, "", false, false, false }, ".wslconfig", "systemd" },
		{ { PLACE_WSL, "", false, true, false }, "/etc/wsl.conf", "linger" },
		{ { PLACE_WSL, "", true, true, false }, "systemd-run --pty", "wsl" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct finding f = { 0 };
		place_remedy_cgroup(&rows[i].place, &f);
		assert_non_null(strstr(f.remedy, rows[i].remedy));
		assert_null(strstr(f.remedy, rows[i].not ));
	}
}

static void every_place_has_its_remedies(void **state)
{
	(void)state;
	for (enum place_kind kind = PLACE_HOST; kind < PLACE_COUNT; kind++) {
		const struct doctor_place p = { .kind = kind };
		for (enum remedy which = REMEDY_NONE + 1; which < REMEDY_COUNT; which++) {
			struct finding f = { 0 };
			place_remedy(&p, which, &f);
			assert_string_not_equal(f.remedy, "");
		}
		assert_int_equal(place_where_kernel(&p)[0] != '\0', is_container(&p));
	}
}

static void a_kernel_below_the_minimum_is_weaker(void **state)
{
	(void)state;
	const struct doctor_place host = { .kind = PLACE_HOST }, wsl = { .kind = PLACE_WSL };
	struct utsname name = { .release = "5.13.0-19-generic", .version = "#1 SMP" };
	struct finding f = { 0 };
	report_kernel(&f, &name, &host);
	assert_int_equal(f.level, FINDING_WEAKER);
	assert_string_equal(f.text, "Linux 5.13.0-19-generic is older than the minimum, 5.14");
	assert_string_equal(f.remedy, "boot Linux 5.14 or later");
	report_kernel(&f, &name, &wsl);
	assert_non_null(strstr(f.remedy, "wsl --update"));
	assert_true(is_too_old("4.18.0"));
	assert_false(is_too_old("5.14.0-503.el9"));
	assert_false(is_too_old("6.1.0"));
	assert_false(is_too_old("10.2"));
}

static void a_cause_has_its_remedy(void **state)
{
	(void)state;
	static const struct {
		enum refusal why;
		enum place_kind kind;
		const char *remedy, *not ;
	} rows[] = {
		{ REFUSAL_OFF, PLACE_HOST, "echo user.max_user_namespaces=15000", "container" },
		{ REFUSAL_OFF, PLACE_DOCKER, "on the container's host: echo", "docker" },
		{ REFUSAL_FOR_USERS, PLACE_HOST, "kernel.unprivileged_userns_clone=1", "max" },
		{ REFUSAL_APPARMOR, PLACE_HOST, "sudo make install APPARMOR=yes", "sysctl" },
		{ REFUSAL_TOO_MANY, PLACE_HOST, "sysctl user.max_user_namespaces", "outside" },
		{ REFUSAL_SANDBOX, PLACE_HOST, "outside of that sandbox", "sysctl" },
		{ REFUSAL_CHROOT, PLACE_HOST, "outside of the chroot", "administrator" },
		{ REFUSAL_IDS, PLACE_KUBERNETES, "runAsUser: 1000", "docker" },
		{ REFUSAL_FILTER, PLACE_PODMAN, "podman run --security-opt seccomp", "docker" },
		{ REFUSAL_FILTER, PLACE_LXC, "security.nesting=true", "docker" },
		{ REFUSAL_KERNEL, PLACE_HOST, "boot Linux 5.14 or later", "5.12" },
		{ REFUSAL_KERNEL, PLACE_WSL, "wsl --update", "boot" },
		{ REFUSAL_UNKNOWN, PLACE_LXC, "nesting", "administrator" },
		{ REFUSAL_UNKNOWN, PLACE_DOCKER, "container's host", "dmesg" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct doctor_place p = { .kind = rows[i].kind };
		struct finding f = { 0 };
		remedy_refusal(&f, rows[i].why, &p);
		assert_non_null(strstr(f.remedy, rows[i].remedy));
		assert_null(strstr(f.remedy, rows[i].not ));
	}
}

static void an_installed_program_gets_the_command_that_loads_its_profile(void **state)
{
	(void)state;
	const struct doctor_place host = { .kind = PLACE_HOST }, docker = { .kind = PLACE_DOCKER };
	struct finding f = { 0 };
	remedy_profile(&f, &host, "/usr/bin/cejail", true);
	assert_string_equal(f.remedy, "sudo install -m 644 /usr/share/cejail/apparmor/cejail "
				      "/etc/apparmor.d/cejail && sudo apparmor_parser -r "
				      "/etc/apparmor.d/cejail");
	remedy_profile(&f, &docker, "/opt/c/sbin/cejail", true);
	assert_non_null(strstr(f.remedy, "on the container's host: sudo install -m 644 "
					 "/opt/c/share/cejail/apparmor/cejail "));
}

static void a_program_that_others_may_change_is_told_where_to_install(void **state)
{
	(void)state;
	const struct doctor_place host = { .kind = PLACE_HOST };
	struct finding f = { 0 };
	remedy_profile(&f, &host, "/home/u/cejail/build/release/bin/cejail", false);
	assert_non_null(strstr(f.remedy, "where only root can change it"));
	assert_non_null(strstr(f.remedy, "sudo make install APPARMOR=yes"));
	assert_non_null(strstr(f.remedy, "'/home/u/cejail/build/release/bin/cejail'"));
	assert_null(strstr(f.remedy, "apparmor_parser"));
	assert_false(is_roots_alone("/tmp/x/bin/cejail"));
	assert_false(is_roots_alone("/tmp"));
	struct stat st;
	if (stat("/usr/bin", &st) == 0 && st.st_uid == 0)
		assert_true(is_roots_alone("/usr/bin"));
}

static void root_is_told_of_a_restriction_of_others(void **state)
{
	(void)state;
	struct finding f = { 0 };
	assert_false(report_no_profile(&f, false, "unconfined"));
	assert_false(report_no_profile(&f, true, "cejail (enforce)"));
	assert_true(report_no_profile(&f, true, "unconfined"));
	assert_int_equal(f.level, FINDING_NOTE);
	assert_non_null(strstr(f.text, "without a profile"));
	assert_string_not_equal(f.remedy, "");
}

static void an_unknown_cause_sends_root_to_the_kernel_log_and_not_to_the_administrator(void **state)
{
	(void)state;
	struct doctor_place p = { .kind = PLACE_HOST, .is_root = true };
	struct finding f = { 0 };
	place_remedy(&p, REMEDY_UNKNOWN, &f);
	assert_non_null(strstr(f.remedy, "dmesg"));
	p.is_root = false;
	place_remedy(&p, REMEDY_UNKNOWN, &f);
	assert_non_null(strstr(f.remedy, "ask the administrator of this host"));
}

static void a_package_is_installed_in_the_words_of_the_distribution(void **state)
{
	(void)state;
	static const struct {
		const char *release, *package, *command;
	} rows[] = {
		{ "PRETTY_NAME=\"Debian\"\nID=debian\n", "passt", "sudo apt-get install passt" },
		{ "ID=linuxmint\nID_LIKE=\"ubuntu debian\"", "nodejs",
		  "sudo apt-get install nodejs" },
		{ "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"", "passt",
		  "sudo dnf install passt" },
		{ "NAME=Fedora\nID=fedora", "python3", "sudo dnf install python3" },
		{ "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"", "passt",
		  "sudo zypper install passt" },
		{ "ID=arch\n", "python3", "sudo pacman -S python" },
		{ "ID='manjaro'\nID_LIKE=arch\n", "passt", "sudo pacman -S passt" },
		{ "ID=alpine\nVERSION_ID=3.20", "passt", "sudo apk add passt" },
		{ "ID=nixos\nNAME=\"not debian\"", "passt", "install the package 'passt'" },
		{ "VARIANT_ID=debian\nID=debianish", "passt", "install the package 'passt'" },
		{ NULL, "passt", "install the package 'passt'" },
	};
	char out[INSTALL_MAX];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		os_install_of(rows[i].release, rows[i].package, out);
		assert_string_equal(out, rows[i].command);
	}
}

/* What print() writes to standard output. */
static const char *printed(void (*print)(const void *), const void *what)
{
	static char text[16384];
	(void)fflush(stdout);
	int kept = dup(STDOUT_FILENO), fd = memfd_create("stdout", MFD_CLOEXEC);
	assert_true(kept >= 0 && fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0);
	print(what);
	(void)fflush(stdout);
	assert_true(dup2(kept, STDOUT_FILENO) >= 0);
	ssize_t size = pread(fd, text, sizeof(text) - 1, 0);
	text[size > 0 ? size : 0] = '\0';
	(void)close(kept);
	(void)close(fd);
	return text;
}

static void wrap(const void *text)
{
	const struct paper p = { .width = 40 };
	print_wrapped(text, &p);
}

static void a_text_is_wrapped_between_words(void **state)
{
	(void)state;
	assert_string_equal(printed(wrap, "short"), "short\n");
	assert_string_equal(printed(wrap, "one two three  four"),
			    "one two\n" /* 29 + 11 = 40 columns */
			    "                             three  four\n");
	assert_string_equal(printed(wrap, "averylongwordindeed b"),
			    "averylongwordindeed\n                             b\n");
}

static void print_plain(const void *findings)
{
	const struct paper p = { .width = 60 };
	print_findings(findings, &p);
}

static void print_coloured(const void *findings)
{
	const struct paper p = { .width = 60, .has_colours = true };
	print_findings(findings, &p);
}

static void a_remedy_is_printed_once_and_never_wrapped(void **state)
{
	(void)state;
	static struct finding findings[CHECK_COUNT];
	static const char remedy[] = "sudo one command that is longer than a line of this paper is";
	for (size_t i = 0; i < CHECK_COUNT; i++)
		findings[i] = (struct finding){ .level = FINDING_OK, .text = "fine" };
	findings[2].level = findings[5].level = FINDING_WEAKER;
	(void)snprintf(findings[2].remedy, sizeof(findings[2].remedy), "%s", remedy);
	(void)snprintf(findings[5].remedy, sizeof(findings[5].remedy), "%s", remedy);
	const char *text = printed(print_plain, findings);
	const char *at = strstr(text, remedy);
	assert_non_null(at);
	assert_null(strstr(at + 1, remedy));
	assert_non_null(strstr(at, "-> as for 'mounts'\n"));
	assert_null(strchr(text, '\033'));
	text = printed(print_coloured, findings);
	assert_non_null(strstr(text, "\033[32mok     \033[0m  fine"));
	assert_non_null(strstr(text, "\033[33mweaker \033[0m  fine"));
}

static void a_call_the_kernel_lacks_is_named_with_its_release(void **state)
{
	(void)state;
	struct finding f = { 0 };
	has_no_setattr = true;
	check_kernel(&f);
	assert_int_equal(f.level, FINDING_MISSING);
	assert_non_null(strstr(f.text, "mount_setattr(2)"));
	if (!refusal_is_filtered())
		assert_non_null(strstr(f.remedy, "Linux 5.14 or later"));
}

static void a_forbidden_user_namespace_is_missing_for_every_cause(void **state)
{
	(void)state;
	static const int codes[] = { EPERM, ENOSPC, EUSERS, ENOSYS, EACCES };
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct finding f = { 0 };
		clone_errno = codes[i];
		check_user_namespaces(&f);
		assert_int_equal(f.level, FINDING_MISSING);
		assert_non_null(strstr(f.text, strerror(codes[i])));
		assert_string_not_equal(f.remedy, "");
	}
}

static void checks_that_need_a_namespace_point_to_its_check(void **state)
{
	(void)state;
	size_t tried = 0;
	clone_errno = EPERM;
	for (size_t i = 0; i < CHECK_COUNT; i++) {
		struct finding f = { 0 };
		if (checks[i].look_at != check_trial && checks[i].look_at != check_by_loader &&
		    checks[i].look != check_proc)
			continue;
		look(&checks[i], &f);
		assert_memory_equal(f.text, "not tried", 9);
		tried++;
	}
	assert_int_equal(tried, 8);
}

static int fail_with_exdev(void)
{
	return EXDEV;
}

static void a_probe_brings_its_errno_back(void **state)
{
	(void)state;
	struct probe_result r = probe_inside(0, fail_with_exdev);
	if (r.stage != PROBE_CALL && r.stage != PROBE_DONE)
		skip(); /* no user namespaces on this host */
	assert_int_equal(r.stage, PROBE_CALL);
	assert_int_equal(r.code, EXDEV);
}

static void a_probe_leaves_no_child_and_no_descriptor(void **state)
{
	(void)state;
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(before >= 0);
	(void)close(before);
	(void)probe_inside(0, try_nothing);
	clone_errno = EPERM;
	(void)probe_inside(0, try_nothing);
	int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	(void)close(after);
	assert_int_equal(after, before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void no_landlock_is_weaker_not_missing(void **state)
{
	(void)state;
	struct finding f = { 0 };
	fence = 0;
	check_landlock(&f);
	assert_int_equal(f.level, FINDING_WEAKER);
	assert_string_not_equal(f.remedy, "");
	fence = 7;
	check_landlock(&f);
	assert_int_equal(f.level, FINDING_OK);
	assert_string_equal(f.remedy, "");
}

static void each_controller_is_checked_separately(void **state)
{
	(void)state;
	static const struct cgroup_parent_report some[] = {
		{ "delegated", false, { true, true, true }, "not ours" },
		{ "user manager", true, { true, false, true }, "/sys/fs/cgroup/x" },
	};
	struct finding of_memory = { 0 }, of_cpu = { 0 }, of_pids = { 0 }, parent = { 0 };
	ways = some;
	way_count = 2;
	check_controller(&of_memory, &memory);
	check_controller(&of_cpu, &cpu);
	check_controller(&of_pids, &pids);
	check_cgroup_parent(&parent);
	assert_int_equal(of_memory.level, FINDING_OK);
	assert_int_equal(of_pids.level, FINDING_OK);
	assert_int_equal(of_cpu.level, FINDING_WEAKER);
	assert_string_not_equal(of_cpu.remedy, "");
	assert_int_equal(parent.level, FINDING_NOTE);
	assert_string_equal(parent.text, "delegated: not ours; user manager: /sys/fs/cgroup/x");
}

static void a_parent_with_all_controllers_is_named(void **state)
{
	(void)state;
	static const struct cgroup_parent_report all[] = {
		{ "own", true, { true, true, true }, "/sys/fs/cgroup/cejail" },
	};
	struct finding f = { 0 };
	ways = all;
	way_count = 1;
	check_cgroup_parent(&f);
	assert_int_equal(f.level, FINDING_OK);
	assert_string_equal(f.text, "own: /sys/fs/cgroup/cejail");
}

/* --- the network ---------------------------------------------------------------- */

static void look_for(const char *name, struct finding *f)
{
	for (size_t i = 0; i < CHECK_COUNT; i++)
		if (strcmp(checks[i].name, name) == 0)
			look(&checks[i], f);
}

static bool has_namespaces(void)
{
	return probe_inside(CLONE_NEWNET, try_nothing).stage == PROBE_DONE;
}

static void rules_that_are_refused_mean_no_public_network(void **state)
{
	(void)state;
	struct finding f = { 0 };
	if (!has_namespaces())
		skip();
	rules_errno = EOPNOTSUPP;
	look_for("nf_tables", &f);
	assert_int_equal(f.level, FINDING_WEAKER);
	assert_non_null(strstr(f.text, strerror(EOPNOTSUPP)));
	assert_non_null(strstr(f.text, "no --network public"));
	assert_non_null(strstr(f.remedy, "modprobe -a nf_tables"));
}

static void the_program_that_loads_rules_is_named_where_it_does_not_run(void **state)
{
	(void)state;
	struct finding f = { 0 };
	look_for("nf_tables", &f);
	assert_int_equal(f.level, FINDING_WEAKER);
	assert_memory_equal(f.text, "not tried: ", 11);
	assert_non_null(strstr(f.text, "gateway"));
	assert_string_equal(f.remedy, "install cejail anew: this is a part of it");
}

static void links_that_are_refused_mean_no_public_network(void **state)
{
	(void)state;
	struct finding f = { 0 };
	if (!has_namespaces())
		skip();
	links_errno = EOPNOTSUPP;
	look_for("veth", &f);
	assert_int_equal(f.level, FINDING_WEAKER);
	assert_non_null(strstr(f.text, strerror(EOPNOTSUPP)));
	assert_non_null(strstr(f.remedy, "sudo modprobe veth"));
}

static void forwarding_is_checked_only_for_root(void **state)
{
	(void)state;
	struct finding f = { 0 };
	report_forwarding(&f, false, false, false);
	assert_int_equal(f.level, FINDING_OK);
	report_forwarding(&f, true, false, true);
	assert_int_equal(f.level, FINDING_NOTE);
	assert_non_null(strstr(f.remedy, "net.ipv4.ip_forward=1"));
	report_forwarding(&f, true, true, false);
	assert_int_equal(f.level, FINDING_NOTE);
	assert_non_null(strstr(f.remedy, "net.ipv6.conf.all.forwarding=1"));
	report_forwarding(&f, true, true, true);
	assert_int_equal(f.level, FINDING_OK);
}

static void a_table_that_drops_what_is_forwarded_is_named(void **state)
{
	(void)state;
	struct finding f = { 0 };
	const struct host_firewall_chain chain = { NFPROTO_IPV4, "filter", "FORWARD" };
	report_dropping_chain(&f, &chain);
	assert_int_equal(f.level, FINDING_WEAKER);
	assert_non_null(strstr(f.text, "'ip filter' drops"));
	assert_non_null(
	    strstr(f.remedy, "nft insert rule ip filter FORWARD $way '\"cj*\"' accept"));
}

static void a_profile_that_confines_pasta_is_named(void **state)
{
	(void)state;
	struct finding f = { 0 };
	report_apparmor(&f, false, "/etc/apparmor.d/x");
	assert_int_equal(f.level, FINDING_OK);
	report_apparmor(&f, true, NULL);
	assert_int_equal(f.level, FINDING_OK);
	report_apparmor(&f, true, "/etc/apparmor.d/x");
	assert_int_equal(f.level, FINDING_NOTE);
	assert_string_equal(f.remedy, "sudo apparmor_parser -R /etc/apparmor.d/x");
}

static void a_reason_is_cut_before_its_remedy(void **state)
{
	(void)state;
	assert_int_equal(length_without_remedy("it is off; turn it on: x (y)"), 9);
	assert_int_equal(length_without_remedy("it is gone (get it; now)"), 10);
	assert_int_equal(length_without_remedy("it is so"), 8);
}

static void a_missing_helper_is_named_with_its_package(void **state)
{
	(void)state;
	struct finding pasta = { 0 }, slirp = { 0 };
	is_faked = true;
	check_helper(&pasta, &helper_pasta);
	check_helper(&slirp, &helper_slirp4netns);
	assert_int_equal(pasta.level, FINDING_NOTE);
	assert_string_equal(pasta.text, "it is not installed");
	char wanted[INSTALL_MAX];
	os_install("passt", wanted);
	assert_string_equal(pasta.remedy, wanted);
	assert_int_equal(slirp.level, FINDING_NOTE);
	assert_non_null(strstr(slirp.remedy, "slirp4netns"));

	has_helper[UPLINK_PASTA] = true;
	check_helper(&slirp, &helper_slirp4netns); /* nobody misses it now */
	assert_int_equal(slirp.level, FINDING_OK);
	assert_string_equal(slirp.remedy, "");
}

static void a_closed_tun_device_has_the_remedy(void **state)
{
	(void)state;
	struct finding f = { 0 };
	is_faked = true;
	check_tun(&f);
	assert_int_equal(f.level, FINDING_NOTE);
	assert_null(strchr(f.text, '('));
	assert_non_null(strstr(f.text, "Permission denied: no uplink 'pasta'"));
	assert_non_null(strstr(f.remedy, "tun")); /* chmod or modprobe: as this host is */
	has_tun = true;
	check_tun(&f);
	assert_int_equal(f.level, FINDING_OK);
}

static struct finding told_of(enum layer_state filter, enum uplink_kind uplink)
{
	struct finding f = { 0 };
	struct outcome out = { .network.uplink = uplink };
	out.layers[LAYER_NETWORK_FILTER] = filter;
	is_faked = true;
	report_network(&f, &out, pasta_reason);
	return f;
}

static void the_uplink_is_named_with_the_reason_against_better_ones(void **state)
{
	(void)state;
	struct finding f = told_of(LAYER_ON, UPLINK_HOST);
	assert_int_equal(f.level, FINDING_OK);
	assert_string_equal(f.text, "was built, with uplink 'host'");
	has_helper[UPLINK_PASTA] = true;
	f = told_of(LAYER_ON, UPLINK_SLIRP4NETNS);
	assert_int_equal(f.level, FINDING_OK);
	assert_string_equal(f.text, "was built, with uplink 'slirp4netns' (host: is not there; "
				    "pasta: did not start)");
	pasta_reason = "ended at its start, exit status 1: Couldn't open user namespace";
	f = told_of(LAYER_ON, UPLINK_SLIRP4NETNS);
	assert_non_null(strstr(f.text, "pasta: ended at its start, exit status 1: Couldn't open"));
	pasta_reason = "";
}

static void a_missing_uplink_is_weaker_and_has_one_remedy(void **state)
{
	(void)state;
	struct finding f = told_of(LAYER_ON, UPLINK_NONE);
	assert_int_equal(f.level, FINDING_WEAKER);
	assert_non_null(strstr(f.text, "has no uplink: host: is not there; pasta: is"));
	assert_string_not_equal(f.remedy, "");
}

static void missing_rules_are_weaker_with_every_uplink(void **state)
{
	(void)state;
	struct finding f = told_of(LAYER_ABSENT, UPLINK_AUTO);
	assert_int_equal(f.level, FINDING_WEAKER);
	assert_string_not_equal(f.remedy, "");
}

static void every_check_has_a_text(void **state)
{
	(void)state;
	for (size_t i = 0; i < CHECK_COUNT; i++) {
		struct finding f = { .level = FINDING_LEVEL_COUNT };
		look(&checks[i], &f);
		assert_true(f.level < FINDING_LEVEL_COUNT);
		assert_string_not_equal(f.text, "");
		assert_true(f.level != FINDING_OK || f.remedy[0] == '\0');
	}
}

#define ON_HOST(test) cmocka_unit_test_setup(test, as_the_host_is)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_HOST(a_build_date_is_read_in_either_form),
		ON_HOST(the_missing_fixes_are_found_by_the_kernel_version),
		ON_HOST(an_old_kernel_is_a_note_that_asks_the_distribution),
		ON_HOST(a_place_is_classified_by_its_files_and_variables),
		ON_HOST(a_missing_cgroup_has_the_remedy_of_its_place),
		ON_HOST(every_place_has_its_remedies),
		ON_HOST(a_call_the_kernel_lacks_is_named_with_its_release),
		ON_HOST(a_forbidden_user_namespace_is_missing_for_every_cause),
		ON_HOST(checks_that_need_a_namespace_point_to_its_check),
		ON_HOST(a_probe_brings_its_errno_back),
		ON_HOST(a_probe_leaves_no_child_and_no_descriptor),
		ON_HOST(no_landlock_is_weaker_not_missing),
		ON_HOST(each_controller_is_checked_separately),
		ON_HOST(a_parent_with_all_controllers_is_named),
		ON_HOST(a_kernel_below_the_minimum_is_weaker),
		ON_HOST(a_cause_has_its_remedy),
		ON_HOST(an_installed_program_gets_the_command_that_loads_its_profile),
		ON_HOST(a_program_that_others_may_change_is_told_where_to_install),
		ON_HOST(root_is_told_of_a_restriction_of_others),
		ON_HOST(an_unknown_cause_sends_root_to_the_kernel_log_and_not_to_the_administrator),
		ON_HOST(a_package_is_installed_in_the_words_of_the_distribution),
		ON_HOST(a_text_is_wrapped_between_words),
		ON_HOST(a_remedy_is_printed_once_and_never_wrapped),
		ON_HOST(rules_that_are_refused_mean_no_public_network),
		ON_HOST(the_program_that_loads_rules_is_named_where_it_does_not_run),
		ON_HOST(links_that_are_refused_mean_no_public_network),
		ON_HOST(forwarding_is_checked_only_for_root),
		ON_HOST(a_table_that_drops_what_is_forwarded_is_named),
		ON_HOST(a_profile_that_confines_pasta_is_named),
		ON_HOST(a_reason_is_cut_before_its_remedy),
		ON_HOST(a_missing_helper_is_named_with_its_package),
		ON_HOST(a_closed_tun_device_has_the_remedy),
		ON_HOST(the_uplink_is_named_with_the_reason_against_better_ones),
		ON_HOST(a_missing_uplink_is_weaker_and_has_one_remedy),
		ON_HOST(missing_rules_are_weaker_with_every_uplink),
		ON_HOST(every_check_has_a_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
