/* SPDX-License-Identifier: Apache-2.0 */
/* The store's side of imports and removals. */
#include "runtime/front/image/image_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "runtime/base/child.h"
#include "runtime/base/files/empty_dir.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define WORK      "tmp/import"

/* The last bound of an import: a slow machine reads, hashes and writes 4 MiB in a second many times
 * over, and an archive is read three times at most. */
#define CPU_BASE_S         600 /* a million entries */
#define CPU_BYTES_A_SECOND (4u << 20)

static int make_store(struct image_store *out, struct cj_error *err)
{
	static const char *const dirs[] = { "images", "layers", "tmp" };
	auto_image_store struct image_store store = IMAGE_STORE_NULL;
	if (image_store_open(&store, true, err) < 0)
		return -err->code;
	for (size_t i = 0; i < COUNT_OF(dirs); i++)
		if (mkdirat(store.fd, dirs[i], 0700) < 0 && errno != EEXIST)
			return cj_fail(err, errno, "create '%s/%s'", store.path, dirs[i]);
	*out = store;
	store.fd = -1;
	return 0;
}

/* Until the descriptor is closed. */
static int lock_store(const struct image_store *store, struct cj_error *err)
{
	if (sys_flock(store->fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK) {
		log_note("waiting for another import or removal");
		if (sys_flock(store->fd, LOCK_EX) == 0)
			return 0;
	}
	return cj_fail(err, errno, "lock '%s'", store->path);
}

static int record_name(const char *name, char out[static NAME_MAX], struct cj_error *err)
{
	if (!image_is_name(name)) {
		cj_refuse(err, "'%s' can't be the name of an image", name);
		return cj_hint(err,
			       "a name has at most %d of a-z 0-9 . _ : -, and begins with a letter "
			       "or a digit; 'host' is taken",
			       IMAGE_NAME_MAX);
	}
	(void)snprintf(out, NAME_MAX, "images/%s.json", name);
	return 0;
}

/* Moves each layer into tmp/ before its first file goes, unless a jail uses it.  So a directory in
 * layers/ is always complete, whenever cejail is killed. */
static int retire_unused(const struct image_store *store, const struct strings *used, size_t *kept,
			 struct cj_error *err)
{
	auto_fd_dir struct fd_dir *dir = fd_open_dir(store->fd, "layers");
	if (!dir)
		return cj_fail(err, errno, "open '%s/layers'", store->path);
	for (const struct dirent *e; (e = fd_next_entry(dir)) != NULL;) {
		char to[sizeof("tmp/") + NAME_MAX];
		auto_fd int claimed_fd = -1;
		if (!image_is_sha256(e->d_name) || strings_has(used, e->d_name))
			continue;
		if (image_use_claim(dir->fd, e->d_name, &claimed_fd, err) < 0)
			return -err->code;
		if (claimed_fd < 0) {
			++*kept;
			continue;
		}
		(void)snprintf(to, sizeof(to), "tmp/%s", e->d_name);
		if (renameat(dir->fd, e->d_name, store->fd, to) < 0)
			return cj_fail(err, errno, "remove the layer '%s'", e->d_name);
	}
	return 0;
}

static int empty_tmp(const struct image_store *store, struct cj_error *err)
{
	int rc = empty_dir(store->fd, "tmp");
	return rc < 0 ? cj_fail(err, -rc, "empty '%s/tmp'", store->path) : 0;
}

/* Empties tmp/, and removes each layer that is in no record.  A layer that a jail uses stays:
 * *out_kept counts these.  Must not run without the store's lock. */
static int remove_unused(const struct image_store *store, size_t *out_kept, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct strings used = { 0 };
	*out_kept = 0;
	/* The layers of all records.  One that can't be read is an error: it may name any layer. */
	struct strings names;
	if (image_store_list(store, &a, &names, err) < 0)
		return -err->code;
	for (size_t i = 0; i < names.count; i++) {
		struct image_record r;
		if (image_store_read(store, names.items[i], &a, &r, err) < 0)
			return -err->code;
		if (strings_add_all(&used, &a, &r.layers) < 0)
			return cj_fail(err, ENOMEM, "list the layers");
	}
	if (empty_tmp(store, err) < 0 || retire_unused(store, &used, out_kept, err) < 0)
		return -err->code;
	return empty_tmp(store, err);
}

/* Gives up everything but the descriptors of the job, whose numbers change. */
static int confine(struct image_job *job, int link_fd, struct cj_error *err)
{
	int fds[] = { job->answer_fd, job->work_fd, job->layers_fd, job->source_fd };
	if (child_die_with_parent(link_fd, err) < 0 || child_null_streams(err) < 0 ||
	    child_keep_only(fds, COUNT_OF(fds), err) < 0)
		return -err->code;
	job->answer_fd = fds[0];
	job->work_fd = fds[1];
	job->layers_fd = fds[2];
	job->source_fd = fds[3];
	const struct image_confinement c = {
		.work_fd = job->work_fd,
		.layers_fd = job->layers_fd,
		.source_fd = job->source_is_dir ? job->source_fd : -1,
		.file_bytes = job->what->bytes_max,
		.cpu_s = CPU_BASE_S + job->what->bytes_max / CPU_BYTES_A_SECOND,
	};
	return image_confine(&c, err);
}

/* False: the unpacker has ended, or a part of an answer came. */
static bool read_answer(int in_fd, struct image_answer *out)
{
	size_t size = 0;
	while (size < sizeof(*out)) {
		ssize_t got = sys_read(in_fd, (char *)out + size, sizeof(*out) - size);
		if (got <= 0)
			break;
		size += (size_t)got;
	}
	return size == sizeof(*out);
}

/* The unpacker's CPU time limits the number of reports. */
static int read_end(const struct image_import *what, int in_fd, pid_t pid, struct cj_error *err)
{
	struct image_answer answer;
	bool is_whole;
	int status = 0;
	while ((is_whole = read_answer(in_fd, &answer)) && !answer.is_end)
		if (what->on_progress)
			what->on_progress(&answer.at);
	if (what->on_progress)
		what->on_progress(NULL);
	(void)sys_waitpid(pid, &status, 0); /* our child */
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		return cj_reject_as(err, ETIME, "the unpacker needed too much CPU time");
	if (WIFSIGNALED(status))
		return cj_reject_as(err, EPROTO, "the unpacker was ended by signal %d",
				    WTERMSIG(status));
	if (!is_whole || status != 0)
		return cj_reject_as(err, EPROTO, "the unpacker ended without an answer");
	return answer.err.code == 0 ? 0 : cj_adopt(err, &answer.err, "the unpacker");
}

static int unpack(struct image_job *job, struct cj_error *err)
{
	int answer[2], alive[2];
	if (pipe2(answer, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "create a pipe");
	auto_fd int in_fd = answer[0];
	auto_fd int out_fd = answer[1];
	if (pipe2(alive, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "create a pipe");
	auto_fd int link_fd = alive[0];
	auto_fd int held_fd = alive[1]; /* closed by our end */
	pid_t pid = fork();
	if (pid < 0)
		return cj_fail(err, errno, "fork the unpacker");
	if (pid == 0) {
		struct image_answer end = { .is_end = 1 };
		cj_close(&held_fd);
		job->answer_fd = out_fd;
		(void)umask(0); /* image_unpack.c sets the permissions */
		if (confine(job, link_fd, &end.err) == 0)
			(void)image_job_run(job, &end.err);
		_exit(sys_write(job->answer_fd, &end, sizeof(end)) == sizeof(end) ? 0 : 1);
	}
	cj_close(&out_fd);
	return read_end(job->what, in_fd, pid, err);
}

static int publish_layer(const struct image_store *store, int work_fd, const char *name,
			 size_t *added, struct cj_error *err)
{
	char to[sizeof("layers/") + 64];
	struct stat st;
	(void)snprintf(to, sizeof(to), "layers/%s", name);
	if (fstatat(store->fd, to, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		return 0;
	if (fstatat(work_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return cj_reject_as(err, EPROTO, "the unpacker left no layer '%s'", name);
	auto_fd int fd = openat(work_fd, name, DIRECTORY);
	/* a jail of root sees the root as any user: image_unpack.c */
	if (fd < 0 || fchmod(fd, 0755) < 0 || renameat(work_fd, name, store->fd, to) < 0)
		return cj_fail(err, errno, "keep the layer '%s'", name);
	++*added;
	return 0;
}

/* A fifo would block the import for ever. */
static int open_source(const char *path, bool *out_is_dir, struct cj_error *err)
{
	struct stat st;
	auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cj_fail(err, errno, "open '%s'", path);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		cj_refuse(err, "'%s' is neither a file nor a directory", path);
		return cj_hint(err, "an archive is read twice: write it to a file first");
	}
	*out_is_dir = S_ISDIR(st.st_mode);
	return take_fd(&fd);
}

static int unpack_and_publish(const struct image_store *store, const struct image_import *what,
			      struct arena *a, struct image_record *out, size_t *added,
			      struct cj_error *err)
{
	bool is_dir = false;
	auto_fd int source_fd = open_source(what->path, &is_dir, err);
	if (source_fd < 0)
		return source_fd;
	if (mkdirat(store->fd, WORK, 0700) < 0)
		return cj_fail(err, errno, "create '%s/" WORK "'", store->path);
	auto_fd int work_fd = openat(store->fd, WORK, DIRECTORY);
	auto_fd int layers_fd = openat(store->fd, "layers", DIRECTORY);
	if (work_fd < 0 || layers_fd < 0)
		return cj_fail(err, errno, "open '%s'", store->path);

	struct image_job job = { .what = what,
				 .source_fd = source_fd,
				 .source_is_dir = is_dir,
				 .layers_fd = layers_fd,
				 .work_fd = work_fd,
				 .answer_fd = -1 };
	if (unpack(&job, err) < 0)
		return cj_wrap(err, "import '%s'", what->path);
	/* What the child wrote is checked like any other file: it read hostile data. */
	char *text;
	size_t size;
	if (fd_read_file(work_fd, IMAGE_JOB_RECORD, IMAGE_RECORD_MAX, a, &text, &size, err) < 0 ||
	    image_record_parse(IMAGE_JOB_RECORD, text, size, a, out, err) < 0)
		return -err->code;
	if (strcmp(out->name, what->name) != 0)
		return cj_reject_as(err, EPROTO, "the record is of '%s'", out->name);
	/* The record comes last, and after the files are on the disk. */
	char to[NAME_MAX];
	*added = 0;
	for (size_t i = 0; i < out->layers.count; i++)
		if (publish_layer(store, work_fd, out->layers.items[i], added, err) < 0)
			return -err->code;
	if (syncfs(store->fd) < 0)
		return cj_fail(err, errno, "sync '%s'", store->path);
	if (record_name(out->name, to, err) < 0)
		return -err->code;
	if (renameat(work_fd, IMAGE_JOB_RECORD, store->fd, to) < 0)
		return cj_fail(err, errno, "keep the record '%s'", to);
	return 0;
}

int image_import(const struct image_import *what, struct arena *a, struct image_record *out_record,
		 size_t *out_added, struct cj_error *err)
{
	auto_image_store struct image_store store = IMAGE_STORE_NULL;
	struct cj_error cleanup = { 0 };
	char file[NAME_MAX];
	size_t kept; /* by jails; their image is gone */

	if (record_name(what->name, file, err) < 0 || make_store(&store, err) < 0 ||
	    lock_store(&store, err) < 0 || remove_unused(&store, &kept, err) < 0)
		return -err->code;
	if (faccessat(store.fd, file, F_OK, 0) == 0) {
		cj_refuse_as(err, EEXIST, "there is an image '%s' already", what->name);
		return cj_hint(err, "remove it first: cejail image rm %s", what->name);
	}
	if (errno != ENOENT)
		return cj_fail(err, errno, "look for '%s'", file);
	int rc = unpack_and_publish(&store, what, a, out_record, out_added, err);
	/* after a failure layers that got their names have no image */
	if (remove_unused(&store, &kept, &cleanup) < 0)
		log_warning("%s", cleanup.msg);
	return rc;
}

int image_import_undo(const char *name, struct cj_error *err)
{
	auto_image_store struct image_store store = IMAGE_STORE_NULL;
	char file[NAME_MAX];
	size_t kept = 0;

	if (record_name(name, file, err) < 0)
		return -err->code;
	int rc = image_store_open(&store, false, err);
	if (rc == -ENOENT)
		return cj_reject_as(err, ENOENT, "there is no installed image '%s'", name);
	if (rc < 0 || lock_store(&store, err) < 0)
		return -err->code;
	if (unlinkat(store.fd, file, 0) < 0)
		return errno == ENOENT
			   ? cj_reject_as(err, ENOENT, "there is no installed image '%s'", name)
			   : cj_fail(err, errno, "remove '%s/%s'", store.path, file);
	if (remove_unused(&store, &kept, err) < 0)
		return -err->code;
	if (kept > 0)
		log_note(
		    "running jails use %zu layer%s: the next import or removal after their end "
		    "deletes %s",
		    kept, kept == 1 ? "" : "s", kept == 1 ? "it" : "them");
	return 0;
}
