/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user manager's scope: which address is tried, what is asked, and what becomes of
 * a refusal.  libsystemd is played by this file; the real one is met on the test machine.
 */
#include "runtime/kernel/cgroup/scope_request.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runtime/base/scope.h"
#include "runtime/kernel/cgroup/scope_helper.h"
#include "tests/forked.h"

/* WRAP: sdbus_load system_file_read nanosleep clock_ms */

static struct {
	bool has_library;
	char addresses[4][320]; /* that were tried */
	int is_bus[4];
	size_t tried;
	size_t open_address; /* this one, from 0, accepts us */
	int method_rc;
	unsigned open_buses, errors_freed, sleeps;
	uint64_t now_us;
	unsigned moves_after; /* looks at /proc/self/cgroup until we are in the scope */
	char unit[128], mode[16], types[64], stopped[128], slice[64], child[64];
	uint64_t tasks_max;
	uint32_t pid;
	int delegates;
	char collect[64];
	const char *cgroup; /* where we are before */
	int looks, ready_rc, wait_rc;
	int unit_delegates, property_rc;
	char asked_path[256], asked_interface[64];
} play;

static int play_new(struct sd_bus **out)
{
	play.open_buses++;
	*out = (struct sd_bus *)&play;
	return 0;
}

static int play_address(struct sd_bus *bus, const char *address)
{
	(void)bus;
	(void)snprintf(play.addresses[play.tried], sizeof(play.addresses[0]), "%s", address);
	return 0;
}

static int play_client(struct sd_bus *bus, int is_bus)
{
	(void)bus;
	play.is_bus[play.tried] = is_bus;
	return 0;
}

static int play_timeout(struct sd_bus *bus, uint64_t us)
{
	(void)bus;
	return us > 0 && us <= 25000000 ? 0 : -EINVAL;
}

static int play_start(struct sd_bus *bus)
{
	(void)bus;
	return play.tried++ == play.open_address ? 1 : -ECONNREFUSED;
}

static int play_call(struct sd_bus *bus, const char *service, const char *path,
		     const char *interface, const char *member, struct sdbus_error *error,
		     void **reply, const char *types, ...)
{
	(void)bus;
	if (strcmp(service, "org.freedesktop.systemd1") != 0 ||
	    strcmp(path, "/org/freedesktop/systemd1") != 0 ||
	    strcmp(interface, "org.freedesktop.systemd1.Manager") != 0 || reply)
		return -EBADMSG;

	va_list ap;
	va_start(ap, types);
	if (strcmp(member, "StopUnit") == 0) {
		(void)snprintf(play.stopped, sizeof(play.stopped), "%s", va_arg(ap, const char *));
		va_end(ap);
		return strcmp(types, "ss") == 0 ? 0 : -EBADMSG;
	}
	if (strcmp(member, "AttachProcessesToUnit") == 0) {
		(void)snprintf(play.unit, sizeof(play.unit), "%s", va_arg(ap, const char *));
		(void)snprintf(play.child, sizeof(play.child), "%s", va_arg(ap, const char *));
		if (va_arg(ap, int) == 1)
			play.pid = va_arg(ap, uint32_t);
		va_end(ap);
		return strcmp(types, "ssau") == 0 ? play.method_rc : -EBADMSG;
	}
	if (strcmp(member, "StartTransientUnit") != 0) {
		va_end(ap);
		return -EBADMSG;
	}
	(void)snprintf(play.types, sizeof(play.types), "%s", types);
	(void)snprintf(play.unit, sizeof(play.unit), "%s", va_arg(ap, const char *));
	(void)snprintf(play.mode, sizeof(play.mode), "%s", va_arg(ap, const char *));
	int properties = va_arg(ap, int);
	for (int i = 0; i < properties; i++) {
		const char *name = va_arg(ap, const char *), *type = va_arg(ap, const char *);
		if (strcmp(type, "au") == 0 && va_arg(ap, int) == 1)
			play.pid = va_arg(ap, uint32_t);
		else if (strcmp(type, "b") == 0)
			play.delegates = va_arg(ap, int) && strcmp(name, "Delegate") == 0;
		else if (strcmp(type, "t") == 0 && strcmp(name, "TasksMax") == 0)
			play.tasks_max = va_arg(ap, uint64_t);
		else if (strcmp(name, "Slice") == 0)
			(void)snprintf(play.slice, sizeof(play.slice), "%s",
				       va_arg(ap, const char *));
		else if (strcmp(type, "s") == 0)
			(void)snprintf(play.collect, sizeof(play.collect), "%s",
				       va_arg(ap, const char *));
	}
	bool is_whole = va_arg(ap, int) == 0;
	va_end(ap);
	if (!is_whole)
		return -EBADMSG;
	if (play.method_rc < 0)
		*error = (struct sdbus_error){ "org.x", "no such luck", 1 };
	return play.method_rc;
}

/* It is let in at the third look, after there was something to do, and nothing. */
static int play_ready(struct sd_bus *bus)
{
	(void)bus;
	return play.ready_rc < 0 ? play.ready_rc : ++play.looks > 2;
}

static int play_process(struct sd_bus *bus, void **message)
{
	(void)bus;
	assert_null(message);
	return play.looks == 1;
}

static int play_wait(struct sd_bus *bus, uint64_t us)
{
	(void)bus;
	assert_int_equal(us, UINT64_MAX);
	assert_int_equal(play.looks, 2);
	return play.wait_rc;
}

static int play_property(struct sd_bus *bus, const char *service, const char *path,
			 const char *interface, const char *member, struct sdbus_error *error,
			 char type, void *out)
{
	(void)bus;
	if (strcmp(service, "org.freedesktop.systemd1") != 0 || strcmp(member, "Delegate") != 0 ||
	    type != 'b')
		return -EBADMSG;
	(void)snprintf(play.asked_path, sizeof(play.asked_path), "%s", path);
	(void)snprintf(play.asked_interface, sizeof(play.asked_interface), "%s", interface);
	if (play.property_rc < 0) {
		*error = (struct sdbus_error){ "org.x", "unknown", 1 };
		return play.property_rc;
	}
	memcpy(out, &play.unit_delegates, sizeof(play.unit_delegates));
	return 0;
}

static void play_free(struct sdbus_error *error)
{
	play.errors_freed += error->name != NULL;
}

static struct sd_bus *play_unref(struct sd_bus *bus)
{
	play.open_buses -= bus != NULL;
	return NULL;
}

int __real_sdbus_load(struct sdbus *out, struct cj_error *err);
int __wrap_sdbus_load(struct sdbus *out, struct cj_error *err);
int __wrap_sdbus_load(struct sdbus *out, struct cj_error *err)
{
	if (!play.has_library)
		return cj_fail(err, ENOENT, "load 'libsystemd.so.0'");
	*out = (struct sdbus){
		.new = play_new,
		.set_address = play_address,
		.set_bus_client = play_client,
		.set_method_call_timeout = play_timeout,
		.start = play_start,
		.is_ready = play_ready,
		.process = play_process,
		.wait = play_wait,
		.call_method = play_call,
		.get_property_trivial = play_property,
		.error_free = play_free,
		.flush_close_unref = play_unref,
	};
	return 0;
}

ssize_t __wrap_system_file_read(int dir_fd, const char *name, char *buf, size_t size);
ssize_t __wrap_system_file_read(int dir_fd, const char *name, char *buf, size_t size)
{
	(void)dir_fd;
	(void)name;
	bool was_started = play.unit[0] != '\0', is_moved = was_started && play.moves_after == 0;
	play.moves_after -= was_started && !is_moved;
	return snprintf(buf, size, "0::/user.slice/%s\n",
			is_moved ? "app.slice/cejail-J1.scope" : play.cgroup);
}

int __wrap_nanosleep(const struct timespec *wait, struct timespec *left);
int __wrap_nanosleep(const struct timespec *wait, struct timespec *left)
{
	(void)left;
	play.sleeps++;
	play.now_us += (uint64_t)wait->tv_nsec / 1000 + 200; /* it oversleeps */
	return 0;
}

uint64_t __wrap_clock_ms(void);
uint64_t __wrap_clock_ms(void)
{
	return play.now_us / 1000;
}

/* --- a runtime directory with the sockets of a session ------------------------------ */

static char runtime_dir[64];

static void listen_at(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", runtime_dir, name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		abort();
	cj_close(&fd); /* the name stays: it is only looked at */
}

static const char *address_of(const char *name)
{
	static char address[128];
	(void)snprintf(address, sizeof(address), "unix:path=%s/%s", runtime_dir, name);
	return address;
}

static int begin(void **state)
{
	(void)state;
	char path[128];
	memset(&play, 0, sizeof(play));
	play.has_library = true;
	play.cgroup = "session-1.scope";
	(void)snprintf(runtime_dir, sizeof(runtime_dir), "/tmp/cejail-test-scope.XXXXXX");
	if (!mkdtemp(runtime_dir))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/systemd", runtime_dir);
	if (mkdir(path, 0700) < 0)
		return -1;
	(void)unsetenv("DBUS_SESSION_BUS_ADDRESS");
	return setenv("XDG_RUNTIME_DIR", runtime_dir, 1);
}

static int end(void **state)
{
	(void)state;
	static const char *const names[] = { "bus", "systemd/private", "systemd" };
	for (size_t i = 0; i < 3; i++) {
		char path[128];
		(void)snprintf(path, sizeof(path), "%s/%s", runtime_dir, names[i]);
		(void)remove(path);
	}
	return rmdir(runtime_dir);
}

static int enter(struct cj_error *err)
{
	*err = (struct cj_error){ 0 };
	const struct scope_request request = {
		.keeps_delegated = true,
		.unit = "cejail-J1.scope",
		.pid = getpid(),
	};
	return scope_request_start(&request, err);
}

static void a_delegated_scope_around_this_process_is_asked_for(void **state)
{
	(void)state;
	struct cj_error err;
	listen_at("bus");
	play.moves_after = 3;
	assert_int_equal(enter(&err), 0);
	assert_string_equal(play.addresses[0], address_of("bus"));
	assert_int_equal(play.is_bus[0], 1);
	assert_string_equal(play.types, "ssa(sv)a(sa(sv))");
	assert_string_equal(play.unit, "cejail-J1.scope");
	assert_string_equal(play.mode, "fail");
	assert_int_equal(play.pid, getpid());
	assert_true(play.delegates);
	assert_string_equal(play.collect, "inactive-or-failed");
	assert_int_equal(play.sleeps, 3);
	assert_int_equal(play.open_buses, 0);
}

static void a_containers_scope_is_in_its_slice_without_a_limit_of_tasks(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	const struct scope_request request = { .has_slice = true,
					       .unit = "cejail-J1.scope",
					       .slice = "machine.slice",
					       .pid = getpid() };
	listen_at("bus");
	/* Another unit that is delegated does not do: the container needs its own. */
	play.unit_delegates = 1;
	assert_int_equal(scope_request_start(&request, &err), 0);
	assert_string_equal(play.asked_path, "");
	assert_string_equal(play.types, "ssa(sv)a(sa(sv))");
	assert_string_equal(play.unit, "cejail-J1.scope");
	assert_string_equal(play.slice, "machine.slice");
	assert_true(play.tasks_max == UINT64_MAX);
	assert_true(play.delegates);
	assert_int_equal(play.pid, getpid());
	assert_int_equal(play.open_buses, 0);
}

static void a_process_is_attached_to_a_cgroup_in_the_scope(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	const struct scope_request request = { .unit = "a.scope",
					       .child = "/container",
					       .pid = 77 };
	listen_at("bus");
	assert_int_equal(scope_request_attach(&request, &err), 0);
	assert_string_equal(play.unit, "a.scope");
	assert_string_equal(play.child, "/container");
	assert_int_equal(play.pid, 77);
	play.tried = 0;
	play.method_rc = -EACCES;
	assert_int_equal(scope_request_attach(&request, &err), -EACCES);
	assert_non_null(strstr(err.msg, "'a.scope'"));
	play.tried = 0;
	assert_int_equal(scope_request_stop(&request, &err), 0);
	assert_string_equal(play.stopped, "a.scope");
}

static void a_bus_that_refuses_authentication_is_named_and_gets_no_request(void **state)
{
	(void)state;
	struct cj_error err;
	listen_at("bus");
	play.wait_rc = -ECONNRESET;
	assert_int_equal(enter(&err), -ECONNRESET);
	assert_non_null(strstr(err.msg, "authenticate to systemd"));
	play.tried = 0;
	play.ready_rc = -ENOTCONN;
	assert_int_equal(enter(&err), -ENOTCONN);
	assert_string_equal(play.unit, "");
	assert_int_equal(play.open_buses, 0);
}

/* For a process that has ended and was not reaped. */
static void a_scope_for_a_dead_process_is_stopped(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	listen_at("bus");
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(0);
	siginfo_t ended;
	assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);

	const struct scope_request request = {
		.keeps_delegated = true,
		.unit = "cejail-J1.scope",
		.pid = pid,
	};
	assert_int_equal(scope_request_start(&request, &err), -ESRCH);
	assert_string_equal(play.unit, "cejail-J1.scope");
	assert_string_equal(play.stopped, "cejail-J1.scope");
	assert_int_equal(play.tried, 1);
	assert_int_equal(play.open_buses, 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void the_environments_address_comes_first_and_the_private_socket_last(void **state)
{
	(void)state;
	struct cj_error err;
	listen_at("bus");
	listen_at("systemd/private");
	(void)setenv("DBUS_SESSION_BUS_ADDRESS", "unix:abstract=x,guid=1", 1);
	play.open_address = 2;
	assert_int_equal(enter(&err), 0);
	assert_int_equal(play.tried, 3);
	assert_string_equal(play.addresses[0], "unix:abstract=x,guid=1");
	assert_string_equal(play.addresses[1], address_of("bus"));
	assert_string_equal(play.addresses[2], address_of("systemd/private"));
	assert_int_equal(play.is_bus[1], 1);
	assert_int_equal(play.is_bus[2], 0);
	assert_int_equal(play.open_buses, 0);
}

/* "user@UID.service/app.slice/" and the unit. */
static const char *managed(const char *unit)
{
	static char path[128];
	(void)snprintf(path, sizeof(path), "user@%u.service/app.slice/%s", getuid(), unit);
	return path;
}

static void a_unit_that_is_delegated_already_is_kept(void **state)
{
	(void)state;
	struct cj_error err;
	listen_at("bus");
	play.unit_delegates = 1;
	play.cgroup = managed("run-7_x.scope");
	assert_int_equal(enter(&err), 0);
	assert_string_equal(play.unit, "");
	assert_string_equal(play.asked_interface, "org.freedesktop.systemd1.Scope");
	assert_string_equal(play.asked_path, "/org/freedesktop/systemd1/unit/run_2d7_5fx_2escope");

	play.cgroup = managed("9a\xc3.service"); /* a digit comes first, and a byte of UTF-8 */
	play.tried = 0;
	assert_int_equal(enter(&err), 0);
	assert_string_equal(play.unit, "");
	assert_string_equal(play.asked_interface, "org.freedesktop.systemd1.Service");
	assert_string_equal(play.asked_path, "/org/freedesktop/systemd1/unit/_39a_c3_2eservice");
}

static void a_unit_that_another_cejail_has_vacated_is_kept(void **state)
{
	(void)state;
	struct cj_error err;
	listen_at("bus");
	play.unit_delegates = 1;
	play.cgroup = managed("x.service/cejail-supervisor");
	assert_int_equal(enter(&err), 0);
	assert_string_equal(play.unit, "");
	assert_string_equal(play.asked_path, "/org/freedesktop/systemd1/unit/x_2eservice");
}

static void a_unit_that_is_not_delegated_is_left(void **state)
{
	(void)state;
	struct cj_error err;
	listen_at("bus");
	play.cgroup = managed("vte-1.scope");
	assert_int_equal(enter(&err), 0);
	assert_true(play.asked_path[0] != '\0');
	assert_string_equal(play.unit, "cejail-J1.scope");
}

static void a_manager_that_cannot_say_is_asked_for_a_scope(void **state)
{
	(void)state;
	struct cj_error err;
	listen_at("bus");
	play.cgroup = managed("vte-1.scope");
	play.property_rc = -ENOENT;
	assert_int_equal(enter(&err), 0);
	assert_string_equal(play.unit, "cejail-J1.scope");
	assert_int_equal(play.errors_freed, 1);
}

static void only_units_of_the_manager_are_asked_about(void **state)
{
	(void)state;
	struct cj_error err;
	static char odd[8][160];
	static const char *const units[] = { "deep.scope/inner", "app.slice", "", "x.socket" };
	listen_at("bus");
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		memset(play.unit, 0, sizeof(play.unit));
		play.tried = 0;
		(void)snprintf(odd[i], sizeof(odd[i]), "%s", managed(units[i]));
		play.cgroup = odd[i];
		assert_int_equal(enter(&err), 0);
		assert_string_equal(play.asked_path, "");
	}
	play.tried = 0;
	play.cgroup = "user@99999.service/app.slice/another-users.scope";
	assert_int_equal(enter(&err), 0);
	assert_string_equal(play.asked_path, "");
}

static void without_a_socket_there_is_no_manager(void **state)
{
	(void)state;
	struct cj_error err;
	assert_false(scope_helper_is_there(false));
	assert_int_equal(enter(&err), -ENOENT);
	assert_non_null(strstr(err.msg, "no user manager"));
	listen_at("systemd/private");
	assert_true(scope_helper_is_there(false));
}

static void a_regular_file_is_not_taken_for_the_socket(void **state)
{
	(void)state;
	char path[128];
	(void)snprintf(path, sizeof(path), "%s/bus", runtime_dir);
	auto_file FILE *f = fopen(path, "we");
	assert_non_null(f);
	assert_false(scope_helper_is_there(false));
}

static void a_path_with_address_syntax_is_not_used(void **state)
{
	(void)state;
	listen_at("bus");
	char odd[128];
	(void)snprintf(odd, sizeof(odd), "%s/systemd/..;unixexec:path=", runtime_dir);
	(void)setenv("XDG_RUNTIME_DIR", odd, 1);
	assert_false(scope_helper_is_there(false));
}

static void without_libsystemd_it_is_an_error_that_says_so(void **state)
{
	(void)state;
	struct cj_error err;
	listen_at("bus");
	play.has_library = false;
	assert_int_equal(enter(&err), -ENOENT);
	assert_non_null(strstr(err.msg, "libsystemd.so.0"));

	assert_int_equal(play.tried, 0);
}

static void the_real_libsystemd_has_all_that_is_called(void **state)
{
	(void)state;
	struct sdbus lib = { 0 };
	struct cj_error err = { 0 };
	if (__real_sdbus_load(&lib, &err) < 0) {
		print_message("%s\n", err.msg);
		assert_int_equal(err.code, ENOENT);
		skip();
	}
	struct sd_bus *bus = NULL;
	assert_true(lib.new(&bus) >= 0);
	assert_true(lib.set_address(bus, "unix:path=/not/there") >= 0);
	assert_true(lib.set_bus_client(bus, 1) >= 0);
	assert_true(lib.set_method_call_timeout(bus, 1000) >= 0);
	assert_true(lib.start(bus) < 0);
	assert_null(lib.flush_close_unref(bus));
}

static void the_managers_answer_is_in_the_error(void **state)
{
	(void)state;
	struct cj_error err;
	listen_at("bus");
	play.method_rc = -EEXIST;
	assert_int_equal(enter(&err), -EEXIST);
	assert_non_null(strstr(err.msg, "cejail-J1.scope"));
	assert_non_null(strstr(err.msg, "no such luck"));
	assert_int_equal(play.errors_freed, 1);
	assert_int_equal(play.open_buses, 0);
}

static void a_manager_that_never_moves_us_is_not_waited_for_long(void **state)
{
	(void)state;
	struct cj_error err;
	listen_at("bus");
	listen_at("systemd/private");
	play.moves_after = 1000000;
	assert_int_equal(enter(&err), -ETIMEDOUT);
	assert_in_range(play.sleeps, 10, 1000); /* longer and longer ones */
	assert_in_range(play.now_us, 25000000, 26000000);
	assert_int_equal(play.tried, 1);
	assert_int_equal(play.open_buses, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_delegated_scope_around_this_process_is_asked_for),
		TEST(a_containers_scope_is_in_its_slice_without_a_limit_of_tasks),
		TEST(a_process_is_attached_to_a_cgroup_in_the_scope),
		TEST(a_bus_that_refuses_authentication_is_named_and_gets_no_request),
		TEST(a_scope_for_a_dead_process_is_stopped),
		TEST(the_environments_address_comes_first_and_the_private_socket_last),
		TEST(a_unit_that_is_delegated_already_is_kept),
		TEST(a_unit_that_another_cejail_has_vacated_is_kept),
		TEST(a_unit_that_is_not_delegated_is_left),
		TEST(a_manager_that_cannot_say_is_asked_for_a_scope),
		TEST(only_units_of_the_manager_are_asked_about),
		TEST(without_a_socket_there_is_no_manager),
		TEST(a_regular_file_is_not_taken_for_the_socket),
		TEST(a_path_with_address_syntax_is_not_used),
		TEST(without_libsystemd_it_is_an_error_that_says_so),
		TEST(the_real_libsystemd_has_all_that_is_called),
		TEST(the_managers_answer_is_in_the_error),
		TEST(a_manager_that_never_moves_us_is_not_waited_for_long),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
