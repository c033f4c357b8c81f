/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/container/cgroup/resource_limits.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/text.h"
#include "runtime/kernel/cgroup/cgroup.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"
#include "runtime/kernel/cgroup/cgroup_tree.h"

#define SHARES_MIN     2u
#define SHARES_MAX     262144u
#define WEIGHT_MIN     10u
#define WEIGHT_MAX     1000u
#define SHARES_DEFAULT 1024u   /* what every group has: ctr writes it always */
#define CPU_PERIOD     100000u /* the kernel's, in microseconds */
#define CONTROL_MAX    32      /* length of a controller's name */

/* min..max to 1..10000, linear. */
static uint64_t scale(uint64_t value, uint64_t min, uint64_t max)
{
	value = value < min ? min : value > max ? max : value;
	return 1 + (value - min) * 9999 / (max - min);
}

uint64_t resource_cpu_weight(uint64_t shares)
{
	return scale(shares, SHARES_MIN, SHARES_MAX);
}

uint64_t resource_io_weight(uint64_t weight)
{
	return scale(weight, WEIGHT_MIN, WEIGHT_MAX);
}

struct resource_planner {
	struct arena *arena;
	const struct resource_current *current; /* NULL: a new cgroup */
	struct resource_write *items;
	size_t count;
	bool has_failed;             /* no memory */
	struct resource_write spare; /* what is set when there is none */
};

static struct resource_write *add(struct resource_planner *p, const char *field,
				  const char *controller, const char *file)
{
	struct resource_write *grown = arena_grow(p->arena, p->items, p->count, sizeof(*grown));
	if (!grown) {
		p->has_failed = true;
		return &p->spare;
	}
	p->items = grown;
	struct resource_write *w = &grown[p->count++];
	*w = (struct resource_write){ .field = field, .controller = controller, .file = file };
	return w;
}

__attribute__((format(printf, 2, 3))) static const char *text(struct resource_planner *p,
							      const char *fmt, ...)
{
	char line[256];
	int size = text_format(line, fmt);
	char *copy = size < 0 || (size_t)size >= sizeof(line) ? NULL : arena_strdup(p->arena, line);
	if (!copy)
		p->has_failed = true;
	return copy;
}

/* A value of which -1, and 0 where it means nothing, stand for no limit. */
static void add_limit(struct resource_planner *p, const char *field, const char *controller,
		      const char *file, int64_t value)
{
	struct resource_write *w = add(p, field, controller, file);
	w->is_optional = value < 0;
	w->value = value < 0 ? "max" : text(p, "%" PRId64, value);
}

/* -1 is no limit. */
static int check_limit(const char *field, struct oci_i64 number, struct cj_error *err)
{
	if (!number.is_set || number.value >= -1)
		return 0;
	return cj_reject(err, "linux.resources.%s: %" PRId64 " is below -1", field, number.value);
}

/* cgroup v1 counts memory and swap together.  The memory limit is the one asked for, else the one
 * that is written now. */
static int plan_swap(struct resource_planner *p, const struct oci_memory *m, struct cj_error *err)
{
	static const char field[] = "memory.swap", file[] = "memory.swap.max";
	bool has_limit = m->limit.is_set && m->limit.value != 0;
	uint64_t memory = has_limit ? (uint64_t)m->limit.value : 0;

	if (!m->swap.is_set || m->swap.value == 0) {
		if (has_limit && m->limit.value == -1)
			add_limit(p, field, "memory", file, -1);
		return 0;
	}
	if (m->swap.value == -1) {
		add_limit(p, field, "memory", file, -1);
		return 0;
	}
	if (has_limit ? m->limit.value < 0
		      : !p->current || !p->current->memory_max ||
			    !cgroup_text_number(p->current->memory_max, &memory))
		return cj_reject(err, "linux.resources.memory.swap includes memory: set "
				      "memory.limit, too");
	if ((uint64_t)m->swap.value < memory)
		return cj_reject(err,
				 "linux.resources.memory.swap: %" PRId64
				 " is below the memory limit of %" PRIu64 ", which it includes",
				 m->swap.value, memory);
	add_limit(p, field, "memory", file, m->swap.value - (int64_t)memory);
	return 0;
}

/* A limit of 0 is none: engines leave it so. */
static int plan_memory(struct resource_planner *p, const struct oci_resources *r,
		       struct cj_error *err)
{
	const struct oci_memory *m = &r->memory;
	if (check_limit("memory.limit", m->limit, err) < 0 ||
	    check_limit("memory.reservation", m->reservation, err) < 0 ||
	    check_limit("memory.swap", m->swap, err) < 0)
		return -err->code;
	if (m->swappiness.is_set)
		return cj_reject(err, "linux.resources.memory.swappiness: cgroup v2 has no such "
				      "setting: leave it out");
	if (m->disable_oom_killer)
		return cj_reject(err, "linux.resources.memory.disableOOMKiller: cgroup v2 can't "
				      "turn the OOM killer off: leave it out");
	if (plan_swap(p, m, err) < 0)
		return -err->code;
	if (m->limit.is_set && m->limit.value != 0)
		add_limit(p, "memory.limit", "memory", "memory.max", m->limit.value);
	if (m->reservation.is_set && m->reservation.value != 0)
		add_limit(p, "memory.reservation", "memory", "memory.low", m->reservation.value);
	return 0;
}

/* cpu.max is "QUOTA PERIOD"; the one that is not given stays as it is. */
static int plan_bandwidth(struct resource_planner *p, const struct oci_resources *r,
			  struct cj_error *err)
{
	const struct oci_cpu *c = &r->cpu;
	const char *now = p->current ? p->current->cpu_max : NULL;
	bool has_quota = c->quota.is_set && c->quota.value != 0;
	bool has_period = c->period.is_set && c->period.value != 0;
	(void)err;
	if (c->burst.is_set) /* one that is above the new quota would forbid it */
		add(p, "cpu.burst", "cpu", "cpu.max.burst")->value = "0";
	if (has_quota || has_period) {
		char quota[24] = "max";
		uint64_t period = CPU_PERIOD;
		size_t size = now ? strcspn(now, " ") : 0;
		if (size > 0 && size < sizeof(quota) && now[size] == ' ') {
			memcpy(quota, now, size);
			quota[size] = '\0';
			(void)cgroup_text_number(now + size + 1,
						 &period); /* else the kernel's own */
		}
		if (has_quota && c->quota.value > 0)
			(void)snprintf(quota, sizeof(quota), "%" PRId64, c->quota.value);
		else if (has_quota)
			(void)snprintf(quota, sizeof(quota), "max");
		struct resource_write *w =
		    add(p, has_quota ? "cpu.quota" : "cpu.period", "cpu", "cpu.max");
		w->is_optional = strcmp(quota, "max") == 0;
		w->value = text(p, "%s %" PRIu64, quota, has_period ? c->period.value : period);
	}
	if (c->burst.is_set && c->burst.value > 0)
		add(p, "cpu.burst", "cpu", "cpu.max.burst")->value =
		    text(p, "%" PRIu64, c->burst.value);
	return 0;
}

/* The kernel refuses a weight for a group of SCHED_IDLE. */
static int plan_shares(struct resource_planner *p, const struct oci_resources *r,
		       struct cj_error *err)
{
	const struct oci_cpu *c = &r->cpu;
	if (c->idle.is_set && c->idle.value != 0 && c->idle.value != 1)
		return cj_reject(err, "linux.resources.cpu.idle must be 0 or 1, not %" PRId64,
				 c->idle.value);
	if (c->idle.is_set) {
		struct resource_write *w = add(p, "cpu.idle", "cpu", "cpu.idle");
		w->value = c->idle.value ? "1" : "0";
		w->is_optional = c->idle.value == 0;
	}
	bool is_idle = c->idle.is_set && c->idle.value == 1;
	if (c->shares.is_set && c->shares.value != 0 && !is_idle) {
		struct resource_write *w = add(p, "cpu.shares", "cpu", "cpu.weight");
		w->value = text(p, "%" PRIu64, resource_cpu_weight(c->shares.value));
		w->is_optional = c->shares.value == SHARES_DEFAULT;
	}
	return 0;
}

static int plan_list(struct resource_planner *p, const char *list, const char *field,
		     const char *file, struct cj_error *err)
{
	if (!list || list[0] == '\0')
		return 0;
	if (strspn(list, "0123456789,- ") != strlen(list))
		return cj_reject(err, "linux.resources.%s: '%.100s' is no list such as 0-3,7",
				 field, list);
	add(p, field, "cpuset", file)->value = list;
	return 0;
}

static int plan_cpuset(struct resource_planner *p, const struct oci_resources *r,
		       struct cj_error *err)
{
	int rc = plan_list(p, r->cpu.cpus, "cpu.cpus", "cpuset.cpus", err);
	return rc < 0 ? rc : plan_list(p, r->cpu.mems, "cpu.mems", "cpuset.mems", err);
}

static int plan_pids(struct resource_planner *p, const struct oci_resources *r,
		     struct cj_error *err)
{
	if (check_limit("pids.limit", r->pids_limit, err) < 0)
		return -err->code;
	/* 0 as 1: init itself is born in the cgroup, and a process there can't fork with either. */
	if (r->pids_limit.is_set)
		add_limit(p, "pids.limit", "pids", "pids.max",
			  r->pids_limit.value == 0 ? 1 : r->pids_limit.value);
	return 0;
}

static int plan_huge_pages(struct resource_planner *p, const struct oci_resources *r,
			   struct cj_error *err)
{
	static const char field[] = "hugepageLimits";
	for (size_t i = 0; i < r->nhuge_pages; i++) {
		const struct oci_huge_page *h = &r->huge_pages[i];
		/* as the kernel names its files: "64KB", "2MB", "1GB" */
		size_t digits = strspn(h->page_size, "0123456789");
		const char *unit = h->page_size + digits;
		if (digits < 1 || digits > 4 || h->page_size[0] == '0' ||
		    (strcmp(unit, "KB") != 0 && strcmp(unit, "MB") != 0 && strcmp(unit, "GB") != 0))
			return cj_reject(err,
					 "linux.resources.%s: '%.40s' is no page size such as "
					 "2MB",
					 field, h->page_size);
		const char *limit = text(p, "%" PRIu64, h->limit);
		/* Reserved pages count before they are touched; Linux 5.7 and later. */
		struct resource_write *w =
		    add(p, field, "hugetlb", text(p, "hugetlb.%s.rsvd.max", h->page_size));
		w->value = limit;
		w->is_optional = true; /* the next one must exist */
		add(p, field, "hugetlb", text(p, "hugetlb.%s.max", h->page_size))->value = limit;
	}
	return 0;
}

static const char *number_or_max(struct resource_planner *p, struct oci_u64 number)
{
	const char *digits = number.is_set ? text(p, "%" PRIu64, number.value) : "max";
	return digits ? digits : ""; /* has_failed is set */
}

static int plan_rdma(struct resource_planner *p, const struct oci_resources *r,
		     struct cj_error *err)
{
	for (size_t i = 0; i < r->nrdma; i++) {
		const char *device = r->rdma[i].device;
		if (device[0] == '\0' || strlen(device) > 64 || strpbrk(device, " \n="))
			return cj_reject(err, "linux.resources.rdma: '%.64s' is no device", device);
		add(p, "rdma", "rdma", "rdma.max")->value = text(
		    p, "%s hca_handle=%s hca_object=%s", device,
		    number_or_max(p, r->rdma[i].handles), number_or_max(p, r->rdma[i].objects));
	}
	return 0;
}

/* The BFQ scheduler has a file of its own, in the units of cgroup v1. */
static int plan_weight(struct resource_planner *p, const char *device, uint64_t weight,
		       struct cj_error *err)
{
	if (weight < WEIGHT_MIN || weight > WEIGHT_MAX)
		return cj_reject(
		    err, "linux.resources.blockIO.weight: %" PRIu64 " is not between %u and %u",
		    weight, WEIGHT_MIN, WEIGHT_MAX);
	struct resource_write *w = add(p, "blockIO.weight", "io", "io.bfq.weight");
	w->value = text(p, "%s%" PRIu64, device, weight);
	w->other_file = "io.weight";
	w->other_value = text(p, "%s%" PRIu64, device, resource_io_weight(weight));
	return 0;
}

static const char *const throttle_keys[] = {
	[OCI_THROTTLE_READ_BPS] = "rbps",
	[OCI_THROTTLE_WRITE_BPS] = "wbps",
	[OCI_THROTTLE_READ_IOPS] = "riops",
	[OCI_THROTTLE_WRITE_IOPS] = "wiops",
};
static_assert(COUNT_OF(throttle_keys) == OCI_THROTTLE_COUNT, "one each");

static int plan_io(struct resource_planner *p, const struct oci_resources *r, struct cj_error *err)
{
	const struct oci_block_io *io = &r->block_io;

	if (io->weight.is_set && io->weight.value != 0 &&
	    plan_weight(p, "", io->weight.value, err) < 0)
		return -err->code;
	for (size_t i = 0; i < io->nweights; i++) {
		char device[32];
		(void)snprintf(device, sizeof(device), "%u:%u ", io->weights[i].major,
			       io->weights[i].minor);
		if (io->weights[i].weight.is_set &&
		    plan_weight(p, device, io->weights[i].weight.value, err) < 0)
			return -err->code;
	}
	for (size_t kind = 0; kind < OCI_THROTTLE_COUNT; kind++)
		for (size_t i = 0; i < io->rates[kind].count; i++) {
			const struct oci_block_rate *rate = &io->rates[kind].items[i];
			/* as in cgroup v1, 0 takes the limit away */
			const struct oci_u64 value = { rate->rate > 0, rate->rate };
			struct resource_write *w = add(p, "blockIO.throttle", "io", "io.max");
			w->is_optional = rate->rate == 0;
			w->value = text(p, "%u:%u %s=%s", rate->major, rate->minor,
					throttle_keys[kind], number_or_max(p, value));
		}
	return 0;
}

/*
 * A file of a controller: "memory.high".  Files of the core that move processes, freeze or kill
 * are not limits; the path must lead nowhere else.
 */
static bool is_limit_file(const char *name)
{
	size_t size = strlen(name), controller = strcspn(name, ".");
	bool is_core = text_begins_with(name, "cgroup.");
	return size < 128 && controller > 0 && controller < CONTROL_MAX &&
	       name[controller] == '.' && name[controller + 1] != '\0' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "0123456789_.-") == size &&
	       (!is_core || text_begins_with(name, "cgroup.max."));
}

static int plan_unified(struct resource_planner *p, const struct oci_resources *r,
			struct cj_error *err)
{
	for (size_t i = 0; i < r->unified.count; i++) {
		const struct oci_pair *pair = &r->unified.items[i];
		if (!is_limit_file(pair->name))
			return cj_reject(
			    err,
			    "linux.resources.unified: '%.100s' is no controller's file "
			    "of cgroup v2",
			    pair->name);
		const char *controller =
		    arena_strndup(p->arena, pair->name, strcspn(pair->name, "."));
		p->has_failed = p->has_failed || !controller;
		/* The kernel takes one line in each write(2). */
		for (const char *at = pair->value; *at;) {
			size_t size = strcspn(at, "\n");
			if (size > 0)
				add(p, "unified", controller, pair->name)->value =
				    arena_strndup(p->arena, at, size);
			at += size + (at[size] == '\n');
		}
	}
	return 0;
}

/* `unified` is last: it overrides. */
static int (*const plans[])(struct resource_planner *, const struct oci_resources *,
			    struct cj_error *) = {
	plan_memory,     plan_shares, plan_bandwidth, plan_cpuset,  plan_pids,
	plan_huge_pages, plan_rdma,   plan_io,        plan_unified,
};

int resource_writes_plan(const struct oci_resources *resources,
			 const struct resource_current *current, struct arena *a,
			 struct resource_writes *out, struct cj_error *err)
{
	struct resource_planner p = { .arena = a, .current = current };
	for (size_t i = 0; i < COUNT_OF(plans); i++)
		if (plans[i](&p, resources, err) < 0)
			return -err->code;
	for (size_t i = 0; i < p.count; i++)
		p.has_failed = p.has_failed || !p.items[i].value || !p.items[i].file;
	if (p.has_failed)
		return cj_fail(err, ENOMEM, "plan the container's limits");
	*out = (struct resource_writes){ .items = p.items, .count = p.count };
	return 0;
}

const struct resource_write *resource_first_limit(const struct resource_writes *writes,
						  const char *controller)
{
	for (size_t i = 0; i < writes->count; i++) {
		const struct resource_write *w = &writes->items[i];
		if (!w->is_optional && (controller ? strcmp(w->controller, controller) == 0
						   : strcmp(w->controller, "cgroup") != 0))
			return w;
	}
	return NULL;
}

int resource_hint(const char *controller, struct cj_error *err)
{
	struct cgroup_self self;
	bool is_on_v1 = cgroup_self_read(0, &self) == 0 &&
			self.on_v1[CGROUP_MEMORY]; /* the others go with it */
	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		if (strcmp(cgroup_controller_names[i], controller) == 0)
			is_on_v1 = self.on_v1[i];
	if (is_on_v1)
		return cj_hint(err,
			       "this host mounts the cgroup v1 controllers: boot with "
			       "systemd.unified_cgroup_hierarchy=1, ask for no such limit, or use "
			       "--cgroup-manager disabled");
	return cj_hint(err,
		       "enable the controller '%s' above, or name it in the unit's Delegate=; else "
		       "ask for no such limit, or use --cgroup-manager disabled",
		       controller);
}

static int enable_one(int dir_fd, const char *path, const char *name,
		      const struct resource_write *user, struct cj_error *err)
{
	char word[64];
	(void)snprintf(word, sizeof(word), "+%.60s", name);
	int rc = system_file_write(dir_fd, "cgroup.subtree_control", word);
	if (rc == 0 || !user)
		return 0; /* nobody needs it; its counters will be missing */
	rc = cj_fail(err, -rc, "linux.resources.%s: enable the controller '%s' in '%.200s'",
		     user->field, name, path);
	(void)resource_hint(name, err);
	return rc;
}

int resource_enable(int dir_fd, const char *path, const struct resource_writes *writes,
		    struct cj_error *err)
{
	/* Engines read their counters and update their limits.  The others are for a limit only. */
	static const char for_counters[] = "cpuset cpu io memory pids";
	char available[SYSTEM_FILE_SMALL], enabled[SYSTEM_FILE_SMALL], *rest = available;
	if (!cgroup_tree_read(dir_fd, "cgroup.controllers", available) ||
	    !cgroup_tree_read(dir_fd, "cgroup.subtree_control", enabled))
		return 0; /* what is needed fails later, by its file */
	/*
	 * Only the root of all cgroups may contain processes beside children with controllers.  Any
	 * other would become a threaded domain by some controllers, and its children would take no
	 * process: cgroups(7), "Thread mode".
	 */
	pid_t pid;
	bool is_busy = faccessat(dir_fd, "cgroup.type", F_OK, 0) == 0 &&
		       cgroup_tree_own_pids(dir_fd, &pid, 1) > 0;
	for (const char *name; (name = strsep(&rest, " \n")) != NULL;) {
		const struct resource_write *user = resource_first_limit(writes, name);
		if (*name == '\0' || cgroup_text_has_word(enabled, name) ||
		    (!user && (is_busy || !cgroup_text_has_word(for_counters, name))))
			continue;
		if (is_busy) {
			cj_refuse_as(err, EBUSY,
				     "linux.resources.%s: '%.200s' contains processes, so that "
				     "its children get no controller '%s'",
				     user->field, path, user->controller);
			return cj_hint(err, "see cgroups(7), no internal processes; choose another "
					    "cgroupsPath, or start cejail-oci in a unit with "
					    "Delegate=yes");
		}
		if (enable_one(dir_fd, path, name, user, err) < 0)
			return -err->code;
	}
	return 0;
}

static int apply(int dir_fd, const struct resource_write *w, struct cj_error *err)
{
	const char *file = w->file, *value = w->value;
	int rc = system_file_write(dir_fd, file, value);
	if (rc == -ENOENT && w->other_file) {
		file = w->other_file;
		value = w->other_value;
		rc = system_file_write(dir_fd, file, value);
	}
	/* Without swap accounting there is no file.  On a host without swap nothing is lost by
	 * that. */
	bool is_swap = strcmp(w->file, "memory.swap.max") == 0;
	if (rc == 0 || (rc == -ENOENT && (w->is_optional || (is_swap && !cgroup_host_has_swap()))))
		return 0;
	if (rc != -ENOENT)
		return cj_fail(err, -rc, "linux.resources.%s: write '%.100s' to '%s'", w->field,
			       value, file);
	cj_refuse_as(err, ENOENT, "linux.resources.%s can't be enforced: the cgroup has no '%s'",
		     w->field, file);
	return resource_hint(w->controller, err);
}

int resource_apply(int dir_fd, const struct resource_writes *writes, struct cj_error *err)
{
	for (size_t i = 0; i < writes->count; i++)
		if (apply(dir_fd, &writes->items[i], err) < 0)
			return -err->code;
	return 0;
}

int resource_check_usage(int dir_fd, const struct oci_resources *resources, struct cj_error *err)
{
	uint64_t used;
	const struct oci_memory *m = &resources->memory;
	if (!m->check_before_update || !m->limit.is_set || m->limit.value <= 0)
		return 0;
	if (!cgroup_read_number(dir_fd, "memory.current", &used) ||
	    used <= (uint64_t)m->limit.value)
		return 0;
	return cj_reject_as(err, EBUSY,
			    "linux.resources.memory.limit: %" PRId64 " is below the %" PRIu64
			    " bytes in use, and checkBeforeUpdate is set",
			    m->limit.value, used);
}
