/* SPDX-License-Identifier: Apache-2.0 */
/* A result goes everywhere it was asked for, or the run says so before it begins. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/run/report/delivery.h"
#include "runtime/run/report/result_file.h"

/* WRAP: linkat */
static bool linking_fails;
int __real_linkat(int old_fd, const char *old_path, int new_fd, const char *new_path, int flags);
int __wrap_linkat(int old_fd, const char *old_path, int new_fd, const char *new_path, int flags);
int __wrap_linkat(int old_fd, const char *old_path, int new_fd, const char *new_path, int flags)
{
	if (!linking_fails)
		return __real_linkat(old_fd, old_path, new_fd, new_path, flags);
	errno = EDQUOT;
	return -1;
}

static char place[] = "/tmp/cejail-test-XXXXXX";
static int home_fd = -1;

/* Every test runs in an empty directory of its own. */
static int enter_place(void **state)
{
	(void)state;
	memcpy(place, "/tmp/cejail-test-XXXXXX", sizeof(place));
	home_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return mkdtemp(place) && chdir(place) == 0 ? 0 : -1;
}

static int leave_place(void **state)
{
	(void)state;
	auto_dir DIR *dir = opendir(place);
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		(void)unlinkat(dirfd(dir), entry->d_name, 0);
	int rc = fchdir(home_fd);
	cj_close(&home_fd);
	return rc < 0 || rmdir(place) < 0 ? -1 : 0;
}

static size_t count_files(void)
{
	size_t count = 0;
	auto_dir DIR *dir = opendir(".");
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
	return count;
}

static void assert_file(const char *path, const char *expected)
{
	char text[4096] = "";
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	assert_string_equal(text, expected);
}

static void write_file(const char *path, const char *text)
{
	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* --- the file --------------------------------------------------------------- */

#define auto_result_file __attribute__((cleanup(result_file_fini)))

static void a_file_appears_only_when_it_is_complete(void **state)
{
	(void)state;
	auto_result_file struct result_file f = RESULT_FILE_NULL;
	struct cj_error err = { 0 };
	assert_int_equal(result_file_open("out.json", &f, &err), 0);
	assert_int_equal(count_files(), 0);
	assert_int_equal(result_file_commit(&f, "{}", 2, &err), 0);
	assert_file("out.json", "{}\n");
	assert_int_equal(count_files(), 1);
}

static void an_existing_file_is_replaced_at_the_end(void **state)
{
	(void)state;
	auto_result_file struct result_file f = RESULT_FILE_NULL;
	struct cj_error err = { 0 };
	write_file("out.json", "old and longer than the new one");
	assert_int_equal(result_file_open("./out.json", &f, &err), 0);
	assert_file("out.json", "old and longer than the new one");
	assert_int_equal(result_file_commit(&f, "{}", 2, &err), 0);
	assert_file("out.json", "{}\n");
}

static void a_run_without_a_result_leaves_no_file(void **state)
{
	(void)state;
	struct result_file f = RESULT_FILE_NULL;
	struct cj_error err = { 0 };
	assert_int_equal(result_file_open("out.json", &f, &err), 0);
	result_file_fini(&f);
	assert_int_equal(count_files(), 0);
}

static void a_commit_that_fails_leaves_no_file(void **state)
{
	(void)state;
	struct result_file f = RESULT_FILE_NULL;
	struct cj_error err = { 0 };
	assert_int_equal(result_file_open("out.json", &f, &err), 0);
	linking_fails = true;
	int rc = result_file_commit(&f, "{}", 2, &err);
	linking_fails = false;
	assert_int_equal(rc, -EDQUOT);
	assert_non_null(strstr(err.msg, "'out.json'"));
	result_file_fini(&f);
	assert_int_equal(count_files(), 0);
}

/* Where a file can be made but not take its place, the one with a name is removed again. */
static void a_rename_that_fails_leaves_no_file(void **state)
{
	(void)state;
	struct result_file f = RESULT_FILE_NULL;
	struct cj_error err = { 0 };
	assert_int_equal(result_file_open("out.json", &f, &err), 0);
	assert_int_equal(mkdir("out.json", 0700), 0); /* after we looked */
	assert_int_equal(result_file_commit(&f, "{}", 2, &err), -EISDIR);
	result_file_fini(&f);
	assert_int_equal(count_files(), 1);
	assert_int_equal(rmdir("out.json"), 0);
}

static void a_symbolic_link_is_written_through(void **state)
{
	(void)state;
	auto_result_file struct result_file f = RESULT_FILE_NULL;
	struct cj_error err = { 0 };
	write_file("real", "old and longer than the new one");
	assert_int_equal(symlink("real", "out.json"), 0);
	assert_int_equal(result_file_open("out.json", &f, &err), 0);
	assert_int_equal(result_file_commit(&f, "{}", 2, &err), 0);
	assert_file("real", "{}\n");
}

static void a_place_that_cannot_be_written_is_refused_at_once(void **state)
{
	(void)state;
	struct result_file f = RESULT_FILE_NULL;
	struct cj_error err = { 0 };
	assert_int_equal(result_file_open("no/out.json", &f, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "'no/out.json'"));

	err = (struct cj_error){ 0 };
	assert_true(result_file_open("/proc/out.json", &f, &err) < 0);
	assert_non_null(strstr(err.msg, "'/proc/out.json'"));

	err = (struct cj_error){ 0 };
	assert_int_equal(result_file_open("/tmp", &f, &err), -EINVAL);
	assert_string_equal(err.msg, "'/tmp' is a directory; write the name of a file");

	err = (struct cj_error){ 0 };
	assert_int_equal(result_file_open("/tmp/", &f, &err), -EINVAL);
	assert_int_equal(f.new.fd, -1);
}

static void a_fifo_without_a_reader_is_refused_at_once(void **state)
{
	(void)state;
	struct result_file f = RESULT_FILE_NULL;
	struct cj_error err = { 0 };
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(result_file_open("fifo", &f, &err), -ENXIO);
	assert_string_equal(err.hint, "no process has the FIFO open for reading");
}

static void a_fifo_with_a_reader_gets_the_result(void **state)
{
	(void)state;
	auto_result_file struct result_file f = RESULT_FILE_NULL;
	struct cj_error err = { 0 };
	char text[16] = "";
	assert_int_equal(mkfifo("fifo", 0600), 0);
	auto_fd int fd = open("fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(result_file_open("fifo", &f, &err), 0);
	assert_int_equal(result_file_commit(&f, "{}", 2, &err), 0);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	assert_string_equal(text, "{}\n");
}

/* --- all places ------------------------------------------------------------- */

#define auto_delivery __attribute__((cleanup(delivery_fini)))
#define auto_outcome  __attribute__((cleanup(outcome_fini)))

static struct config asked_for(int result_fd, int events_fd, const char *json_file)
{
	return (struct config){ .result_fd = result_fd,
				.events_fd = events_fd,
				.json = json_file != NULL,
				.json_file = json_file };
}

static int open_for(struct delivery *d, struct config c, struct cj_error *err)
{
	delivery_init(d);
	*err = (struct cj_error){ 0 };
	return delivery_open(d, &c, err);
}

static void a_descriptor_that_cannot_be_written_is_refused(void **state)
{
	(void)state;
	auto_delivery struct delivery d;
	struct cj_error err;
	auto_fd int read_only_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	auto_fd int path_fd = open("/", O_PATH | O_CLOEXEC);
	auto_fd int good_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (int fd = 0; fd <= 2; fd++) {
		assert_int_equal(open_for(&d, asked_for(fd, -1, NULL), &err), -EINVAL);
		assert_non_null(strstr(err.msg, "standard stream"));
	}
	assert_int_equal(open_for(&d, asked_for(999, -1, NULL), &err), -EBADF);
	assert_string_equal(err.msg, "--result-fd 999: Bad file descriptor");
	assert_int_equal(open_for(&d, asked_for(-1, 999, NULL), &err), -EBADF);
	assert_memory_equal(err.msg, "--events-fd 999: ", 17);
	assert_int_equal(open_for(&d, asked_for(read_only_fd, -1, NULL), &err), -EINVAL);
	assert_non_null(strstr(err.msg, "not open for writing"));
	assert_int_equal(open_for(&d, asked_for(path_fd, -1, NULL), &err), -EINVAL);
	assert_int_equal(open_for(&d, asked_for(good_fd, good_fd, NULL), &err), -EINVAL);
	assert_non_null(strstr(err.msg, "are the same descriptor"));
	assert_int_equal(open_for(&d, asked_for(good_fd, -1, NULL), &err), 0);
}

static void a_result_descriptor_is_close_on_exec(void **state)
{
	(void)state;
	auto_delivery struct delivery d;
	struct cj_error err;
	auto_fd int fd = open("/dev/null", O_WRONLY);
	assert_int_equal(open_for(&d, asked_for(fd, -1, NULL), &err), 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

static void the_reader_of_the_result_can_cancel_the_run(void **state)
{
	(void)state;
	struct delivery d = { .result_fd = 7, .events = { .fd = 8 } };
	assert_int_equal(delivery_hangup_fd(&d), 7);
	d.result_fd = -1;
	assert_int_equal(delivery_hangup_fd(&d), 8);
	d.events.fd = -1;
	assert_int_equal(delivery_hangup_fd(&d), -1);
	d.to_stdout = true;
	assert_int_equal(delivery_hangup_fd(&d), STDOUT_FILENO);
}

static int send_nothing_much(struct delivery *d, struct cj_error *err)
{
	static const struct result_about about = { "python", "", NETWORK_NONE };
	auto_outcome struct outcome o;
	outcome_init(&o, "id", 10);
	outcome_decide(&o, STATUS_TIMEOUT);
	*err = (struct cj_error){ 0 };
	return delivery_send(d, &o, &about, err);
}

static void the_same_result_goes_to_every_place(void **state)
{
	(void)state;
	auto_delivery struct delivery d;
	struct cj_error err;
	char first[8192] = "", second[8192] = "", event[8192] = "";
	auto_fd int result_fd = open("result", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	auto_fd int events_fd = open("events", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(open_for(&d, asked_for(result_fd, events_fd, "file"), &err), 0);
	assert_false(d.to_stdout);
	assert_int_equal(send_nothing_much(&d, &err), 0);

	ssize_t size = pread(result_fd, first, sizeof(first) - 1, 0);
	assert_true(size > 100 && first[size - 1] == '\n');
	assert_ptr_equal(strchr(first, '\n'), first + size - 1); /* one line */
	auto_fd int file_fd = open("file", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(file_fd, second, sizeof(second) - 1), size);
	assert_string_equal(first, second);

	assert_true(pread(events_fd, event, sizeof(event) - 1, 0) > size);
	assert_memory_equal(event, "{\"type\":\"result\",\"result\":", 26);
	assert_memory_equal(event + 26, first, (size_t)size - 1);
	assert_string_equal(event + 26 + size - 1, "}\n");
}

static void a_failing_place_does_not_prevent_the_others(void **state)
{
	(void)state;
	auto_delivery struct delivery d;
	struct cj_error err;
	struct stat st;
	auto_fd int full_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_int_equal(open_for(&d, asked_for(full_fd, -1, "file"), &err), 0);
	assert_int_equal(send_nothing_much(&d, &err), -ENOSPC);
	assert_non_null(strstr(err.msg, "the result"));
	assert_int_equal(stat("file", &st), 0);
	assert_true(st.st_size > 100);
}

static void without_a_destination_nothing_is_written(void **state)
{
	(void)state;
	auto_delivery struct delivery d;
	struct cj_error err;
	assert_int_equal(open_for(&d, asked_for(-1, -1, NULL), &err), 0);
	assert_int_equal(delivery_hangup_fd(&d), -1);
	assert_int_equal(send_nothing_much(&d, &err), 0);
	assert_int_equal(count_files(), 0);
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter_place, leave_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(a_file_appears_only_when_it_is_complete),
		IN_PLACE(an_existing_file_is_replaced_at_the_end),
		IN_PLACE(a_run_without_a_result_leaves_no_file),
		IN_PLACE(a_commit_that_fails_leaves_no_file),
		IN_PLACE(a_rename_that_fails_leaves_no_file),
		IN_PLACE(a_symbolic_link_is_written_through),
		IN_PLACE(a_place_that_cannot_be_written_is_refused_at_once),
		IN_PLACE(a_fifo_without_a_reader_is_refused_at_once),
		IN_PLACE(a_fifo_with_a_reader_gets_the_result),
		IN_PLACE(a_descriptor_that_cannot_be_written_is_refused),
		IN_PLACE(a_result_descriptor_is_close_on_exec),
		IN_PLACE(the_reader_of_the_result_can_cancel_the_run),
		IN_PLACE(the_same_result_goes_to_every_place),
		IN_PLACE(a_failing_place_does_not_prevent_the_others),
		IN_PLACE(without_a_destination_nothing_is_written),
	};
	(void)signal(SIGPIPE, SIG_IGN); /* as main() does */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
