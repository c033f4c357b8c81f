/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result is what profiles/schema/result.json says, for every way a run can end: a
 * set of outcomes is written here and python3-jsonschema judges them.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/wait.h>

#include "runtime/base/scope.h"
#include "runtime/run/report/result.h"
#include "runtime/session/repl/repl_channel.h"
#include "tests/forked.h"

/* WRAP: malloc */
static bool no_memory;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return no_memory ? NULL : __real_malloc(size);
}

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const char hash[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

struct written {
	struct json_writer *writer;
	struct blob text;
};

#define auto_written __attribute__((cleanup(written_fini)))

static void written_fini(struct written *w)
{
	json_writer_destroy(&w->writer);
}

static struct written write_result(const struct outcome *o, const struct result_about *about)
{
	struct written w = { .writer = json_writer_create(false) };
	struct cj_error err = { 0 };
	assert_non_null(w.writer);
	assert_int_equal(result_write(w.writer, o, about, &err), 0);
	assert_int_equal(json_writer_take(w.writer, &w.text, &err), 0);
	return w;
}

static const struct result_about nothing_read = { "", "", NETWORK_NONE };
static const struct result_about python = { "python", hash, NETWORK_NONE };
static const struct result_about networked = { "python", hash, NETWORK_PUBLIC };

static void assert_has(const struct outcome *o, const struct result_about *about, const char *part)
{
	auto_written struct written w = write_result(o, about);
	if (!strstr(w.text.bytes, part))
		fail_msg("no %s in %s", part, w.text.bytes);
}

#define auto_outcome __attribute__((cleanup(outcome_fini)))

static void exit_code_has_a_value_only_with_exited(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	outcome_init(&o, "a", 10);
	outcome_decide(&o, STATUS_EXITED);
	o.exit_code = 7;
	assert_has(&o, &python,
		   "\"status\":\"exited\",\"exit_code\":7,\"signal\":null,\"error\":null");
	o.status = STATUS_SIGNALED;
	o.signal = SIGSEGV;
	assert_has(&o, &python, "\"status\":\"signaled\",\"exit_code\":null,\"signal\":11,");
	o.status = STATUS_TIMEOUT;
	assert_has(&o, &python, "\"status\":\"timeout\",\"exit_code\":null,\"signal\":null,");
}

static void a_setup_error_has_stage_message_and_hint(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	outcome_init(&o, "a", 10);
	outcome_decide(&o, STATUS_SETUP_ERROR);
	(void)!cj_fail(&o.error, EPERM, "clone");
	cj_hint(&o.error, "do this");
	cj_stage(&o.error, "init");
	assert_has(&o, &nothing_read,
		   "\"error\":{\"stage\":\"init\",\"message\":\"clone: Operation "
		   "not permitted\",\"hint\":\"do this\"}");
	assert_has(&o, &nothing_read, "\"profile\":{\"name\":null,\"sha256\":null}");
}

static void a_missing_command_is_exited_127_with_an_error(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	outcome_init(&o, "a", 10);
	outcome_decide(&o, STATUS_EXITED);
	o.exec_errno = ENOENT;
	(void)!cj_fail(&o.error, ENOENT, "execute 'x'");
	cj_stage(&o.error, "exec");
	assert_has(&o, &python, "\"exit_code\":127,\"signal\":null,\"error\":{\"stage\":\"exec\",");
}

static void output_is_text_or_base64_and_counted(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	outcome_init(&o, "a", 4);
	outcome_decide(&o, STATUS_EXITED);
	assert_int_equal(capture_add(&o.output[0], "abcdefgh", 8), 0);
	assert_int_equal(capture_add(&o.output[1], "\xff\0", 2), 0);
	assert_has(&o, &python,
		   "\"stdout\":{\"text\":\"ab\\n[... 4 bytes left out ...]\\ngh\",\"bytes\":8,"
		   "\"kept\":4,\"truncated\":true}");
	assert_has(&o, &python,
		   "\"stderr\":{\"base64\":\"/wA=\",\"bytes\":2,\"kept\":2,"
		   "\"truncated\":false}");
}

static void a_limit_that_is_not_set_is_not_enforced(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	outcome_init(&o, "a", 4);
	outcome_decide(&o, STATUS_EXITED);
	o.limits[LIMIT_CPU_TIME].enforced_by = ENFORCED_BY_SUPERVISOR;
	o.limits[LIMIT_CPUS] = (struct limit_state){ 1500, ENFORCED_BY_CGROUP, HIT_YES };
	o.limits[LIMIT_NOFILE] = (struct limit_state){ 64, ENFORCED_BY_RLIMIT, HIT_UNKNOWN };
	assert_has(&o, &python,
		   "\"cpu_time\":{\"value\":null,\"unit\":\"ms\",\"by\":\"none\",\"hit\":false}");
	assert_has(&o, &python,
		   "\"cpus\":{\"value\":1.5,\"unit\":\"cpus\",\"by\":\"cgroup\",\"hit\":true}");
	assert_has(&o, &python,
		   "\"nofile\":{\"value\":64,\"unit\":\"files\",\"by\":\"rlimit\",\"hit\":null}");
}

static void values_that_the_kernel_did_not_report_are_null(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	outcome_init(&o, "a", 4);
	outcome_decide(&o, STATUS_EXITED);
	assert_has(&o, &python, "\"memory_peak_bytes\":null,\"pids_peak\":null");
	o.usage.has_memory_peak = true;
	assert_has(&o, &python, "\"memory_peak_bytes\":0,\"pids_peak\":null");
}

static void times_are_rfc_3339_with_milliseconds(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	outcome_init(&o, "a", 4);
	outcome_decide(&o, STATUS_EXITED);
	o.started_epoch_ms = 1767323045006;
	assert_has(&o, &python, "\"started_at\":\"2026-01-02T03:04:05.006Z\"");
}

static void names_of_the_program_cannot_break_the_json(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	outcome_init(&o, "a", 4);
	outcome_decide(&o, STATUS_EXITED);
	outcome_warn(&o, "a \"quote\", a \n newline, a \xff byte");
	assert_has(&o, &python, "[\"a \\\"quote\\\", a \\n newline, a \xef\xbf\xbd byte\"]");
}

static void without_memory_for_the_output_it_fails_with_enomem(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	struct cj_error err = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	outcome_init(&o, "a", 4);
	no_memory = true;
	int rc = result_write(w, &o, &python, &err);
	no_memory = false;
	assert_int_equal(rc, -ENOMEM);
	assert_int_equal(err.code, ENOMEM);
}

static const struct denial refusals[] = {
	{ NET_METADATA, IPPROTO_TCP, { 4, { 169, 254, 169, 254 } }, 80, 2 },
	{ NET_METADATA, IPPROTO_UDP, { 6, { 0xfd, 0, 0x0e, 0xc2, [14] = 2, 0x54 } }, 53, 1 },
	{ NET_PRIVATE, IPPROTO_ICMP, { 4, { 10, 0, 0, 5 } }, 0, 1 },
	{ NET_LIMIT, 250, { 6, { 0x20, 0x01, 0x0d, 0xb8 } }, 0, 3 },
	{ NET_PRIVATE, 0, { 0 }, 0, 996 },
	{ .class = NET_NAME, .count = 4, .name = "...a-1._x.example.com" },
	{ .class = NET_NAME, .count = 7 },
};

static void a_network_has_its_uplink_and_its_denied_packets(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	outcome_init(&o, "a", 4);
	outcome_decide(&o, STATUS_EXITED);
	assert_has(&o, &networked,
		   "\"network\":{\"mode\":\"public\",\"state\":\"unused\",\"reason\":null,"
		   "\"uplink\":null,\"denied\":[]}");
	o.network.uplink = UPLINK_NONE;
	assert_has(&o, &networked, "\"uplink\":\"none\"");
	o.network = (struct network_outcome){
		.uplink = UPLINK_HOST,
		.state = NETWORK_READY,
		.denied = refusals,
		.ndenied = COUNT(refusals),
	};
	assert_has(&o, &networked,
		   "\"network\":{\"mode\":\"public\",\"state\":\"ready\",\"reason\":null,"
		   "\"uplink\":\"host\",\"denied\":["
		   "{\"class\":\"metadata\",\"protocol\":\"tcp\",\"address\":\"169.254.169.254\","
		   "\"port\":80,\"count\":2},"
		   "{\"class\":\"metadata\",\"protocol\":\"udp\",\"address\":\"fd00:ec2::254\","
		   "\"port\":53,\"count\":1},"
		   "{\"class\":\"private\",\"protocol\":\"icmp\",\"address\":\"10.0.0.5\","
		   "\"port\":null,\"count\":1},"
		   "{\"class\":\"limit\",\"protocol\":\"ip\",\"address\":\"2001:db8::\","
		   "\"port\":null,\"count\":3},"
		   "{\"class\":\"private\",\"protocol\":null,\"address\":null,"
		   "\"port\":null,\"count\":996},"
		   "{\"class\":\"name\",\"protocol\":null,\"address\":null,\"port\":null,"
		   "\"name\":\"...a-1._x.example.com\",\"count\":4},"
		   "{\"class\":\"name\",\"protocol\":null,\"address\":null,\"port\":null,"
		   "\"count\":7}]}");
}

static void a_network_that_failed_has_the_reason(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	outcome_init(&o, "a", 4);
	outcome_decide(&o, STATUS_EXITED);
	o.network.state = NETWORK_FAILED;
	o.network.why = "no 'pasta'";
	assert_has(&o, &networked,
		   "\"state\":\"failed\",\"reason\":\"no 'pasta'\",\"uplink\":null,");
	o.network.state = NETWORK_READY; /* only a failure has a reason */
	assert_has(&o, &networked, "\"state\":\"ready\",\"reason\":null,");
}

static void without_a_network_there_is_no_uplink(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	outcome_init(&o, "a", 4);
	outcome_decide(&o, STATUS_EXITED);
	o.network.uplink = UPLINK_NONE;
	assert_has(&o, &python,
		   "\"network\":{\"mode\":\"none\",\"state\":null,\"reason\":null,"
		   "\"uplink\":null,\"denied\":[]}");
}

/* --- the schema ------------------------------------------------------------- */

static const struct cell_outcome shown = {
	.number = 3,
	.value = "4\xff",
	.displays = { { "text/html", (const uint8_t *)"<b>", 3 },
		      { "image/png", (const uint8_t *)"\x89PNG", 4 } },
	.ndisplays = 2,
	.left_out = 2,
	.is_claimed = true,
	.exception_type = "E",
	.exception_message = "m",
	.traceback = "t",
};

static void fill(struct outcome *o)
{
	static struct artifact files[] = { { "plots/a.png", 3, "", "image/png",
					     "a\xff"
					     "b" },
					   { "a.txt", 1, "", "text/plain", "a" },
					   { "b.txt", 1, "", "text/plain", NULL } };
	static struct denied_syscall denied[] = { { "mount", 2 }, { "socket(AF_ALG)", 1 } };

	for (size_t i = 0; i < COUNT(files); i++)
		memcpy(files[i].sha256, hash, sizeof(hash));
	memcpy(o->code_sha256, hash, sizeof(hash));
	o->artifacts.items = files;
	o->artifacts.count = COUNT(files);
	o->denied = denied;
	o->ndenied = 2;
	o->network = (struct network_outcome){
		.uplink = UPLINK_PASTA,
		.state = NETWORK_READY,
		.denied = refusals,
		.ndenied = COUNT(refusals),
	};
	o->usage = (struct usage){ 1, 2, 3, 4, 5, true, true };
	for (enum limit i = 0; i < LIMIT_COUNT; i++)
		o->limits[i] = (struct limit_state){ 1000 * (i + 1),
						     (unsigned)i % LIMIT_ENFORCER_COUNT,
						     (unsigned)i % 3 };
	for (enum layer i = 0; i < LAYER_COUNT; i++)
		o->layers[i] = (unsigned)i % LAYER_STATE_COUNT;
	outcome_warn(o, "something is not at its best");
	o->cell = &shown;
	assert_int_equal(capture_add(&o->output[0], "\xff", 1), 0);
	assert_int_equal(capture_add(&o->output[1], "text", 4), 0);
}

static const struct result_about asked = {
	"python", hash, NETWORK_PUBLIC, "r-1.A_b",
	"00-00112233445566778899aabbccddeeff-0011223344556677-01"
};

static void a_run_over_the_api_has_its_requests_names_and_files(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	struct artifact files[] = { { "a", 2, "", "text/plain", "a\n" },
				    { "b", 1, "", "text/plain", "\xff" },
				    { "c", 0, "", "text/plain", "" },
				    { "d", 1, "", "text/plain", NULL } };
	outcome_init(&o, "a", 10);
	assert_has(&o, &asked, "\"request_id\":\"r-1.A_b\",\"traceparent\":\"00-0011");
	o.artifacts.items = files;
	o.artifacts.count = COUNT(files);
	assert_has(&o, &asked, "\"type\":\"text/plain\",\"text\":\"a\\n\"}");
	assert_has(&o, &asked, "\"type\":\"text/plain\",\"base64\":\"/w==\"}");
	assert_has(&o, &asked, "\"type\":\"text/plain\",\"text\":\"\"}");
	assert_has(&o, &asked, "\"type\":\"text/plain\"}]");
	auto_written struct written w = write_result(&o, &python);
	assert_null(strstr(w.text.bytes, "request_id"));
	assert_null(strstr(w.text.bytes, "traceparent"));
}

static void the_value_is_what_the_program_left_or_null(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	struct cj_error err = { 0 };
	static const char text[] = "{ \"a\": [1.50, null] }";
	outcome_init(&o, "a", 10);
	assert_has(&o, &python, "\"value\":null,\"artifacts\":[]");
	assert_int_equal(json_parse("v", text, strlen(text), &o.arena, &o.value, &err), 0);
	assert_has(&o, &python, "\"value\":{\"a\":[1.50,null]},\"artifacts\":[]");
}

static void a_cell_has_its_value_displays_and_exception(void **state)
{
	(void)state;
	auto_outcome struct outcome o;
	const struct cell_outcome quiet = { .number = 1, .is_new = true, .is_lost = true };
	outcome_init(&o, "a", 10);
	o.cell = &shown;
	assert_has(&o, &python,
		   "\"cell\":{\"number\":3,\"value\":\"4\xef\xbf\xbd\",\"displays\":["
		   "{\"type\":\"text/html\",\"text\":\"<b>\"},"
		   "{\"type\":\"image/png\",\"base64\":\"iVBORw==\"}],\"displays_left_out\":2,"
		   "\"exception\":{\"type\":\"E\",\"message\":\"m\",\"traceback\":\"t\"},"
		   "\"restarted\":false,\"lost\":false,\"claimed\":true}");
	o.cell = &quiet;
	assert_has(&o, &python,
		   "\"value\":null,\"displays\":[],\"displays_left_out\":0,\"exception\":null,"
		   "\"restarted\":true,\"lost\":true,\"claimed\":false}");
	o.cell = NULL;
	auto_written struct written w = write_result(&o, &python);
	assert_null(strstr(w.text.bytes, "cell"));
}

static void put_one(FILE *to, enum status status, bool is_full, int exec_errno)
{
	auto_outcome struct outcome o;
	outcome_init(&o, is_full ? "01J00000000000000000000000" : "", 100);
	outcome_decide(&o, status);
	o.exit_code = 3;
	o.signal = SIGKILL;
	o.exec_errno = exec_errno;
	if (is_full)
		fill(&o);
	if (status == STATUS_SETUP_ERROR || exec_errno)
		(void)!cj_reject(&o.error, "no");
	const struct result_about *about = status % 2 ? &asked : &networked;
	auto_written struct written w = write_result(&o, is_full ? about : &nothing_read);
	assert_int_equal(fprintf(to, "%s\n", w.text.bytes), (int)w.text.size + 1);
}

#define VALIDATOR                                                                                  \
	"import json, sys, jsonschema\n"                                                           \
	"schema = json.load(open('profiles/schema/result.json'))\n"                                \
	"check = jsonschema.Draft202012Validator(schema)\n"                                        \
	"lines = open(sys.argv[1]).read().splitlines()\n"                                          \
	"for line in lines:\n"                                                                     \
	"    for error in check.iter_errors(json.loads(line)):\n"                                  \
	"        sys.exit(f'{error.json_path}: {error.message} in {line}')\n"                      \
	"sys.exit(len(lines) != int(sys.argv[2]))\n"

static int run_python(const char *code, const char *file, const char *count)
{
	int status = -1;
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		execlp("python3", "python3", "-c", code, file, count, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void every_way_to_end_fits_the_schema(void **state)
{
	(void)state;
	if (run_python("import jsonschema", "", "") != 0)
		skip(); /* python3-jsonschema is not installed */

	char path[] = "/tmp/cejail-test-XXXXXX", count[16];
	auto_fd int fd = mkstemp(path);
	assert_true(fd >= 0);
	FILE *file = fdopen(dup(fd), "w");
	assert_non_null(file);
	unsigned written = 0;
	for (enum status status = 0; status < STATUS_COUNT; status++) {
		put_one(file, status, false, 0);
		put_one(file, status, true, 0);
		written += 2;
	}
	put_one(file, STATUS_EXITED, true, EACCES);
	assert_int_equal(fclose(file), 0);
	(void)snprintf(count, sizeof(count), "%u", written + 1);
	int code = run_python(VALIDATOR, path, count);
	(void)unlink(path);
	assert_int_equal(code, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_code_has_a_value_only_with_exited),
		cmocka_unit_test(a_setup_error_has_stage_message_and_hint),
		cmocka_unit_test(a_missing_command_is_exited_127_with_an_error),
		cmocka_unit_test(output_is_text_or_base64_and_counted),
		cmocka_unit_test(a_limit_that_is_not_set_is_not_enforced),
		cmocka_unit_test(values_that_the_kernel_did_not_report_are_null),
		cmocka_unit_test(times_are_rfc_3339_with_milliseconds),
		cmocka_unit_test(names_of_the_program_cannot_break_the_json),
		cmocka_unit_test(without_memory_for_the_output_it_fails_with_enomem),
		cmocka_unit_test(a_network_has_its_uplink_and_its_denied_packets),
		cmocka_unit_test(a_network_that_failed_has_the_reason),
		cmocka_unit_test(without_a_network_there_is_no_uplink),
		cmocka_unit_test(the_value_is_what_the_program_left_or_null),
		cmocka_unit_test(a_cell_has_its_value_displays_and_exception),
		cmocka_unit_test(a_run_over_the_api_has_its_requests_names_and_files),
		cmocka_unit_test(every_way_to_end_fits_the_schema),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
