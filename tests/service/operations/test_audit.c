/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: sendmsg connect write fdatasync */
/* The audit record: whole lines in a file, fields in a journal, and nothing of a caller's bytes. */
#include "runtime/service/operations/audit.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "tests/json_file.h"

#define REAL_JOURNAL "/run/systemd/journal/socket"
#define SECRET       "MARKED-value-that-no-record-may-have"

static char home[64];
static struct sockaddr_un fake_journal;
static int journal_fd = -1;

/* --- what the kernel says ------------------------------------------------------------------ */

static struct {
	int send_errno; /* of the next datagram */
	unsigned send_failures;
	size_t write_room; /* bytes a write(2) to the file takes; 0: as many as it likes */
	int write_errno, sync_errno;
	unsigned syncs, writes;
	int file_fd;
} faults;

/* The real journal's address is the fake one's here. */
static bool is_journal(const struct sockaddr *address)
{
	const struct sockaddr_un *un = (const void *)address;
	return address && un->sun_family == AF_UNIX && strcmp(un->sun_path, REAL_JOURNAL) == 0;
}

int __real_connect(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size)
{
	if (is_journal(address))
		return __real_connect(fd, (const struct sockaddr *)&fake_journal,
				      sizeof(fake_journal));
	return __real_connect(fd, address, size);
}

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct msghdr redirected = *msg;
	assert_true(is_journal(msg->msg_name));
	assert_true((flags & MSG_DONTWAIT) && (flags & MSG_NOSIGNAL));
	redirected.msg_name = &fake_journal;
	redirected.msg_namelen = sizeof(fake_journal);
	if (faults.send_failures > 0) {
		faults.send_failures--;
		errno = faults.send_errno;
		return -1;
	}
	return __real_sendmsg(fd, &redirected, flags);
}

ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
	if (fd != faults.file_fd)
		return __real_write(fd, bytes, size);
	faults.writes++;
	if (faults.write_errno) {
		errno = faults.write_errno;
		return -1;
	}
	if (faults.write_room > 0 && faults.write_room < size)
		size = faults.write_room;
	return __real_write(fd, bytes, size);
}

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
	faults.syncs++;
	if (faults.sync_errno) {
		errno = faults.sync_errno;
		return -1;
	}
	return __real_fdatasync(fd);
}

/* --- the world ------------------------------------------------------------------------------ */

static const char *path_of(const char *name)
{
	static char path[128];
	(void)snprintf(path, sizeof(path), "%s/%s", home, name);
	return path;
}

static int set_up(void **state)
{
	(void)state;
	memset(&faults, 0, sizeof(faults));
	faults.file_fd = -1;
	(void)snprintf(home, sizeof(home), "/tmp/cejail-test-audit-XXXXXX");
	if (!mkdtemp(home))
		return -1;
	fake_journal = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)snprintf(fake_journal.sun_path, sizeof(fake_journal.sun_path), "%s/journal", home);
	journal_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return bind(journal_fd, (struct sockaddr *)&fake_journal, sizeof(fake_journal));
}

static int tear_down(void **state)
{
	static const char *const names[] = { "journal", "log", "log.1", "link" };
	(void)state;
	(void)close(journal_fd);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlink(path_of(names[i]));
	return rmdir(home);
}

static struct audit open_audit(bool file, bool journal, bool sync)
{
	struct audit a = AUDIT_NULL;
	struct cj_error err = { 0 };
	const struct audit_config c = { .file = file ? path_of("log") : NULL,
					.journal = journal,
					.sync = sync };
	if (audit_open(&c, &a, &err) < 0)
		fail_msg("%s", err.msg);
	faults.file_fd = a.file.fd;
	return a;
}

static const struct trace a_trace = { "req-1",
				      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
				      "" };

static struct run_order a_run(void)
{
	return (struct run_order){ .job = { .id = "01J9ZK5W8Q3T7V2X4Y6A8C0E1G",
					    .trace = a_trace,
					    .profile_sha256 = "aa" },
				   .caller = "uid:1000",
				   .profile = "python",
				   .code_sha256 = "bb",
				   .request_sha256 = "cc",
				   .code_bytes = 8,
				   .audit_required = true };
}

static struct summary a_summary(void)
{
	struct summary s = { .totals.status = STATUS_TIMEOUT,
			     .totals.exit_code = -1,
			     .totals.signal = 9,
			     .totals.usage = { .wall_ms = 31,
					       .cpu_user_ms = 18,
					       .cpu_system_ms = 6,
					       .memory_peak_bytes = 9961472,
					       .has_memory_peak = true },
			     .has_network = true,
			     .network_state = NETWORK_READY,
			     .setup_us = 900,
			     .totals.denied_packets = 2,
			     .totals.denied_syscalls = 1,
			     .totals.stdout_bytes = 5,
			     .totals.stderr_bytes = 6,
			     .totals.artifacts = 7 };
	(void)snprintf(s.error_stage, sizeof(s.error_stage), "exec");
	(void)snprintf(s.error_message, sizeof(s.error_message), "execute '%s'", SECRET);
	return s;
}

static void write_both(struct audit *a)
{
	struct run_order run = a_run();
	struct summary s = a_summary();
	if (!audit_run(a, &run, TIER_INTERPRETER, NULL) ||
	    !audit_run(a, &run, TIER_INTERPRETER, &s))
		fail_msg("%s", a->last_failure);
}

static void assert_fails(struct audit *a, const char *said)
{
	struct run_order run = a_run();
	uint64_t before = a->failures;
	assert_false(audit_run(a, &run, TIER_INTERPRETER, NULL));
	if (!strstr(a->last_failure, said))
		fail_msg("'%s' does not say '%s'", a->last_failure, said);
	assert_int_equal(a->failures, before + 1);
}

/* The file's lines, each parsed; NULL behind the last. */
struct lines {
	struct arena arena;
	const struct json_node *items[16];
	size_t count;
};

static void read_lines(struct lines *l, const char *name)
{
	char text[8192];
	struct cj_error err = { 0 };
	*l = (struct lines){ 0 };
	FILE *f = fopen(path_of(name), "re");
	assert_non_null(f);
	while (fgets(text, sizeof(text), f)) {
		size_t size = strlen(text);
		assert_int_equal(text[size - 1], '\n');
		assert_true(l->count < 16);
		if (json_parse("line", text, size, &l->arena, &l->items[l->count++], &err) < 0)
			l->items[l->count - 1] = NULL; /* half a line */
	}
	(void)fclose(f);
}

static const char *text_at(const struct json_node *line, const char *key)
{
	const struct json_node *n = json_get(line, key);
	assert_non_null(n);
	return n->type == JSON_NULL ? "null" : n->text;
}

/* --- the file -------------------------------------------------------------------------------- */

static void a_run_has_two_lines(void **state)
{
	(void)state;
	struct lines l;
	struct audit a = open_audit(true, false, false);
	assert_true(audit_is_on(&a));
	write_both(&a);
	assert_int_equal(faults.writes, 2); /* one write(2) each */
	read_lines(&l, "log");
	assert_int_equal(l.count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(text_at(l.items[i], "schema"), "cejail.audit/1");
		assert_string_equal(text_at(l.items[i], "event"), i == 0 ? "start" : "end");
		assert_string_equal(text_at(l.items[i], "id"), "01J9ZK5W8Q3T7V2X4Y6A8C0E1G");
		assert_string_equal(text_at(l.items[i], "caller"), "uid:1000");
		assert_string_equal(text_at(l.items[i], "profile"), "python");
		assert_string_equal(text_at(l.items[i], "profile_sha256"), "aa");
		assert_string_equal(text_at(l.items[i], "code_sha256"), "bb");
		assert_string_equal(text_at(l.items[i], "code_bytes"), "8");
		assert_string_equal(text_at(l.items[i], "request_sha256"), "cc");
		assert_string_equal(text_at(l.items[i], "tier"), "interpreter");
		assert_string_equal(text_at(l.items[i], "request_id"), "req-1");
		assert_string_equal(text_at(l.items[i], "traceparent"), a_trace.traceparent);
		assert_int_equal(strlen(text_at(l.items[i], "time")), 24);
	}
	assert_null(json_get(l.items[0], "status"));
	assert_string_equal(text_at(l.items[1], "status"), "timeout");
	assert_string_equal(text_at(l.items[1], "exit_code"), "null");
	assert_string_equal(text_at(l.items[1], "signal"), "9");
	assert_string_equal(text_at(l.items[1], "error_stage"), "exec");
	assert_string_equal(text_at(json_get(l.items[1], "usage"), "memory_peak_bytes"), "9961472");
	assert_string_equal(text_at(json_get(l.items[1], "usage"), "pids_peak"), "null");
	assert_string_equal(text_at(l.items[1], "network_state"), "ready");
	assert_string_equal(text_at(l.items[1], "denied_packets"), "2");
	arena_fini(&l.arena);
	audit_close(&a);
	assert_false(audit_is_on(&a));
}

static void a_session_begins_and_ends_with_a_line(void **state)
{
	struct lines l;
	struct audit a = open_audit(true, false, false);
	struct run_order order = a_run();
	struct audit_session s = { .order = &order, .context = "repl" };
	(void)state;

	(void)snprintf(order.job.id, sizeof(order.job.id), "s1");
	assert_true(audit_session(&a, &s));
	s.reason = "idle";
	s.execs = 4;
	assert_true(audit_session(&a, &s));
	read_lines(&l, "log");
	assert_int_equal(l.count, 2);
	assert_string_equal(text_at(l.items[0], "event"), "session_start");
	assert_string_equal(text_at(l.items[0], "context"), "repl");
	assert_null(json_get(l.items[0], "reason"));
	assert_string_equal(text_at(l.items[1], "event"), "session_end");
	assert_string_equal(text_at(l.items[1], "id"), "s1");
	assert_string_equal(text_at(l.items[1], "reason"), "idle");
	assert_string_equal(text_at(l.items[1], "execs"), "4");
	arena_fini(&l.arena);
	audit_close(&a);
}

static void a_session_has_a_line_before_its_network_changes(void **state)
{
	struct lines l;
	struct audit a = open_audit(true, false, false);
	struct run_order order = a_run();
	const struct audit_session s = { .order = &order,
					 .context = "none",
					 .network = "8.8.8.8 *.example.com:443" };
	(void)state;

	assert_true(audit_session(&a, &s));
	read_lines(&l, "log");
	assert_int_equal(l.count, 1);
	assert_string_equal(text_at(l.items[0], "event"), "session_network");
	assert_string_equal(text_at(l.items[0], "context"), "none");
	assert_string_equal(text_at(l.items[0], "network"), "8.8.8.8 *.example.com:443");
	assert_null(json_get(l.items[0], "reason"));
	assert_null(json_get(l.items[0], "code_sha256"));
	const struct json_node *schema = json_of_file("profiles/schema/audit.json", &l.arena);
	for (const struct json_node *n = l.items[0]->child; n; n = n->next)
		if (!json_get(json_get(schema, "properties"), n->key))
			fail_msg("the schema has no '%s'", n->key);
	arena_fini(&l.arena);
	audit_close(&a);
}

static void a_call_has_a_line_with_the_hash_of_its_arguments(void **state)
{
	struct lines l;
	struct audit a = open_audit(true, false, false);
	struct run_order order = a_run();
	const struct call_record call = { .id = 7,
					  .name = "search",
					  .bytes = 15,
					  .sha256 = "9f782d87",
					  .end = CALL_TIMED_OUT,
					  .ms = 60000 };
	(void)state;

	assert_true(audit_call(&a, &order, &call));
	assert_true(audit_call(&a, &order, &(struct call_record){ .end = CALL_REFUSED }));
	read_lines(&l, "log");
	assert_int_equal(l.count, 2);
	assert_string_equal(text_at(l.items[0], "event"), "call");
	assert_string_equal(text_at(l.items[0], "call"), "7");
	assert_string_equal(text_at(l.items[0], "name"), "search");
	assert_string_equal(text_at(l.items[0], "ended"), "timeout");
	assert_string_equal(text_at(l.items[0], "arguments_sha256"), "9f782d87");
	assert_null(json_get(l.items[0], "tier"));
	assert_string_equal(text_at(l.items[1], "ended"), "refused");
	assert_int_equal(json_get(l.items[1], "call")->type, JSON_NULL);
	arena_fini(&l.arena);
	audit_close(&a);
}

/* The members of an object, in the order of the schema's. */
static void check_members(const struct json_node *line, const struct json_node *schema,
			  size_t least)
{
	const struct json_node *property = json_get(schema, "properties")->child;
	size_t count = 0;
	for (const struct json_node *n = line->child; n; n = n->next, count++) {
		assert_non_null(property);
		assert_string_equal(n->key, property->key);
		property = property->next;
	}
	assert_true(count >= least);
	/* behind them are those of a call, and of a session */
	assert_true(count == least || strcmp(property->key, "call") == 0);
}

static void the_schema_has_the_lines_members_in_order(void **state)
{
	(void)state;
	struct lines l;
	struct audit a = open_audit(true, false, false);
	write_both(&a);
	read_lines(&l, "log");
	const struct json_node *schema = json_of_file("profiles/schema/audit.json", &l.arena);
	size_t required = json_get(schema, "required")->count;
	check_members(l.items[0], schema, required + 4); /* what only a run has */
	check_members(l.items[1], schema, required + 5);
	const struct json_node *usage = json_get(json_get(schema, "properties"), "usage");
	check_members(json_get(l.items[1], "usage"), usage, json_get(usage, "required")->count);
	arena_fini(&l.arena);
	audit_close(&a);
}

static void what_is_unknown_is_null(void **state)
{
	(void)state;
	struct lines l;
	struct audit a = open_audit(true, false, false);
	struct run_order run = a_run();
	run.code_sha256[0] = run.job.profile_sha256[0] = run.request_sha256[0] = '\0';
	assert_true(audit_run(&a, &run, TIER_INTERPRETER, NULL));
	read_lines(&l, "log");
	assert_string_equal(text_at(l.items[0], "code_sha256"), "null");
	assert_string_equal(text_at(l.items[0], "profile_sha256"), "null");
	assert_string_equal(text_at(l.items[0], "request_sha256"), "null");
	arena_fini(&l.arena);
	audit_close(&a);
}

static void odd_names_stay_within_their_line(void **state)
{
	(void)state;
	struct lines l;
	struct audit a = open_audit(true, true, false);
	static char long_name[5000];
	memset(long_name, 'x', sizeof(long_name) - 1);
	struct run_order run = a_run();
	struct audit_session session = { .order = &run, .context = "none", .reason = long_name };
	(void)snprintf(run.profile, sizeof(run.profile), "%s", "/a\n{\"event\":\"end\"}\xff\"");
	assert_true(audit_run(&a, &run, TIER_INTERPRETER, NULL));
	assert_true(audit_session(&a, &session));
	read_lines(&l, "log");
	assert_int_equal(l.count, 2);
	assert_int_equal(strlen(text_at(l.items[1], "reason")), 255);
	arena_fini(&l.arena);
	audit_close(&a);
}

static void the_file_is_appended_to_and_not_for_everybody(void **state)
{
	(void)state;
	struct stat st;
	struct lines l;
	mode_t mask = umask(0);
	struct audit a = open_audit(true, false, false);
	(void)umask(mask);
	write_both(&a);
	audit_close(&a);
	a = open_audit(true, false, false);
	write_both(&a);
	audit_close(&a);
	assert_int_equal(stat(path_of("log"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	read_lines(&l, "log");
	assert_int_equal(l.count, 4);
	arena_fini(&l.arena);
}

static void no_other_kind_of_file_is_taken(void **state)
{
	(void)state;
	struct audit a;
	struct cj_error err = { 0 };
	const struct audit_config c = { .file = path_of("log") };
	char target[128];
	(void)snprintf(target, sizeof(target), "%s/log.1", home);
	assert_int_equal(symlink(target, path_of("log")), 0);
	assert_true(audit_open(&c, &a, &err) < 0);
	assert_false(audit_is_on(&a));
	assert_int_equal(access(target, F_OK), -1);
	(void)unlink(path_of("log"));
	assert_int_equal(mkfifo(path_of("log"), 0600), 0);
	assert_true(audit_open(&c, &a, &err) < 0); /* and nobody waits for its reader */
	int reader = open(path_of("log"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(audit_open(&c, &a, &err) < 0);
	assert_non_null(strstr(err.msg, "not a regular file"));
	(void)close(reader);
	const struct audit_config dir = { .file = home };
	assert_true(audit_open(&dir, &a, &err) < 0);
}

static void rotation_opens_the_path_again(void **state)
{
	(void)state;
	struct lines l;
	char rotated[128];
	struct cj_error err = { 0 };
	struct audit a = open_audit(true, false, false);
	write_both(&a);
	(void)snprintf(rotated, sizeof(rotated), "%s/log.1", home);
	assert_int_equal(rename(path_of("log"), rotated), 0);
	write_both(&a); /* to the old one, until we are told */
	assert_int_equal(audit_reopen(&a, &err), 0);
	write_both(&a);
	read_lines(&l, "log.1");
	assert_int_equal(l.count, 4);
	arena_fini(&l.arena);
	read_lines(&l, "log");
	assert_int_equal(l.count, 2);
	arena_fini(&l.arena);

	/* what can't be opened again leaves the one that is open */
	assert_int_equal(unlink(path_of("log")), 0);
	assert_int_equal(symlink("/nowhere", path_of("log")), 0);
	assert_true(audit_reopen(&a, &err) < 0);
	assert_true(audit_is_on(&a));
	write_both(&a);
	audit_close(&a);
}

static void each_line_reaches_the_disk_when_asked(void **state)
{
	(void)state;
	struct audit a = open_audit(true, false, true);
	write_both(&a);
	assert_int_equal(faults.syncs, 2);
	faults.sync_errno = EIO;
	assert_fails(&a, "to disk: Input/output error");
	audit_close(&a);
	a = open_audit(true, false, false);
	faults.syncs = 0;
	write_both(&a);
	assert_int_equal(faults.syncs, 0);
	audit_close(&a);
}

static void a_full_disk_is_a_failure_and_tears_one_line_at_most(void **state)
{
	(void)state;
	struct lines l;
	struct audit a = open_audit(true, false, false);
	faults.write_errno = ENOSPC;
	assert_fails(&a, "No space left on device");
	faults.write_errno = 0;
	faults.write_room = 20;
	assert_fails(&a, "only 20 of");
	faults.write_room = 0;
	write_both(&a);
	assert_string_equal(a.last_failure, ""); /* all is well again */
	assert_int_equal(a.failures, 2);
	read_lines(&l, "log");
	assert_int_equal(l.count, 3);
	assert_null(l.items[0]);
	assert_string_equal(text_at(l.items[1], "event"), "start");
	assert_string_equal(text_at(l.items[2], "event"), "end");
	arena_fini(&l.arena);
	audit_close(&a);
}

/* --- the journal ------------------------------------------------------------------------------ */

/* One entry as it came, from the datagram or from its memfd. */
static size_t receive(char *out, size_t size)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { out, size - 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t got = recvmsg(journal_fd, &msg, MSG_CMSG_CLOEXEC);
	if (got == 0 && msg.msg_controllen > 0) {
		int fd;
		memcpy(&fd, CMSG_DATA(&control.align), sizeof(fd));
		assert_true(fcntl(fd, F_GET_SEALS) & F_SEAL_WRITE);
		got = read(fd, out, size - 1);
		(void)close(fd);
	}
	out[got > 0 ? got : 0] = '\0';
	return got > 0 ? (size_t)got : 0;
}

static void assert_field(const char *entry, const char *field)
{
	char line[128];
	(void)snprintf(line, sizeof(line), "\n%s\n", field);
	if (!strstr(entry, line))
		fail_msg("no field '%s'", field);
}

static void check_entries(void)
{
	static char start[8192], end[8192];
	assert_true(receive(start, sizeof(start)) > 0 && receive(end, sizeof(end)) > 0);
	assert_memory_equal(start, "MESSAGE=run 01J9ZK5W8Q3T7V2X4Y6A8C0E1G of uid:1000 starts\n",
			    58);
	assert_field(start, "MESSAGE_ID=" AUDIT_MESSAGE_START);
	assert_field(start, "PRIORITY=6");
	assert_field(start, "CEJAIL_EVENT=start");
	assert_field(start, "CEJAIL_RUN_ID=01J9ZK5W8Q3T7V2X4Y6A8C0E1G");
	assert_field(start, "CEJAIL_PROFILE=python");
	assert_field(start, "CEJAIL_PROFILE_SHA256=aa");
	assert_field(start, "CEJAIL_CODE_SHA256=bb");
	assert_field(start, "CEJAIL_REQUEST_SHA256=cc");
	assert_field(start, "CEJAIL_REQUEST_ID=req-1");
	assert_field(start, "TRACE_ID=4bf92f3577b34da6a3ce929d0e0e4736");
	assert_null(strstr(start, "CEJAIL_STATUS"));
	assert_field(end, "MESSAGE_ID=" AUDIT_MESSAGE_END);
	assert_field(end, "CEJAIL_STATUS=timeout");
	assert_field(end, "CEJAIL_SIGNAL=9");
	assert_null(strstr(end, "CEJAIL_EXIT_CODE"));
	assert_field(end, "CEJAIL_WALL_USEC=31000");
	assert_field(end, "CEJAIL_CPU_USEC=24000");
	assert_field(end, "CEJAIL_MEM_PEAK_BYTES=9961472");
	assert_field(end, "CEJAIL_NETWORK_STATE=ready");
	assert_field(end, "CEJAIL_DENIED_SYSCALLS=1");
}

static void the_journal_has_fields_of_its_own(void **state)
{
	(void)state;
	struct audit a = open_audit(false, true, false);
	assert_true(audit_is_on(&a));
	write_both(&a);
	check_entries();
	audit_close(&a);
}

static void arguments_that_are_asked_for_are_in_both_sinks(void **state)
{
	static char entry[2 * AUDIT_ARGUMENTS_MAX];
	struct lines l;
	struct audit a = open_audit(true, true, false);
	struct run_order order = a_run();
	char arguments[AUDIT_ARGUMENTS_MAX + 1], field[AUDIT_ARGUMENTS_MAX + 32];
	const struct call_record call = {
		.id = 7, .name = "search", .sha256 = "9f", .arguments = arguments
	};
	(void)state;

	(void)snprintf(arguments, sizeof(arguments), "{\"q\":1,\"r\":\"%*s\"}",
		       AUDIT_ARGUMENTS_MAX - 14, "");
	assert_int_equal(strlen(arguments), AUDIT_ARGUMENTS_MAX);
	assert_true(audit_call(&a, &order, &call));
	read_lines(&l, "log");
	assert_string_equal(text_at(json_get(l.items[0], "arguments"), "q"), "1");
	assert_true(receive(entry, sizeof(entry)) > AUDIT_ARGUMENTS_MAX);
	(void)snprintf(field, sizeof(field), "\nCEJAIL_ARGUMENTS=%s\n", arguments);
	assert_non_null(strstr(entry, field));
	arena_fini(&l.arena);
	audit_close(&a);
}

static void the_two_kinds_of_entry_have_ids_of_their_own(void **state)
{
	(void)state;
	assert_int_equal(strlen(AUDIT_MESSAGE_START), 32);
	assert_int_equal(strlen(AUDIT_MESSAGE_END), 32);
	assert_string_not_equal(AUDIT_MESSAGE_START, AUDIT_MESSAGE_END);
}

static void what_is_too_large_goes_as_a_sealed_file(void **state)
{
	(void)state;
	struct audit a = open_audit(false, true, false);
	struct run_order run = a_run();
	struct summary s = a_summary();
	faults = (typeof(faults)){ .send_errno = EMSGSIZE, .send_failures = 1, .file_fd = -1 };
	assert_true(audit_run(&a, &run, TIER_INTERPRETER, NULL));
	faults.send_errno = ENOBUFS;
	faults.send_failures = 1;
	assert_true(audit_run(&a, &run, TIER_INTERPRETER, &s));
	check_entries();
	audit_close(&a);
}

/* Its length stands before a value that has a newline, so that nobody can add a field. */
static void a_name_cannot_add_a_journal_field(void **state)
{
	(void)state;
	static char entry[8192];
	static const char value[] = "/a\nCEJAIL_CALLER=uid:0\nx";
	struct audit a = open_audit(false, true, false);
	struct run_order run = a_run();
	memcpy(run.profile, value, sizeof(value));
	assert_true(audit_run(&a, &run, TIER_INTERPRETER, NULL));
	size_t size = receive(entry, sizeof(entry));
	const char *field = memmem(entry, size, "\nCEJAIL_PROFILE\n", 16);
	assert_non_null(field);
	const unsigned char length[8] = { sizeof(value) - 1 };
	assert_memory_equal(field + 16, length, 8);
	assert_memory_equal(field + 24, value, sizeof(value) - 1);
	assert_int_equal(field[24 + sizeof(value) - 1], '\n');
	audit_close(&a);
}

static void a_journal_that_is_gone_is_a_failure_until_it_is_back(void **state)
{
	(void)state;
	struct audit a = open_audit(false, true, false);
	(void)close(journal_fd);
	(void)unlink(path_of("journal"));
	assert_fails(&a, "No such file or directory");
	journal_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(journal_fd, (struct sockaddr *)&fake_journal, sizeof(fake_journal)),
			 0);
	write_both(&a);
	check_entries();
	audit_close(&a);
}

static void a_busy_journal_is_waited_for_briefly(void **state)
{
	(void)state;
	struct audit a = open_audit(false, true, false);
	faults.send_errno = EAGAIN;
	faults.send_failures = 1;
	write_both(&a);
	check_entries();
	faults.send_failures = 2;
	assert_fails(&a, "Resource temporarily unavailable");
	audit_close(&a);
}

static void without_a_journal_it_does_not_open(void **state)
{
	(void)state;
	struct audit a;
	struct cj_error err = { 0 };
	const struct audit_config c = { .file = path_of("log"), .journal = true };
	(void)close(journal_fd);
	(void)unlink(path_of("journal"));
	const struct audit_config copy = { .file = strdup(c.file), .journal = true };
	assert_true(audit_open(&copy, &a, &err) < 0);
	assert_false(audit_is_on(&a));
	assert_non_null(strstr(err.hint, "journal running"));
	free((void *)copy.file);
	(void)unlink(path_of("log"));
	journal_fd = -1;
}

/* --- both --------------------------------------------------------------------------------------
 */

static void each_sink_gets_the_line_even_if_the_other_fails(void **state)
{
	(void)state;
	static char entry[8192];
	struct lines l;
	struct audit a = open_audit(true, true, false);
	faults.write_errno = EIO;
	assert_fails(&a, "Input/output error");
	assert_true(receive(entry, sizeof(entry)) > 0);
	faults.write_errno = 0;
	faults.send_errno = EPERM;
	faults.send_failures = 1;
	assert_fails(&a, "Operation not permitted");
	read_lines(&l, "log");
	assert_int_equal(l.count, 1);
	arena_fini(&l.arena);
	audit_close(&a);
}

/* The summary's error message may quote a command, a path, a variable of the caller's. */
static void nothing_of_a_callers_bytes_is_written(void **state)
{
	(void)state;
	static char text[16384];
	struct audit a = open_audit(true, true, false);
	write_both(&a);
	for (unsigned i = 0; i < 2; i++) {
		size_t size = receive(text, sizeof(text));
		assert_true(size > 0);
		assert_null(memmem(text, size, SECRET, strlen(SECRET)));
	}
	auto_fd int fd = open(path_of("log"), O_RDONLY | O_CLOEXEC);
	ssize_t size = read(fd, text, sizeof(text));
	assert_true(size > 0);
	assert_null(memmem(text, (size_t)size, SECRET, strlen(SECRET)));
	audit_close(&a);
}

static void no_sink_is_off(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	struct audit a = open_audit(false, false, false);
	struct run_order run = a_run();
	assert_false(audit_is_on(&a));
	assert_int_equal(audit_reopen(&a, &err), 0);
	assert_false(audit_run(&a, &run, TIER_COLD, NULL));
	run.audit_required = false;
	assert_true(audit_run(&a, &run, TIER_COLD, NULL));
	assert_int_equal(a.failures, 0);
	audit_close(&a);
}

static void a_line_that_is_not_required_may_be_missing(void **state)
{
	(void)state;
	struct audit a = open_audit(true, false, false);
	struct run_order run = a_run();
	run.audit_required = false;
	faults.write_errno = EIO;
	assert_true(audit_run(&a, &run, TIER_COLD, NULL));
	assert_int_equal(a.failures, 1);
	audit_close(&a);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_run_has_two_lines),
		CASE(a_session_begins_and_ends_with_a_line),
		CASE(a_session_has_a_line_before_its_network_changes),
		CASE(arguments_that_are_asked_for_are_in_both_sinks),
		CASE(a_call_has_a_line_with_the_hash_of_its_arguments),
		CASE(the_schema_has_the_lines_members_in_order),
		CASE(what_is_unknown_is_null),
		CASE(odd_names_stay_within_their_line),
		CASE(the_file_is_appended_to_and_not_for_everybody),
		CASE(no_other_kind_of_file_is_taken),
		CASE(rotation_opens_the_path_again),
		CASE(each_line_reaches_the_disk_when_asked),
		CASE(a_line_that_is_not_required_may_be_missing),
		CASE(a_full_disk_is_a_failure_and_tears_one_line_at_most),
		CASE(the_journal_has_fields_of_its_own),
		CASE(the_two_kinds_of_entry_have_ids_of_their_own),
		CASE(what_is_too_large_goes_as_a_sealed_file),
		CASE(a_name_cannot_add_a_journal_field),
		CASE(a_journal_that_is_gone_is_a_failure_until_it_is_back),
		CASE(a_busy_journal_is_waited_for_briefly),
		CASE(without_a_journal_it_does_not_open),
		CASE(each_sink_gets_the_line_even_if_the_other_fails),
		CASE(nothing_of_a_callers_bytes_is_written),
		CASE(no_sink_is_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
