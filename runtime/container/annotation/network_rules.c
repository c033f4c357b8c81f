/* SPDX-License-Identifier: Apache-2.0 */
/* Rules in a container's network namespace. */
#include "runtime/container/annotation/network_rules.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "netns/firewall/firewall.h"
#include "netns/nftables/nfnl.h"
#include "netns/rtnetlink/hostaddrs.h"
#include "runtime/base/scope.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* --- what the container could do to the rules ------------------------------------------- */

/*
 * A packet socket (CAP_NET_RAW) sends without the output hook: packet(7).  A BPF program that a
 * probe runs (CAP_BPF, CAP_PERFMON) reads and changes memory of the kernel and of other processes.
 */
static const char *const refused_caps[] = { "CAP_NET_ADMIN",  "CAP_NET_RAW",    "CAP_SYS_ADMIN",
					    "CAP_SYS_MODULE", "CAP_SYS_PTRACE", "CAP_BPF",
					    "CAP_PERFMON" };

static const char *find_cap(const struct oci_capabilities *caps)
{
	const struct strings *sets[] = { &caps->bounding, &caps->effective, &caps->inheritable,
					 &caps->permitted, &caps->ambient };

	for (size_t cap = 0; cap < LENGTH(refused_caps); cap++)
		for (size_t i = 0; i < LENGTH(sets); i++)
			if (strings_has(sets[i], refused_caps[cap]))
				return refused_caps[cap];
	return NULL;
}

int network_rules_check_process(const struct oci_process *process, struct cj_error *err)
{
	const char *cap = find_cap(&process->capabilities);

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

int network_rules_check(const struct oci_config *config, const struct oci_process *process,
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
	if (process && network_rules_check_process(process, err) < 0)
		return -err->code;
	return ns[OCI_NS_NETWORK].path ? check_joined(&ns[OCI_NS_NETWORK], &ns[OCI_NS_USER], err)
				       : 0;
}

/* --- what the rules are made of ---------------------------------------------------------- */

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
	out->allowed = open.items;
	out->nallowed = open.count;
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
	out->host = copy;
	out->nhost = count;
	return 0;
}

int network_rules_prepare(const struct annotations *wanted, struct arena *a,
			  struct firewall_container_spec *out, struct strings *warnings,
			  struct cj_error *err)
{
	*out = (struct firewall_container_spec){
		.is_list = wanted->is_list,
		.name_servers = wanted->name_servers,
		.nname_servers = wanted->nname_servers,
	};
	if (wanted->is_list && resolve(wanted, a, out, warnings, err) < 0)
		return -err->code;
	return list_host(a, out, err);
}

/* --- inside -------------------------------------------------------------------------------- */

void network_handle_close(struct network_handle *h)
{
	cj_close(&h->rules_fd);
	cj_close(&h->log_fd);
}

int network_rules_load(const struct firewall_container_spec *spec, struct network_handle *out,
		       struct cj_error *err)
{
	struct network_handle made = NETWORK_HANDLE_NULL;

	made.rules_fd = nfnl_socket(NETLINK_NETFILTER, err);
	if (made.rules_fd >= 0)
		made.log_fd = nfnl_socket(NETLINK_NETFILTER, err);
	if (made.log_fd < 0 || firewall_apply_container(made.rules_fd, spec, made.table, err) < 0) {
		network_handle_close(&made);
		return cj_wrap(err, "annotation '" ANNOTATION_NETWORK "'");
	}
	*out = made;
	return 0;
}
