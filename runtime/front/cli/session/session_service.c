/* SPDX-License-Identifier: Apache-2.0 */
/* Finds or starts the service, and sends it requests. */
#include "runtime/front/cli/session/session_call.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>

#include "runtime/base/child.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/libexec.h"
#include "runtime/base/json/json.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/jail/record.h"

#define LOG_FILE "serve.log"
#define LOG_MAX  (64u << 10)
#define START_MS 30000 /* for a new service to listen */
#define LOOK_MS  20    /* between two attempts to connect */

static const char *const systemctls[] = { "/usr/bin/systemctl", "/bin/systemctl" };

/* A socket file without a listener, or one that this user may not use, is no service. */
static bool answers(const char *path)
{
	struct cj_error ignored = { 0 };
	auto_fd int fd = path ? remote_link_connect(path, 0, &ignored) : -1;

	return fd >= 0;
}

static int find_running(struct session_call *c, struct cj_error *err)
{
	struct record_sockets found;

	if (record_find_sockets(&c->config.arena, &found, err) < 0)
		return -err->code;
	if (answers(found.of_user))
		c->socket = found.of_user;
	else if (answers(found.of_system))
		c->socket = found.of_system;
	return 0;
}

/* Only where systemd manages this user's units.  Root's own units are the administrator's. */
static bool has_user_systemd(void)
{
	char path[PATH_MAX];
	const char *dir = getenv("XDG_RUNTIME_DIR"); /* NOLINT(concurrency-mt-unsafe) */

	if (!dir || geteuid() == 0 ||
	    snprintf(path, sizeof(path), "%s/systemd/private", dir) >= (int)sizeof(path))
		return false;
	return access(path, F_OK) == 0;
}

/* False: there is no such unit, or it cannot be started. */
static bool start_unit(void)
{
	int status = 0;

	if (!has_user_systemd())
		return false;
	pid_t pid = fork();
	if (pid == 0) {
		static const char *const args[] = { "systemctl", "--user",        "--quiet",
						    "start",     "cejail.socket", NULL };
		struct cj_error ignored = { 0 };
		if (child_null_streams(&ignored) < 0)
			_exit(1);
		for (size_t i = 0; i < COUNT_OF(systemctls); i++)
			(void)execv(systemctls[i], (char *const *)args);
		_exit(1);
	}
	return pid > 0 && sys_waitpid(pid, &status, 0) == pid && child_exit_status(status) == 0;
}

/* The service's messages.  A service that could not start leaves its reason there. */
static int open_log(struct cj_error *err)
{
	auto_fd int dir_fd = record_open_dir(err);

	if (dir_fd < 0)
		return dir_fd;
	int fd = openat(dir_fd, LOG_FILE,
			O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? cj_fail(err, errno, "open the log of the new service") : fd;
}

/* The last line of what the service has written since `from`. */
static int explain_end(struct session_call *c, int log_fd, off_t from, struct cj_error *err)
{
	char *text = NULL;
	size_t size = 0;

	cj_refuse_as(err, ECHILD, "the new service ended at once");
	struct cj_error ignored = { 0 };
	if (lseek(log_fd, from, SEEK_SET) < 0 ||
	    fd_read_all(log_fd, LOG_MAX, &c->config.arena, &text, &size, LOG_FILE, &ignored) < 0)
		return -err->code;
	while (size > 0 && text[size - 1] == '\n')
		text[--size] = '\0';
	const char *line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	return *line ? cj_reject_as(err, ECHILD, "the new service ended: %s", line) : -err->code;
}

/* Another service may have taken the socket meanwhile: then ours ends, and that one answers. */
static int await_service(struct session_call *c, int pid_fd, struct cj_error *err)
{
	uint64_t until_ms = clock_ms() + START_MS;

	for (;;) {
		bool has_ended = fd_await(pid_fd, POLLIN, LOOK_MS);
		if (find_running(c, err) < 0 || c->socket)
			return -err->code;
		if (has_ended)
			return -ECHILD;
		if (clock_ms() > until_ms)
			return cj_reject_as(err, ETIMEDOUT,
					    "the new service does not listen after %d s",
					    START_MS / 1000);
	}
}

static int start_process(struct session_call *c, struct cj_error *err)
{
	char path[PATH_MAX];
	auto_fd int log_fd = open_log(err);

	if (log_fd < 0 || libexec_find("serve", path, err) < 0)
		return -err->code;
	off_t from = lseek(log_fd, 0, SEEK_END);
	auto_fd int pid_fd = -1;
	pid_t pid = child_fork(&pid_fd);
	if (pid == 0) {
		/* It keeps the environment, which the profiles of this user depend on. */
		static const char *const args[] = { "cejail-serve", "--until-idle", NULL };
		struct cj_error ignored = { 0 };
		int fds[] = { log_fd };
		if (child_reset(fds, 1, &ignored) < 0 || child_start_session(&ignored) < 0 ||
		    chdir("/") < 0 || dup2(fds[0], STDOUT_FILENO) < 0 ||
		    dup2(fds[0], STDERR_FILENO) < 0)
			_exit(CLI_FAILED);
		(void)execv(path, (char *const *)args);
		_exit(CLI_FAILED);
	}
	if (pid < 0)
		return cj_fail(err, errno, "start a service");
	log_debug("started a service for this user, process %d", (int)pid);
	int rc = await_service(c, pid_fd, err);
	return rc < 0 && err->code == 0 ? explain_end(c, log_fd, from, err) : rc;
}

int cli_session_find_service(struct session_call *c, struct cj_error *err)
{
	c->socket = c->config.remote;
	if (c->socket && c->socket[0] != '\0')
		return 0;
	return remote_find_socket(&c->config.arena, &c->socket, err);
}

int cli_session_start_service(struct session_call *c, struct cj_error *err)
{
	c->socket = NULL;
	if (c->config.remote)
		return cli_session_find_service(c, err);
	if (find_running(c, err) < 0 || c->socket)
		return -err->code;
	if (start_unit() && (find_running(c, err) < 0 || c->socket))
		return -err->code;
	if (start_process(c, err) < 0) {
		(void)!cj_wrap(err, "no service listens, and none can be started");
		return cj_hint(err, "start one: cejail serve");
	}
	return 0;
}

int cli_session_url(char url[static REMOTE_URL_MAX], const char *const *parts, const char *query,
		    struct cj_error *err)
{
	url[0] = '\0';
	if (remote_url(url, "/v1/sessions", err) < 0)
		return -err->code;
	for (; *parts; parts++)
		if (remote_url(url, "/", err) < 0 || remote_url(url, *parts, err) < 0)
			return -err->code;
	size_t used = strlen(url), size = query ? strlen(query) : 0;
	if (used + size + 1 > REMOTE_URL_MAX)
		return cj_fail(err, ENAMETOOLONG, "write the URL of the request");
	if (query)
		memcpy(url + used, query, size + 1);
	return 0;
}

struct json_writer *cli_session_body(const char *key, const char *text, struct cj_error *err)
{
	struct json_writer *w = json_writer_create(false);

	if (!w) {
		(void)!cj_fail(err, ENOMEM, "write the request");
		return NULL;
	}
	json_open_object(w);
	if (text)
		json_member_text(w, key, text);
	else
		json_member_bool(w, key, true);
	json_close_object(w);
	return w;
}

int cli_session_ask(struct session_call *c, const char *method, const char *const *parts,
		    const char *query, struct json_writer *body, const struct json_node **out,
		    struct cj_error *err)
{
	char url[REMOTE_URL_MAX];
	struct remote_fetch fetch = {
		.socket = c->socket,
		.message = { .method = method, .path = url },
	};

	if (cli_session_url(url, parts, query, err) < 0)
		return -err->code;
	if (body && json_writer_take(body, &fetch.message.body, err) < 0)
		return -err->code;
	return out ? remote_fetch_json(&fetch, &c->config.arena, out, err)
		   : remote_fetch(&fetch, NULL, NULL, err);
}

int cli_session_print_json(const struct json_node *node, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	json_put_node(w, node);
	return json_print(w, err);
}

void cli_session_print_text(const char *text)
{
	char shown[256];
	size_t size = text ? strlen(text) : 0;

	while (size > 0) {
		size_t used = text_escape(text, size, false, shown, sizeof(shown));
		(void)fputs(shown, stdout);
		text += used;
		size -= used;
	}
}
