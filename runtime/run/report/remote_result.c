/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run/report/remote_result.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "rootfs/files/autorun.h"
#include "runtime/base/files/atomic_file.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/run/report/result.h"

#define BODY "the service's answer"

static bool find_name(const char *const *names, size_t count, const char *text, unsigned *out)
{
	for (size_t i = 0; text && i < count; i++) {
		if (names[i] && strcmp(names[i], text) == 0) {
			*out = (unsigned)i;
			return true;
		}
	}
	return false;
}

static int fail_memory(struct cj_error *err)
{
	return cj_fail(err, ENOMEM, "read the service's result");
}

static void read_error(const struct json_node *node, struct cj_error *out)
{
	const char *stage = json_get_text(node, "stage");
	const char *message = json_get_text(node, "message");
	const char *hint = json_get_text(node, "hint");

	cj_refuse(out, "%s", message ? message : "no message");
	if (stage)
		cj_stage(out, stage);
	if (hint)
		cj_hint(out, "%s", hint);
}

static int read_end(const struct json_node *result, struct outcome *o, struct cj_error *err)
{
	const struct json_node *error = json_get_typed(result, "error", JSON_OBJECT);
	unsigned status;

	if (!find_name(status_names, STATUS_COUNT, json_get_text(result, "status"), &status))
		return cj_reject(err, BODY " is not a result: it has no valid 'status'");
	o->exit_code = (int)json_get_number(result, "exit_code");
	o->signal = (int)json_get_number(result, "signal");
	if (status == STATUS_SETUP_ERROR) {
		struct cj_error failure = { 0 };
		read_error(error, &failure);
		outcome_fail(o, &failure);
		return 0;
	}
	int exit_code = o->exit_code;
	if (error) { /* the command could not be executed; 127: it does not exist */
		read_error(error, &o->error);
		outcome_exec_failed(o, ENOENT);
		o->exec_errno = o->exit_code == exit_code ? ENOENT : EACCES;
		o->exit_code = exit_code;
	}
	outcome_decide(o, status);
	return 0;
}

static int read_denied(const struct json_node *result, struct outcome *o, struct cj_error *err)
{
	const struct json_node *list = json_get_typed(result, "denied_syscalls", JSON_ARRAY);

	o->denied = arena_array(&o->arena, list ? list->count + 1 : 1, sizeof(*o->denied));
	if (!o->denied)
		return fail_memory(err);
	for (const struct json_node *m = list ? list->child : NULL; m; m = m->next) {
		const char *name = json_get_text(m, "name");
		o->denied[o->ndenied++] = (struct denied_syscall){
			.name = arena_strdup(&o->arena, name ? name : "?"),
			.count = (unsigned)json_get_number(m, "count"),
		};
		if (!o->denied[o->ndenied - 1].name)
			return fail_memory(err);
	}
	return 0;
}

/* A service of an older version has no state: then it stays unused, and nothing is printed. */
static int read_network_state(const struct json_node *network, struct outcome *o,
			      struct cj_error *err)
{
	const char *why = json_get_text(network, "reason");
	unsigned state = NETWORK_UNUSED, uplink = UPLINK_AUTO;

	(void)find_name(network_state_names, NETWORK_STATE_COUNT, json_get_text(network, "state"),
			&state);
	(void)find_name(uplink_names, UPLINK_COUNT, json_get_text(network, "uplink"), &uplink);
	o->network.state = state;
	o->network.uplink = uplink;
	if (!why)
		return 0;
	o->network.why = arena_strdup(&o->arena, why);
	return o->network.why ? 0 : fail_memory(err);
}

static int read_network(const struct json_node *result, struct outcome *o, struct cj_error *err)
{
	const struct json_node *network = json_get_typed(result, "network", JSON_OBJECT);
	const struct json_node *list = json_get_typed(network, "denied", JSON_ARRAY);
	struct denial *rows = arena_array(&o->arena, list ? list->count + 1 : 1, sizeof(*rows));
	size_t count = 0;

	if (!rows)
		return fail_memory(err);
	if (read_network_state(network, o, err) < 0)
		return -err->code;
	for (const struct json_node *m = list ? list->child : NULL; m; m = m->next) {
		const char *address = json_get_text(m, "address");
		const char *name = json_get_text(m, "name");
		struct denial *d = &rows[count];
		unsigned class;

		if (!find_name(net_class_names, NET_CLASS_COUNT, json_get_text(m, "class"), &class))
			continue;
		*d = (struct denial){ .class = class,
				      .port = (uint16_t)json_get_number(m, "port"),
				      .count = json_get_number(m, "count"),
				      .is_shared = json_get_typed(m, "shared", JSON_BOOL) };
		const char *protocol = json_get_text(m, "protocol");
		for (unsigned i = 1; protocol && i < 256 && d->protocol == 0; i++)
			if (strcmp(denial_protocol_name((uint8_t)i), protocol) == 0)
				d->protocol = (uint8_t)i;
		if (name)
			(void)snprintf(d->name, sizeof(d->name), "%s", name);
		if (address)
			(void)ip_parse(address, &d->address); /* stays unset if it is invalid */
		count++;
	}
	o->network.denied = rows;
	o->network.ndenied = count;
	return 0;
}

static int read_warnings(const struct json_node *result, struct outcome *o, struct cj_error *err)
{
	for (const struct json_node *m = json_get_items(result, "warnings"); m; m = m->next)
		if (m->type == JSON_STRING &&
		    strings_add(&o->warnings, &o->arena, arena_strdup(&o->arena, m->text)) < 0)
			return fail_memory(err);
	return 0;
}

int remote_result_read(const struct json_node *result, struct outcome *o, struct cj_error *err)
{
	const char *schema = json_get_text(result, "schema");

	if (!schema || strcmp(schema, RESULT_SCHEMA) != 0)
		return cj_reject(err, BODY " is not a result of the schema '%s'", RESULT_SCHEMA);
	const struct json_node *limits = json_get_typed(result, "limits", JSON_OBJECT);

	for (enum limit i = 0; i < LIMIT_COUNT; i++) {
		const struct json_node *limit = json_get_typed(limits, limit_names[i], JSON_OBJECT);
		const struct json_node *hit = json_get_typed(limit, "hit", JSON_BOOL);
		o->limits[i].value = json_get_number(limit, "value");
		o->limits[i].hit = !hit ? HIT_UNKNOWN : hit->boolean ? HIT_YES : HIT_NO;
	}
	if (read_denied(result, o, err) < 0 || read_network(result, o, err) < 0 ||
	    read_warnings(result, o, err) < 0)
		return -err->code;
	return read_end(result, o, err);
}

void remote_result_write(struct json_writer *w, const struct json_node *result,
			 const struct outcome *o, bool passes_artifacts)
{
	json_open_object(w);
	for (const struct json_node *m = result->child; m; m = m->next)
		if (!passes_artifacts && strcmp(m->key, "artifacts") == 0)
			result_put_artifacts(w, &o->artifacts);
		else if (strcmp(m->key, "warnings") == 0)
			result_put_warnings(w, &o->warnings);
		else
			json_member_node(w, m->key, m);
	json_close_object(w);
}

static int report_refusal(const struct json_node *error, const char *message, uint64_t retry_after,
			  struct cj_error *err)
{
	const char *code = json_get_text(error, "code");
	const char *hint = json_get_text(error, "hint"),
		   *request_id = json_get_text(error, "request_id");

	bool is_draining = code && strcmp(code, "draining") == 0;
	int rc = cj_reject_as(err, is_draining ? ESHUTDOWN : EREMOTEIO, "the service: %s [%s]",
			      message, code ? code : "no code");
	if (hint && retry_after > 0)
		cj_hint(err, "%s; try again in %llu s", hint, (unsigned long long)retry_after);
	else if (hint)
		cj_hint(err, "%s", hint);
	else if (retry_after > 0)
		cj_hint(err, "try again in %llu s", (unsigned long long)retry_after);
	else if (request_id && code && strcmp(code, "internal") == 0)
		cj_hint(err, "see request %s in the log of the service", request_id);
	return rc;
}

int remote_refusal_read(unsigned http_status, uint64_t retry_after, const char *body, size_t size,
			struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct cj_error why = { 0 };
	const struct json_node *root = NULL, *error = NULL;

	if (size > 0 && json_parse(BODY, body, size, &a, &root, &why) == 0)
		error = json_get_typed(root, "error", JSON_OBJECT);
	const char *message = json_get_text(error, "message");
	if (message)
		return report_refusal(error, message, retry_after, err);
	cj_refuse_as(err, EREMOTEIO,
		     "the service answered with HTTP status %u, but not "
		     "with an error of cejail",
		     http_status);
	return cj_hint(err, "check that 'cejail serve' listens on this socket");
}

bool remote_bytes_of(const struct json_node *node, struct arena *a, const char **out_bytes,
		     size_t *out_size)
{
	const char *text = json_get_text(node, "text"), *base64 = json_get_text(node, "base64");

	if (text) {
		*out_bytes = text;
		*out_size = strlen(text);
		return true;
	}
	if (!base64)
		return false;
	char *bytes = arena_alloc(a, strlen(base64) / 4 * 3 + 1);
	if (!bytes || text_base64_decode(base64, strlen(base64), bytes, out_size) < 0)
		return false;
	*out_bytes = bytes;
	return true;
}

/* A path whose components artifacts.h would accept from a jail. */
static bool is_plain_path(const char *path)
{
	if (artifacts_has_control(path))
		return false;
	for (size_t depth = 0; depth <= ARTIFACTS_DEPTH_MAX; depth++) {
		size_t size = strcspn(path, "/");
		if (size == 0 || size > ARTIFACT_NAME_MAX || path[0] == '-' ||
		    (size == 1 && path[0] == '.') || (size == 2 && memcmp(path, "..", 2) == 0))
			return false;
		if (path[size] == '\0')
			return true;
		path += size + 1;
	}
	return false;
}

/* Opens the directory of the last component and creates it if missing.  *name becomes that
 * component. */
static int open_place(int dest_fd, const char **name, struct cj_error *err)
{
	auto_fd int dir_fd = fcntl(dest_fd, F_DUPFD_CLOEXEC, 3);

	for (size_t size; dir_fd >= 0; *name += size + 1) {
		char part[ARTIFACT_NAME_MAX + 1];
		size = strcspn(*name, "/");
		if ((*name)[size] == '\0')
			return take_fd(&dir_fd);
		memcpy(part, *name, size);
		part[size] = '\0';
		if (mkdirat(dir_fd, part, 0755) < 0 && errno != EEXIST)
			break;
		int next_fd = openat(dir_fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		cj_close(&dir_fd);
		dir_fd = next_fd;
	}
	return cj_fail(err, errno, "create its directory");
}

static int store(int dest_fd, const char *path, const char *bytes, size_t size,
		 struct cj_error *err)
{
	struct atomic_file file;
	const char *name = path;

	if (!is_plain_path(path))
		return cj_reject(
		    err, "its path leads out of the directory, or is not a valid file name");
	auto_fd int dir_fd = open_place(dest_fd, &name, err);
	if (dir_fd < 0)
		return dir_fd;
	int rc = atomic_file_open(dir_fd, 0600, &file);
	if (rc < 0)
		return cj_fail(err, -rc, "create it");
	rc = fd_write_all(file.fd, bytes, size, "it", err);
	if (rc == 0 && fchmod(file.fd, 0644) < 0)
		rc = cj_fail(err, errno, "set its mode");
	int published = rc == 0 ? atomic_file_publish(&file, dir_fd, name) : 0;
	if (published < 0)
		rc = cj_fail(err, -published, "rename it");
	atomic_file_fini(&file);
	return rc;
}

static int store_one(const struct json_node *entry, int dest_fd, struct outcome *o,
		     struct cj_error *err)
{
	const char *path = json_get_text(entry, "path"), *sha256 = json_get_text(entry, "sha256");
	const char *type = json_get_text(entry, "type"), *bytes;
	struct artifact *item = &o->artifacts.items[o->artifacts.count];
	char seen[SHA256_HEX_MAX];
	size_t size;

	if (!path || !sha256 || !type || !remote_bytes_of(entry, &o->arena, &bytes, &size))
		return cj_reject(err, "the service did not send its content");
	sha256_hex(bytes, size, seen);
	if (strcmp(seen, sha256) != 0)
		return cj_reject(err, "its content does not match its SHA-256");
	if (store(dest_fd, path, bytes, size, err) < 0)
		return -err->code;
	*item = (struct artifact){ .path = arena_strdup(&o->arena, path),
				   .bytes = size,
				   .type = arena_strdup(&o->arena, type) };
	memcpy(item->sha256, seen, sizeof(seen));
	if (!item->path || !item->type)
		return cj_fail(err, ENOMEM, "list it");
	o->artifacts.count++;
	return 0;
}

bool remote_result_store(const struct json_node *result, int dest_fd, struct outcome *o)
{
	const struct json_node *list = json_get_typed(result, "artifacts", JSON_ARRAY);
	bool is_complete = true;

	if (dest_fd < 0 || !list || list->count == 0)
		return true;
	o->artifacts.items = arena_array(&o->arena, list->count, sizeof(*o->artifacts.items));
	for (const struct json_node *m = list->child; m; m = m->next) {
		struct cj_error err = { 0 };
		const char *path = json_get_text(m, "path");
		if (path && autorun_has_name(path)) {
			outcome_warn(o, "artifacts: '%s' is not stored: %s", path, AUTORUN_FAULT);
			continue;
		}
		if (o->artifacts.items && store_one(m, dest_fd, o, &err) == 0)
			continue;
		outcome_warn(o, "artifacts: '%s' is not stored: %s", path ? path : "?",
			     err.code ? err.msg : "no memory");
		is_complete = false;
	}
	return is_complete;
}
