/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/seccomp/call_list.h"

#include <assert.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <sys/syscall.h>

#include "runtime/base/sys.h"

#if defined(__x86_64__)
#define ARCH_NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH_NATIVE AUDIT_ARCH_AARCH64
#else
#error "the audit architecture of this machine: <linux/audit.h>"
#endif

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "CALL_LOW() is the first half");

#define ALLOWED_MAX 96
#define RULES_MAX   16
#define RULE_LENGTH (3 + 3 * CALL_CHECKS_MAX)
#define HEAD        3

static struct sock_filter load(size_t offset)
{
	return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

static struct sock_filter end(uint32_t action)
{
	return (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
}

/* Goes on after `skipped` instructions unless the comparison holds. */
static struct sock_filter need(uint16_t comparison, uint32_t value, size_t skipped)
{
	return (struct sock_filter)BPF_JUMP(BPF_JMP | comparison | BPF_K, value, 0,
					    (uint8_t)skipped);
}

static struct sock_filter *add_rule(struct sock_filter *at, const struct call_rule *rule)
{
	struct sock_filter *const begin = at;
	size_t nchecks = 0;
	while (nchecks < CALL_CHECKS_MAX && rule->checks[nchecks].half > 0)
		nchecks++;

	struct sock_filter *const behind = begin + 3 + 3 * nchecks;
	*at++ = load(offsetof(struct seccomp_data, nr));
	*at = need(BPF_JEQ, rule->number, (size_t)(behind - at - 1));
	at++;
	for (size_t i = 0; i < nchecks; i++) {
		const struct call_check *c = &rule->checks[i];
		*at++ = load(c->half);
		*at++ = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, c->mask);
		*at = need(c->is_above ? BPF_JGT : BPF_JEQ, c->value, (size_t)(behind - at - 1));
		at++;
	}
	*at++ = end(SECCOMP_RET_ALLOW);
	return at;
}

int call_list_load(const struct call_list *list, const char *whose, struct cj_error *err)
{
	struct sock_filter program[HEAD + 3 + 2 * ALLOWED_MAX + RULES_MAX * RULE_LENGTH + 1] = {
		load(offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH_NATIVE, 1, 0),
		end(SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_filter *at = program + HEAD;

	assert(list->nallowed <= ALLOWED_MAX && list->nrules <= RULES_MAX);
	*at++ = load(offsetof(struct seccomp_data, nr));
	*at++ = need(BPF_JEQ, SYS_clone3, 1); /* its flags can't be seen: libc uses clone(2) then */
	*at++ = end(SECCOMP_RET_ERRNO | ENOSYS);
	for (size_t i = 0; i < list->nallowed; i++) { /* an x32 number equals none of these */
		*at++ = need(BPF_JEQ, list->allowed[i], 1);
		*at++ = end(SECCOMP_RET_ALLOW);
	}
	for (size_t i = 0; i < list->nrules; i++)
		at = add_rule(at, &list->rules[i]);
	*at++ = end(SECCOMP_RET_ERRNO | EPERM);

	const struct sock_fprog filter = { .len = (unsigned short)(at - program),
					   .filter = program };
	if (sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, (void *)&filter) < 0)
		return cj_fail(err, errno, "load the seccomp filter of %s", whose);
	return 0;
}
