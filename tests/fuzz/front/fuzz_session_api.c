/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what a request for a session has: the first byte chooses the path of a file, the
 * query, or a body.  A path that is taken stays below /box and /tmp; input keeps its cap.
 */
#undef NDEBUG
#include <assert.h>

#include "runtime/run/request/request.h"
#include "runtime/service/api/api_parts.h"

#define STDIN_MAX 16
#define TEXT_MAX  8192

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_path(const char *text)
{
	char path[INPUT_PATH_MAX];
	struct api_names names;
	struct cj_error err = { 0 };

	for (int is_list = 0; is_list < 2; is_list++) {
		if (api_file_path(text, is_list, path, &err) < 0)
			continue;
		assert(path[0] == '/' && path[1] != '\0');
		assert(!strstr(path, "//") && !strstr(path, "/../") && !strstr(path, "/./"));
		size_t end = strlen(path);
		assert(end < INPUT_PATH_MAX && path[end - 1] != '/');
		assert(end < 3 || strcmp(path + end - 3, "/..") != 0);
		assert(strcmp(path + end - 2, "/.") != 0);
	}
	if (api_path_fits("/v1/sessions/*/execs/*/signal", text, &names))
		assert(names.ids[0][0] && !strchr(names.ids[1], '/'));
}

static void check_query(const char *text)
{
	struct api_query q;
	struct cj_error err = { 0 };

	if (api_query_parse(text, PARAMETER_LIST | PARAMETER_WAIT, &q, &err) == 0)
		assert(q.wait_ms <= API_WAIT_MAX_MS && !(q.given & PARAMETER_EXECUTABLE));
}

static void check_bodies(struct blob body)
{
	for (int kind = API_BODY_LEASE; kind <= API_BODY_CHANGE; kind++) {
		auto_arena struct arena a = { 0 };
		struct api_body in = { .max = STDIN_MAX };
		struct cj_error err = { 0 };

		if (api_body_read((enum api_body_kind)kind, body, &a, &in, &err) < 0)
			continue;
		assert(kind != API_BODY_SIGNAL || (in.signo > 0 && in.signo < 32));
		assert(in.bytes.size <= STDIN_MAX);
		assert(kind != API_BODY_STDIN || in.is_end || in.bytes.bytes);
		assert(kind != API_BODY_CHANGE || in.is_mkdir == (in.to == NULL));
	}
}

/* A session and an exec: neither is taken for the other, and an exec never changes the jail. */
static void check_request(struct blob body, enum request_kind kind)
{
	auto_arena struct arena a = { 0 };
	const struct request_caps caps = { .body_bytes = 1u << 20,
					   .code_bytes = 64,
					   .file_bytes = 16,
					   .stdin_bytes = 8,
					   .profile = kind == REQUEST_EXEC ? "python" : NULL,
					   .kind = kind };
	struct request r;
	struct cj_error err = { 0 };

	if (request_parse(body, &caps, &a, &r, &err) < 0)
		return;
	assert(r.profile && r.kind == kind);
	if (kind == REQUEST_SESSION) {
		assert(!r.has_code && !r.is_command && r.nfiles == 0 && !r.has_stdin);
	} else {
		assert(r.fit != FIT_COLD && r.has_code != r.is_command);
		assert(strcmp(r.profile, "python") == 0 && !(r.open_stdin && r.has_stdin));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char text[TEXT_MAX];

	if (size == 0 || size > TEXT_MAX)
		return 0;
	const struct blob rest = { (const char *)bytes + 1, size - 1 };
	memcpy(text, bytes + 1, size - 1);
	text[size - 1] = '\0';
	switch (bytes[0] % 5) {
	case 0:
		check_path(text);
		break;
	case 1:
		check_query(text);
		break;
	case 2:
		check_bodies(rest);
		break;
	case 3:
		check_request(rest, REQUEST_SESSION);
		break;
	default:
		check_request(rest, REQUEST_EXEC);
	}
	return 0;
}
