/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: two events of each run, to a file and to the journal. */
#include "runtime/service/operations/audit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/files/unix.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/run/report/result.h"

#define JOURNAL_SOCKET  "/run/systemd/journal/socket"
#define JOURNAL_WAIT_MS 50   /* the longest wait for a busy journal: all callers wait meanwhile */
#define TEXT_MAX        256  /* of a name from a caller */
#define ENTRY_MAX       8192 /* far more than its fields can fill */

/* --- the event -------------------------------------------------------------------- */

struct record {
	const struct run_order *order;
	enum tier tier;                      /* of a run */
	const struct summary *end;           /* NULL: the run is about to start */
	const struct audit_session *session; /* NULL: it is of a run */
	struct timespec time;
	char trace_id[33];
};

/* The same name in the file and in the journal. */
static const char *event_of(const struct record *r)
{
	if (r->session)
		return r->session->reason ? "session_end" : "session_start";
	return r->end ? "end" : "start";
}

static const char *tier_of(const struct record *r)
{
	return r->order->session[0] ? "session" : tier_names[r->tier];
}

/* --- the line --------------------------------------------------------------------- */

static void put_text(struct json_writer *w, const char *key, const char *text)
{
	char cut[TEXT_MAX];
	(void)snprintf(cut, sizeof(cut), "%s", text);
	json_member_filled(w, key, cut);
}

/* "": the run had no public network. */
static const char *network_state_of(const struct summary *s)
{
	return s->has_network ? network_state_names[s->network_state] : "";
}

static void put_end(struct json_writer *w, const struct summary *s)
{
	put_text(w, "status", status_names[s->status]);
	json_member_known(w, "exit_code", s->exit_code >= 0, (uint64_t)s->exit_code);
	json_member_known(w, "signal", s->signal > 0, (uint64_t)s->signal);
	put_text(w, "error_stage", s->error_stage);
	result_put_usage(w, &s->usage);
	json_member_filled(w, "network_state", network_state_of(s));
	json_member_u64(w, "setup_us", s->setup_us);
	json_member_u64(w, "stdout_bytes", s->stdout_bytes);
	json_member_u64(w, "stderr_bytes", s->stderr_bytes);
	json_member_u64(w, "artifacts", s->artifacts);
	json_member_u64(w, "denied_packets", s->denied_packets);
	json_member_u64(w, "denied_syscalls", s->denied_syscalls);
}

static void put_line_head(struct json_writer *w, const struct record *r)
{
	const struct run_order *o = r->order;

	json_open_object(w);
	put_text(w, "schema", "cejail.audit/1");
	put_text(w, "event", event_of(r));
	result_put_time(w, "time", &r->time);
	put_text(w, "id", o->job.id);
	put_text(w, "caller", o->caller);
	put_text(w, "profile", o->profile);
	put_text(w, "profile_sha256", o->job.profile_sha256);
}

static void put_trace(struct json_writer *w, const struct record *r)
{
	put_text(w, "request_id", r->order->job.trace.request_id);
	put_text(w, "traceparent", r->order->job.trace.traceparent);
}

static void put_line(struct json_writer *w, const struct record *r)
{
	put_line_head(w, r);
	put_text(w, "code_sha256", r->order->code_sha256);
	json_member_u64(w, "code_bytes", r->order->code_bytes);
	put_text(w, "request_sha256", r->order->request_sha256);
	put_text(w, "tier", tier_of(r));
	put_text(w, "session", r->order->session);
	put_trace(w, r);
	if (r->end)
		put_end(w, r->end);
	json_close_object(w);
}

static void put_session_line(struct json_writer *w, const struct record *r)
{
	const struct audit_session *s = r->session;

	put_line_head(w, r);
	put_text(w, "request_sha256", r->order->request_sha256);
	put_trace(w, r);
	put_text(w, "context", s->context);
	if (s->reason) {
		put_text(w, "reason", s->reason);
		json_member_u64(w, "execs", s->execs);
		json_member_u64(w, "duration_ms", s->duration_ms);
		json_member_u64(w, "cpu_ms", s->cpu_ms);
	}
	json_close_object(w);
}

/* --- the file --------------------------------------------------------------------- */

static int open_file(const char *path, struct cj_error *err)
{
	/* O_NONBLOCK: opening a fifo does not wait for a reader; it is refused afterwards */
	auto_fd int fd = open(
	    path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
	    0640);
	struct stat st;
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "stat '%s'", path);
	if (!S_ISREG(st.st_mode))
		return cj_reject(err, "'%s' is not a regular file", path);
	return take_fd(&fd);
}

/* One write(2), so that lines of two writers do not mix. */
static int write_file(struct audit *a, const struct record *r, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	char line[ENTRY_MAX];
	const char *text;
	size_t size;

	if (!w)
		return cj_fail(err, ENOMEM, "write '%s'", a->path);
	if (r->session)
		put_session_line(w, r);
	else
		put_line(w, r);
	int rc = json_writer_take(w, &text, &size, err);
	if (rc < 0)
		return cj_wrap(err, "write '%s'", a->path);
	int n = snprintf(line, sizeof(line), "%s%s\n", a->is_torn ? "\n" : "", text);
	if (n < 0 || (size_t)n >= sizeof(line))
		return cj_fail(err, E2BIG, "write '%s'", a->path);

	ssize_t put = sys_write(a->file_fd, line, (size_t)n);
	if (put < 0)
		return cj_fail(err, errno, "write '%s'", a->path);
	a->is_torn = put < n;
	if (put < n)
		return cj_fail(err, ENOSPC, "write '%s': only %zd of %d bytes", a->path, put, n);
	if (a->sync && fdatasync(a->file_fd) < 0)
		return cj_fail(err, errno, "sync '%s' to disk", a->path);
	return 0;
}

/* --- the journal ------------------------------------------------------------------ */

struct entry {
	char text[ENTRY_MAX];
	size_t used;
	bool is_full;
};

static void entry_add(struct entry *e, const void *bytes, size_t size)
{
	if (size > sizeof(e->text) - e->used) {
		e->is_full = true;
		return;
	}
	memcpy(e->text + e->used, bytes, size);
	e->used += size;
}

/*
 * The native protocol: NAME=VALUE; a value with a newline has its length before it, little-endian.
 */
static void put_field(struct entry *e, const char *name, const char *value)
{
	size_t size = strnlen(value, TEXT_MAX - 1);
	entry_add(e, name, strlen(name));
	if (memchr(value, '\n', size)) {
		uint8_t length[8];
		for (unsigned i = 0; i < sizeof(length); i++)
			length[i] = (uint8_t)((uint64_t)size >> (8 * i));
		entry_add(e, "\n", 1);
		entry_add(e, length, sizeof(length));
	} else {
		entry_add(e, "=", 1);
	}
	entry_add(e, value, size);
	entry_add(e, "\n", 1);
}

static void put_number(struct entry *e, const char *name, uint64_t value)
{
	char text[24];
	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	put_field(e, name, text);
}

/* An empty field is left out. */
static void put_if(struct entry *e, const char *name, const char *value)
{
	if (value[0] != '\0')
		put_field(e, name, value);
}

static void put_end_fields(struct entry *e, const struct summary *s)
{
	put_field(e, "CEJAIL_STATUS", status_names[s->status]);
	if (s->exit_code >= 0)
		put_number(e, "CEJAIL_EXIT_CODE", (uint64_t)s->exit_code);
	if (s->signal > 0)
		put_number(e, "CEJAIL_SIGNAL", (uint64_t)s->signal);
	put_if(e, "CEJAIL_ERROR_STAGE", s->error_stage);
	put_if(e, "CEJAIL_NETWORK_STATE", network_state_of(s));
	put_number(e, "CEJAIL_WALL_USEC", s->usage.wall_ms * 1000);
	put_number(e, "CEJAIL_CPU_USEC", (s->usage.cpu_user_ms + s->usage.cpu_system_ms) * 1000);
	if (s->usage.has_memory_peak)
		put_number(e, "CEJAIL_MEM_PEAK_BYTES", s->usage.memory_peak_bytes);
	put_number(e, "CEJAIL_DENIED_PACKETS", s->denied_packets);
	put_number(e, "CEJAIL_DENIED_SYSCALLS", s->denied_syscalls);
}

static void put_entry_head(struct entry *e, const struct record *r, const char *message,
			   const char *message_id)
{
	put_field(e, "MESSAGE", message);
	put_field(e, "MESSAGE_ID", message_id);
	put_number(e, "PRIORITY", LOG_INFO);
	put_field(e, "SYSLOG_IDENTIFIER", "cejail");
	put_field(e, "CEJAIL_EVENT", event_of(r));
}

static void put_entry_order(struct entry *e, const struct run_order *o)
{
	put_field(e, "CEJAIL_CALLER", o->caller);
	put_field(e, "CEJAIL_PROFILE", o->profile);
	put_if(e, "CEJAIL_PROFILE_SHA256", o->job.profile_sha256);
	put_if(e, "CEJAIL_REQUEST_SHA256", o->request_sha256);
	put_field(e, "CEJAIL_REQUEST_ID", o->job.trace.request_id);
}

static void put_entry(struct entry *e, const struct record *r)
{
	const struct run_order *o = r->order;
	char message[TEXT_MAX];
	if (r->end)
		(void)snprintf(message, sizeof(message), "run %.64s of %.64s ended: %s", o->job.id,
			       o->caller, status_names[r->end->status]);
	else
		(void)snprintf(message, sizeof(message), "run %.64s of %.64s starts", o->job.id,
			       o->caller);
	put_entry_head(e, r, message, r->end ? AUDIT_MESSAGE_END : AUDIT_MESSAGE_START);
	put_field(e, "CEJAIL_RUN_ID", o->job.id);
	put_entry_order(e, o);
	put_if(e, "CEJAIL_CODE_SHA256", o->code_sha256);
	put_number(e, "CEJAIL_CODE_BYTES", o->code_bytes);
	put_field(e, "CEJAIL_TIER", tier_of(r));
	put_if(e, "CEJAIL_SESSION", o->session);
	put_if(e, "TRACE_ID", r->trace_id);
	if (r->end)
		put_end_fields(e, r->end);
}

static void put_session_entry(struct entry *e, const struct record *r)
{
	const struct audit_session *s = r->session;
	char message[TEXT_MAX];

	(void)snprintf(message, sizeof(message), "session %.64s of %.64s %s%.32s", r->order->job.id,
		       r->order->caller, s->reason ? "ended: " : "starts",
		       s->reason ? s->reason : "");
	put_entry_head(e, r, message,
		       s->reason ? AUDIT_MESSAGE_SESSION_END : AUDIT_MESSAGE_SESSION_START);
	put_field(e, "CEJAIL_SESSION", r->order->job.id);
	put_entry_order(e, r->order);
	put_if(e, "TRACE_ID", r->trace_id);
	if (!s->reason)
		return;
	put_field(e, "CEJAIL_REASON", s->reason);
	put_number(e, "CEJAIL_EXECS", s->execs);
	put_number(e, "CEJAIL_CPU_USEC", s->cpu_ms * 1000);
}

static const struct sockaddr_un journal_address = {
	.sun_family = AF_UNIX,
	.sun_path = JOURNAL_SOCKET,
};

/* An entry that is too long for a datagram is sent as a sealed memfd with an empty datagram. */
static int send_memfd(int sock_fd, const struct entry *e, struct cj_error *err)
{
	auto_fd int fd = fd_memfd_sealed("journal entry", e->text, e->used, err);
	if (fd < 0)
		return fd;
	const struct unix_message m = {
		.fds = &fd,
		.nfds = 1,
		.flags = MSG_DONTWAIT,
		.to = &journal_address,
		.to_size = sizeof(journal_address),
	};
	ssize_t sent = unix_send_message(sock_fd, &m);
	if (sent < 0)
		return cj_fail(err, (int)-sent, "send to '%s'", JOURNAL_SOCKET);
	return 0;
}

/* Wait for a busy journal, but only for a moment: all callers wait meanwhile. */
static int send_entry(int sock_fd, struct entry *e, struct cj_error *err)
{
	struct iovec iov = { e->text, e->used };
	struct msghdr msg = {
		.msg_name = (void *)&journal_address,
		.msg_namelen = sizeof(journal_address),
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	for (unsigned tries = 0; tries < 2; tries++) {
		struct pollfd p = { .fd = sock_fd, .events = POLLOUT };
		if (sendmsg(sock_fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return 0;
		if (errno == EMSGSIZE || errno == ENOBUFS)
			return send_memfd(sock_fd, e, err);
		if (errno != EAGAIN && errno != EINTR)
			break;
		(void)poll(&p, 1, JOURNAL_WAIT_MS);
		errno = EAGAIN;
	}
	return cj_fail(err, errno, "send to '%s'", JOURNAL_SOCKET);
}

static int write_journal(const struct audit *a, const struct record *r, struct cj_error *err)
{
	struct entry e = { .used = 0 };
	if (r->session)
		put_session_entry(&e, r);
	else
		put_entry(&e, r);
	if (e.is_full)
		return cj_fail(err, E2BIG, "send to '%s'", JOURNAL_SOCKET);
	return send_entry(a->journal_fd, &e, err);
}

/*
 * connect(2) only checks that journald listens.  Each datagram is sent to the address, so that it
 * also reaches a journald that was restarted.
 */
static int open_journal(struct cj_error *err)
{
	auto_fd int probe_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	auto_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe_fd < 0 || fd < 0)
		return cj_fail(err, errno, "make a socket for the journal");
	if (connect(probe_fd, (const struct sockaddr *)&journal_address, sizeof(journal_address)) <
	    0) {
		int rc = cj_fail(err, errno, "connect to '%s'", JOURNAL_SOCKET);
		cj_hint(err, "is systemd's journal running?");
		return rc;
	}
	return take_fd(&fd);
}

/* --- both ------------------------------------------------------------------------- */

int audit_open(const struct audit_config *c, struct audit *out, struct cj_error *err)
{
	struct audit a = AUDIT_NULL;
	*out = a;
	a.sync = c->sync;
	if (c->file) {
		(void)snprintf(a.path, sizeof(a.path), "%s",
			       c->file); /* the configuration limits its length */
		a.file_fd = open_file(a.path, err);
		if (a.file_fd < 0)
			return cj_wrap(err, "audit");
	}
	if (c->journal) {
		a.journal_fd = open_journal(err);
		if (a.journal_fd < 0) {
			audit_close(&a);
			return cj_wrap(err, "audit");
		}
	}
	*out = a;
	return 0;
}

void audit_close(struct audit *a)
{
	cj_close(&a->file_fd);
	cj_close(&a->journal_fd);
}

int audit_reopen(struct audit *a, struct cj_error *err)
{
	if (a->file_fd < 0)
		return 0;
	int fd = open_file(a->path, err);
	if (fd < 0)
		return cj_wrap(err, "audit");
	cj_close(&a->file_fd);
	a->file_fd = fd;
	a->is_torn = false;
	return 0;
}

bool audit_is_on(const struct audit *a)
{
	return a->file_fd >= 0 || a->journal_fd >= 0;
}

/* Each sink gets the event even if the other one fails; *err is the first failure. */
static int write_record(struct audit *a, struct record r, struct cj_error *err)
{
	struct cj_error second = { 0 };

	(void)clock_gettime(CLOCK_REALTIME, &r.time); /* cannot fail: clock_gettime(2) */
	(void)snprintf(r.trace_id, sizeof(r.trace_id), "%.32s", r.order->job.trace.traceparent + 3);
	int rc = a->file_fd >= 0 ? write_file(a, &r, err) : 0;
	int rc_journal = a->journal_fd >= 0 ? write_journal(a, &r, rc < 0 ? &second : err) : 0;
	if (rc < 0 || rc_journal < 0) {
		a->failures++;
		rc = cj_wrap(err, "audit");
		(void)snprintf(a->last_failure, sizeof(a->last_failure), "%s", err->msg);
		return rc;
	}
	a->last_failure[0] = '\0';
	return 0;
}

int audit_run(struct audit *a, const struct run_order *run, enum tier tier,
	      const struct summary *end, struct cj_error *err)
{
	return write_record(a, (struct record){ .order = run, .tier = tier, .end = end }, err);
}

int audit_session(struct audit *a, const struct audit_session *session, struct cj_error *err)
{
	return write_record(a, (struct record){ .order = session->order, .session = session }, err);
}
