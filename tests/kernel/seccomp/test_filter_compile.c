/* SPDX-License-Identifier: Apache-2.0 */
/* Policies to programs: what a program answers against the rules it came from. */
#include "runtime/kernel/seccomp/filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cmocka.h>
#include <linux/sched.h>

#include "runtime/kernel/seccomp/filter_parts.h"
#include "tests/kernel/seccomp/bpf.h"
#include "tests/kernel/seccomp/policy_text.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define ALLOW           SECCOMP_RET_ALLOW
#define NOTIFIED(code)  (SECCOMP_RET_USER_NOTIF | (uint32_t)(code))
#define ERRNO(code)     (SECCOMP_RET_ERRNO | (uint32_t)(code))

/* All that init needs, for policies whose subject is something else. */
#define NEEDS                                                                                      \
	"{\"action\":\"SCMP_ACT_ALLOW\",\"names\":[\"read\",\"pread64\",\"write\",\"close\","      \
	"\"openat\",\"mkdirat\",\"symlinkat\",\"fchmod\",\"fstat\",\"newfstatat\",\"sendmsg\","    \
	"\"recvmsg\",\"setsockopt\",\"clone\",\"execve\",\"setsid\",\"ioctl\",\"close_range\","    \
	"\"chdir\",\"rt_sigprocmask\",\"wait4\",\"getrusage\",\"exit_group\",\"brk\",\"mmap\","    \
	"\"munmap\",\"vfork\",\"dup2\",\"dup3\"]}"

static struct filter compile_policy(const struct policy *policy)
{
	struct cj_error err = { 0 };
	struct filter f = { 0 };
	if (filter_compile(policy, &arena, &f, &err) < 0)
		fail_msg("%s", err.msg);
	return f;
}

/* The policy "default, NEEDS, more" compiled. */
static struct filter compile(const char *defaults, const char *more)
{
	char text[8192];
	(void)snprintf(text, sizeof(text), "{%s,\"syscalls\":[" NEEDS "%s%s]}", defaults,
		       *more ? "," : "", more);
	return compile_policy(parse(text));
}

#define REFUSING "\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":38"
#define ALLOWING "\"defaultAction\":\"SCMP_ACT_ALLOW\""

static uint32_t ask(const struct filter *f, int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	return bpf_answer(f, nr, (const uint64_t[6]){ a0, a1, a2 });
}

static enum call_bound bound_of(const struct filter *f, int nr, uint64_t a0, uint64_t a1,
				uint64_t a2)
{
	return filter_bound_of(ask(f, nr, a0, a1, a2));
}

/* A bit for each bound that the program has. */
static unsigned bounds_of(const struct filter *f)
{
	unsigned bounds = 0;
	for (size_t i = 0; i < f->ninsns; i++)
		if (f->insns[i].code == (BPF_RET | BPF_K) &&
		    filter_bound_of(f->insns[i].k) != CALL_BOUND_COUNT)
			bounds |= 1u << filter_bound_of(f->insns[i].k);
	return bounds;
}

/* --- any policy against its own rules --------------------------------------------- */

static int rank_of(enum policy_action action)
{
	switch (action) {
	case POLICY_KILL_PROCESS:
		return 4;
	case POLICY_TRAP:
		return 3;
	case POLICY_ERRNO:
		return 2;
	case POLICY_LOG:
		return 1;
	default:
		return 0;
	}
}

static bool arg_holds(const struct policy_arg *arg, const uint64_t args[6])
{
	uint64_t v = args[arg->index], w = arg->value;
	bool answers[] = {
		[POLICY_NE] = v != w,
		[POLICY_LT] = v<w, [POLICY_LE] = v <= w, [POLICY_EQ] = v == w, [POLICY_GE] = v >= w,
				[POLICY_GT] = v>
		    w,
		[POLICY_MASKED_EQ] = (v & w) == arg->value_two,
	};
	return answers[arg->op];
}

/* A refused number with more bits than the kernel will look at. */
static bool is_dodge(const struct policy_rule *rule, int nr, const struct policy_arg *arg,
		     const uint64_t args[6])
{
	return rank_of(rule->action) > 1 && arg->op == POLICY_EQ && arg->value <= UINT32_MAX &&
	       call_arg_is_int(nr, arg->index) && (uint32_t)args[arg->index] == arg->value;
}

static bool names_call(const struct policy_rule *rule, const char *name)
{
	for (size_t k = 0; k < rule->names.count; k++)
		if (strcmp(rule->names.items[k], name) == 0)
			return true;
	return false;
}

/* The errno of notified refusals. */
static int told_of(const struct policy *p, const char *name)
{
	int told = p->default_errno;
	for (size_t i = p->nrules; i-- > 0;)
		if (names_call(&p->rules[i], name) && rank_of(p->rules[i].action) == 2)
			told = p->rules[i].errno_value;
	return told;
}

static uint32_t refusal(const struct policy *p, int nr, const char *name, int code)
{
	return call_notified_name(nr) && code == told_of(p, name) ? NOTIFIED(code) : ERRNO(code);
}

/* The meaning of a policy, straight from its rules; said twice so that one can be wrong. */
static uint32_t meaning(const struct policy *p, int nr, const char *name, const uint64_t args[6])
{
	enum policy_action action = p->default_action;
	int code = p->default_errno, best = -1;
	bool is_named = false;
	for (size_t i = 0; i < p->nrules; i++) {
		const struct policy_rule *rule = &p->rules[i];
		bool matches = names_call(rule, name);
		is_named = is_named || matches;
		for (size_t k = 0; k < rule->nargs; k++)
			matches = matches && (arg_holds(&rule->args[k], args) ||
					      is_dodge(rule, nr, &rule->args[k], args));
		if (matches && rank_of(rule->action) > best) {
			best = rank_of(rule->action);
			action = rule->action;
			code = rule->errno_value;
		}
	}
	switch (action) {
	case POLICY_ALLOW:
		return SECCOMP_RET_ALLOW;
	case POLICY_LOG:
		return SECCOMP_RET_LOG;
	case POLICY_TRAP:
		return SECCOMP_RET_TRAP;
	case POLICY_KILL_PROCESS:
		return SECCOMP_RET_KILL_PROCESS;
	default:
		if (best < 0 && is_named && call_option_errno(nr) != 0)
			return ERRNO(
			    call_option_errno(nr)); /* no subject with options is notified */
		return best < 0 && call_notified_name(nr) ? refusal(p, nr, name, told_of(p, name))
							  : refusal(p, nr, name, code);
	}
}

/* Calls to try conditions on: two of them are notified when refused. */
static const struct {
	const char *name;
	int nr;
} subjects[] = {
	{ "socket", SYS_socket },
	{ "personality", SYS_personality },
	{ "getpid", SYS_getpid },
	{ "fcntl", SYS_fcntl },
};

static uint64_t some_value(void)
{
	static const uint64_t corners[] = { 0,           1,           2,
					    3,           10, /* AF_INET6 */
					    16,              /* AF_NETLINK */
					    0x10000000a, 0x100000010, 0xf,
					    0x7fffffff,  0x80000000,  0xffffffff,
					    0x100000000, 0x100000001, 0xffffffff00000000,
					    UINT64_MAX };
	uint64_t value = corners[(size_t)rand() % COUNT_OF(corners)];
	return rand() % 3 ? value : value + (uint64_t)(rand() % 3) - 1;
}

static struct policy_arg some_arg(unsigned index)
{
	struct policy_arg arg = { .index = index, .op = (enum policy_op)(rand() % 7) };
	arg.value = some_value();
	if (arg.op == POLICY_MASKED_EQ) {
		if (rand() % 3 == 0)
			arg.value = 1ULL << (rand() % 64);
		if (rand() % 3 == 0)
			arg.value = UINT32_MAX;
		arg.value_two = some_value() & arg.value;
	}
	return arg;
}

static void add_some_rule(struct policy_rule *rule)
{
	static const enum policy_action actions[] = { POLICY_ALLOW, POLICY_ERRNO,
						      POLICY_ERRNO, POLICY_LOG,
						      POLICY_TRAP,  POLICY_KILL_PROCESS };
	struct policy_arg *args = arena_array(&arena, 3, sizeof(*args));
	assert_non_null(args);
	*rule = (struct policy_rule){
		.action = actions[(size_t)rand() % COUNT_OF(actions)],
		.errno_value = 1 + rand() % 40,
		.args = args,
		.nargs = (size_t)rand() % 8 == 0 ? 0 : 1 + (size_t)rand() % 3,
	};
	for (unsigned i = 0; i < rule->nargs; i++)
		args[i] = some_arg(rule->nargs == 1 ? 0 : i);
	assert_return_code(
	    strings_add(&rule->names, &arena, subjects[(size_t)rand() % COUNT_OF(subjects)].name),
	    errno);
}

static struct policy *some_policy(void)
{
	struct policy *p = arena_alloc(&arena, sizeof(*p));
	size_t n = 1 + (size_t)rand() % 30;
	struct policy_rule *rules = arena_array(&arena, n, sizeof(*rules));
	assert_non_null(p);
	assert_non_null(rules);

	rules[0] = (struct policy_rule){ .action = POLICY_ALLOW };
	for (size_t i = 0; i < calls_needed_count; i++)
		assert_return_code(strings_add(&rules[0].names, &arena, calls_needed[i].name),
				   errno);
	for (size_t i = 1; i < n; i++)
		add_some_rule(&rules[i]);
	*p = (struct policy){
		.path = "random",
		.default_action = rand() % 4 ? POLICY_ERRNO : POLICY_ALLOW,
		.default_errno = 38,
		.rules = rules,
		.nrules = n,
	};
	return p;
}

/* What is allowed and bounded goes to the supervisor, with its bound. */
static uint32_t with_bound(int nr, const uint64_t args[6], uint32_t ret)
{
	uint32_t family = (uint32_t)args[0];
	if (nr != SYS_socket || (ret != SECCOMP_RET_ALLOW && ret != SECCOMP_RET_LOG))
		return ret;
	if (family != AF_NETLINK && family != AF_INET && family != AF_INET6)
		return ret;
	uint32_t bound = family == AF_NETLINK ? CALL_BOUND_NETLINK : CALL_BOUND_NETWORK;
	return NOTIFIED(0x8000 | bound | (ret == SECCOMP_RET_LOG ? 0x4000 : 0));
}

/* The program without its notifications for the network; and as the supervisor runs it. */
static void check_other_runs(const struct filter *f, int nr, const uint64_t args[6], uint32_t said)
{
	struct seccomp_data data = { .nr = nr, .arch = BPF_NATIVE };
	memcpy(data.args, args, sizeof(data.args));
	assert_int_equal(filter_run(f->insns, f->ninsns, &data), bpf_answer(f, nr, args));

	struct sock_filter insns[BPF_MAXINSNS];
	filter_settle(f, insns);
	bool is_netlink = nr == SYS_socket && (uint32_t)args[0] == AF_NETLINK;
	assert_int_equal(bpf_run(insns, f->ninsns, &data),
			 is_netlink ? with_bound(nr, args, said) : said);
}

static void a_program_answers_as_its_rules_say(void **state)
{
	(void)state;
	srand(20261120);
	for (int round = 0; round < 400; round++) {
		const struct policy *p = some_policy();
		struct filter f = compile_policy(p);
		for (int i = 0; i < 400; i++) {
			size_t s = (size_t)rand() % COUNT_OF(subjects);
			uint64_t args[6] = { some_value(), some_value(), some_value() };
			uint32_t said = meaning(p, subjects[s].nr, subjects[s].name, args);
			uint32_t want = with_bound(subjects[s].nr, args, said);
			uint32_t got = bpf_answer(&f, subjects[s].nr, args);
			if (got != want)
				fail_msg("round %d: %s(%llx, %llx, %llx): %08x instead of %08x",
					 round, subjects[s].name, (unsigned long long)args[0],
					 (unsigned long long)args[1], (unsigned long long)args[2],
					 got, want);
			check_other_runs(&f, subjects[s].nr, args, said);
		}
		teardown(NULL);
	}
}

/* --- what the compiler promises ---------------------------------------------------------- */

static void a_conditional_refusal_holds_beside_an_allowance(void **state)
{
	(void)state;
	struct filter f =
	    compile(REFUSING, "{\"names\":[\"ioctl\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":1,"
			      "\"args\":[{\"index\":1,\"value\":4294967295,\"valueTwo\":21522,"
			      "\"op\":\"SCMP_CMP_MASKED_EQ\"}]}");
	assert_int_equal(ask(&f, SYS_ioctl, 0, 0x5412, 0), NOTIFIED(EPERM));
	assert_int_equal(ask(&f, SYS_ioctl, 0, 0x5413, 0), ALLOW);
	assert_true(filter_reports(&f));
}

static void high_bits_do_not_dodge_a_refusal(void **state)
{
	(void)state;
	struct filter f = compile(ALLOWING,
				  "{\"names\":[\"ioctl\"],\"action\":\"SCMP_ACT_ERRNO\",\"args\":"
				  "[{\"index\":1,\"value\":21522,\"op\":\"SCMP_CMP_EQ\"}]}");
	assert_int_equal(ask(&f, SYS_ioctl, 0, 0x5412, 0), NOTIFIED(EPERM));
	assert_int_equal(ask(&f, SYS_ioctl, 0, 0x100005412, 0), NOTIFIED(EPERM));
	assert_int_equal(ask(&f, SYS_ioctl, 0, 0x5413, 0), ALLOW);
}

static void notified_calls_that_the_file_does_not_mention_have_the_default_errno(void **state)
{
	(void)state;
	struct filter f = compile(REFUSING, "");
	assert_int_equal(ask(&f, SYS_mount, 0, 0, 0), NOTIFIED(ENOSYS));
	assert_int_equal(ask(&f, SYS_getppid, 0, 0, 0), ERRNO(ENOSYS));
}

static void a_file_that_allows_by_default_notifies_only_what_it_refuses(void **state)
{
	(void)state;
	struct filter f =
	    compile(ALLOWING, "{\"names\":[\"mount\",\"getppid\"],\"action\":\"SCMP_ACT_ERRNO\","
			      "\"errnoRet\":13}");
	assert_true(filter_reports(&f));
	for (int nr = 0; nr < CALLS_MAX; nr++) {
		uint32_t answer = ask(&f, nr, 0, 0, 0);
		bool is_refusal = (answer & SECCOMP_RET_ACTION_FULL) == NOTIFIED(0) &&
				  filter_bound_of(answer) == CALL_BOUND_COUNT;
		assert_int_equal(is_refusal, nr == SYS_mount);
	}
	assert_int_equal(ask(&f, SYS_mount, 0, 0, 0), NOTIFIED(EACCES));
	assert_int_equal(ask(&f, SYS_getppid, 0, 0, 0), ERRNO(EACCES));
	assert_int_equal(ask(&f, SYS_ptrace, 0, 0, 0), ALLOW);
	assert_int_equal(ask(&f, 471, 0, 0, 0), ALLOW);
	assert_int_equal(ask(&f, SYS_clone3, 0, 0, 0), ERRNO(ENOSYS));
	assert_int_equal(ask(&f, SYS_seccomp, 1, 8, 0), ERRNO(EBUSY));
	assert_int_equal(bound_of(&f, SYS_seccomp, 1, 1, 0), CALL_BOUND_FILTERS);
	assert_int_equal(ask(&f, SYS_seccomp, 3, 0, 0), ALLOW);
}

static void a_refusal_with_errno_0_is_the_kernels_and_never_goes_on(void **state)
{
	(void)state;
	struct filter f = compile(ALLOWING, "{\"names\":[\"mount\",\"getppid\"],"
					    "\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":0}");
	assert_int_equal(ask(&f, SYS_mount, 0, 0, 0), ERRNO(0));
	assert_int_equal(ask(&f, SYS_getppid, 0, 0, 0), ERRNO(0));
	f = compile("\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":0", "");
	assert_int_equal(ask(&f, SYS_mount, 0, 0, 0), ERRNO(0));
}

/* --- bounded calls -------------------------------------------------------------------- */

static void bounded_calls_that_a_file_allows_are_sent_to_the_supervisor(void **state)
{
	(void)state;
	struct filter f = compile(ALLOWING, "");
	assert_false(filter_reports(&f));
	assert_int_equal(bounds_of(&f), (1u << CALL_BOUND_COUNT) - 1);
	assert_int_equal(bound_of(&f, SYS_seccomp, 1, 0, 0), CALL_BOUND_FILTERS);
	assert_int_equal(bound_of(&f, SYS_seccomp, 1ULL << 32 | 1, 0, 0), CALL_BOUND_FILTERS);
	assert_int_equal(ask(&f, SYS_seccomp, 0, 0, 0), ALLOW);
	assert_int_equal(bound_of(&f, SYS_prctl, 22, 2, 0), CALL_BOUND_FILTERS);
	assert_int_equal(ask(&f, SYS_prctl, 15, 0, 0), ALLOW);
	assert_int_equal(bound_of(&f, SYS_socket, AF_NETLINK, 3, 0), CALL_BOUND_NETLINK);
	assert_int_equal(bound_of(&f, SYS_socket, AF_NETLINK, 3, 12), CALL_BOUND_NETLINK);
	assert_int_equal(bound_of(&f, SYS_socket, AF_INET, 1, 0), CALL_BOUND_NETWORK);
	assert_int_equal(bound_of(&f, SYS_socket, AF_INET6, 3, 58), CALL_BOUND_NETWORK);
	assert_int_equal(ask(&f, SYS_socket, AF_UNIX, 1, 0), ALLOW);
	assert_int_equal(bound_of(&f, SYS_sched_setaffinity, 7, 0, 0), CALL_BOUND_OTHERS);
	assert_int_equal(ask(&f, SYS_sched_setaffinity, 0, 7, 7), ALLOW);
	assert_int_equal(bound_of(&f, SYS_setpriority, 0, 7, 0), CALL_BOUND_OTHERS);
	assert_int_equal(bound_of(&f, SYS_setpriority, 1ULL << 32 | 2, 0, 0), CALL_BOUND_OTHERS);
	assert_int_equal(ask(&f, SYS_setpriority, 0, 0, 19), ALLOW);
}

static void a_call_of_a_process_names_it_by_the_low_half_of_its_argument(void **state)
{
	(void)state;
	const uint64_t high = 7ULL << 32;
	assert_int_equal(call_names_process(SYS_sched_setparam, (uint64_t[]){ high | 5 }), 5);
	assert_int_equal(call_names_process(SYS_prlimit64, (uint64_t[]){ high }), 0);
	assert_int_equal(call_names_process(SYS_setpriority, (uint64_t[]){ high, high | 5 }), 5);
	assert_int_equal(call_names_process(SYS_setpriority, (uint64_t[]){ 1, 5 }), -1);
	assert_int_equal(call_names_process(SYS_setpriority, (uint64_t[]){ high | 2, 0 }), -1);
	assert_int_equal(call_names_process(SYS_ioprio_set, (uint64_t[]){ high | 1, 5 }), 5);
	assert_int_equal(call_names_process(SYS_ioprio_set, (uint64_t[]){ 3, 5 }), -1);
}

static void a_bounded_call_that_a_file_refuses_is_never_let_through(void **state)
{
	(void)state;
	struct filter f =
	    compile(ALLOWING, "{\"names\":[\"socket\",\"seccomp\"],\"action\":\"SCMP_ACT_ERRNO\"}");
	assert_int_equal(ask(&f, SYS_socket, AF_NETLINK, 3, 0), NOTIFIED(EPERM));
	assert_int_equal(ask(&f, SYS_socket, AF_INET, 1, 0), NOTIFIED(EPERM));
	assert_int_equal(ask(&f, SYS_seccomp, 1, 0, 0), ERRNO(EPERM));
	assert_int_equal(bounds_of(&f), 1u << CALL_BOUND_FILTERS /* prctl */ |
					    1u << CALL_BOUND_OTHERS | 1u << CALL_BOUND_UNCOUNTED);
	assert_int_equal(filter_bound_of(ALLOW), CALL_BOUND_COUNT);
	assert_int_equal(filter_bound_of(ERRNO(CALL_BOUND_NETWORK + 1)), CALL_BOUND_COUNT);
	assert_int_equal(filter_bound_of(NOTIFIED(0x80ff)), CALL_BOUND_COUNT);
	assert_int_equal(filter_bound_of(NOTIFIED(CALL_BOUND_NETWORK)), CALL_BOUND_COUNT);
	assert_int_equal(filter_errno_of(NOTIFIED(EACCES)), EACCES);
	assert_int_equal(filter_errno_of(NOTIFIED(0)), ENOSYS);
	assert_int_equal(filter_errno_of(NOTIFIED(0x8000 | CALL_BOUND_UNCOUNTED)), ENOSYS);
	assert_int_equal(filter_errno_of(ALLOW), ENOSYS);
}

static void the_refused_part_of_a_bounded_call_stays_refused(void **state)
{
	(void)state;
	struct filter f = compile(ALLOWING, "{\"names\":[\"socket\"],\"action\":\"SCMP_ACT_ERRNO\","
					    "\"args\":[{\"index\":1,\"value\":15,\"valueTwo\":3,"
					    "\"op\":\"SCMP_CMP_MASKED_EQ\"}]}");
	assert_int_equal(ask(&f, SYS_socket, AF_INET, 3, 0), NOTIFIED(EPERM));
	assert_int_equal(ask(&f, SYS_socket, AF_NETLINK, 3, 0), NOTIFIED(EPERM));
	assert_int_equal(ask(&f, SYS_socket, AF_NETLINK, 3, 12), NOTIFIED(EPERM));
	assert_int_equal(bound_of(&f, SYS_socket, AF_NETLINK, 2, 0), CALL_BOUND_NETLINK);
	assert_int_equal(bound_of(&f, SYS_socket, AF_INET, 2, 0), CALL_BOUND_NETWORK);
}

/* "every family except netlink", compared with 64 bits, of which the kernel reads 32 */
static void high_bits_do_not_dodge_a_bound(void **state)
{
	(void)state;
	struct filter f = compile(REFUSING, "{\"names\":[\"socket\"],\"action\":\"SCMP_ACT_ALLOW\","
					    "\"args\":[{\"index\":0,\"value\":16,"
					    "\"op\":\"SCMP_CMP_NE\"}]}");
	assert_int_equal(ask(&f, SYS_socket, AF_NETLINK, 3, 0), NOTIFIED(ENOSYS));
	assert_int_equal(bound_of(&f, SYS_socket, 1ULL << 32 | AF_NETLINK, 3, 0),
			 CALL_BOUND_NETLINK);
	assert_int_equal(bound_of(&f, SYS_socket, 1ULL << 32 | AF_INET, 3, 0), CALL_BOUND_NETWORK);
}

static void a_program_that_no_compiler_wrote_allows_nothing(void **state)
{
	(void)state;
	const struct seccomp_data data = { .nr = 1 };
	const struct sock_filter endless[] = { { BPF_JMP | BPF_JA, 0, 0, UINT32_MAX } };
	const struct sock_filter unknown[] = { { BPF_LDX, 0, 0, 0 } };
	const struct sock_filter beyond[] = { { BPF_LD | BPF_W | BPF_ABS, 0, 0, UINT32_MAX } };
	assert_int_equal(filter_run(endless, 1, &data), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(filter_run(unknown, 1, &data), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(filter_run(beyond, 1, &data), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(filter_run(NULL, 0, &data), SECCOMP_RET_KILL_PROCESS);
}

#define ONE_OPTION                                                                                 \
	"{\"names\":[\"prctl\"],\"action\":\"SCMP_ACT_ALLOW\","                                    \
	"\"args\":[{\"index\":0,\"value\":15,\"op\":\"SCMP_CMP_EQ\"}]}"

static void an_option_that_is_not_listed_is_unknown(void **state)
{
	(void)state;
	struct filter f = compile(REFUSING, ONE_OPTION);
	assert_int_equal(ask(&f, SYS_prctl, 15, 0, 0), ALLOW);
	assert_int_equal(ask(&f, SYS_prctl, 16, 0, 0), ERRNO(EINVAL));

	f = compile("\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":1", ONE_OPTION);
	assert_int_equal(ask(&f, SYS_prctl, 16, 0, 0), ERRNO(EPERM)); /* what the file says */
}

static void killing_and_trapping_rules_stay_what_they_are(void **state)
{
	(void)state;
	struct filter f = compile(REFUSING,
				  "{\"names\":[\"mount\"],\"action\":\"SCMP_ACT_KILL\"},"
				  "{\"names\":[\"bpf\"],\"action\":\"SCMP_ACT_TRAP\"},"
				  "{\"names\":[\"getppid\"],\"action\":\"SCMP_ACT_NOTIFY\"},"
				  "{\"names\":[\"uname\"],\"action\":\"SCMP_ACT_LOG\"}");
	assert_int_equal(ask(&f, SYS_mount, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(ask(&f, SYS_bpf, 0, 0, 0), SECCOMP_RET_TRAP);
	assert_int_equal(ask(&f, SYS_uname, 0, 0, 0), SECCOMP_RET_LOG);
	/* an agent that isn't there allows nothing */
	assert_int_equal(ask(&f, SYS_getppid, 0, 0, 0), ERRNO(EPERM));
}

static void an_allowed_clone3_stays_refused_and_is_reported(void **state)
{
	(void)state;
	struct filter f =
	    compile(REFUSING, "{\"names\":[\"clone3\"],\"action\":\"SCMP_ACT_ALLOW\"}");
	assert_int_equal(ask(&f, SYS_clone3, 0, 0, 0), ERRNO(ENOSYS));
	assert_int_equal(f.notes.count, 1);
	assert_non_null(strstr(f.notes.items[0], "clone3"));
}

static void unknown_names_are_reported(void **state)
{
	(void)state;
	struct filter f = compile(
	    REFUSING, "{\"names\":[\"no_such_call\",\"mseal\"],\"action\":\"SCMP_ACT_ALLOW\"}");
	assert_int_equal(f.notes.count, 1);
	assert_string_equal(f.notes.items[0], "p.json: unknown system call 'no_such_call'");
	assert_int_equal(ask(&f, 462, 0, 0, 0), ALLOW);
}

static void a_call_of_another_architecture_is_no_news(void **state)
{
	(void)state;
	struct filter f = compile(
	    REFUSING, "{\"names\":[\"socketcall\",\"waitpid\"],\"action\":\"SCMP_ACT_ALLOW\"}");
	assert_int_equal(f.notes.count, 0);
}

/* A ring opens sockets that no filter sees: then the network is built before the program. */
static void a_policy_that_allows_io_uring_says_so(void **state)
{
	(void)state;
	static const char if_small[] =
	    "{\"names\":[\"io_uring_setup\"],\"action\":\"SCMP_ACT_ALLOW\","
	    "\"args\":[{\"index\":0,\"value\":8,\"op\":\"SCMP_CMP_LT\"}]}";
	static const char any[] = "{\"names\":[\"io_uring_setup\"],\"action\":\"SCMP_ACT_LOG\"}";
	static const char other[] = "{\"names\":[\"io_setup\"],\"action\":\"SCMP_ACT_ALLOW\"}";
	assert_true(compile(REFUSING, if_small).has_rings);
	assert_true(compile(REFUSING, any).has_rings);
	assert_false(compile(REFUSING, other).has_rings);
}

static void expect_refusal(const char *text, const char *message)
{
	struct cj_error err = { 0 };
	struct filter f;
	assert_int_equal(filter_compile(parse(text), &arena, &f, &err), -EINVAL);
	assert_string_equal(err.msg, message);
}

static void refusing_an_unknown_call_is_an_error_where_the_default_allows(void **state)
{
	(void)state;
	expect_refusal(
	    "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[\"no_such_call\"],"
	    "\"action\":\"SCMP_ACT_ERRNO\"}]}",
	    "seccomp file 'p.json' refuses 'no_such_call', a system call this cejail does "
	    "not know, and lets pass what it does not list");
}

static void a_file_that_forbids_what_init_needs_is_refused_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < calls_needed_count; i++) {
		char text[256], message[256];
		const char *name = calls_needed[i].name;
		(void)snprintf(text, sizeof(text),
			       "{" ALLOWING ",\"syscalls\":[{\"names\":[\"%s\"],"
			       "\"action\":\"SCMP_ACT_ERRNO\"}]}",
			       name);
		(void)snprintf(
		    message, sizeof(message),
		    "seccomp file 'p.json' does not allow '%s', which cejail's init needs", name);
		expect_refusal(text, message);
	}
	expect_refusal("{" REFUSING "}", "seccomp file 'p.json' does not allow 'read', which "
					 "cejail's init needs");
}

static void conditions_on_what_init_needs_are_tried_with_its_arguments(void **state)
{
	(void)state;
	/* Docker's way with clone passes ... */
	struct filter f =
	    compile(ALLOWING,
		    "{\"names\":[\"clone\"],\"action\":\"SCMP_ACT_ERRNO\",\"args\":[{\"index\":0,"
		    "\"value\":268435456,\"valueTwo\":268435456,\"op\":\"SCMP_CMP_MASKED_EQ\"}]}");
	assert_int_equal(ask(&f, SYS_clone, CLONE_NEWUSER, 0, 0), NOTIFIED(EPERM));
	/* ... one that takes the controlling terminal away does not */
	expect_refusal("{" ALLOWING ",\"syscalls\":[{\"names\":[\"ioctl\"],\"action\":"
		       "\"SCMP_ACT_ERRNO\",\"args\":[{\"index\":1,\"value\":21518,"
		       "\"op\":\"SCMP_CMP_EQ\"}]}]}",
		       "seccomp file 'p.json' does not allow 'ioctl', which cejail's init needs");
}

/* The two requests init makes of a terminal, against each operator. */
static void every_operator_is_tried_with_what_init_asks_for(void **state)
{
	(void)state;
	static const struct {
		const char *op;
		bool holds[3]; /* for a request below, at and above the value */
	} rows[] = {
		{ "NE", { true, false, true } }, { "LT", { true, false, false } },
		{ "LE", { true, true, false } }, { "EQ", { false, true, false } },
		{ "GE", { false, true, true } }, { "GT", { false, false, true } },
	};
	static const int requests[] = { TIOCSCTTY, TIOCGPTPEER };
	static const int values[] = { TIOCSCTTY - 1,   TIOCSCTTY,   TIOCSCTTY + 1,
				      TIOCGPTPEER - 1, TIOCGPTPEER, TIOCGPTPEER + 1 };
	for (size_t i = 0; i < COUNT_OF(rows) * COUNT_OF(values); i++) {
		int row = (int)(i / COUNT_OF(values)), value = values[i % COUNT_OF(values)];
		bool must_refuse = false;
		for (size_t k = 0; k < COUNT_OF(requests); k++)
			must_refuse |=
			    rows[row].holds[1 + (requests[k] > value) - (requests[k] < value)];
		const char *text =
		    arena_printf(&arena,
				 "{" ALLOWING ",\"syscalls\":[{\"names\":[\"ioctl\"],\"action\":"
				 "\"SCMP_ACT_ERRNO\",\"args\":[{\"index\":1,\"value\":%d,\"op\":"
				 "\"SCMP_CMP_%s\"}]}]}",
				 value, rows[row].op);
		struct cj_error err = { 0 };
		struct filter f = { 0 };
		int rc = filter_compile(parse(text), &arena, &f, &err);
		if ((rc < 0) != must_refuse)
			print_error("%s %d: %d %s\n", rows[row].op, value, rc, err.msg);
		assert_int_equal(rc, must_refuse ? -EINVAL : 0);
	}
}

/* One call with `n` conditions of its own. */
static int compile_long(size_t n, struct filter *out, struct cj_error *err)
{
	struct policy_rule *rules = arena_array(&arena, n, sizeof(*rules));
	assert_non_null(rules);
	for (size_t i = 0; i < n; i++) {
		struct policy_arg *arg = arena_alloc(&arena, sizeof(*arg));
		assert_non_null(arg);
		*arg = (struct policy_arg){ 0, POLICY_EQ, 1000 + i, 0 };
		rules[i] = (struct policy_rule){
			.action = POLICY_ERRNO, .errno_value = 7, .args = arg, .nargs = 1
		};
		assert_return_code(strings_add(&rules[i].names, &arena, "getppid"), errno);
	}
	const struct policy p = { "long", POLICY_ALLOW, 1, rules, n, { 0 } };
	return filter_compile(&p, &arena, out, err);
}

static void far_jumps_are_found_their_way(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	struct filter f = { 0 };
	assert_return_code(compile_long(900, &f, &err), errno);
	assert_int_equal(ask(&f, SYS_getppid, 999, 0, 0), ALLOW);
	for (uint64_t v = 1000; v < 1900; v++)
		assert_int_equal(ask(&f, SYS_getppid, v, 0, 0), ERRNO(7));
	assert_int_equal(ask(&f, SYS_getppid, 1900, 0, 0), ALLOW);
	assert_int_equal(ask(&f, SYS_uname, 1000, 0, 0), ALLOW);
	assert_int_equal(ask(&f, SYS_clone3, 0, 0, 0), ERRNO(ENOSYS));
}

static void a_filter_the_kernel_would_not_take_is_an_error(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	struct filter f = { 0 };
	assert_int_equal(compile_long(2000, &f, &err), -E2BIG);
	assert_string_equal(err.msg, "seccomp file 'long': write a seccomp filter of more than "
				     "4096 instructions: Argument list too long");
}

/* Of a whole policy: only the four calls differ, and a stricter answer stays. */
static void uncounted_memory_is_closed_and_nothing_else_changes(void **state)
{
	(void)state;
	static const int closed_calls[] = { SYS_memfd_create, SYS_shmget, SYS_semget, SYS_msgget };
	struct sock_filter insns[2][BPF_MAXINSNS];
	struct filter open = compile(
	    ALLOWING, "{\"action\":\"SCMP_ACT_KILL_PROCESS\",\"names\":[\"shmget\"]},"
		      "{\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":13,\"names\":[\"semget\"]},"
		      "{\"action\":\"SCMP_ACT_TRAP\",\"names\":[\"msgget\"],\"args\":[{\"index\":0,"
		      "\"value\":7,\"op\":\"SCMP_CMP_EQ\"}]}");
	struct filter closed = open;
	closed.closes_uncounted = true;
	filter_settle(&open, insns[0]);
	filter_settle(&closed, insns[1]);
	open.insns = insns[0];
	closed.insns = insns[1];
	for (int nr = 0; nr < CALLS_MAX; nr++) {
		bool is_closed = false;
		for (size_t i = 0; i < sizeof(closed_calls) / sizeof(closed_calls[0]); i++)
			is_closed |= nr == closed_calls[i];
		if (!is_closed)
			assert_int_equal(ask(&closed, nr, 0, 0, 0), ask(&open, nr, 0, 0, 0));
	}
	assert_int_equal(ask(&open, SYS_memfd_create, 0, 0, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(ask(&closed, SYS_memfd_create, 0, 0, 0), ERRNO(ENOSYS));
	assert_int_equal(ask(&closed, SYS_shmget, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(ask(&closed, SYS_semget, 0, 0, 0), ERRNO(EACCES));
	assert_int_equal(ask(&closed, SYS_msgget, 7, 0, 0), SECCOMP_RET_TRAP);
	assert_int_equal(ask(&closed, SYS_msgget, 8, 0, 0), ERRNO(ENOSYS));
}

/* Also where a policy allows such a call only with some values of its first argument. */
static void conditions_do_not_keep_uncounted_memory_open(void **state)
{
	(void)state;
	struct sock_filter insns[BPF_MAXINSNS];
	struct filter closed = compile(
	    ALLOWING, "{\"action\":\"SCMP_ACT_LOG\",\"names\":[\"msgget\"],\"args\":[{"
		      "\"index\":0,\"value\":5,\"op\":\"SCMP_CMP_EQ\"}]},"
		      "{\"action\":\"SCMP_ACT_LOG\",\"names\":[\"memfd_create\"],\"args\":[{"
		      "\"index\":0,\"value\":4096,\"valueTwo\":4096,"
		      "\"op\":\"SCMP_CMP_MASKED_EQ\"}]}");
	closed.closes_uncounted = true;
	filter_settle(&closed, insns);
	closed.insns = insns;
	assert_int_equal(ask(&closed, SYS_msgget, 5, 0, 0), ERRNO(ENOSYS));
	assert_int_equal(ask(&closed, SYS_msgget, 6, 0, 0), ERRNO(ENOSYS));
	assert_int_equal(ask(&closed, SYS_memfd_create, 4096, 0, 0), ERRNO(ENOSYS));
	assert_int_equal(ask(&closed, SYS_memfd_create, 1, 0, 0), ERRNO(ENOSYS));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_program_answers_as_its_rules_say),
		TEST(a_conditional_refusal_holds_beside_an_allowance),
		TEST(high_bits_do_not_dodge_a_refusal),
		TEST(notified_calls_that_the_file_does_not_mention_have_the_default_errno),
		TEST(a_file_that_allows_by_default_notifies_only_what_it_refuses),
		TEST(a_refusal_with_errno_0_is_the_kernels_and_never_goes_on),
		TEST(bounded_calls_that_a_file_allows_are_sent_to_the_supervisor),
		TEST(a_call_of_a_process_names_it_by_the_low_half_of_its_argument),
		TEST(a_bounded_call_that_a_file_refuses_is_never_let_through),
		TEST(the_refused_part_of_a_bounded_call_stays_refused),
		TEST(high_bits_do_not_dodge_a_bound),
		TEST(a_program_that_no_compiler_wrote_allows_nothing),
		TEST(an_option_that_is_not_listed_is_unknown),
		TEST(killing_and_trapping_rules_stay_what_they_are),
		TEST(an_allowed_clone3_stays_refused_and_is_reported),
		TEST(unknown_names_are_reported),
		TEST(a_call_of_another_architecture_is_no_news),
		TEST(a_policy_that_allows_io_uring_says_so),
		TEST(refusing_an_unknown_call_is_an_error_where_the_default_allows),
		TEST(a_file_that_forbids_what_init_needs_is_refused_by_name),
		TEST(conditions_on_what_init_needs_are_tried_with_its_arguments),
		TEST(every_operator_is_tried_with_what_init_asks_for),
		TEST(far_jumps_are_found_their_way),
		TEST(a_filter_the_kernel_would_not_take_is_an_error),
		TEST(uncounted_memory_is_closed_and_nothing_else_changes),
		TEST(conditions_do_not_keep_uncounted_memory_open),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
