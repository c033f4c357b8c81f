/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of --network public: rules, links, uplinks.  Rules and links are tried in the network
 * namespaces of a child process, the uplink in a complete jail.
 */
#include "runtime/front/cli/doctor/doctor.h"

#include <fcntl.h>
#include <sched.h>

#include "netns/address/addresses.h"
#include "netns/gateway.h"
#include "netns/firewall/host_firewall.h"
#include "netns/network.h"
#include "netns/uplink/uplink.h"
#include "netns/uplink/uplink_helper.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/jail/outcome.h"

#define TUN "/dev/net/tun"

/* The program would have no right in the child's user namespace: so it is the parent's, who owns
 * that. */
static struct loader trial_loader;

void check_by_loader(struct finding *f, const void *what)
{
	struct cj_error err = { 0 };
	/* By the join, which takes no right over the child away, it has said whether it runs. */
	if (gateway_start_loader(&trial_loader, &err) < 0 || loader_join(&trial_loader, &err) < 0) {
		(void)gateway_hint(&err);
		finding_set(f, FINDING_WEAKER, "not tried: %s: no --network public", err.msg);
		finding_remedy(f, "%s", err.hint);
	} else {
		check_trial(f, what);
	}
	loader_stop(&trial_loader);
}

/* The loader gets sockets in the namespaces of a gateway and of a jail, which this child is in
 * then.  They end with it. */
static int open_network(void)
{
	static const struct network_spec spec = { .mode = NETWORK_PUBLIC };
	struct network_handles h;
	struct cj_error err = { 0 };
	if (network_open(&spec, &h, &err) < 0 || gateway_open_here(true, &h, &err) < 0)
		return err.code;
	return -loader_give_sockets(&trial_loader, &h.fds[SLOT_JAIL_RULES], LOADER_KEPT, &err);
}

/* The real rules of a jail: they fail if the kernel lacks any expression that they use. */
int try_rules(void)
{
	const struct firewall_spec spec = {
		.addresses = addresses_make(false),
		.has_dns = true,
	};
	struct cj_error err = { 0 };
	int code = open_network();
	if (code == 0)
		code = -loader_apply_jail(&trial_loader, &spec, &err);
	if (code == 0)
		code = -loader_apply_gateway(&trial_loader, &spec, &err);
	return code;
}

int try_links(void)
{
	const struct links_spec spec = {
		.addresses = addresses_make(false),
		.mtu = LINK_MTU_MAX,
	};
	struct cj_error err = { 0 };
	int code = open_network();
	if (code != 0)
		return code;
	auto_fd int netns_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return netns_fd < 0 ? errno : -loader_join_links(&trial_loader, netns_fd, &spec, &err);
}

/* A switch of the kernel: "1" or "Y". */
static bool is_on(const char *path)
{
	char text[4] = "";
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && sys_read(fd, text, sizeof(text) - 1) > 0 && text[0] != '0' &&
	       text[0] != 'N';
}

/* Only the uplink 'host' of root needs forwarding.  A helper of an ordinary user does not. */
static void report_forwarding(struct finding *f, bool is_root, bool has4, bool has6)
{
	if (!is_root) {
		finding_set(f, FINDING_OK, "not needed: only the jails of root are routed");
	} else if (!has4) {
		finding_set(f, FINDING_NOTE, "off: no uplink 'host'");
		finding_remedy(f, "echo net.ipv4.ip_forward=1 | sudo tee "
				  "/etc/sysctl.d/60-cejail-network.conf && sudo sysctl --system");
	} else if (!has6) {
		finding_set(
		    f, FINDING_NOTE,
		    "on for IPv4, off for IPv6: uplink 'host' has only IPv4 (before you turn "
		    "IPv6 forwarding on, set accept_ra=2 for interfaces that use router "
		    "advertisements)");
		finding_remedy(f, "sudo sysctl net.ipv6.conf.all.forwarding=1");
	} else {
		finding_set(f, FINDING_OK, "on, for IPv4 and IPv6");
	}
}

void check_forwarding(struct finding *f)
{
	report_forwarding(f, geteuid() == 0, is_on("/proc/sys/net/ipv4/ip_forward"),
			  is_on("/proc/sys/net/ipv6/conf/all/forwarding"));
}

/* An accept verdict in our table does not override a drop policy in another one. */
static void report_dropping_chain(struct finding *f, const struct host_firewall_chain *chain)
{
	const char *family = host_firewall_family_name(chain->family);

	finding_set(f, FINDING_WEAKER,
		    "the policy of '%s %s' drops forwarded packets: uplink 'host' may not work",
		    family, chain->table);
	finding_remedy(f,
		       "for way in iifname oifname; do sudo nft insert rule %s %s %s $way "
		       "'\"" HOST_FIREWALL_LINKS "*\"' accept; done",
		       family, chain->table, chain->chain);
}

void check_host_firewall(struct finding *f)
{
	struct host_firewall_chain chain = { 0 };
	struct cj_error err = { 0 };

	if (geteuid() != 0) {
		finding_set(f, FINDING_OK, "not checked: only the jails of root are routed");
		return;
	}
	int rc = host_firewall_look(&chain, &err);
	if (rc > 0)
		report_dropping_chain(f, &chain);
	else if (rc == 0)
		finding_set(f, FINDING_OK, "no table has a policy that drops forwarded packets");
	else
		finding_set(f, FINDING_NOTE, "cannot be read: %s", err.msg);
}

/* A reason is "WHAT (REMEDY)" or "WHAT; REMEDY".  Here the remedy has its own line. */
static int length_without_remedy(const char *why)
{
	const char *open = strstr(why, " ("), *half = strchr(why, ';');
	size_t length = strlen(why);

	if (open)
		length = (size_t)(open - why);
	if (half && (size_t)(half - why) < length)
		length = (size_t)(half - why);
	return (int)length;
}

void check_tun(struct finding *f)
{
	struct cj_error err = { 0 };

	if (uplink_helper_try_tun(&err) == 0) {
		finding_set(f, FINDING_OK, "can be opened by a helper");
		return;
	}
	finding_set(f, FINDING_NOTE, "%s: no uplink 'pasta' or 'slirp4netns'", err.msg);
	if (access(TUN, F_OK) < 0)
		finding_remedy_here(f, REMEDY_TUN);
	else
		finding_remedy(f, "sudo chmod 666 " TUN);
}

/* slirp4netns is used only without pasta: if pasta is installed, it may be missing. */
static bool may_be_missing(enum uplink_kind kind)
{
	char path[UPLINK_PATH_MAX];
	struct cj_error ignored = { 0 };
	return kind == UPLINK_SLIRP4NETNS &&
	       uplink_helper_find(uplink_helper_of(UPLINK_PASTA), NULL, path, &ignored) == 0;
}

void check_helper(struct finding *f, const void *what)
{
	const enum uplink_kind kind = *(const enum uplink_kind *)what;
	const struct uplink_helper *h = uplink_helper_of(kind);
	char path[UPLINK_PATH_MAX], text[UPLINK_WHY_MAX];
	struct cj_error err = { 0 };

	if (uplink_helper_find(h, NULL, path, &err) == 0) {
		int rc = uplink_helper_version(kind, text, sizeof(text), &err);
		finding_set(f, FINDING_OK, "%s", rc == 0 ? text : err.msg);
		return;
	}
	finding_set(f, may_be_missing(kind) ? FINDING_OK : FINDING_NOTE, "%s", err.msg);
	if (f->level == FINDING_OK)
		return;
	if (err.code == ENOENT)
		finding_remedy_package(f, h->package);
	else
		finding_remedy(f, "sudo chown root %s && sudo chmod 755 %s", path, path);
}

/* Only root can read which profiles are loaded.  For other users each existing profile counts. */
static bool is_loaded(const char *name)
{
	char line[256];
	auto_file FILE *file = fopen("/sys/kernel/security/apparmor/profiles", "re");

	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, name))
			return true;
	return !file;
}

static void report_apparmor(struct finding *f, bool is_on, const char *profile)
{
	if (!is_on) {
		finding_set(f, FINDING_OK, "not enabled");
	} else if (!profile) {
		finding_set(f, FINDING_OK, "enabled, without a profile for pasta");
	} else {
		finding_set(
		    f, FINDING_NOTE,
		    "has a profile for pasta (%s), which may be the cause if pasta does not start",
		    profile);
		finding_remedy(f, "sudo apparmor_parser -R %s", profile);
	}
}

/* Root may create user namespaces without a profile, so only this check tells root of the others.
 * `label` is that of this process: "cejail (enforce)". */
static bool report_no_profile(struct finding *f, bool is_restricted, const char *label)
{
	struct doctor_place place;

	if (!is_restricted || strncmp(label, "unconfined", strlen("unconfined")) != 0)
		return false;
	finding_set(f, FINDING_NOTE,
		    "forbids user namespaces to ordinary users' programs without a profile, and "
		    "cejail has none");
	place_find(&place);
	finding_remedy_apparmor(f, &place);
	return true;
}

/* Profiles of distributions; pasta is a link to passt.  check_user_namespaces() reports whether
 * AppArmor forbids user namespaces to this process. */
void check_apparmor(struct finding *f)
{
	static const char *const profiles[] = {
		"/etc/apparmor.d/usr.bin.pasta",
		"/etc/apparmor.d/usr.bin.passt",
	};
	const char *profile = NULL;
	char label[128] = "";

	(void)system_file_read(AT_FDCWD, "/proc/self/attr/apparmor/current", label, sizeof(label));
	if (report_no_profile(f, is_on("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
			      label))
		return;
	for (size_t i = 0; i < COUNT_OF(profiles) && !profile; i++)
		if (access(profiles[i], F_OK) == 0 && is_loaded(strrchr(profiles[i], '.') + 1))
			profile = profiles[i];
	report_apparmor(f, is_on("/sys/module/apparmor/parameters/enabled"), profile);
}

/* Why `auto` took none of the kinds before `chosen`. */
static void explain(enum uplink_kind chosen, const char *pasta_reason, char *out, size_t size)
{
	out[0] = '\0';
	for (enum uplink_kind kind = UPLINK_HOST; kind < chosen; kind++) {
		struct cj_error err = { 0 };
		const char *why = err.msg;
		if (uplink_probe(kind, NULL, &err) == 0)
			why = kind == UPLINK_PASTA && pasta_reason[0] ? pasta_reason
								      : "did not start";
		text_append(out, size, "%s%s: %.*s", out[0] ? "; " : "", uplink_names[kind],
			    length_without_remedy(why), why);
	}
}

/* The simplest remedy. */
static void remedy_uplink(struct finding *f)
{
	const enum uplink_kind kind = UPLINK_PASTA;
	struct finding tun = { 0 }, helper = { 0 }, forwarding = { 0 };

	check_tun(&tun);
	check_helper(&helper, &kind);
	check_forwarding(&forwarding);
	if (forwarding.level != FINDING_OK)
		finding_remedy(f, "%s", forwarding.remedy);
	else
		finding_remedy(f, "%s", helper.level != FINDING_OK ? helper.remedy : tun.remedy);
}

static void report_network(struct finding *f, const struct outcome *out, const char *pasta_reason)
{
	enum uplink_kind kind = out->network.uplink;
	char why[300];

	explain(kind, pasta_reason, why, sizeof(why));
	if (out->layers[LAYER_NETWORK_FILTER] != LAYER_ON) {
		finding_set(f, FINDING_WEAKER, "no network: the packet filter is not active");
		finding_remedy(f, "fix what is missing above");
	} else if (kind == UPLINK_NONE) {
		finding_set(f, FINDING_WEAKER, "was built, but has no uplink: %s", why);
		remedy_uplink(f);
	} else {
		finding_set(f, FINDING_OK, "was built, with uplink '%s'%s%s%s", uplink_names[kind],
			    why[0] ? " (" : "", why, why[0] ? ")" : "");
	}
}

static int try_network(enum uplink_kind uplink, struct outcome *out, struct cj_error *err)
{
	__attribute__((cleanup(config_fini))) struct config c;

	config_init(&c);
	c.network = NETWORK_PUBLIC;
	c.uplink = uplink;
	return doctor_try_jail(&c, out, err);
}

/* The message of a pasta that is installed and does not start, from a jail with only this
 * uplink. */
static void ask_pasta(const struct outcome *first, char *out, size_t size)
{
	__attribute__((cleanup(outcome_fini))) struct outcome second;
	struct cj_error err = { 0 };

	out[0] = '\0';
	outcome_init(&second, "", 0);
	if (first->network.uplink <= UPLINK_PASTA || uplink_probe(UPLINK_PASTA, NULL, &err) < 0 ||
	    try_network(UPLINK_PASTA, &second, &err) < 0)
		return;
	static const char *const starts[] = { "pasta ended at its start", "pasta made no link",
					      "pasta read no packet" };
	for (size_t i = 0; i < second.warnings.count; i++)
		for (size_t k = 0; k < COUNT_OF(starts); k++) {
			const char *at = strstr(second.warnings.items[i], starts[k]);
			if (at)
				(void)snprintf(out, size, "%s", at + strlen("pasta "));
		}
}

void check_public_network(struct finding *f)
{
	__attribute__((cleanup(outcome_fini))) struct outcome out;
	struct cj_error err = { 0 };
	char pasta_reason[UPLINK_WHY_MAX];

	outcome_init(&out, "", 0);
	if (try_network(UPLINK_AUTO, &out, &err) == 0) {
		ask_pasta(&out, pasta_reason, sizeof(pasta_reason));
		report_network(f, &out, pasta_reason);
		return;
	}
	finding_set(f, FINDING_WEAKER, "a jail with --network public cannot be built: %s", err.msg);
	finding_remedy(f, "fix what is missing above");
}
