/* SPDX-License-Identifier: Apache-2.0 */
/* Token files: who may read them, what is in them, whose they are. */
#include "runtime/service/config/tokens.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>

#define SECRET "rL8ZsQ2mVt0Yx5Bn7Jk3Wd9Hf1Gc6Pa4"
#define OTHER  "0a1b2c3d4e5f60718293a4b5c6d7e8f9"

static char home[64];
static struct service_config config;

static const char *path_of(const char *name)
{
	static char paths[4][128];
	static unsigned next;
	char *path = paths[next++ % 4];
	(void)snprintf(path, sizeof(paths[0]), "%s/%s", home, name);
	return path;
}

static const char *put(const char *name, const char *text, mode_t mode)
{
	const char *path = path_of(name);
	(void)unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	(void)close(fd);
	return path;
}

static int set_up(void **state)
{
	(void)state;
	(void)snprintf(home, sizeof(home), "/tmp/cejail-test-tokens-XXXXXX");
	if (!mkdtemp(home))
		return -1;
	(void)unsetenv("CREDENTIALS_DIRECTORY");
	service_config_init(&config);
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "a", "b", "token", "link" };
	(void)state;
	service_config_fini(&config);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlink(path_of(names[i]));
	return rmdir(home);
}

static struct caller_row *add_row(const char *name, const char *token_file)
{
	struct caller_row *row = &config.callers.rows[config.callers.count++];
	*row = (struct caller_row){ .name = name, .token_file = token_file };
	return row;
}

static void load(void)
{
	struct cj_error err = { 0 };
	if (tokens_load(&config, &err) < 0)
		fail_msg("%s", err.msg);
}

static void assert_refused(const char *said)
{
	struct cj_error err = { 0 };
	assert_true(tokens_load(&config, &err) < 0);
	if (!strstr(err.msg, said) && !strstr(err.hint, said))
		fail_msg("'%s (%s)' does not say '%s'", err.msg, err.hint, said);
	assert_null(strstr(err.msg, SECRET));
}

static bool opens(const char *token, const char *name)
{
	static struct accounts accounts;
	const struct caller_row *row = callers_find_token(&config.callers, token, strlen(token));
	accounts.count = 0;
	const struct account *a = row ? account_of_row(&accounts, row, 1) : NULL;
	return a && strcmp(a->name, name) == 0;
}

static void a_token_file_makes_the_default_caller(void **state)
{
	(void)state;
	config.token_file = put("a", SECRET "\n", 0600);
	config.tcp = "127.0.0.1:8090";
	load();
	assert_int_equal(config.callers.count, 1);
	assert_true(opens(SECRET, TOKEN_DEFAULT_NAME));
	assert_false(opens(SECRET "\n", TOKEN_DEFAULT_NAME));
	assert_int_equal(config.callers.rows[0].rights.burst, config.callers.standard.burst);
}

static void one_newline_is_cut_and_no_more(void **state)
{
	(void)state;
	config.token_file = put("a", SECRET "\n\n", 0600);
	assert_refused("a header can't contain");
}

static void a_credential_of_systemd_is_found(void **state)
{
	(void)state;
	(void)put("token", SECRET, 0400);
	(void)setenv("CREDENTIALS_DIRECTORY", home, 1);
	struct caller_row *row = add_row(TOKEN_DEFAULT_NAME, NULL);
	row->rights.burst = 77;
	load();
	assert_int_equal(config.callers.count, 1); /* the row that is there, with its rights */
	assert_int_equal(config.callers.rows[0].rights.burst, 77);
	assert_true(opens(SECRET, TOKEN_DEFAULT_NAME));
}

static void a_token_file_comes_before_the_credential(void **state)
{
	(void)state;
	(void)put("token", SECRET, 0400);
	(void)setenv("CREDENTIALS_DIRECTORY", home, 1);
	config.token_file = put("a", OTHER, 0600);
	load();
	assert_true(opens(OTHER, TOKEN_DEFAULT_NAME));
	assert_false(opens(SECRET, TOKEN_DEFAULT_NAME));
}

static void a_credential_directory_without_a_token_is_none(void **state)
{
	(void)state;
	(void)setenv("CREDENTIALS_DIRECTORY", home, 1);
	load();
	assert_int_equal(config.callers.count, 0);
	(void)setenv("CREDENTIALS_DIRECTORY", "relative", 1);
	load();
	assert_int_equal(config.callers.count, 0);
}

static void each_caller_has_its_own(void **state)
{
	(void)state;
	add_row("uid:5", NULL);
	add_row("token:a", put("a", SECRET, 0600));
	add_row("token:b", put("b", OTHER, 0600));
	load();
	assert_true(opens(SECRET, "token:a"));
	assert_true(opens(OTHER, "token:b"));
	assert_false(config.callers.rows[0].has_token);
}

static void two_callers_with_one_token_are_refused(void **state)
{
	(void)state;
	add_row("token:a", put("a", SECRET, 0600));
	add_row("token:b", put("b", SECRET "\n", 0600));
	assert_refused("callers.token:b has the same token as callers.token:a");
}

static void two_files_for_one_caller_are_refused(void **state)
{
	(void)state;
	config.token_file = put("a", SECRET, 0600);
	add_row(TOKEN_DEFAULT_NAME, put("b", OTHER, 0600));
	assert_refused("set only one of them");
}

static void a_caller_without_a_token_is_refused(void **state)
{
	(void)state;
	add_row("token:a", NULL);
	assert_refused("callers.token:a: it has no token");
}

static void tcp_without_any_token_is_refused(void **state)
{
	(void)state;
	add_row("uid:5", NULL);
	load();
	config.tcp = "127.0.0.1:8090";
	assert_refused("tcp: callers need a token, and none is configured");
	add_row("token:a", put("a", SECRET, 0600));
	load();
}

static void a_file_that_others_can_read_is_refused(void **state)
{
	(void)state;
	/* root's, too: the group that could read it is the one that may connect */
	static const mode_t open_modes[] = { 0604, 0602, 0620, 0640, 0440, 0644, 0666, 0606 };
	for (size_t i = 0; i < sizeof(open_modes) / sizeof(open_modes[0]); i++) {
		config.callers.count = 0;
		add_row("token:a", put("a", SECRET, open_modes[i]));
		assert_refused("other users can access");
		assert_refused("chmod 600");
	}
}

/* systemd's access list for the service's user looks like this. */
static void a_credentials_group_bits_are_systemds(void **state)
{
	char path[160];
	(void)state;
	(void)setenv("CREDENTIALS_DIRECTORY", home, 1);
	add_row("token:a", put("a", SECRET, 0440));
	load();
	assert_true(opens(SECRET, "token:a"));

	static const mode_t open_modes[] = { 0444, 0460 };
	for (size_t i = 0; i < sizeof(open_modes) / sizeof(open_modes[0]); i++) {
		config.callers.count = 0;
		add_row("token:a", put("a", SECRET, open_modes[i]));
		assert_refused("other users can access");
	}
	/* beside the directory, or below it, it is any file */
	(void)put("a", SECRET, 0440);
	(void)snprintf(path, sizeof(path), "%s/../%s/a", home, strrchr(home, '/') + 1);
	config.callers.count = 0;
	add_row("token:a", path);
	assert_refused("other users can access");
	(void)snprintf(path, sizeof(path), "%s/a", home);
	(void)setenv("CREDENTIALS_DIRECTORY", "/tmp/cejail-test-token", 1);
	assert_refused("other users can access");
}

static void a_token_file_of_another_user_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip(); /* only root can make one */
	const char *path = put("a", SECRET, 0600);
	assert_int_equal(chown(path, 65534, 65534), 0);
	add_row("token:a", path);
	assert_refused("belongs to uid 65534");
}

static void a_token_file_must_be_a_regular_file(void **state)
{
	(void)state;
	add_row("token:a", home);
	assert_refused(home);
	config.callers.count = 0;
	assert_int_equal(mkfifo(path_of("a"), 0600), 0);
	add_row("token:a", path_of("a"));
	assert_refused("callers.token:a: token_file"); /* and does not wait for a writer */
	config.callers.count = 0;
	assert_int_equal(symlink(put("b", SECRET, 0600), path_of("link")), 0);
	add_row("token:a", path_of("link"));
	assert_refused("link");
	config.callers.count = 0;
	add_row("token:a", path_of("missing"));
	assert_refused("No such file");
}

static void a_weak_token_is_refused_with_its_file(void **state)
{
	static char long_token[2 * TOKEN_MAX];
	(void)state;
	for (size_t i = 0; i + 1 < sizeof(long_token); i++)
		long_token[i] = (char)('!' + i % 90);
	static const char *const weak[] = { "", "\n", "secret",
					    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", long_token };
	for (size_t i = 0; i < sizeof(weak) / sizeof(weak[0]); i++) {
		config.callers.count = 0;
		add_row("token:a", put("a", weak[i], 0600));
		assert_refused("/a': the token");
		assert_false(config.callers.rows[0].has_token);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_token_file_makes_the_default_caller),
		CASE(one_newline_is_cut_and_no_more),
		CASE(a_credential_of_systemd_is_found),
		CASE(a_token_file_comes_before_the_credential),
		CASE(a_credential_directory_without_a_token_is_none),
		CASE(each_caller_has_its_own),
		CASE(two_callers_with_one_token_are_refused),
		CASE(two_files_for_one_caller_are_refused),
		CASE(a_caller_without_a_token_is_refused),
		CASE(tcp_without_any_token_is_refused),
		CASE(a_file_that_others_can_read_is_refused),
		CASE(a_credentials_group_bits_are_systemds),
		CASE(a_token_file_of_another_user_is_refused),
		CASE(a_token_file_must_be_a_regular_file),
		CASE(a_weak_token_is_refused_with_its_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
