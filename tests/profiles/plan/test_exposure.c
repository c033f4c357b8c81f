/* SPDX-License-Identifier: Apache-2.0 */
/* What a shown path hands the program. */
#include "profiles/plan/exposure.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "runtime/base/scope.h"

static void assert_row(const char *path, const char *what, bool is_control)
{
	const struct exposure *row = exposure_of(path);
	assert_non_null(row);
	assert_non_null(strstr(row->what, what));
	assert_int_equal(row->is_control, is_control);
}

static void listed_paths_match_by_their_text(void **state)
{
	(void)state;
	assert_row("/", "all of this host's files", false);
	assert_row("/home/me", "home directory", false);
	assert_row("/run", "sockets", false);
	assert_row("/run/docker.sock", "docker", true);
	assert_row("/run/user/1000/bus", "D-Bus", true);
	assert_row("/run/user/0/cejail/api.sock", "cejail service", true);
	assert_row("/tmp/ssh-XXabc/agent.123", "ssh-agent", false);
	assert_row("/run/user/1000/wayland-0", "Wayland", false);
	assert_row("/srv/mine/docker.sock", "docker", true);
}

static void other_paths_are_not(void **state)
{
	static const char *const paths[] = {
		"/home/me/project", "/run/me.sock", "/usr",    "/run/user/1000/a/bus",
		"/var/tmp",         "/run/dockerx", "/tmp",    "/box/docker.socket",
		"/tmp/ssh-a",       "/srv/home/me", "/rooted", "/run/user/1000/app/x.sock",
	};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(paths); i++)
		if (exposure_of(paths[i]))
			fail_msg("'%s' is taken for '%s'", paths[i], exposure_of(paths[i])->path);
}

static void every_row_is_absolute_and_says_what_it_is(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(directories); i++)
		assert_true(directories[i].path[0] == '/' && !directories[i].is_control);
	for (size_t i = 0; i < COUNT_OF(sockets); i++) {
		assert_true(sockets[i].path[0] == '/' && sockets[i].what[0] != '\0');
		assert_ptr_equal(find_row(sockets, COUNT_OF(sockets), sockets[i].path),
				 &sockets[i]);
	}
}

/* --- what is there --------------------------------------------------------------------- */

struct place {
	char dir[64], socket[96], other[96];
	struct arena arena;
	struct strings warnings;
	struct cj_error err;
};

static void make_place(struct place *p, const char *name)
{
	*p = (struct place){ .dir = "/tmp/cejail-test-exposure-XXXXXX" };
	assert_non_null(mkdtemp(p->dir));
	(void)snprintf(p->socket, sizeof(p->socket), "%s/%s", p->dir, name);
	(void)snprintf(p->other, sizeof(p->other), "%s/other", p->dir);

	struct sockaddr_un address = { .sun_family = AF_UNIX };
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", p->socket);
	auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(link(p->socket, p->other), 0);
}

static void remove_place(struct place *p)
{
	(void)unlink(p->socket), (void)unlink(p->other), (void)rmdir(p->dir);
	arena_fini(&p->arena);
}

static int check(struct place *p, const char *source, const struct exposure_caller *caller,
		 bool strict)
{
	p->warnings = (struct strings){ 0 };
	return exposure_check("--connect", source, caller, strict, &p->arena, &p->warnings,
			      &p->err);
}

static void a_control_socket_is_a_warning_and_with_strict_an_error(void **state)
{
	static const struct exposure_caller no_caller = { 0 };
	struct place p;
	(void)state;
	make_place(&p, "docker.sock");
	assert_int_equal(check(&p, p.socket, &no_caller, false), 0);
	assert_int_equal(p.warnings.count, 1);
	assert_non_null(strstr(p.warnings.items[0], "hands the program control of docker"));
	assert_int_equal(check(&p, p.socket, &no_caller, true), -EINVAL);
	assert_non_null(strstr(p.err.msg, "--strict: --connect '/tmp/"));
	remove_place(&p);
}

static void a_callers_own_agent_is_found_under_any_name(void **state)
{
	struct place p;
	(void)state;
	make_place(&p, "mine");
	const struct exposure_caller caller = { .ssh_agent = p.socket };
	assert_int_equal(check(&p, p.other, &caller, true), 0);
	assert_int_equal(p.warnings.count, 1);
	assert_non_null(strstr(p.warnings.items[0], "ssh-agent"));
	remove_place(&p);
}

static void a_callers_home_is_found_in_any_place(void **state)
{
	struct place p;
	(void)state;
	make_place(&p, "mine");
	const struct exposure_caller caller = { .home = p.dir };
	assert_int_equal(check(&p, p.dir, &caller, true), 0);
	assert_int_equal(p.warnings.count, 1);
	assert_non_null(strstr(p.warnings.items[0], "home directory"));
	remove_place(&p);
}

static void a_socket_and_a_directory_of_ones_own_are_no_warning(void **state)
{
	static const struct exposure_caller no_caller = { 0 };
	struct place p;
	(void)state;
	make_place(&p, "mine");
	assert_int_equal(check(&p, p.socket, &no_caller, true), 0);
	assert_int_equal(check(&p, p.dir, &no_caller, true), 0);
	assert_int_equal(p.warnings.count, 0);
	remove_place(&p);
}

static void a_socket_below_a_directory_is_found(void **state)
{
	static const struct exposure_caller no_caller = { 0 };
	char dir[] = "/tmp/ssh-XXXXXX";
	struct place p;
	(void)state;
	make_place(&p, "mine");
	char agent[64];
	assert_non_null(mkdtemp(dir));
	(void)snprintf(agent, sizeof(agent), "%s/agent.1", dir);
	assert_int_equal(link(p.socket, agent), 0);
	assert_int_equal(check(&p, dir, &no_caller, true), 0);
	assert_int_equal(p.warnings.count, 1);
	assert_non_null(strstr(p.warnings.items[0], agent));
	(void)unlink(agent), (void)rmdir(dir);
	remove_place(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listed_paths_match_by_their_text),
		cmocka_unit_test(other_paths_are_not),
		cmocka_unit_test(every_row_is_absolute_and_says_what_it_is),
		cmocka_unit_test(a_control_socket_is_a_warning_and_with_strict_an_error),
		cmocka_unit_test(a_callers_own_agent_is_found_under_any_name),
		cmocka_unit_test(a_callers_home_is_found_in_any_place),
		cmocka_unit_test(a_socket_and_a_directory_of_ones_own_are_no_warning),
		cmocka_unit_test(a_socket_below_a_directory_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
