/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run/report/delivery.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "runtime/base/files/fd.h"

void delivery_init(struct delivery *d)
{
	*d = (struct delivery){ .result_fd = -1, .file = RESULT_FILE_NULL };
	events_init(&d->events, -1);
}

void delivery_fini(struct delivery *d)
{
	result_file_fini(&d->file);
	events_fini(&d->events);
	delivery_init(d);
}

/* A descriptor that the caller passed in.  Close-on-exec keeps it from the payload. */
static int check_fd(int fd, const char *option, struct cj_error *err)
{
	if (fd <= STDERR_FILENO) {
		cj_refuse(err, "%s %d: this is a standard stream", option, fd);
		return cj_hint(err, "use --json for a result on standard output");
	}
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0) {
		(void)!cj_fail(err, errno, "%s %d", option, fd);
		return cj_hint(err, "open it for cejail, as in 'cejail run %s %d ... %d>FILE'",
			       option, fd, fd);
	}
	if ((flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH))
		return cj_reject(err, "%s %d: this descriptor is not open for writing", option, fd);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return cj_fail(err, errno, "%s %d", option, fd);
	return 0;
}

/* Pipes carry in one direction only, and a datagram has no room for a call. */
static int check_calls(const struct config *c, struct cj_error *err)
{
	const struct {
		int fd;
		const char *option;
	} others[] = { { c->request_fd, "--request-fd" },
		       { c->result_fd, "--result-fd" },
		       { c->events_fd, "--events-fd" } };
	int fd = c->calls_fd, type = 0;
	socklen_t size = sizeof(type), any = 0;

	for (size_t i = 0; i < COUNT_OF(others); i++)
		if (others[i].fd == fd)
			return cj_reject(err, "--calls-fd and %s are the same descriptor %d",
					 others[i].option, fd);
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 && errno != ENOTSOCK)
		(void)!cj_fail(err, errno, "--calls-fd %d", fd);
	else if (type != SOCK_STREAM)
		(void)!cj_reject(err, "--calls-fd %d: this descriptor is no stream socket", fd);
	else if (getpeername(fd, &(struct sockaddr){ 0 }, &any) < 0)
		(void)!cj_fail(err, errno, "--calls-fd %d", fd);
	else if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return cj_fail(err, errno, "--calls-fd %d", fd);
	else
		return 0;
	return cj_hint(err, "pass one end of socketpair(AF_UNIX, SOCK_STREAM): cejail-tools(7)");
}

int delivery_open(struct delivery *d, const struct config *c, struct cj_error *err)
{
	/* Before opening anything: a closed number could become one of our own descriptors. */
	if (c->result_fd >= 0 && check_fd(c->result_fd, "--result-fd", err) < 0)
		return -err->code;
	if (c->events_fd >= 0 && check_fd(c->events_fd, "--events-fd", err) < 0)
		return -err->code;
	if (c->result_fd >= 0 && c->result_fd == c->events_fd)
		return cj_reject(err, "--result-fd and --events-fd are the same descriptor %d",
				 c->result_fd);
	if (c->calls_fd > STDERR_FILENO && check_calls(c, err) < 0)
		return -err->code;

	d->to_stdout = c->json && !c->json_file;
	d->result_fd = c->result_fd;
	events_init(&d->events, c->events_fd);
	if (c->json_file && result_file_open(c->json_file, &d->file, err) < 0)
		return cj_wrap(err, "--json");
	return 0;
}

int delivery_hangup_fd(const struct delivery *d)
{
	if (d->result_fd >= 0)
		return d->result_fd;
	if (d->events.fd >= 0)
		return d->events.fd;
	return d->to_stdout ? STDOUT_FILENO : -1;
}

bool delivery_is_wanted(const struct delivery *d)
{
	return d->to_stdout || d->result_fd >= 0 || d->file.dir_fd >= 0 || d->events.fd >= 0;
}

int delivery_send_text(struct delivery *d, const char *text, size_t size, struct cj_error *err)
{
	struct cj_error errors[4] = { 0 };

	if (d->to_stdout)
		(void)!fd_write_line(STDOUT_FILENO, text, size, "the result", &errors[0]);
	if (d->result_fd >= 0)
		(void)!fd_write_line(d->result_fd, text, size, "the result", &errors[1]);
	if (d->file.dir_fd >= 0 && result_file_commit(&d->file, text, size, &errors[2]) < 0)
		(void)!cj_wrap(&errors[2], "--json");
	/* last: it may wait for its reader */
	(void)!events_finish(&d->events, text, size, &errors[3]);
	for (size_t i = 0; i < COUNT_OF(errors); i++) {
		*err = errors[i];
		if (err->code != 0)
			break;
	}
	return -err->code;
}

int delivery_send(struct delivery *d, const struct outcome *o, const struct result_about *about,
		  struct cj_error *err)
{
	if (!delivery_is_wanted(d))
		return 0;

	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct blob text = { 0 };
	if (result_write(w, o, about, err) < 0 || json_writer_take(w, &text, err) < 0)
		return -err->code;
	return delivery_send_text(d, text.bytes, text.size, err);
}
