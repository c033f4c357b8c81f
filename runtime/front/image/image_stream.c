/* SPDX-License-Identifier: Apache-2.0 */
/* Archives, read once and hashed on the way. */
#include "runtime/front/image/image_parts.h"

#include <fcntl.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#define BUFFER_BYTES       (64u << 10)
#define FILE_HEADERS_BYTES (1u << 20)

struct image_stream {
	struct image_budget *budget;
	int fd;                                   /* the file; -1: a directory */
	struct archive *packed;                   /* decompresses */
	struct archive *entries;                  /* reads the tar, or the directory */
	struct archive_entry *entry;              /* of a directory */
	struct archive_entry_linkresolver *links; /* likewise: names of one file */
	bool is_over_budget;
	uint64_t file_bytes;  /* read from fd, or from the files of a directory */
	uint64_t total_bytes; /* of the file; 0: a directory */
	struct sha256 file_hash, plain_hash;
	uint8_t in[BUFFER_BYTES], plain[BUFFER_BYTES];
};

/* This libarchive can read zstd without starting a program. */
static bool has_zstd(void)
{
	return archive_libzstd_version() != NULL;
}

static int reject_more(const struct image_budget *budget, struct cj_error *err)
{
	char most[32];
	text_format_size(budget->bytes_max, most, sizeof(most));
	cj_refuse_as(err, EFBIG, "the image has more than %s", most);
	return cj_hint(err, "allow more with --max-size");
}

int image_budget_take(struct image_budget *budget, uint64_t bytes, struct cj_error *err)
{
	if (bytes > budget->bytes_max - budget->unpacked_bytes)
		return reject_more(budget, err);
	budget->unpacked_bytes += bytes;
	return 0;
}

static int fail_archive(const struct image_stream *s, struct archive *a, struct cj_error *err)
{
	if (s->is_over_budget)
		return reject_more(s->budget, err);
	const char *text = archive_error_string(a);
	int code = archive_errno(a);
	if (code == ENOMEM)
		return cj_fail(err, ENOMEM, "read the archive");
	cj_refuse(err, "%s", text ? text : "the archive is damaged");
	return cj_hint(err, "an archive is a tar, plain or compressed once with gzip%s",
		       has_zstd() ? " or zstd" : "; this libarchive has no zstd");
}

static la_ssize_t read_file(struct archive *a, void *data, const void **out)
{
	struct image_stream *s = data;
	/* A compressed file may be larger than its content by its headers. */
	uint64_t most = s->budget->bytes_max, more = most / 16 + FILE_HEADERS_BYTES;
	most = most > UINT64_MAX - more ? UINT64_MAX : most + more;
	ssize_t got = sys_read(s->fd, s->in, sizeof(s->in));
	if (got < 0) {
		archive_set_error(a, errno, "read: %s", strerror(errno));
		return ARCHIVE_FATAL;
	}
	s->file_bytes += (uint64_t)got;
	s->is_over_budget |= s->file_bytes > most;
	if (s->is_over_budget)
		return ARCHIVE_FATAL;
	sha256_update(&s->file_hash, s->in, (size_t)got);
	*out = s->in;
	return got;
}

static void tell_read(const struct image_stream *s)
{
	if (s->budget->on_read)
		s->budget->on_read(s->budget->context, s->file_bytes, s->total_bytes);
}

/* Uncompressed bytes into s->plain; 0 at the end. */
static la_ssize_t decompress(struct image_stream *s)
{
	la_ssize_t got = archive_read_data(s->packed, s->plain, sizeof(s->plain));
	if (got <= 0)
		return got;
	s->budget->read_bytes += (uint64_t)got;
	s->is_over_budget |= s->budget->read_bytes > s->budget->bytes_max;
	if (s->is_over_budget)
		return ARCHIVE_FATAL;
	sha256_update(&s->plain_hash, s->plain, (size_t)got);
	tell_read(s);
	return got;
}

static la_ssize_t read_plain(struct archive *a, void *data, const void **out)
{
	struct image_stream *s = data;
	la_ssize_t got = decompress(s);
	if (got < 0)
		archive_copy_error(a, s->packed);
	*out = s->plain;
	return got;
}

/*
 * Adds the one filter that the file's first bytes ask for.  archive_read_support_filter_gzip(3)
 * and its like would add filters while the content looks compressed, 25 in a row, and read from
 * them for as long as they give nothing.
 */
static int add_filter(struct image_stream *s, struct archive *a, struct cj_error *err)
{
	static const uint8_t gzip[] = { 0x1f, 0x8b }, zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };
	uint8_t head[sizeof(zstd)] = { 0 };
	int rc = ARCHIVE_OK;
	if (pread(s->fd, head, sizeof(head), 0) < 0)
		return cj_fail(err, errno, "read the archive");
	if (memcmp(head, gzip, sizeof(gzip)) == 0)
		rc = archive_read_append_filter(a, ARCHIVE_FILTER_GZIP);
	else if (memcmp(head, zstd, sizeof(zstd)) == 0 && has_zstd())
		rc = archive_read_append_filter(a, ARCHIVE_FILTER_ZSTD);
	return rc == ARCHIVE_OK ? 0 : cj_fail(err, ENOMEM, "read the archive");
}

static int open_packed(struct image_stream *s, struct cj_error *err)
{
	struct archive_entry *whole;
	struct archive *a = s->packed = archive_read_new();
	if (!a || archive_read_support_format_raw(a) != ARCHIVE_OK ||
	    archive_read_support_format_empty(a) != ARCHIVE_OK)
		return cj_fail(err, ENOMEM, "read the archive");
	if (add_filter(s, a, err) < 0)
		return -err->code;
	if (archive_read_open(a, s, NULL, read_file, NULL) != ARCHIVE_OK)
		return fail_archive(s, a, err);
	int rc = archive_read_next_header(a, &whole);
	if (rc != ARCHIVE_OK && s->is_over_budget)
		return fail_archive(s, a, err);
	return rc == ARCHIVE_OK ? 0 : cj_reject(err, "the archive is empty or damaged");
}

static struct image_stream *create(struct image_budget *budget)
{
	struct image_stream *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->budget = budget;
	s->fd = -1;
	sha256_init(&s->file_hash);
	sha256_init(&s->plain_hash);
	return s;
}

void image_stream_close(struct image_stream **slot)
{
	struct image_stream *s = *slot;
	*slot = NULL;
	if (!s)
		return;
	/* These free memory and close descriptors; all was read. */
	if (s->entries)
		(void)archive_read_free(s->entries);
	if (s->packed)
		(void)archive_read_free(s->packed);
	archive_entry_linkresolver_free(s->links);
	archive_entry_free(s->entry);
	cj_close(&s->fd);
	free(s);
}

int image_stream_open(int in_fd, struct image_budget *budget, struct image_stream **out,
		      struct cj_error *err)
{
	auto_image_stream struct image_stream *s = create(budget);
	struct stat st;
	if (!s)
		return cj_fail(err, ENOMEM, "read the archive");
	s->fd = fcntl(in_fd, F_DUPFD_CLOEXEC, 0);
	if (s->fd < 0 || lseek(s->fd, 0, SEEK_SET) < 0 || fstat(s->fd, &st) < 0)
		return cj_fail(err, errno, "read the archive");
	s->total_bytes = (uint64_t)st.st_size;
	if (open_packed(s, err) < 0)
		return -err->code;
	struct archive *a = s->entries = archive_read_new();
	if (!a || archive_read_support_format_tar(a) != ARCHIVE_OK)
		return cj_fail(err, ENOMEM, "read the archive");
	if (archive_read_open(a, s, NULL, read_plain, NULL) != ARCHIVE_OK)
		return fail_archive(s, a, err);
	*out = take_ptr(s);
	return 0;
}

int image_stream_open_dir(int dir_fd, struct image_budget *budget, struct image_stream **out,
			  struct cj_error *err)
{
	const int behavior = ARCHIVE_READDISK_NO_TRAVERSE_MOUNTS | ARCHIVE_READDISK_NO_XATTR |
			     ARCHIVE_READDISK_NO_ACL | ARCHIVE_READDISK_NO_FFLAGS |
			     ARCHIVE_READDISK_NO_SPARSE;
	auto_image_stream struct image_stream *s = create(budget);
	if (!s)
		return cj_fail(err, ENOMEM, "read the archive");
	if (fchdir(dir_fd) < 0)
		return cj_fail(err, errno, "enter the directory");
	s->entry = archive_entry_new();
	s->links = archive_entry_linkresolver_new();
	struct archive *a = s->entries = archive_read_disk_new();
	if (!s->entry || !s->links || !a)
		return cj_fail(err, ENOMEM, "read the archive");
	archive_entry_linkresolver_set_strategy(s->links, ARCHIVE_FORMAT_TAR_USTAR);
	if (archive_read_disk_set_symlink_physical(a) != ARCHIVE_OK ||
	    archive_read_disk_set_behavior(a, behavior) != ARCHIVE_OK ||
	    archive_read_disk_open(a, ".") != ARCHIVE_OK)
		return fail_archive(s, a, err);
	*out = take_ptr(s);
	return 0;
}

/* Each part of it with a NUL behind, so that no two entries have the same text. */
static void hash_entry(struct image_stream *s, struct archive_entry *e)
{
	const char *texts[] = { archive_entry_pathname(e), archive_entry_symlink(e),
				archive_entry_hardlink(e) };
	char numbers[96];
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		sha256_update(&s->plain_hash, texts[i] ? texts[i] : "",
			      strlen(texts[i] ? texts[i] : "") + 1);
	int used = snprintf(numbers, sizeof(numbers), "%o %lld %lld %ld", archive_entry_mode(e),
			    (long long)archive_entry_size(e), (long long)archive_entry_mtime(e),
			    archive_entry_mtime_nsec(e));
	sha256_update(&s->plain_hash, numbers, (size_t)used + 1);
}

static int next_of_dir(struct image_stream *s, struct archive_entry **out, struct cj_error *err)
{
	struct archive_entry *held = NULL;
	int rc = archive_read_next_header2(s->entries, s->entry);
	if (rc == ARCHIVE_EOF)
		return 0;
	if (rc != ARCHIVE_OK)
		return fail_archive(s, s->entries, err);
	if (archive_read_disk_can_descend(s->entries) &&
	    archive_read_disk_descend(s->entries) != ARCHIVE_OK)
		return fail_archive(s, s->entries, err);
	/* With the strategy of tar it holds none back: the second name becomes a hard link. */
	struct archive_entry *e = s->entry;
	archive_entry_linkify(s->links, &e, &held);
	hash_entry(s, e);
	tell_read(s);
	*out = e;
	return 1;
}

int image_stream_next(struct image_stream *s, struct archive_entry **out_entry,
		      struct cj_error *err)
{
	if (s->fd < 0)
		return next_of_dir(s, out_entry, err);
	int rc = archive_read_next_header(s->entries, out_entry);
	if (rc == ARCHIVE_EOF)
		return 0;
	/* A warning is about a text that it could not convert; the raw one is there. */
	if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN)
		return fail_archive(s, s->entries, err);
	return 1;
}

int image_stream_read(struct image_stream *s, const void **out_bytes, size_t *out_size,
		      uint64_t *out_offset, struct cj_error *err)
{
	la_int64_t offset = 0;
	int rc = archive_read_data_block(s->entries, out_bytes, out_size, &offset);
	if (rc == ARCHIVE_EOF)
		return 0;
	if (rc != ARCHIVE_OK || offset < 0)
		return fail_archive(s, s->entries, err);
	if (s->fd < 0) {
		sha256_update(&s->plain_hash, *out_bytes, *out_size);
		s->file_bytes += *out_size;
		tell_read(s);
	}
	*out_offset = (uint64_t)offset;
	return 1;
}

int image_stream_finish(struct image_stream *s, char out_file[static SHA256_HEX_MAX],
			char out_plain[static SHA256_HEX_MAX], struct cj_error *err)
{
	if (s->fd >= 0) {
		la_ssize_t got;
		const void *unused;
		do
			got = decompress(s); /* behind the end of the tar */
		while (got > 0);
		if (got < 0)
			return fail_archive(s, s->packed, err);
		do
			got = read_file(s->packed, s, &unused);
		while (got > 0);
		if (got < 0)
			return fail_archive(s, s->packed, err);
		sha256_final(&s->file_hash, out_file);
	}
	sha256_final(&s->plain_hash, out_plain);
	if (s->fd < 0) {
		/* Once more behind a text that is too short for a tar: no tar has this hash. */
		char text[128];
		int used = snprintf(text, sizeof(text), "cejail: a tree of files: %s", out_plain);
		sha256_hex(text, (size_t)used, out_plain);
		memcpy(out_file, out_plain, SHA256_HEX_MAX);
	}
	return 0;
}
