/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_home - what the tests of profiles share: a home with a profile directory that
 * is empty before each test, and ways to put profiles there and load them.
 */
#pragma once

#include "profiles/profile.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

/* A directory of the user's own profiles, empty before each test. */
static char home[] = "/tmp/cejail-profile-XXXXXX";
static char dir[sizeof(home) + 64];

static inline void path_of(const char *name, char *out, size_t size)
{
	(void)snprintf(out, size, "%s/%s.json", dir, name);
}

static inline void put_file(const char *path, const char *text, mode_t mode)
{
	struct cj_error err;
	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text), path, &err), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static inline void put_profile(const char *name, const char *text)
{
	char path[256];
	path_of(name, path, sizeof(path));
	put_file(path, text, 0644);
}

static inline int home_setup(void **state)
{
	(void)state;
	if (!mkdtemp(home) || setenv("XDG_CONFIG_HOME", home, 1) < 0)
		return -1;
	char parent[sizeof(home) + 32];
	(void)snprintf(parent, sizeof(parent), "%s/cejail", home);
	(void)snprintf(dir, sizeof(dir), "%s/profiles", parent);
	return mkdir(parent, 0700) < 0 || mkdir(dir, 0700) < 0 ? -1 : 0;
}

static inline int empty_dir(void **state)
{
	(void)state;
	auto_dir DIR *d = opendir(dir);
	if (!d)
		return -1;
	const struct dirent *entry;
	while ((entry = readdir(d)))
		if (entry->d_name[0] != '.' && unlinkat(dirfd(d), entry->d_name, 0) < 0)
			(void)unlinkat(dirfd(d), entry->d_name, AT_REMOVEDIR);
	return 0;
}

static inline int home_teardown(void **state)
{
	(void)empty_dir(state);
	(void)rmdir(dir);
	*strrchr(dir, '/') = '\0';
	(void)rmdir(dir);
	return rmdir(home);
}

/* Loads and keeps the config for the test to look at; fails with the message. */
static inline void load(struct config *c, const char *name)
{
	struct cj_error err = { 0 };
	config_init(c);
	if (profile_load(c, name, &err) < 0)
		fail_msg("%s", err.msg);
}

static inline void assert_load_says(const char *name, const char *said)
{
	struct config c;
	struct cj_error err = { 0 };
	config_init(&c);
	assert_true(profile_load(&c, name, &err) < 0);
	if (!strstr(err.msg, said) && !strstr(err.hint, said))
		fail_msg("'%s (%s)' does not say '%s'", err.msg, err.hint, said);
	config_fini(&c);
}

#define HOME_TEST(name) cmocka_unit_test_setup(name, empty_dir)
