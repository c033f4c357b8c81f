/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: two events of each run, to a file and to the journal. */
#include "runtime/service/operations/audit.h"

#include <inttypes.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/unix.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/run/report/result.h"
#include "runtime/service/log/slog.h"

#define JOURNAL_SOCKET  "/run/systemd/journal/socket"
#define JOURNAL_WAIT_MS 50   /* the longest wait for a busy journal: all callers wait meanwhile */
#define TEXT_MAX        256  /* of a name from a caller */
#define ENTRY_MAX       8192 /* far more than its fields can fill */
#define FILE_MODE       0640

struct audit_record {
	const struct run_order *order;
	enum tier tier;                      /* of a run */
	const struct summary *end;           /* NULL: the run is about to start */
	const struct audit_session *session; /* NULL: it is of a run */
	const struct call_record *call;      /* of a run: one of its calls; or NULL */
	uint64_t epoch_ms;
	char trace_id[33];
};

/* The same name in the file and in the journal. */
static const char *event_of(const struct audit_record *r)
{
	if (r->session && r->session->network)
		return "session_network";
	if (r->session)
		return r->session->reason ? "session_end" : "session_start";
	if (r->call)
		return "call";
	return r->end ? "end" : "start";
}

/* An entry of the journal. */
struct audit_entry {
	char text[ENTRY_MAX];
	size_t used;
	bool is_full;
};

static void entry_add(struct audit_entry *e, const void *bytes, size_t size)
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
static void entry_put(struct audit_entry *e, const char *name, const char *value)
{
	size_t size = strlen(value);

	entry_add(e, name, strlen(name));
	if (strchr(value, '\n')) {
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

/* One of the two is NULL. */
struct sink {
	struct json_writer *w;
	struct audit_entry *e;
};

/*
 * A field is a `key` of the line and a `name` in the journal; NULL: it is not there.  What is empty
 * or not known is null in the line, and left out of the journal.
 */
static void put_text(const struct sink *s, const char *key, const char *name, const char *text)
{
	char cut[TEXT_MAX];

	(void)snprintf(cut, sizeof(cut), "%s", text);
	if (s->w && key)
		json_member_filled(s->w, key, cut);
	if (s->e && name && cut[0] != '\0')
		entry_put(s->e, name, cut);
}

static void put_known(const struct sink *s, const char *key, const char *name, bool is_known,
		      uint64_t value)
{
	char text[24];

	if (s->w && key)
		json_member_known(s->w, key, is_known, value);
	if (!s->e || !name || !is_known)
		return;
	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	entry_put(s->e, name, text);
}

static void put_number(const struct sink *s, const char *key, const char *name, uint64_t value)
{
	put_known(s, key, name, true, value);
}

static void put_end(const struct sink *s, const struct summary *end)
{
	const struct usage *u = &end->totals.usage;

	put_text(s, "status", "CEJAIL_STATUS", status_names[end->totals.status]);
	put_known(s, "exit_code", "CEJAIL_EXIT_CODE", end->totals.exit_code >= 0,
		  (uint64_t)end->totals.exit_code);
	put_known(s, "signal", "CEJAIL_SIGNAL", end->totals.signal > 0,
		  (uint64_t)end->totals.signal);
	put_text(s, "error_stage", "CEJAIL_ERROR_STAGE", end->error_stage);
	if (s->w)
		result_put_usage(s->w, u);
	put_number(s, NULL, "CEJAIL_WALL_USEC", u->wall_ms * 1000);
	put_number(s, NULL, "CEJAIL_CPU_USEC", (u->cpu_user_ms + u->cpu_system_ms) * 1000);
	put_known(s, NULL, "CEJAIL_MEM_PEAK_BYTES", u->has_memory_peak, u->memory_peak_bytes);
	/* "": the run had no public network */
	put_text(s, "network_state", "CEJAIL_NETWORK_STATE",
		 end->has_network ? network_state_names[end->network_state] : "");
	put_number(s, "setup_us", NULL, end->setup_us);
	put_number(s, "stdout_bytes", NULL, end->totals.stdout_bytes);
	put_number(s, "stderr_bytes", NULL, end->totals.stderr_bytes);
	put_number(s, "artifacts", NULL, end->totals.artifacts);
	put_number(s, "denied_packets", "CEJAIL_DENIED_PACKETS", end->totals.denied_packets);
	put_number(s, "denied_syscalls", "CEJAIL_DENIED_SYSCALLS", end->totals.denied_syscalls);
}

static void put_session(const struct sink *s, const struct audit_session *session)
{
	put_text(s, "context", NULL, session->context);
	if (session->network && s->w)
		json_member_text(s->w, "network", session->network);
	if (session->network && s->e)
		entry_put(s->e, "CEJAIL_NETWORK", session->network);
	if (!session->reason)
		return;
	put_text(s, "reason", "CEJAIL_REASON", session->reason);
	put_number(s, "execs", "CEJAIL_EXECS", session->execs);
	put_number(s, "duration_ms", NULL, session->duration_ms);
	put_number(s, "cpu_ms", NULL, session->cpu_ms);
	put_number(s, NULL, "CEJAIL_CPU_USEC", session->cpu_ms * 1000);
}

static void put_call(const struct sink *s, const struct call_record *call)
{
	const bool began = call->id > 0;

	put_known(s, "call", "CEJAIL_CALL", began, call->id);
	put_text(s, "name", "CEJAIL_TOOL", call->name);
	put_text(s, "ended", "CEJAIL_ENDED", call_end_names[call->end]);
	put_known(s, "ms", NULL, began, call->ms);
	put_known(s, "arguments_bytes", "CEJAIL_ARGUMENTS_BYTES", began, call->bytes);
	put_text(s, "arguments_sha256", "CEJAIL_ARGUMENTS_SHA256", call->sha256);
	if (!call->arguments)
		return;
	if (s->w) {
		json_put_key(s->w, "arguments");
		json_put_raw(s->w, call->arguments, strlen(call->arguments));
	}
	if (s->e)
		entry_put(s->e, "CEJAIL_ARGUMENTS", call->arguments);
}

static void put_record(const struct sink *s, const struct audit_record *r)
{
	const struct run_order *o = r->order;

	put_text(s, "schema", NULL, "cejail.audit/1");
	put_text(s, "event", "CEJAIL_EVENT", event_of(r));
	if (s->w)
		result_put_ms(s->w, "time", r->epoch_ms);
	put_text(s, "id", r->session ? "CEJAIL_SESSION" : "CEJAIL_RUN_ID", o->job.id);
	put_text(s, "caller", "CEJAIL_CALLER", o->caller);
	put_text(s, "profile", "CEJAIL_PROFILE", o->profile);
	put_text(s, "profile_sha256", "CEJAIL_PROFILE_SHA256", o->job.profile_sha256);
	if (!r->session && !r->call) {
		put_text(s, "code_sha256", "CEJAIL_CODE_SHA256", o->code_sha256);
		put_number(s, "code_bytes", "CEJAIL_CODE_BYTES", o->code_bytes);
	}
	put_text(s, "request_sha256", "CEJAIL_REQUEST_SHA256", o->request_sha256);
	if (!r->session && !r->call)
		put_text(s, "tier", "CEJAIL_TIER", o->session[0] ? "session" : tier_names[r->tier]);
	if (!r->session)
		put_text(s, "session", "CEJAIL_SESSION", o->session);
	put_text(s, "request_id", "CEJAIL_REQUEST_ID", o->job.trace.request_id);
	put_text(s, "traceparent", NULL, o->job.trace.traceparent);
	put_text(s, NULL, "TRACE_ID", r->trace_id);
	if (r->session)
		put_session(s, r->session);
	else if (r->call)
		put_call(s, r->call);
	else if (r->end)
		put_end(s, r->end);
}

static int write_file(struct audit *a, const struct audit_record *r, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct blob text;

	json_open_object(w);
	put_record(&(const struct sink){ .w = w }, r);
	json_close_object(w);
	if (json_writer_take(w, &text, err) < 0)
		return cj_wrap(err, "write '%s'", a->file.path);
	if (line_file_append(&a->file, text.bytes, text.size, err) < 0)
		return -err->code;
	if (a->sync && fdatasync(a->file.fd) < 0)
		return cj_fail(err, errno, "sync '%s' to disk", a->file.path);
	return 0;
}

/* What journalctl shows, and the ID of such messages. */
static void put_message(const struct sink *s, const struct audit_record *r)
{
	const struct audit_session *session = r->session;
	const char *end = session   ? session->reason
			  : r->call ? call_end_names[r->call->end]
			  : r->end  ? status_names[r->end->totals.status]
				    : NULL;
	char message[TEXT_MAX];

	(void)snprintf(message, sizeof(message), "%s%s %.64s of %.64s %s%.32s",
		       r->call ? "call in " : "", session ? "session" : "run", r->order->job.id,
		       r->order->caller,
		       session && session->network ? "has another network"
		       : end                       ? "ended: "
						   : "starts",
		       end ? end : "");
	put_text(s, NULL, "MESSAGE", message);
	if (session)
		put_text(s, NULL, "MESSAGE_ID",
			 session->network ? AUDIT_MESSAGE_SESSION_RULES
			 : end            ? AUDIT_MESSAGE_SESSION_END
					  : AUDIT_MESSAGE_SESSION_START);
	else if (r->call)
		put_text(s, NULL, "MESSAGE_ID", AUDIT_MESSAGE_CALL);
	else
		put_text(s, NULL, "MESSAGE_ID", end ? AUDIT_MESSAGE_END : AUDIT_MESSAGE_START);
	put_number(s, NULL, "PRIORITY", LOG_INFO);
	put_text(s, NULL, "SYSLOG_IDENTIFIER", "cejail");
}

static const struct sockaddr_un journal_address = {
	.sun_family = AF_UNIX,
	.sun_path = JOURNAL_SOCKET,
};

/* An entry that is too long for a datagram is sent as a sealed memfd with an empty datagram. */
static int send_memfd(int sock_fd, const struct audit_entry *e, struct cj_error *err)
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
static int send_entry(int sock_fd, struct audit_entry *e, struct cj_error *err)
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

static int write_journal(const struct audit *a, const struct audit_record *r, struct cj_error *err)
{
	struct audit_entry e = { .used = 0 };
	const struct sink sink = { .e = &e };

	put_message(&sink, r);
	put_record(&sink, r);
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
		(void)!cj_fail(err, errno, "connect to '%s'", JOURNAL_SOCKET);
		return cj_hint(err, "is systemd's journal running?");
	}
	return take_fd(&fd);
}

int audit_open(const struct audit_config *c, struct audit *out, struct cj_error *err)
{
	struct audit a = AUDIT_NULL;
	*out = a;
	a.sync = c->sync;
	a.arguments_max = c->arguments;
	if (c->file && line_file_open(c->file, FILE_MODE, &a.file, err) < 0)
		return cj_wrap(err, "audit");
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
	line_file_close(&a->file);
	cj_close(&a->journal_fd);
}

int audit_reopen(struct audit *a, struct cj_error *err)
{
	return line_file_reopen(&a->file, FILE_MODE, err) < 0 ? cj_wrap(err, "audit") : 0;
}

bool audit_is_on(const struct audit *a)
{
	return a->file.fd >= 0 || a->journal_fd >= 0;
}

/* Each sink gets the event even if the other one fails; the first failure is kept and logged. */
static bool write_record(struct audit *a, struct audit_record r, const char *what)
{
	struct cj_error err = { 0 }, second = { 0 };

	if (!audit_is_on(a))
		return !r.order->audit_required;
	r.epoch_ms = clock_epoch_ms();
	(void)snprintf(r.trace_id, sizeof(r.trace_id), "%.*s", TRACE_ID_DIGITS,
		       r.order->job.trace.traceparent + TRACE_ID_AT);
	int rc = a->file.fd >= 0 ? write_file(a, &r, &err) : 0;
	int rc_journal = a->journal_fd >= 0 ? write_journal(a, &r, rc < 0 ? &second : &err) : 0;
	a->last_failure[0] = '\0';
	if (rc == 0 && rc_journal == 0)
		return true;
	a->failures++;
	(void)!cj_wrap(&err, "audit");
	(void)snprintf(a->last_failure, sizeof(a->last_failure), "%s", err.msg);
	slog_failure(SLOG_ERROR, r.order->job.trace.request_id, &err, what);
	return !r.order->audit_required;
}

bool audit_run(struct audit *a, const struct run_order *run, enum tier tier,
	       const struct summary *end)
{
	return write_record(a, (struct audit_record){ .order = run, .tier = tier, .end = end },
			    end ? "write the audit line of a run's end"
				: "write the audit line of a run's start");
}

bool audit_call(struct audit *a, const struct run_order *run, const struct call_record *call)
{
	return write_record(a, (struct audit_record){ .order = run, .call = call },
			    "write the audit line of a call");
}

bool audit_session(struct audit *a, const struct audit_session *session)
{
	return write_record(a, (struct audit_record){ .order = session->order, .session = session },
			    "write the audit line of a session");
}
