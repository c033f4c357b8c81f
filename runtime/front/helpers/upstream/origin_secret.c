/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/helpers/upstream/origin.h"

#include <fcntl.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

static bool is_same(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino &&
	       one->st_size == other->st_size && one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
	       one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

static int read_value(int fd, struct origin_header *h, struct cj_error *err)
{
	size_t size = 0;
	ssize_t got = 1;
	explicit_bzero(h->value, sizeof(h->value));
	while (got > 0 && size < sizeof(h->value)) {
		got = sys_read(fd, h->value + size, sizeof(h->value) - size);
		size += got > 0 ? (size_t)got : 0;
	}
	if (got < 0)
		return cj_fail(err, errno, "read the value of the header '%s'", h->name);
	if (size == sizeof(h->value))
		return cj_reject(err, "the value of the header '%s' has more than %d bytes",
				 h->name, UPSTREAM_VALUE_MAX);
	if (size > 0 && h->value[size - 1] == '\n')
		size--;
	if (size > 0 && h->value[size - 1] == '\r')
		size--;
	h->value[size] = '\0';
	if (size == 0 || text_has_control(h->value, size))
		return cj_reject(err,
				 "the value of the header '%s' is empty or has a control character",
				 h->name);
	return 0;
}

int origin_load(struct origin_header *h, struct cj_error *err)
{
	struct stat now;
	if (h->is_loaded && stat(h->file, &now) == 0 && is_same(&now, &h->identity))
		return 0;
	h->is_loaded = false;
	auto_fd int fd = open(h->file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &h->identity) < 0)
		return cj_fail(err, errno, "read the value of the header '%s'", h->name);
	if (!S_ISREG(h->identity.st_mode))
		return cj_reject(err, "the value of the header '%s' is not in a regular file",
				 h->name);
	if (read_value(fd, h, err) < 0) {
		explicit_bzero(h->value, sizeof(h->value));
		return -err->code;
	}
	h->is_loaded = true;
	return 0;
}

/* --- masks --------------------------------------------------------------------------------- */

int origin_mask_begin(struct origin_mask *m, const struct origin *o)
{
	*m = (struct origin_mask){ 0 };
	for (size_t i = 0; i < o->nheaders; i++) {
		const struct origin_header *h = &o->headers[i];
		if (strlen(h->value) < UPSTREAM_MASKED_MIN)
			continue;
		char *both = NULL, *value = strdup(h->value);
		if (asprintf(&both, "%s%s", h->prefix, h->value) < 0)
			both = NULL;
		m->secrets[m->count++] = both;
		m->secrets[m->count++] = value;
		if (!both || !value)
			return -ENOMEM;
	}
	return 0;
}

void origin_mask_fini(struct origin_mask *m)
{
	for (size_t i = 0; i < m->count; i++) {
		if (m->secrets[i])
			explicit_bzero(m->secrets[i], strlen(m->secrets[i]));
		free(m->secrets[i]);
	}
	byte_queue_fini(&m->held);
	*m = (struct origin_mask){ 0 };
}

void origin_mask_text(const struct origin_mask *m, char *bytes, size_t size)
{
	for (size_t i = 0; i < m->count; i++) {
		const size_t length = strlen(m->secrets[i]);
		char *at = bytes;
		while (size > 0 &&
		       (at = memmem(at, size - (size_t)(at - bytes), m->secrets[i], length)))
			memset(at, '*', length);
	}
}

/* Bytes at the end that a secret begins with. */
static size_t unfinished(const struct origin_mask *m, const char *bytes, size_t size)
{
	size_t most = 0;
	for (size_t i = 0; i < m->count; i++) {
		size_t length = strlen(m->secrets[i]) - 1;
		if (length > size)
			length = size;
		while (length > most && memcmp(bytes + size - length, m->secrets[i], length) != 0)
			length--;
		most = length > most ? length : most;
	}
	return most;
}

int origin_mask_stream(struct origin_mask *m, const char *bytes, size_t size, bool is_last,
		       struct byte_queue *out)
{
	if (size > 0 && byte_queue_add(&m->held, bytes, size) < 0)
		return -ENOMEM;
	const size_t all = byte_queue_size(&m->held);
	if (all == 0)
		return 0;
	char *begin = m->held.bytes + m->held.start;
	origin_mask_text(m, begin, all);
	const size_t done = all - (is_last ? 0 : unfinished(m, begin, all));
	if (done > 0 && byte_queue_add(out, begin, done) < 0)
		return -ENOMEM;
	byte_queue_take(&m->held, done);
	return 0;
}
