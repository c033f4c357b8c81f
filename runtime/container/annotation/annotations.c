/* SPDX-License-Identifier: Apache-2.0 */
/* Reads annotations by a table, and carries out those that restrict. */
#include "runtime/container/annotation/annotations.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "netns/address/ranges.h"
#include "netns/nftables/nfnl.h"
#include "netns/rtnetlink/hostaddrs.h"
#include "profiles/profile.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/kernel/process/landlock.h"
#include "runtime/kernel/seccomp/filter.h"
#include "runtime/kernel/seccomp/policy.h"

#define PREFIX "io.cejail."
#define ALLOW  "allow:"

typedef int annotation_reader(const char *value, struct arena *a, struct annotations *out,
			      struct cj_error *err);

/* "a,b" into its parts, at most `max`; a part may be empty.  The reader of a part refuses that. */
static int split(const char *text, size_t max, const char *what, struct arena *a,
		 struct strings *out, struct cj_error *err)
{
	for (bool is_over = false; !is_over;) {
		size_t size = strcspn(text, ",");
		const char *part = arena_strndup(a, text, size);
		if (!part || strings_add(out, a, part) < 0)
			return cj_fail(err, ENOMEM, "read a list");
		is_over = text[size] == '\0';
		text += size + 1;
	}
	if (out->count > max)
		return cj_reject(err, "it names %zu %s; at most %zu are possible", out->count, what,
				 max);
	return 0;
}

static int read_allow(const char *list, struct arena *a, struct annotations *out,
		      struct cj_error *err)
{
	struct strings parts = { 0 };
	struct allowlist_entry *entries;

	if (split(list, ALLOWLIST_MAX, "hosts", a, &parts, err) < 0 ||
	    allowlist_parse_all(&parts, allowlist_parse, a, &entries, err) < 0)
		return -err->code;
	if (allowlist_has_wildcard(entries, parts.count)) /* which needs a name server of ours */
		return cj_reject(err, "a name with '*' works only in cejail run and its service; "
				      "name each host");
	out->allow = entries;
	out->nallow = parts.count;
	return 0;
}

static int read_network(const char *value, struct arena *a, struct annotations *out,
			struct cj_error *err)
{
	out->has_network = true;
	if (strcmp(value, "public") == 0)
		return 0;
	if (strncmp(value, ALLOW, strlen(ALLOW)) != 0)
		return cj_reject(err, "'%.64s' is neither public nor allow:HOST[:PORT],...", value);
	out->is_list = true;
	return read_allow(value + strlen(ALLOW), a, out, err);
}

static int read_private(const char *value, struct arena *a, struct annotations *out,
			struct cj_error *err)
{
	(void)a;
	return parse_bool(value, &out->may_be_private, err);
}

/* A cluster's name servers have private addresses.  No name server of another host has these. */
static bool is_server(const struct ip *ip)
{
	enum net_class class;

	return !ranges_find(ip, &class) || class == NET_PRIVATE || class == NET_SHARED;
}

static int read_servers(const char *value, struct arena *a, struct annotations *out,
			struct cj_error *err)
{
	struct strings parts = { 0 };

	if (split(value, FIREWALL_NAME_SERVERS_MAX, "name servers", a, &parts, err) < 0)
		return -err->code;
	struct ip *servers = arena_array(a, parts.count, sizeof(*servers));
	if (!servers)
		return cj_fail(err, ENOMEM, "read a list");
	for (size_t i = 0; i < parts.count; i++) {
		if (!ip_parse(parts.items[i], &servers[i]))
			return cj_reject(err, "'%.64s' is not an address", parts.items[i]);
		if (!is_server(&servers[i]))
			return cj_reject(err, "'%s' is neither a public nor a private address",
					 parts.items[i]);
	}
	out->name_servers = servers;
	out->nname_servers = parts.count;
	return 0;
}

static int read_result(const char *value, struct arena *a, struct annotations *out,
		       struct cj_error *err)
{
	(void)a;
	if (value[0] == '\0')
		return cj_reject(err, "it is empty");
	out->result = value;
	return 0;
}

/* A path would let the author of a pod name any file of the host. */
static int read_profile(const char *value, struct arena *a, struct annotations *out,
			struct cj_error *err)
{
	(void)a;
	if (!is_name(value))
		return cj_reject(err, "'%.64s' is no name of a profile", value);
	out->profile = value;
	return 0;
}

static const struct annotation_row {
	const char *name;
	annotation_reader *read;
} rows[] = {
	{ ANNOTATION_NETWORK, read_network }, { ANNOTATION_SERVERS, read_servers },
	{ ANNOTATION_PRIVATE, read_private }, { ANNOTATION_RESULT, read_result },
	{ ANNOTATION_PROFILE, read_profile },
};

static int read_pair(const struct oci_pair *pair, struct arena *a, struct annotations *out,
		     struct cj_error *err)
{
	if (strncmp(pair->name, PREFIX, strlen(PREFIX)) != 0)
		return 0;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		if (strcmp(pair->name, rows[i].name) != 0)
			continue;
		return rows[i].read(pair->value, a, out, err) < 0
			   ? cj_wrap(err, "annotation '%s'", pair->name)
			   : 0;
	}
	const char *names[COUNT_OF(rows) + 1] = { NULL };

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		names[i] = rows[i].name;
	const char *nearest = text_nearest(pair->name, names);
	cj_refuse(err, "unknown annotation '%.128s'", pair->name);
	if (nearest)
		return cj_hint(err, "did you mean '%s'?", nearest);
	return cj_hint(err, "see cejail-oci(8), ANNOTATIONS");
}

/* containerd and CRI-O mark the container that only keeps a pod's namespaces. */
static bool is_sandbox(const struct oci_pair *pair)
{
	static const struct oci_pair marks[] = {
		{ "io.kubernetes.cri.container-type", "sandbox" },
		{ "io.kubernetes.cri-o.ContainerType", "sandbox" },
	};

	for (size_t i = 0; i < COUNT_OF(marks); i++)
		if (strcmp(pair->name, marks[i].name) == 0 &&
		    strcmp(pair->value, marks[i].value) == 0)
			return true;
	return false;
}

int annotations_read(const struct oci_pairs *pairs, struct arena *a, struct annotations *out,
		     struct cj_error *err)
{
	struct annotations read = { 0 };

	for (size_t i = 0; i < pairs->count; i++) {
		if (read_pair(&pairs->items[i], a, &read, err) < 0)
			return -err->code;
		read.is_sandbox = read.is_sandbox || is_sandbox(&pairs->items[i]);
	}
	if (read.is_sandbox)
		read.result = NULL;
	if (!read.has_network && (read.nname_servers > 0 || read.may_be_private))
		return cj_reject(err,
				 "annotation '%s' is missing: the others of the network need "
				 "it",
				 ANNOTATION_NETWORK);
	*out = read;
	return 0;
}

/*
 * A packet socket (CAP_NET_RAW) sends without the output hook: packet(7).  A BPF program that a
 * probe runs (CAP_BPF, CAP_PERFMON) reads and changes memory of the kernel and of other processes.
 */
static const char *const refused_caps[] = { "CAP_NET_ADMIN",  "CAP_NET_RAW",    "CAP_SYS_ADMIN",
					    "CAP_SYS_MODULE", "CAP_SYS_PTRACE", "CAP_BPF",
					    "CAP_PERFMON" };

int annotations_check_process(const struct oci_process *process, struct cj_error *err)
{
	const struct oci_capabilities *caps = &process->capabilities;
	const struct strings *sets[] = { &caps->bounding, &caps->effective, &caps->inheritable,
					 &caps->permitted, &caps->ambient };
	const char *cap = NULL;

	for (size_t k = 0; k < COUNT_OF(refused_caps) && !cap; k++)
		for (size_t i = 0; i < COUNT_OF(sets); i++)
			if (strings_has(sets[i], refused_caps[k]))
				cap = refused_caps[k];
	if (!cap)
		return 0;
	cj_refuse_as(err, EPERM,
		     "annotation '" ANNOTATION_NETWORK "': with %s the program could "
		     "bypass the rules",
		     cap);
	return cj_hint(err,
		       "drop the capability: podman --cap-drop=%s; Kubernetes: "
		       "securityContext.capabilities.drop: [\"%s\"]",
		       cap + 4, cap + 4);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int look_at(const char *path, struct stat *out, struct cj_error *err)
{
	return stat(path, out) < 0 ? cj_fail(err, errno, "look at '%s'", path) : 0;
}

/*
 * The creator of a user namespace has every capability over it from outside: user_namespaces(7).
 * So a network that belongs to a namespace below the container's is the container's to change.
 * The ioctl(2) shows no owner that is not below ours: ioctl_ns(2).
 */
static int check_owner(int net_fd, const struct oci_namespace *user, struct cj_error *err)
{
	struct stat owner, ours, container;
	auto_fd int owner_fd = ioctl(net_fd, NS_GET_USERNS);

	if (owner_fd < 0 && errno == EPERM)
		return 0;
	if (owner_fd < 0 || fstat(owner_fd, &owner) < 0)
		return cj_fail(err, errno, "find the owner of the network namespace");
	if (look_at("/proc/self/ns/user", &ours, err) < 0 ||
	    look_at(user->path ? user->path : "/proc/self/ns/user", &container, err) < 0)
		return -err->code;
	if (is_same(&owner, &ours) || is_same(&owner, &container))
		return 0;
	cj_refuse_as(err, EPERM,
		     "annotation '" ANNOTATION_NETWORK "': the network namespace belongs "
		     "to a user namespace that the container may control");
	return cj_hint(err, "let the container join that user namespace, too");
}

static int check_joined(const struct oci_namespace *net, const struct oci_namespace *user,
			struct cj_error *err)
{
	struct stat joined, ours;
	auto_fd int fd = open(net->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &joined) < 0)
		return cj_fail(err, errno, "open the network namespace '%s'", net->path);
	if (look_at("/proc/self/ns/net", &ours, err) < 0)
		return -err->code;
	if (is_same(&joined, &ours))
		return cj_reject_as(err, EPERM,
				    "annotation '" ANNOTATION_NETWORK "': '%s' is the "
				    "host's own network namespace",
				    net->path);
	return check_owner(fd, user, err);
}

int annotations_check_network(const struct oci_config *config, const struct oci_process *process,
			      struct cj_error *err)
{
	const struct oci_namespace *ns = config->on_linux.namespaces;

	if (!ns[OCI_NS_NETWORK].is_wanted) {
		cj_refuse_as(err, EPERM,
			     "annotation '" ANNOTATION_NETWORK "': the container has the "
			     "host's network");
		return cj_hint(err,
			       "give it a network namespace: without podman --network=host, or "
			       "hostNetwork in Kubernetes");
	}
	if (process && annotations_check_process(process, err) < 0)
		return -err->code;
	return ns[OCI_NS_NETWORK].path ? check_joined(&ns[OCI_NS_NETWORK], &ns[OCI_NS_USER], err)
				       : 0;
}

static int resolve(const struct annotations *wanted, struct arena *a,
		   struct firewall_container_spec *out, struct strings *warnings,
		   struct cj_error *err)
{
	struct endpoints open = { 0 };

	if (allowlist_resolve(wanted->allow, wanted->nallow, wanted->may_be_private, a, &open,
			      err) < 0) {
		if (!wanted->may_be_private) {
			err->hint[0] = '\0'; /* it names options of `cejail run` */
			cj_hint(err, "a private address needs the annotation " ANNOTATION_PRIVATE
				     "=true; others are never opened");
		}
		return cj_wrap(err, "annotation '" ANNOTATION_NETWORK "'");
	}
	out->rules.allowed = open.items;
	out->rules.nallowed = open.count;
	*warnings = open.warnings;
	return 0;
}

static int list_host(struct arena *a, struct firewall_container_spec *out, struct cj_error *err)
{
	struct hostaddrs *addresses = NULL;
	size_t count = 0;

	if (hostaddrs_open(&addresses, err) < 0)
		return cj_wrap(err, "annotation '" ANNOTATION_NETWORK "'");
	const struct ip *list = hostaddrs_list(addresses, &count);
	struct ip *copy = arena_array(a, count + 1, sizeof(*copy));
	if (copy && count > 0)
		memcpy(copy, list, count * sizeof(*copy));
	hostaddrs_close(&addresses);
	if (!copy)
		return cj_fail(err, ENOMEM, "list the host's addresses");
	out->rules.host = copy;
	out->rules.nhost = count;
	return 0;
}

int annotations_prepare_network(const struct annotations *wanted, struct arena *a,
				struct firewall_container_spec *out, struct strings *warnings,
				struct cj_error *err)
{
	*out = (struct firewall_container_spec){
		.rules.is_list = wanted->is_list,
		.name_servers = wanted->name_servers,
		.nname_servers = wanted->nname_servers,
	};
	if (wanted->is_list && resolve(wanted, a, out, warnings, err) < 0)
		return -err->code;
	return list_host(a, out, err);
}

void annotations_network_close(struct annotations_network *h)
{
	cj_close(&h->rules_fd);
	cj_close(&h->log_fd);
}

int annotations_load_network(struct loader *loader, const struct firewall_container_spec *spec,
			     struct annotations_network *out, struct cj_error *err)
{
	struct annotations_network made = ANNOTATIONS_NETWORK_NULL;

	made.rules_fd = nfnl_socket(NETLINK_NETFILTER, err);
	if (made.rules_fd >= 0)
		made.log_fd = nfnl_socket(NETLINK_NETFILTER, err);
	if (made.log_fd < 0 ||
	    loader_apply_container(loader, made.rules_fd, spec, made.table, err) < 0) {
		annotations_network_close(&made);
		return cj_wrap(err, "annotation '" ANNOTATION_NETWORK "'");
	}
	*out = made;
	return 0;
}

static int copy_filter(const struct filter *filter, struct arena *a, struct sock_fprog *out,
		       struct cj_error *err)
{
	struct sock_filter *insns = arena_array(a, filter->ninsns, sizeof(*insns));

	if (!insns)
		return cj_fail(err, ENOMEM, "prepare the profile's filter");
	filter_settle(filter, insns); /* the network is the engine's: inet sockets are allowed */
	/* No supervisor answers here: the kernel would refuse with ENOSYS, which programs take for
	 * an old kernel. */
	for (size_t i = 0; i < filter->ninsns; i++)
		if (insns[i].code == (BPF_RET | BPF_K) &&
		    (insns[i].k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF)
			insns[i].k = SECCOMP_RET_ERRNO | EPERM;
	*out = (struct sock_fprog){ .len = filter->ninsns, .filter = insns };
	return 0;
}

static int compile(const struct config *c, struct arena *a, struct sock_fprog *out,
		   struct cj_error *err)
{
	const struct policy *policy;
	struct filter filter;

	if (strcmp(c->seccomp, "default") == 0) {
		filter_builtin(&filter);
		return copy_filter(&filter, a, out, err);
	}
	if (policy_load(c->seccomp, a, &policy, err) < 0 ||
	    filter_compile(policy, a, &filter, err) < 0)
		return -err->code;
	return copy_filter(&filter, a, out, err);
}

int annotations_prepare_profile(const char *profile, struct arena *a, struct sock_fprog *out,
				struct strings *warnings, struct cj_error *err)
{
	__attribute__((cleanup(config_fini))) struct config c;

	config_init(&c);
	if (profile_load(&c, profile, err) < 0 || compile(&c, a, out, err) < 0)
		return cj_wrap(err, "annotation '" ANNOTATION_PROFILE "'");
	if (landlock_abi() == 0 &&
	    strings_add(warnings, a, "io.cejail.profile: this kernel has no Landlock") < 0)
		return cj_fail(err, ENOMEM, "prepare the profile");
	return 0;
}

int annotations_load_profile(const struct sock_fprog *filter, struct cj_error *err)
{
	struct sock_fprog loaded = *filter;

	if (sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &loaded) == 0)
		return 0;
	(void)!cj_fail(err, errno, "annotation 'io.cejail.profile': load the filter");
	return cj_hint(err, "linux.seccomp of config.json must allow seccomp(2)");
}
