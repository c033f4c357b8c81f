/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstream: serves requests of the program in a jail to the servers that its caller permits, with
 * headers that the program can't read.  netns/upstream/upstream_program.h is its border.
 */
#include "runtime/front/helpers/upstream/origin.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/sys.h"

/* Open files: each client and its transfer, a resolver's sockets, and what begins with them. */
#define FILES_MAX 512

static int take_counters(struct origin_set *set, struct cj_error *err)
{
	const size_t size = UPSTREAMS_MAX * sizeof(struct upstream_counters);
	struct stat st;
	if (fstat(UPSTREAM_COUNTERS_FD, &st) < 0 || st.st_size < (off_t)size)
		return cj_reject(err, "descriptor %d has no counters", UPSTREAM_COUNTERS_FD);
	struct upstream_counters *counters =
	    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, UPSTREAM_COUNTERS_FD, 0);
	if (counters == MAP_FAILED)
		return cj_fail(err, errno, "map the counters");
	for (size_t i = 0; i < set->count; i++)
		set->origins[i].counters = &counters[i];
	return 0;
}

/* Closes all descriptors but the standard streams and the listening sockets. */
static int take_descriptors(struct origin_set *set, struct arena *a, struct cj_error *err)
{
	char *text;
	size_t size;
	if (lseek(UPSTREAM_CONFIG_FD, 0, SEEK_SET) < 0)
		return cj_fail(err, errno, "read the configuration");
	if (fd_read_all(UPSTREAM_CONFIG_FD, 1u << 20, a, &text, &size, "the configuration", err) <
		0 ||
	    origin_read_config(text, size, a, set, err) < 0 || take_counters(set, err) < 0)
		return -err->code;
	for (size_t i = 0; i < set->count; i++)
		fd_set_nonblocking(UPSTREAM_LISTEN_FD + (int)i);
	if (sys_close_range(UPSTREAM_CONFIG_FD, UPSTREAM_COUNTERS_FD, 0) < 0 ||
	    sys_close_range(UPSTREAM_LISTEN_FD + (unsigned)set->count, ~0u, 0) < 0)
		return cj_fail(err, errno, "close descriptors");
	return 0;
}

static int begin(struct origin_set *set, struct arena *a, struct cj_error *err)
{
	unsigned were_open;
	if (fd_claim_stdio(&were_open, err) < 0)
		return -err->code;
	/* No secret is in a core file, and no process of the same user reads one from memory. */
	const struct rlimit none = { 0, 0 }, files = { FILES_MAX, FILES_MAX };
	struct rlimit now;
	if (child_become_undumpable(err) < 0)
		return -err->code;
	if (setrlimit(RLIMIT_CORE, &none) < 0 || getrlimit(RLIMIT_NOFILE, &now) < 0 ||
	    (now.rlim_max > FILES_MAX && setrlimit(RLIMIT_NOFILE, &files) < 0))
		return cj_fail(err, errno, "set a limit of a resource");
	/* The environment may have proxies, a log of TLS keys and secrets of the caller: libcurl
	 * gets to see two variables of it. */
	const char *file = getenv("SSL_CERT_FILE"), *dir = getenv("SSL_CERT_DIR");
	set->ca_file = file && file[0] ? arena_strdup(a, file) : NULL;
	set->ca_dir = dir && dir[0] ? arena_strdup(a, dir) : NULL;
	if ((file && file[0] && !set->ca_file) || (dir && dir[0] && !set->ca_dir))
		return cj_fail(err, ENOMEM, "copy the environment");
	child_wipe_arguments();
	(void)prctl(PR_SET_NAME, "upstream", 0, 0, 0); /* only what ps(1) shows */
	if (take_descriptors(set, a, err) < 0)
		return -err->code;
	(void)signal(SIGPIPE, SIG_IGN); /* a write to a closed connection then fails with EPIPE */
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return cj_reject_as(err, EIO, "libcurl can't begin");
	return 0;
}

int main(void)
{
	auto_arena struct arena a = { 0 };
	struct origin_set set = { 0 };
	struct cj_error err = { 0 };
	char text[CJ_ERROR_TEXT_MAX];
	if (begin(&set, &a, &err) == 0 && origin_serve(&set, &err) == 0)
		return EXIT_SUCCESS;
	(void)fprintf(stderr, "cejail: upstream: %s\n", cj_error_text(&err, text));
	return EXIT_FAILURE;
}
