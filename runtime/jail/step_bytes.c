/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/step_bytes.h"

#include <sys/uio.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

static size_t gather(const struct step_bytes *b, uint8_t out[static STEP_DATA_MAX])
{
	size_t used = b->head_size;
	if (used > 0)
		memcpy(out, b->head, used);
	for (size_t i = 0; i < b->nparts; i++) {
		if (b->parts[i].iov_len > 0)
			memcpy(out + used, b->parts[i].iov_base, b->parts[i].iov_len);
		used += b->parts[i].iov_len;
	}
	return used;
}

int step_tell_bytes(const struct step_link *link, unsigned step, const struct step_bytes *bytes,
		    const char *name, const int *fds, size_t nfds, struct cj_error *err)
{
	size_t size = 0;
	for (size_t i = 0; i < bytes->nparts; i++)
		size += bytes->parts[i].iov_len;
	if (size > 0 && size <= STEP_DATA_MAX - bytes->head_size) {
		uint8_t data[STEP_DATA_MAX];
		return step_tell(link, step, data, gather(bytes, data), fds, nfds, err);
	}

	int all[STEP_FDS_MAX + 1];
	auto_fd int memfd = fd_memfd_sealed_parts(name, bytes->parts, bytes->nparts, err);
	if (memfd < 0)
		return memfd;
	if (nfds > STEP_FDS_MAX)
		return cj_fail(err, EMSGSIZE, "send '%s'", link->names[step]);
	all[0] = memfd;
	if (nfds > 0)
		memcpy(all + 1, fds, nfds * sizeof(*fds));
	return step_tell(link, step, bytes->head, bytes->head_size, all, nfds + 1, err);
}

int step_take_bytes(struct step_msg *msg, size_t head_size, size_t max, struct arena *a,
		    char **out_bytes, size_t *out_size, const char *what, struct cj_error *err)
{
	if (msg->size > head_size) {
		*out_size = msg->size - head_size;
		*out_bytes = arena_strndup(a, (const char *)msg->data + head_size, *out_size);
		return *out_bytes ? 0 : cj_fail(err, ENOMEM, "read '%s'", what);
	}
	if (msg->nfds == 0)
		return cj_fail(err, EPROTO, "read '%s'", what);
	auto_fd int fd = msg->fds[0];
	msg->nfds--;
	memmove(msg->fds, msg->fds + 1, msg->nfds * sizeof(*msg->fds));
	msg->fds[msg->nfds] = -1;
	return fd_read_all(fd, max, a, out_bytes, out_size, what, err);
}
