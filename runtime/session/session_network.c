/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a session's network after a change: the keeper writes them, its workers read them.
 *
 * As text: '1' for a list of what is allowed or '0', then "+TARGET" for each that is allowed and
 * "-TARGET" for each that is denied, each with its NUL, and one NUL more.  The number of changes is
 * odd while the text is written.
 */
#include "runtime/session/session_state.h"

#include <poll.h>

#define LOOKS   100 /* then the keeper is gone, or stopped */
#define LOOK_MS 1

static char *add(char *to, const char *end, char sign, const struct strings *texts)
{
	for (size_t i = 0; to && i < texts->count; i++) {
		size_t room = (size_t)(end - to);
		int size = snprintf(to, room, "%c%s", sign, texts->items[i]);
		to = (size_t)size + 1 < room ? to + size + 1 : NULL;
	}
	return to;
}

int session_change_network(struct session *s, const struct network_lists *lists,
			   struct cj_error *err)
{
	struct jail *j = s->jail;
	if (!j->network || j->plan->network.mode != NETWORK_PUBLIC)
		return cj_reject_as(err, EOPNOTSUPP, "the session was created without a network");
	int rc = network_change(j->network, lists, err);
	session_publish_network(s);
	if (rc < 0)
		return rc;
	atomic_fetch_add(&s->shared->rules_changes, 1);
	/* A text without room for all of them has none: it says nothing then. */
	const char *end = s->shared->rules + SESSION_RULES_MAX - 1; /* the last NUL stays */
	char *to = add(s->shared->rules + 1, end, '+', &lists->allow);
	to = to ? add(to, end, '-', &lists->deny) : NULL;
	s->shared->rules[0] = to ? (char)('0' + lists->is_list) : '\0';
	if (to)
		*to = '\0';
	atomic_fetch_add(&s->shared->rules_changes, 1);
	return 0;
}

static int read_rules(const char *text, struct arena *a, struct network_rules *out)
{
	out->lists.is_list = text[0] == '1';
	for (text++; *text; text += strlen(text) + 1)
		if (strings_add(*text == '+' ? &out->lists.allow : &out->lists.deny, a, text + 1) <
		    0)
			return -ENOMEM;
	return 0;
}

int session_read_rules(const struct session *s, struct outcome *out, struct cj_error *err)
{
	struct session_shared *shared = s->shared;
	unsigned changes = atomic_load(&shared->rules_changes);
	if (changes == 0)
		return 0;
	struct network_rules *rules = arena_array(&out->arena, 1, sizeof(*rules));
	char *text = arena_alloc(&out->arena, SESSION_RULES_MAX);
	bool is_whole = false;
	for (int i = 0; rules && text && i < LOOKS && !is_whole; i++) {
		if (i > 0)
			(void)poll(NULL, 0, LOOK_MS);
		changes = atomic_load(&shared->rules_changes);
		memcpy(text, shared->rules, SESSION_RULES_MAX);
		is_whole = changes % 2 == 0 && changes == atomic_load(&shared->rules_changes);
	}
	if (!rules || !text || (is_whole && read_rules(text, &out->arena, rules) < 0))
		return cj_fail(err, ENOMEM, "keep the rules of the network");
	if (!is_whole || text[0] == '\0') {
		outcome_warn(out, "the rules of the session's network have changed");
		return 0;
	}
	rules->has_changed = atomic_exchange(&shared->rules_said, changes) != changes;
	out->network.rules = rules;
	return 0;
}
