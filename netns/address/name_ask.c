/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the helper that looks up a name. */
#include "netns/address/name_lookup.h"
#include "runtime/base/files/libexec.h"

int name_ask(const char *name, struct ip out[static NAME_ADDRESSES_MAX], size_t *out_count,
	     struct cj_error *err)
{
	const char *const args[] = { name, NULL };
	const struct libexec_call call = {
		.name = "name-helper",
		.what = "the helper for names",
		.args = args,
		.answer = out,
		.answer_max = NAME_ADDRESSES_MAX * sizeof(*out),
	};
	ssize_t size = libexec_run(&call, err);
	if (size < 0)
		return (int)size;
	*out_count = (size_t)size / sizeof(*out);
	return 0;
}
