/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_init - any steps, with any data and descriptors, as messages of init to the supervisor.
 *
 * The first byte: which dialogue (the network, the seal, a run), with or without a terminal
 * or a launcher, whether init still receives.  Then each message: its step (255: it failed), how
 * many descriptors come along, 16 bits of size, the data.
 *
 * Asserted: a failure has a code and a text and leaves no descriptor; a success owns only what
 * init sent; a run has exactly one outcome, whose result is JSON and whose exit status is one of
 * the table's.
 */
#include <fcntl.h>
#include <sys/socket.h>

#include "runtime/base/scope.h"
#include "tests/fuzz/bytes.h"

/* the front end is in no library */
#include "runtime/run/report/result.c"
#include "runtime/jail/jail.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/prepare/jail_init.h"
#include "runtime/jail/supervise/jail_network.h"
#include "runtime/jail/protocol.h"

/* WRAP: network_create network_build */

#define MESSAGES_MAX 4
#define SENT_FDS_MAX 12

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int __wrap_network_create(const struct network_setup *setup, struct network_handles *handles,
			  struct network **out, struct cj_error *err);

int __wrap_network_create(const struct network_setup *setup, struct network_handles *handles,
			  struct network **out, struct cj_error *err)
{
	(void)err;
	assert(setup->number < 0x10000);
	for (size_t i = 0; i < SLOT_COUNT; i++)
		assert(handles->fds[i] == -1 || fcntl(handles->fds[i], F_GETFD) & FD_CLOEXEC);
	network_handles_fini(handles);
	*out = NULL;
	return 0;
}

int __wrap_network_build(struct network *n, struct cj_error *err);

int __wrap_network_build(struct network *n, struct cj_error *err)
{
	(void)err;
	assert(!n);
	return 0;
}

/* The lowest free descriptor: nothing below it has been left open. */
static int lowest_free(void)
{
	int fd = fcntl(STDIN_FILENO, F_DUPFD, 0);
	assert(fd >= 0);
	close(fd);
	return fd;
}

static int null_fd = -1; /* what is sent, many times */

static void say(const struct step_link *to, struct bytes *b)
{
	int fds[SENT_FDS_MAX];
	for (size_t i = 0; i < SENT_FDS_MAX; i++)
		fds[i] = null_fd;
	struct cj_error ignored;
	unsigned step = bytes_u8(b);
	size_t nfds = bytes_u8(b) % (SENT_FDS_MAX + 1);
	struct bytes data = bytes_take(b, bytes_u16(b) % (STEP_DATA_MAX + 1));
	struct cj_error why = { 0 };
	if (step == 255) { /* it failed, with any message */
		if (data.left > 0)
			memcpy(&why, data.at, data.left < sizeof(why) ? data.left : sizeof(why));
		step_abort(to, &why);
	} else {
		(void)step_tell(to, step, data.at, data.left, fds, nfds, &ignored);
	}
}

static void check_error(int rc, const struct cj_error *err)
{
	assert(rc < 0 && err->code > 0 && err->msg[0] != '\0');
}

static void check_result(const struct outcome *out)
{
	const struct result_about about = { .profile_name = "", .profile_sha256 = "" };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	auto_arena struct arena a = { 0 };
	const struct json_node *root;
	struct cj_error err = { 0 };
	struct blob text;
	int rc = result_write(w, out, &about, &err);
	assert(rc == 0);
	rc = json_writer_take(w, &text, &err);
	assert(rc == 0);
	rc = json_parse("result", text.bytes, text.size, &a, &root, &err);
	assert(rc == 0 && root->type == JSON_OBJECT);
}

static void check_run(struct jail *j, bool with_launcher)
{
	static const char *argv_items[] = { "sh", "/box/main", NULL };
	static const struct program program = { .workdir = "/box",
						.argv = { argv_items, 2 },
						.code_path = "/box/main" };
	static const struct program launcher = { .workdir = "/box", .argv = { argv_items, 1 } };
	const struct jail_io io = {
		.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .tty_fd = -1, .hangup_fd = -1
	};
	struct cj_error err = { 0 };
	struct outcome out;
	int rc = with_launcher ? jail_warm(j, JAIL_NO_ZYGOTE, &launcher, &err) : 0;
	if (rc == 0)
		rc = jail_start(j, &program, &io, &err);
	if (rc < 0) {
		check_error(rc, &err);
		return;
	}
	outcome_init(&out, "fuzz", 64);
	rc = jail_wait(j, &out, &err);
	if (rc < 0)
		check_error(rc, &err);
	assert(out.has_status && out.status < STATUS_COUNT);
	assert((out.status == STATUS_SETUP_ERROR) == (rc < 0));
	int status = outcome_exit_status(&out);
	assert(status >= 0 && status <= 255);
	check_result(&out);
	outcome_fini(&out);
}

static void check_stage(struct jail *j, int (*enter)(struct jail *j, struct cj_error *err),
			void (*leave)(struct jail *j))
{
	struct cj_error err = { 0 };
	int before = lowest_free();
	int rc = enter(j, &err);
	if (rc < 0) {
		check_error(rc, &err);
		assert(lowest_free() == before); /* a failure owns nothing */
	} else {
		leave(j);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct bytes b = { bytes, size };
	unsigned dialogue = bytes_u8(&b);
	const struct plan plan = { .profile_name = "", .profile_sha256 = "", .tty = dialogue & 16 };
	struct cj_error err = { 0 };
	if (null_fd < 0)
		null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int ends[2], before = lowest_free();
	struct jail *j = jail_state_create(&plan, "fuzz");
	int rc = step_pair(ends, 1000, &err);
	assert(j && rc == 0);
	j->ops = &jail_run_ops;
	j->link = (struct step_link){ ends[0], "init", step_names };
	const struct step_link init = { ends[1], "supervisor", step_names };

	if (dialogue & 8)
		filter_builtin(&j->filter);
	for (unsigned i = 0; i < MESSAGES_MAX && b.left > 0; i++)
		say(&init, &b);
	if (dialogue & 4)
		cj_close(&ends[1]);
	else
		(void)shutdown(ends[1], SHUT_WR); /* still receives, sends no more */
	if (dialogue % 4 == 0)
		check_stage(j, jail_network_enter, jail_network_leave);
	else if (dialogue % 4 == 3)
		check_stage(j, jail_init_seal_enter, jail_init_seal_leave);
	else
		check_run(j, dialogue & 32);

	cj_close(&j->link.sock_fd);
	cj_close(&ends[1]);
	cj_close(&j->run.master_fd);
	for (size_t i = 0; i < RELAY_COUNT; i++)
		relay_fini(&j->run.relays[i]);
	jail_state_free(&j);
	assert(lowest_free() == before);
	return 0;
}
