/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_oci_process - any texts as what exec reads: process.json, --user, and resources of update.
 *
 * Asserted: a refusal leaves the output as it was, so that no mistake becomes root; a user that is
 * taken is digits within the range of ids.
 */
#include "runtime/container/config/oci_process.h"

#include "runtime/base/scope.h"
#include "runtime/container/config/oci_resources.h"
#include "tests/fuzz/bytes.h"

#define OTHER 77

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_user(const char *text)
{
	struct cj_error err = { 0 };
	uint32_t uid = OTHER, gid = OTHER;
	char again[32];

	if (oci_user_parse(text, &uid, &gid, &err) < 0) {
		assert(err.msg[0] != '\0' && uid == OTHER && gid == OTHER);
		return;
	}
	assert(uid <= OCI_ID_MAX && gid <= OCI_ID_MAX);
	assert(text[strspn(text, "0123456789:")] == '\0');
	(void)snprintf(again, sizeof(again), strchr(text, ':') ? "%u:%u" : "%u", uid, gid);
	assert(strlen(again) <= strlen(text));
	assert(uid != 0 || text[strspn(text, "0")] == '\0' || text[strspn(text, "0")] == ':');
}

static void check_process(const char *text, size_t size)
{
	auto_arena struct arena arena = { 0 };
	struct oci_process p = { .user = { .uid = OTHER, .gid = OTHER } };
	struct cj_error err = { 0 };

	if (oci_process_read("process.json", text, size, &arena, &p, &err) < 0) {
		assert(strstr(err.msg, "process.json") && p.user.uid == OTHER);
		return;
	}
	assert(p.args.count > 0 && p.cwd[0] == '/' && p.user.uid <= OCI_ID_MAX);
}

static void check_resources(const char *text, size_t size)
{
	auto_arena struct arena arena = { 0 };
	struct oci_resources r = { .ndevices = OTHER };
	struct cj_error err = { 0 };

	if (oci_resources_read("r.json", text, size, &arena, &r, &err) < 0) {
		assert(strstr(err.msg, "r.json") && r.ndevices == OTHER);
		return;
	}
	for (size_t i = 0; i < r.ndevices; i++)
		assert(strchr("abc", r.devices[i].type) && r.devices[i].type != '\0');
	for (size_t i = 0; i < r.nrdma; i++)
		assert(r.rdma[i].device);
	for (size_t i = 0; i < r.nhuge_pages; i++)
		assert(!strchr(r.huge_pages[i].page_size, '/'));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	auto_free char *text = bytes_text((struct bytes){ bytes, size });

	check_user(text);
	check_process(text, size);
	check_resources(text, size);
	return 0;
}
