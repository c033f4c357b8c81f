/* SPDX-License-Identifier: Apache-2.0 */
/* A plan whose root is an image: layers, environment, directory, command. */
#include "tests/profiles/plan/plan_request.h"

#define HEX_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define STORE "data/cejail/images"
#define COMMON                                                                                     \
	"\"architecture\": \"\", \"imported_s\": 1, \"bytes\": 2, \"entries\": 3, \"left_out\": 0, "

static const char *const dirs[] = { "data",
				    "data/cejail",
				    STORE,
				    STORE "/images",
				    STORE "/layers",
				    STORE "/tmp",
				    STORE "/layers/" HEX_A,
				    STORE "/layers/" HEX_B };
static const char *const files[] = { STORE "/images/good.json", STORE "/images/bare.json",
				     STORE "/images/gone.json", STORE "/images/bad.json" };

static int store_setup(void **state)
{
	char data[64];
	if (tree_setup(state) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (mkdir(dirs[i], 0700) < 0)
			return -1;
	put_file(files[0],
		 "{\"schema\": \"cejail.image/1\", \"name\": \"good\", \"digest\": \"" HEX_A
		 "\", " COMMON "\"layers\": [\"" HEX_B "\", \"" HEX_A
		 "\"], \"env\": [\"PATH=/image\", \"OWN=1\"], \"command\": [\"/run\", \"\"], "
		 "\"workdir\": \"/work/./here\", \"user\": \"app\", \"uid\": 7}");
	put_file(files[1],
		 "{\"schema\": \"cejail.image/1\", \"name\": \"bare\", \"digest\": \"" HEX_A
		 "\", " COMMON "\"layers\": [\"" HEX_A "\"], \"env\": [], \"command\": [], "
		 "\"workdir\": \"/\", \"user\": \"\", \"uid\": 0}");
	put_file(files[2],
		 "{\"schema\": \"cejail.image/1\", \"name\": \"gone\", \"digest\": \"" HEX_A
		 "\", " COMMON "\"layers\": [\"" HEX_A "\", \"cccccccccccccccccccccccccccccccc"
		 "cccccccccccccccccccccccccccccccc\"], \"env\": [], \"command\": [], "
		 "\"workdir\": \"/../..\", \"user\": \"\", \"uid\": 0}");
	put_file(files[3], "{\"schema\": \"cejail.image/1\"}");
	(void)snprintf(data, sizeof(data), "%s/data", top);
	return setenv("XDG_DATA_HOME", data, 1);
}

static int store_teardown(void **state)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		(void)unlink(files[i]);
	for (size_t i = sizeof(dirs) / sizeof(dirs[0]); i-- > 0;)
		(void)rmdir(dirs[i]);
	return tree_teardown(state);
}

/* As the profile base would set them. */
static void use_base(struct request *r)
{
	set(r, "env", "PATH=/base");
	set(r, "env", "HOME=/box");
	for (size_t i = 0; i < r->c.env.count; i++)
		assert_int_equal(strings_add(&r->c.base_env, &r->c.arena, r->c.env.items[i]), 0);
}

static const char *variable(const struct request *r, const char *name)
{
	const char *found = NULL;
	for (size_t i = 0; i < r->program.env.count; i++) {
		const char *item = r->program.env.items[i];
		if (strncmp(item, name, strlen(name)) != 0 || item[strlen(name)] != '=')
			continue;
		assert_null(found); /* one for each name */
		found = item + strlen(name) + 1;
	}
	return found;
}

static void the_layers_of_an_image_are_the_root_with_the_top_first(void **state)
{
	struct request *r = *state;
	char path[256];
	use_command(r);
	set(r, "rootfs", "good");
	assert_made(r);
	assert_int_equal(r->plan.root.kind, ROOT_LAYERS);
	assert_int_equal(r->plan.root.layers.count, 2);
	(void)snprintf(path, sizeof(path), "%s/" STORE "/layers/" HEX_B, top);
	assert_string_equal(r->plan.root.layers.items[0], path);
	assert_string_equal(r->plan.image->user, "app");
	assert_int_equal(r->plan.root.uid, 1000);
}

static void the_environment_of_an_image_lies_above_the_base(void **state)
{
	struct request *r = *state;
	use_command(r);
	use_base(r);
	set(r, "rootfs", "good");
	assert_made(r);
	assert_string_equal(variable(r, "PATH"), "/image");
	assert_string_equal(variable(r, "HOME"), "/box");
	assert_string_equal(variable(r, "OWN"), "1");
	set(r, "env", "PATH=/mine");
	assert_made(r);
	assert_string_equal(variable(r, "PATH"), "/mine");
}

static void the_working_directory_is_the_images_unless_one_is_named(void **state)
{
	struct request *r = *state;
	use_command(r);
	set(r, "rootfs", "good");
	assert_made(r);
	assert_string_equal(r->program.workdir, "/work/here");
	set(r, "workdir", "/box");
	assert_made(r);
	assert_string_equal(r->program.workdir, "/box");
}

static void the_root_as_working_directory_is_none(void **state)
{
	struct request *r = *state;
	use_command(r);
	set(r, "rootfs", "bare");
	assert_made(r);
	assert_string_equal(r->program.workdir, "/box");
}

static void the_command_of_an_image_runs_when_none_is_named(void **state)
{
	struct request *r = *state;
	r->inv.is_command = r->inv.is_image_command = true;
	set(r, "rootfs", "good");
	assert_made(r);
	assert_int_equal(r->program.argv.count, 2);
	assert_string_equal(r->program.argv.items[0], "/run");
	assert_string_equal(r->program.argv.items[1], "");
	set(r, "rootfs", "bare");
	assert_refused(r, "image 'bare' has no command of its own");
}

static void an_image_that_is_damaged_or_absent_is_refused(void **state)
{
	struct request *r = *state;
	use_command(r);
	set(r, "rootfs", "none");
	assert_refused(r, "--rootfs: there is no installed image 'none'");
	set(r, "rootfs", "gone");
	assert_refused(r, "image 'gone'");
	set(r, "rootfs", "bad");
	assert_refused(r, "image 'bad'");
	set(r, "rootfs", "..");
	assert_refused(r, "there is no installed image '..'");
}

static void a_store_that_others_may_change_is_refused(void **state)
{
	struct request *r = *state;
	use_command(r);
	set(r, "rootfs", "good");
	assert_int_equal(chmod(STORE, 0722), 0);
	assert_refused(r, "not only this user's to change");
	assert_int_equal(chmod(STORE, 0700), 0);
	assert_made(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, request_setup, request_teardown)
		TEST(the_layers_of_an_image_are_the_root_with_the_top_first),
		TEST(the_environment_of_an_image_lies_above_the_base),
		TEST(the_working_directory_is_the_images_unless_one_is_named),
		TEST(the_root_as_working_directory_is_none),
		TEST(the_command_of_an_image_runs_when_none_is_named),
		TEST(an_image_that_is_damaged_or_absent_is_refused),
		TEST(a_store_that_others_may_change_is_refused),
#undef TEST
	};
	return cmocka_run_group_tests(tests, store_setup, store_teardown);
}
