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
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "runtime/kernel/seccomp/filter_plan.h"
#include "runtime/kernel/seccomp/filter_calls.h"

/* A rule, for one of the calls that it names; those of one call are in the file's order. */
struct use {
	int nr;
	size_t order;
	const struct policy_rule *rule;
};

struct compiler {
	const struct policy *policy;
	struct arena scratch; /* freed after the compilation */
	struct arena *arena;  /* of the result */
	struct filter *filter;
	struct use *uses;
	size_t nuses;
	struct filter_plan *plan;
};

static int add_note(struct compiler *c, const char *text, struct cj_error *err)
{
	const char *note = arena_printf(c->arena, "%s: %s", c->policy->path, text);
	if (!note || strings_add(&c->filter->notes, c->arena, note) < 0)
		return cj_fail(err, ENOMEM, "compile a seccomp profile");
	return 0;
}

static int strictness(enum policy_action action)
{
	static const int ranks[POLICY_ACTION_COUNT] = {
		[POLICY_ALLOW] = 0,  [POLICY_LOG] = 1,  [POLICY_ERRNO] = 2,
		[POLICY_NOTIFY] = 2, [POLICY_TRAP] = 3, [POLICY_KILL_PROCESS] = 4,
	};
	return ranks[action];
}

static bool lets_through(enum policy_action action)
{
	return action == POLICY_ALLOW || action == POLICY_LOG;
}

static bool refuses(enum policy_action action)
{
	return action == POLICY_ERRNO || action == POLICY_NOTIFY;
}

/* --- names --------------------------------------------------------------------- */

/* False: no architecture has such a call.  *out_nr < 0: another architecture has it. */
static bool resolve(const char *name, int *out_nr)
{
	*out_nr = call_newer(name);
	if (*out_nr >= 0)
		return true;
	*out_nr = seccomp_syscall_resolve_name(name);
	return *out_nr != __NR_SCMP_ERROR;
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
	return text ? add_note(c, text, err) : cj_fail(err, ENOMEM, "compile a seccomp profile");
}

static int add_use(struct compiler *c, const struct policy_rule *rule, const char *name,
		   struct cj_error *err)
{
	int nr;
	if (!resolve(name, &nr))
		return unknown_name(c, rule, name, err);
	assert(nr < CALLS_MAX);
	if (nr >= 0) {
		c->uses[c->nuses] = (struct use){ nr, c->nuses, rule };
		c->nuses++;
	}
	return 0;
}

static int compare_uses(const void *left, const void *right)
{
	const struct use *l = left, *r = right;
	if (l->nr != r->nr)
		return l->nr < r->nr ? -1 : 1;
	return l->order < r->order ? -1 : 1;
}

static int collect_uses(struct compiler *c, struct cj_error *err)
{
	size_t total = 0;
	for (size_t i = 0; i < c->policy->nrules; i++)
		total += c->policy->rules[i].names.count;
	c->uses = arena_array(&c->scratch, total, sizeof(*c->uses));
	if (!c->uses)
		return cj_fail(err, ENOMEM, "compile a seccomp profile");

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

/* --- one call ------------------------------------------------------------------- */

/* A notified call has one errno for all refusals: that of the first rule that refuses it, else that
 * of the default. */
static int errno_of(const struct compiler *c, int nr)
{
	for (size_t i = 0; i < c->nuses; i++) {
		const struct use *use = &c->uses[i];
		if (call_notified_name(nr) && use->nr == nr && refuses(use->rule->action))
			return use->rule->errno_value;
	}
	return c->policy->default_errno;
}

/*
 * The supervisor knows one errno for each call; the kernel itself refuses with any other.  It also
 * refuses with 0, which a program takes for success: as an answer to a notification that would mean
 * that the call goes on.
 */
static uint32_t refusal(const struct compiler *c, int nr, int errno_value)
{
	if (call_notified_name(nr) && errno_value != 0 && errno_of(c, nr) == errno_value)
		return SECCOMP_RET_USER_NOTIF;
	return SECCOMP_RET_ERRNO | (uint32_t)errno_value;
}

static uint32_t answer(const struct compiler *c, int nr, enum policy_action action, int errno_value)
{
	switch (action) {
	case POLICY_ALLOW:
		return SECCOMP_RET_ALLOW;
	case POLICY_LOG:
		return SECCOMP_RET_LOG;
	case POLICY_TRAP:
		return SECCOMP_RET_TRAP;
	case POLICY_KILL_PROCESS:
		return SECCOMP_RET_KILL_PROCESS;
	case POLICY_ERRNO:
	case POLICY_NOTIFY:
		return refusal(c, nr, errno_value);
	case POLICY_ACTION_COUNT:
		break;
	}
	assert(!"an action of enum policy_action");
	return SECCOMP_RET_KILL_PROCESS;
}

/* The strictest rule without conditions, the first of its kind; NULL: none. */
static const struct use *unconditional(const struct use *uses, size_t n)
{
	const struct use *found = NULL;
	for (size_t i = 0; i < n; i++) {
		if (uses[i].rule->nargs == 0 &&
		    (!found || strictness(uses[i].rule->action) > strictness(found->rule->action)))
			found = &uses[i];
	}
	return found;
}

/* Is this rule stricter than `base`, so that its conditions matter? */
static bool outranks(const struct use *use, const struct use *base)
{
	if (!base)
		return true;
	int rank = strictness(use->rule->action), floor = strictness(base->rule->action);
	return rank > floor || (rank == floor && use->order < base->order);
}

/* Behind all that are as strict or stricter. */
static void insert_branch(struct filter_branch *branches, int *ranks, size_t n,
			  struct filter_branch branch, int rank)
{
	size_t at = n;
	for (; at > 0 && ranks[at - 1] < rank; at--) {
		branches[at] = branches[at - 1];
		ranks[at] = ranks[at - 1];
	}
	branches[at] = branch;
	ranks[at] = rank;
}

/*
 * The kernel reads only 32 bits of some arguments.  A program must not avoid a refusal of a number
 * by setting a higher bit (CVE-2019-10063): the comparison ignores those bits.
 */
static const struct policy_arg *narrow(struct compiler *c, int nr, const struct policy_rule *rule)
{
	if (rule->nargs == 0 || lets_through(rule->action))
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

static int add_branch(struct compiler *c, int nr, const struct policy_rule *rule, int *ranks,
		      struct filter_branch *branches, struct cj_error *err)
{
	struct filter_call *call = &c->plan->calls[nr];
	const struct filter_branch branch = {
		.args = narrow(c, nr, rule),
		.nargs = rule->nargs,
		.ret = answer(c, nr, rule->action, rule->errno_value),
	};
	if (!branch.args)
		return cj_fail(err, ENOMEM, "compile a seccomp profile");
	insert_branch(branches, ranks, call->nbranches++, branch, strictness(rule->action));
	return 0;
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

static int decide_call(struct compiler *c, int nr, const struct use *uses, size_t n,
		       struct cj_error *err)
{
	struct filter_call *call = &c->plan->calls[nr];
	struct filter_branch *branches = arena_array(&c->scratch, n, sizeof(*branches));
	int *ranks = arena_array(&c->scratch, n, sizeof(*ranks));
	if (!branches || !ranks)
		return cj_fail(err, ENOMEM, "compile a seccomp profile");

	const struct use *base = unconditional(uses, n);
	call->branches = branches;
	call->otherwise = base ? answer(c, nr, base->rule->action, base->rule->errno_value)
			       : default_answer(c, nr, n);
	for (size_t i = 0; i < n; i++) {
		const struct policy_rule *rule = uses[i].rule;
		if (rule->nargs > 0 && outranks(&uses[i], base) &&
		    add_branch(c, nr, rule, ranks, branches, err) < 0)
			return -err->code;
	}
	return 0;
}

static size_t count_of_call(const struct use *uses, size_t n, int nr)
{
	size_t count = 0;
	while (count < n && uses[count].nr == nr)
		count++;
	return count;
}

static int decide_calls(struct compiler *c, struct cj_error *err)
{
	size_t at = 0;
	for (int nr = 0; nr < CALLS_MAX; nr++) {
		size_t n = count_of_call(c->uses + at, c->nuses - at, nr);
		if (decide_call(c, nr, c->uses + at, n, err) < 0)
			return -err->code;
		at += n;
	}
	c->plan->otherwise = answer(c, -1, c->policy->default_action, c->policy->default_errno);
	return 0;
}

/* --- rules that no policy can change --------------------------------------------- */

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
		return cj_fail(err, ENOMEM, "compile a seccomp profile");

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

/* filter_close_uncounted() */
static const int uncounted[] = {
	SYS_memfd_create, SYS_shmget, SYS_semget, /* by default 32,000 sets of 32,000 */
	SYS_msgget,                               /* and 32,000 queues of 16 KiB */
};

/* As the kernel decides between two filters: the lower action, as a signed number.  seccomp(2) */
static uint32_t at_least_refused(uint32_t ret)
{
	const uint32_t refused = SECCOMP_RET_ERRNO | (uint32_t)ENOSYS;
	bool is_weaker = (int32_t)(ret & SECCOMP_RET_ACTION_FULL) > (int32_t)SECCOMP_RET_ERRNO;
	return is_weaker ? refused : ret;
}

static int close_uncounted(struct compiler *c, int nr, struct cj_error *err)
{
	struct filter_call *call = &c->plan->calls[nr];
	struct filter_branch *branches =
	    arena_array(&c->scratch, call->nbranches + 1, sizeof(*branches));
	if (!branches)
		return cj_fail(err, ENOMEM, "compile a seccomp profile");
	for (size_t i = 0; i < call->nbranches; i++) {
		branches[i] = call->branches[i];
		branches[i].ret = at_least_refused(branches[i].ret);
	}
	call->branches = branches;
	call->otherwise = at_least_refused(call->otherwise);
	return 0;
}

static int check_needed(const struct compiler *c, struct cj_error *err)
{
	for (size_t i = 0; i < calls_needed_count; i++) {
		const struct call_needed *need = &calls_needed[i];
		uint32_t ret = filter_plan_answer(c->plan, need->nr, need->args);
		if (ret != SECCOMP_RET_ALLOW && ret != SECCOMP_RET_LOG)
			return cj_reject(err,
					 "seccomp file '%s' does not allow '%s', which cejail's "
					 "init needs",
					 c->policy->path, need->name);
	}
	return 0;
}

/* --- the notified calls ----------------------------------------------------------- */

static bool is_notified(const struct filter_call *call)
{
	if (call->otherwise == SECCOMP_RET_USER_NOTIF)
		return true;
	for (size_t i = 0; i < call->nbranches; i++) {
		if (call->branches[i].ret == SECCOMP_RET_USER_NOTIF)
			return true;
	}
	return false;
}

static int collect_tells(struct compiler *c, struct cj_error *err)
{
	struct filter_notified *notified =
	    arena_array(c->arena, calls_notified_count, sizeof(*notified));
	if (!notified)
		return cj_fail(err, ENOMEM, "compile a seccomp profile");
	for (size_t i = 0; i < calls_notified_count; i++) {
		int nr = calls_notified[i].nr;
		if (is_notified(&c->plan->calls[nr]))
			notified[c->filter->nnotified++] =
			    (struct filter_notified){ nr, errno_of(c, nr) };
	}
	c->filter->notified = notified;
	return 0;
}

/* ---------------------------------------------------------------------------------- */

/* The program, and the same with uncounted memory closed. */
static int emit(struct compiler *c, struct cj_error *err)
{
	struct filter *f = c->filter;
	if (filter_emit(c->plan, c->arena, &f->insns, &f->ninsns, err) < 0)
		return cj_wrap(err, "seccomp file '%s'", c->policy->path);
	for (size_t i = 0; i < sizeof(uncounted) / sizeof(uncounted[0]); i++)
		if (close_uncounted(c, uncounted[i], err) < 0)
			return -err->code;
	if (filter_emit(c->plan, c->arena, &f->closed_insns, &f->nclosed, err) < 0)
		return cj_wrap(err, "seccomp file '%s'", c->policy->path);
	return 0;
}

static int compile(struct compiler *c, struct cj_error *err)
{
	c->plan = arena_alloc(&c->scratch, sizeof(*c->plan));
	if (!c->plan)
		return cj_fail(err, ENOMEM, "compile a seccomp profile");
	if (collect_uses(c, err) < 0 || decide_calls(c, err) < 0)
		return -err->code;
	if (close_listener(c, err) < 0 || close_clone3(c, err) < 0)
		return -err->code;
	if (check_needed(c, err) < 0 || collect_tells(c, err) < 0)
		return -err->code;
	if (filter_bound(c->plan, &c->scratch, &c->filter->bounds) < 0)
		return cj_fail(err, ENOMEM, "compile a seccomp profile");
	c->filter->has_rings = filter_bound_is_bypassed(c->plan);
	return emit(c, err);
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
