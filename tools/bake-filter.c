/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bake-filter NAME < FILE - compile a seccomp profile when cejail is built, and print the
 * result as C: filter_builtin() of runtime/kernel/seccomp/filter.h.  Standard input, because an
 * emulator of another architecture's programs may not know the calls by which cejail opens a file.
 *
 * A note is an error here: the profiles that we ship name nothing that cejail can't do.
 */
#include <stdio.h>
#include <unistd.h>

#include "runtime/kernel/seccomp/policy.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"
#include "runtime/base/log.h"
#include "runtime/kernel/seccomp/filter.h"

static void print_insns(const char *name, const struct sock_filter *insns, size_t count)
{
	printf("static const struct sock_filter %s[] = {\n", name);
	for (size_t i = 0; i < count; i++)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", insns[i].code, insns[i].jt, insns[i].jf,
		       insns[i].k);
	printf("};\n\n");
}

static void print_source(const char *path, const struct filter *f)
{
	printf("/* Made by bake-filter from %s.  Do not edit. */\n"
	       "#include \"runtime/kernel/seccomp/filter.h\"\n\n",
	       path);
	print_insns("insns", f->insns, f->ninsns);
	printf("void filter_builtin(struct filter *out)\n{\n"
	       "\t*out = (struct filter){\n"
	       "\t\t.insns = insns, .ninsns = %u,\n"
	       "\t};\n}\n",
	       f->ninsns);
}

static int bake(const char *name, struct arena *a, struct cj_error *err)
{
	const struct policy *policy;
	struct filter filter;
	char *text;
	size_t size;

	if (fd_read_all(STDIN_FILENO, JSON_BYTES_MAX, a, &text, &size, name, err) < 0 ||
	    policy_parse(name, text, size, a, &policy, err) < 0 ||
	    filter_compile(policy, a, &filter, err) < 0)
		return -err->code;
	if (policy->notes.count > 0)
		return cj_reject(err, "%s", policy->notes.items[0]);
	if (filter.notes.count > 0)
		return cj_reject(err, "%s", filter.notes.items[0]);
	print_source(name, &filter);
	if (fflush(stdout) != 0)
		return cj_fail(err, errno, "write the filter");
	return 0;
}

int main(int argc, char **argv)
{
	struct cj_error err = { 0 };
	struct arena arena = { 0 };

	if (argc != 2) {
		(void)fprintf(stderr, "usage: bake-filter NAME < FILE\n");
		return 2;
	}
	int rc = bake(argv[1], &arena, &err);
	if (rc < 0)
		log_error(&err);
	arena_fini(&arena);
	return rc < 0 ? 1 : 0;
}
