/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of other programs' options: each answer is right for this program. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <ctype.h>

#include "profiles/settings.h"
#include "runtime/run/options/habits.c"

static void for_each_habit(const struct habit *table, size_t n,
			   void (*check)(const char *name, const char *answer))
{
	for (size_t i = 0; i < n; i++)
		check(table[i].name, table[i].answer);
}

static void check_is_found(const char *word, const char *answer)
{
	const char *found = word[0] == '-' ? habit_for_option(word) : habit_for_verb(word);
	assert_non_null(found);
	if (strcmp(found, answer) != 0)
		fail_msg("'%s' stands in two rows", word);
}

static void every_word_has_one_answer(void **state)
{
	(void)state;
	for_each_habit(option_habits, COUNT_OF(option_habits), check_is_found);
	for_each_habit(verb_habits, COUNT_OF(verb_habits), check_is_found);
}

static void check_is_foreign(const char *word, const char *answer)
{
	(void)answer;
	if (word[0] == '-' && word[1] == '-')
		assert_null(setting_by_option(word + 2));
	else if (word[0] == '-')
		assert_null(setting_by_letter(word[1]));
}

static void no_option_of_ours_is_a_habit(void **state)
{
	(void)state;
	for_each_habit(option_habits, COUNT_OF(option_habits), check_is_foreign);
}

/* Every "--word" of an answer can be written. */
static void check_answer(const char *word, const char *answer)
{
	(void)word;
	for (const char *at = strstr(answer, "--"); at; at = strstr(at + 2, "--")) {
		char name[64];
		size_t size = 0;
		while (islower((unsigned char)at[2 + size]) || at[2 + size] == '-')
			size++;
		assert_true(size < sizeof(name));
		(void)snprintf(name, sizeof(name), "%.*s", (int)size, at + 2);
		if (size > 0 && !setting_by_option(name))
			fail_msg("the answer '%s' names '--%s', which is no option", answer, name);
	}
}

static void every_answer_names_existing_options(void **state)
{
	(void)state;
	for_each_habit(option_habits, COUNT_OF(option_habits), check_answer);
	for_each_habit(verb_habits, COUNT_OF(verb_habits), check_answer);
}

static void every_answer_has_one_of_three_beginnings(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(option_habits); i++) {
		const char *answer = option_habits[i].answer;
		assert_true(strncmp(answer, "write ", 6) == 0 ||
			    strncmp(answer, "not needed: ", 12) == 0 ||
			    strncmp(answer, "not available: ", 15) == 0);
		assert_true(answer[strlen(answer) - 1] != '.');
	}
}

static void a_part_of_a_name_is_not_found(void **state)
{
	(void)state;
	assert_null(habit_for_option("--vol"));
	assert_null(habit_for_option("--volumes"));
	assert_null(habit_for_option("--"));
	assert_null(habit_for_option(""));
	assert_null(habit_for_verb("exe"));
}

static void values_of_other_programs_are_recognised(void **state)
{
	static const char *const profiles[] = { "python", "80:x", "a:80", "80:", ":80", "80" };
	(void)state;

	assert_non_null(habit_for_value("profile", "8080:80"));
	for (size_t i = 0; i < COUNT_OF(profiles); i++)
		assert_null(habit_for_value("profile", profiles[i]));
	assert_non_null(habit_for_value("network", "host"));
	assert_non_null(habit_for_value("network", "bridge"));
	assert_null(habit_for_value("network", "none"));
	assert_non_null(habit_for_value("timeout", "ubuntu"));
	assert_null(habit_for_value("timeout", "5x"));
	assert_null(habit_for_value("memory", "8080:80"));
}

static void volumes_are_recognised_by_their_form(void **state)
{
	(void)state;
	assert_true(habit_is_volume("/a:/b"));
	assert_true(habit_is_volume("data:/var/lib/data:ro"));
	assert_true(habit_is_volume("./x:/x"));
	assert_false(habit_is_volume("job.py"));
	assert_false(habit_is_volume("a:b"));
	assert_false(habit_is_volume(":/b"));
	assert_false(habit_is_volume("https://example.org"));
}

static void images_are_recognised_by_name_or_tag(void **state)
{
	(void)state;
	assert_true(habit_is_image("ubuntu"));
	assert_true(habit_is_image("python:3.12"));
	assert_true(habit_is_image("registry.example/team/image:v1"));
	assert_false(habit_is_image("job.py"));
	assert_false(habit_is_image("/a:b"));
	assert_false(habit_is_image("./python:3"));
	assert_false(habit_is_image("a:/b"));
	assert_false(habit_is_image(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_word_has_one_answer),
		cmocka_unit_test(no_option_of_ours_is_a_habit),
		cmocka_unit_test(every_answer_names_existing_options),
		cmocka_unit_test(every_answer_has_one_of_three_beginnings),
		cmocka_unit_test(a_part_of_a_name_is_not_found),
		cmocka_unit_test(values_of_other_programs_are_recognised),
		cmocka_unit_test(volumes_are_recognised_by_their_form),
		cmocka_unit_test(images_are_recognised_by_name_or_tag),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
