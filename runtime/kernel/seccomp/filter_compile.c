/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a policy's rules to one decision per call.  libseccomp only translates names to
 * numbers.
 *
 * libseccomp's own compiler is not used for two reasons.  Beside a rule without conditions it drops
 * rules with conditions without a warning, so "ioctl is allowed" would hide "TIOCSTI is refused".
 * It has no ranges of calls, which makes its program twice as long.
 *
 * Order of strictness: kill, trap, refuse (errno), log, allow; as the kernel orders the answers of
 * several filters: seccomp(2).
 */
#include "runtime/kernel/seccomp/filter.h"

#include <assert.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/syscall.h>

#include "runtime/kernel/seccomp/filter_parts.h"

/* A rule, for one of the calls that it names. */
struct filter_use {
	int nr;
	size_t order;
	const struct policy_rule *rule;
};

struct compiler {
	const struct policy *policy;
	struct arena scratch; /* freed after the compilation */
	struct arena *arena;  /* of the result */
	struct filter *filter;
	struct filter_use
	    *uses; /* by call; of one call the strictest first, then in the file's order */
	size_t nuses;
	struct filter_plan *plan;
};

static int no_memory(struct cj_error *err)
{
	return cj_fail(err, ENOMEM, "compile a seccomp profile");
}

static int add_note(struct compiler *c, const char *text, struct cj_error *err)
{
	const char *note = arena_printf(c->arena, "%s: %s", c->policy->path, text);
	if (strings_add(&c->filter->notes, c->arena, note) < 0)
		return no_memory(err);
	return 0;
}

static bool lets_through(enum policy_action action)
{
	return action == POLICY_ALLOW || action == POLICY_LOG;
}

/*
 * If the default refuses, an unknown name changes nothing and is only a note.  If the default
 * allows, refusing an unknown name would have no effect, so the file is rejected.
 */
static int unknown_name(struct compiler *c, const struct policy_rule *rule, const char *name,
			struct cj_error *err)
{
	const struct policy *p = c->policy;
	if (lets_through(p->default_action) && !lets_through(rule->action))
		return cj_reject(err,
				 "seccomp file '%s' refuses '%s', a system call this cejail does "
				 "not know, and lets pass what it does not list",
				 p->path, name);
	const char *text = arena_printf(&c->scratch, "unknown system call '%s'", name);
	return text ? add_note(c, text, err) : no_memory(err);
}

static int add_use(struct compiler *c, const struct policy_rule *rule, const char *name,
		   struct cj_error *err)
{
	int nr = call_newer(name);
	if (nr < 0)
		nr = seccomp_syscall_resolve_name(name);
	if (nr == __NR_SCMP_ERROR)
		return unknown_name(c, rule, name, err);
	assert(nr < CALLS_MAX);
	if (nr >= 0) { /* else another architecture has it */
		c->uses[c->nuses] = (struct filter_use){ nr, c->nuses, rule };
		c->nuses++;
	}
	return 0;
}

static int compare_uses(const void *left, const void *right)
{
	const struct filter_use *l = left, *r = right;
	if (l->nr != r->nr)
		return l->nr < r->nr ? -1 : 1;
	if (l->rule->action != r->rule->action)
		return l->rule->action > r->rule->action ? -1 : 1;
	return l->order < r->order ? -1 : 1;
}

static int collect_uses(struct compiler *c, struct cj_error *err)
{
	size_t total = 0;
	for (size_t i = 0; i < c->policy->nrules; i++)
		total += c->policy->rules[i].names.count;
	c->uses = arena_array(&c->scratch, total, sizeof(*c->uses));
	if (!c->uses)
		return no_memory(err);

	for (size_t i = 0; i < c->policy->nrules; i++) {
		const struct policy_rule *rule = &c->policy->rules[i];
		for (size_t k = 0; k < rule->names.count; k++) {
			if (add_use(c, rule, rule->names.items[k], err) < 0)
				return -err->code;
		}
	}
	qsort(c->uses, c->nuses, sizeof(*c->uses), compare_uses);
	return 0;
}

/*
 * A notified call has one errno for all refusals that are notified: that of the first rule that
 * refuses it, else that of the default.  The kernel itself refuses with any other.
 */
static int errno_of(const struct compiler *c, int nr)
{
	for (size_t i = 0; i < c->nuses; i++) {
		const struct filter_use *use = &c->uses[i];
		if (call_notified_name(nr) && use->nr == nr && use->rule->action == POLICY_ERRNO)
			return use->rule->errno_value;
	}
	return c->policy->default_errno;
}

/*
 * The kernel also refuses with 0, which a program takes for success: as an answer to a notification
 * that would mean that the call goes on.
 */
static uint32_t answer(const struct compiler *c, int nr, enum policy_action action, int errno_value)
{
	static const uint32_t answers[] = {
		[POLICY_ALLOW] = SECCOMP_RET_ALLOW,
		[POLICY_LOG] = SECCOMP_RET_LOG,
		[POLICY_ERRNO] = SECCOMP_RET_ERRNO,
		[POLICY_TRAP] = SECCOMP_RET_TRAP,
		[POLICY_KILL_PROCESS] = SECCOMP_RET_KILL_PROCESS,
	};
	if (action != POLICY_ERRNO)
		return answers[action];
	bool is_notified = call_notified_name(nr) && errno_value != 0 &&
			   errno_of(c, nr) == errno_value;
	return (is_notified ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO) | (uint32_t)errno_value;
}

/*
 * The kernel reads only 32 bits of some arguments.  A program must not avoid a refusal of a number
 * by setting a higher bit (CVE-2019-10063): the comparison ignores those bits.
 */
static const struct policy_arg *narrow(struct compiler *c, int nr, const struct policy_rule *rule)
{
	if (lets_through(rule->action))
		return rule->args;
	struct policy_arg *args = arena_array(&c->scratch, rule->nargs, sizeof(*args));
	if (!args)
		return NULL;
	for (size_t i = 0; i < rule->nargs; i++) {
		const struct policy_arg *arg = &rule->args[i];
		bool is_dodged = arg->op == POLICY_EQ && arg->value <= UINT32_MAX &&
				 call_arg_is_int(nr, arg->index);
		args[i] = *arg;
		if (is_dodged)
			args[i] = (struct policy_arg){ arg->index, POLICY_MASKED_EQ, UINT32_MAX,
						       arg->value };
	}
	return args;
}

/*
 * A default of ENOSYS means that the kernel does not know the call.  A call that the policy names
 * with some of its options is known: its other options get the kernel's errno for an unknown
 * option.
 */
static uint32_t default_answer(const struct compiler *c, int nr, size_t nrules)
{
	const struct policy *p = c->policy;
	bool has_options = nrules > 0 && p->default_errno == ENOSYS && call_option_errno(nr) != 0;
	return answer(c, nr, p->default_action,
		      has_options ? call_option_errno(nr) : errno_of(c, nr));
}

/* Behind the strictest rule without conditions, conditions have no effect. */
static int decide_call(struct compiler *c, int nr, const struct filter_use *uses, size_t n,
		       struct cj_error *err)
{
	struct filter_call *call = &c->plan->calls[nr];
	struct filter_branch *branches = arena_array(&c->scratch, n, sizeof(*branches));
	if (!branches)
		return no_memory(err);
	call->branches = branches;
	call->otherwise = default_answer(c, nr, n);
	for (size_t i = 0; i < n; i++) {
		const struct policy_rule *rule = uses[i].rule;
		uint32_t ret = answer(c, nr, rule->action, rule->errno_value);
		if (rule->nargs == 0) {
			call->otherwise = ret;
			break;
		}
		const struct policy_arg *args = narrow(c, nr, rule);
		if (!args)
			return no_memory(err);
		branches[call->nbranches++] = (struct filter_branch){ args, rule->nargs, ret };
	}
	return 0;
}

static int decide_calls(struct compiler *c, struct cj_error *err)
{
	const struct filter_use *use = c->uses, *end = c->uses + c->nuses;
	for (int nr = 0; nr < CALLS_MAX; nr++) {
		size_t n = 0;
		while (use + n < end && use[n].nr == nr)
			n++;
		if (decide_call(c, nr, use, n, err) < 0)
			return -err->code;
		use += n;
	}
	c->plan->otherwise = answer(c, -1, c->policy->default_action, c->policy->default_errno);
	return 0;
}

/*
 * Refuses a filter of the payload's own with a listener.  It would receive our notified calls,
 * because the kernel asks the newest filter's listener, and could allow them with
 * SECCOMP_USER_NOTIF_FLAG_CONTINUE.  The kernel refuses a second listener only while ours is open;
 * this refusal, with the kernel's errno, is permanent.
 */
static int close_listener(struct compiler *c, struct cj_error *err)
{
	static const struct policy_arg asks_for_listener[] = {
		{ 1, POLICY_MASKED_EQ, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		  SECCOMP_FILTER_FLAG_NEW_LISTENER },
	};
	struct filter_call *call = &c->plan->calls[SYS_seccomp];
	struct filter_branch *branches =
	    arena_array(&c->scratch, call->nbranches + 1, sizeof(*branches));
	if (!branches)
		return no_memory(err);

	branches[0] =
	    (struct filter_branch){ asks_for_listener, 1, SECCOMP_RET_ERRNO | (uint32_t)EBUSY };
	memcpy(branches + 1, call->branches, call->nbranches * sizeof(*branches));
	call->branches = branches;
	call->nbranches++;
	return 0;
}

/* A filter can't read clone3(2)'s flags, behind a pointer.  Only ENOSYS makes libc use clone(2). */
static int close_clone3(struct compiler *c, struct cj_error *err)
{
	c->plan->calls[SYS_clone3] =
	    (struct filter_call){ .otherwise = SECCOMP_RET_ERRNO | (uint32_t)ENOSYS };
	for (size_t i = 0; i < c->nuses; i++) {
		if (c->uses[i].nr == SYS_clone3 && lets_through(c->uses[i].rule->action))
			return add_note(c, "clone3 stays refused: a filter can't see its flags",
					err);
	}
	return 0;
}

/* A condition of the policy and a row's region. */
enum relation { OUTSIDE, OVERLAPS, INSIDE };

static enum relation relate_arg(const struct policy_arg *arg, const struct call_bounded *row)
{
	if (arg->index != row->index || row->is_nonzero)
		return OVERLAPS;
	if (arg->op == POLICY_EQ)
		return (uint32_t)arg->value == row->value ? INSIDE : OUTSIDE;
	if (arg->op != POLICY_MASKED_EQ)
		return OVERLAPS; /* for some high half it may hold */
	uint32_t mask = (uint32_t)arg->value;
	if ((row->value & mask) != (uint32_t)arg->value_two)
		return OUTSIDE;
	return mask == UINT32_MAX ? INSIDE : OVERLAPS;
}

static enum relation relate(const struct filter_branch *branch, const struct call_bounded *row)
{
	enum relation found = OVERLAPS;
	if (row->is_whole)
		return INSIDE;
	for (size_t i = 0; i < branch->nargs; i++) {
		enum relation one = relate_arg(&branch->args[i], row);
		if (one == OUTSIDE)
			return OUTSIDE;
		found = one == INSIDE ? INSIDE : found;
	}
	return found;
}

static bool is_allowed(uint32_t ret)
{
	return ret == SECCOMP_RET_ALLOW || ret == SECCOMP_RET_LOG;
}

static uint32_t mark(uint32_t ret, const struct call_bounded *row)
{
	return SECCOMP_RET_USER_NOTIF | FILTER_MARK | row->bound |
	       (ret == SECCOMP_RET_LOG ? FILTER_MARK_LOG : 0);
}

/* The part of `from` that is in the row's region, marked. */
static int restrict_branch(const struct filter_branch *from, const struct call_bounded *row,
			   struct arena *a, struct filter_branch *out, struct cj_error *err)
{
	struct policy_arg *args = arena_array(a, from->nargs + 1, sizeof(*args));
	if (!args)
		return no_memory(err);
	args[0] = (struct policy_arg){ row->index, POLICY_MASKED_EQ, UINT32_MAX, row->value };
	if (row->is_nonzero)
		args[0] = (struct policy_arg){ row->index, POLICY_NE, 0, 0 };
	for (size_t i = 0; i < from->nargs; i++)
		args[i + 1] = from->args[i];
	*out = (struct filter_branch){ args, from->nargs + 1, mark(from->ret, row) };
	return 0;
}

/*
 * Each row is a region of a call's arguments: one argument's low half has the row's value, whatever
 * its high half, which the kernel ignores; or the argument is not 0; or every call.  Inside the
 * region "allow" becomes "notify the supervisor", with a mark.  All other decisions stay as they
 * are.  A branch that lies partly in the region is divided: first that part, then the rest.
 */
static int bound_call(struct compiler *c, const struct call_bounded *row, struct cj_error *err)
{
	struct filter_call *call = &c->plan->calls[row->nr];
	const struct filter_branch last = { .ret = call->otherwise };
	size_t count = 0;
	struct filter_branch *all =
	    arena_array(&c->scratch, 2 * (call->nbranches + 1), sizeof(*all));
	if (!all)
		return no_memory(err);
	for (size_t i = 0; i <= call->nbranches; i++) {
		const struct filter_branch *from = i < call->nbranches ? &call->branches[i] : &last;
		enum relation relation = is_allowed(from->ret) ? relate(from, row) : OUTSIDE;
		if (relation == OVERLAPS &&
		    restrict_branch(from, row, &c->scratch, &all[count++], err) < 0)
			return -err->code;
		all[count] = *from;
		if (relation == INSIDE)
			all[count].ret = mark(from->ret, row);
		count++;
	}
	call->branches = all;
	call->nbranches = count - 1;
	call->otherwise = all[count - 1].ret;
	return 0;
}

/* A ring opens sockets, and no filter sees it. */
static bool has_rings(const struct filter_plan *plan)
{
	const struct filter_call *call = &plan->calls[SYS_io_uring_setup];
	bool has = is_allowed(call->otherwise);
	for (size_t i = 0; i < call->nbranches; i++)
		has |= is_allowed(call->branches[i].ret);
	return has;
}

static int check_needed(const struct compiler *c, struct cj_error *err)
{
	for (size_t i = 0; i < calls_needed_count; i++) {
		const struct call_needed *need = &calls_needed[i];
		struct seccomp_data data = { .nr = need->nr, .arch = ARCH_NATIVE };
		memcpy(data.args, need->args, sizeof(data.args));
		if (!is_allowed(filter_run(c->filter->insns, c->filter->ninsns, &data)))
			return cj_reject(err,
					 "seccomp file '%s' does not allow '%s', which cejail's "
					 "init needs",
					 c->policy->path, need->name);
	}
	return 0;
}

static int compile(struct compiler *c, struct cj_error *err)
{
	struct filter *f = c->filter;
	c->plan = arena_alloc(&c->scratch, sizeof(*c->plan));
	if (!c->plan)
		return no_memory(err);
	if (collect_uses(c, err) < 0 || decide_calls(c, err) < 0 || close_listener(c, err) < 0 ||
	    close_clone3(c, err) < 0)
		return -err->code;
	for (size_t i = 0; i < calls_bounded_count; i++)
		if (bound_call(c, &calls_bounded[i], err) < 0)
			return -err->code;
	f->has_rings = has_rings(c->plan);
	if (filter_emit(c->plan, c->arena, &f->insns, &f->ninsns, err) < 0)
		return cj_wrap(err, "seccomp file '%s'", c->policy->path);
	return check_needed(c, err);
}

int filter_compile(const struct policy *policy, struct arena *a, struct filter *out,
		   struct cj_error *err)
{
	struct filter filter = { 0 };
	struct compiler c = { .policy = policy, .arena = a, .filter = &filter };
	int rc = compile(&c, err);
	arena_fini(&c.scratch);
	if (rc == 0)
		*out = filter;
	return rc;
}
