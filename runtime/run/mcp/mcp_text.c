/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run/mcp/mcp_text.h"

#include "runtime/run/mcp/mcp_message.h"

const char *mcp_uri_join(const char *before, const char *directory, const char *path,
			 struct arena *a)
{
	size_t room = strlen(before) + 3 * (strlen(directory) + strlen(path)) + 2;
	char *uri = arena_alloc(a, room), *to = uri;

	if (!uri)
		return NULL;
	memcpy(to, before, strlen(before));
	to = text_put_url(to + strlen(before), directory);
	*to++ = '/';
	(void)text_put_url(to, path);
	return uri;
}

static bool is_shortened(const struct json_node *stream, const struct mcp_tool *tool)
{
	return json_is_true(stream, "truncated") ||
	       json_get_number(stream, "bytes") > mcp_tool_text_max(tool);
}

bool mcp_text_is_truncated(const struct json_node *result, const struct mcp_tool *tool)
{
	return is_shortened(mcp_member(result, "stdout"), tool) ||
	       is_shortened(mcp_member(result, "stderr"), tool);
}

static void say_timeout(struct mcp_prose *s, const struct json_node *result,
			const struct mcp_tool *tool)
{
	uint64_t ms = json_get_number(mcp_member(mcp_member(result, "limits"), "wall"), "value");
	char used[32], most[32];

	text_format_duration(ms, used, sizeof(used));
	text_format_duration(tool->limits.wall_ms, most, sizeof(most));
	mcp_say(s, "The time limit of %s ended the program; ", used);
	if (tool->limits.wall_ms > ms && tool->limits.wall_ms != CEILING_NONE)
		mcp_say(s, "raise timeout_seconds (at most %s), or do less in one call", most);
	else
		mcp_say(s, "do less in one call, or make it faster");
}

static void say_oom(struct mcp_prose *s, const struct json_node *result)
{
	uint64_t bytes =
	    json_get_number(mcp_member(mcp_member(result, "limits"), "memory"), "value");
	char text[32];

	text_format_size(bytes, text, sizeof(text));
	mcp_say(s,
		"The program needed more than its memory limit of %s; process the data in smaller "
		"parts",
		text);
}

static void say_setup_error(struct mcp_prose *s, const struct json_node *result)
{
	const struct json_node *error = mcp_member(result, "error");
	const char *hint = json_get_text(error, "hint");
	bool has_run = strcmp(mcp_text(error, "stage"), "supervisor") == 0;

	mcp_say(s, "The program %s: %.600s", has_run ? "ran, but the run failed" : "did not start",
		mcp_text(error, "message"));
	if (hint)
		mcp_say(s, " (%.256s)", hint);
}

/* Of a cell whose interpreter goes on. */
static void say_cell_end(struct mcp_prose *s, const struct json_node *cell, uint64_t code)
{
	const char *type = mcp_text(mcp_member(cell, "exception"), "type");

	if (strcmp(type, "SystemExit") == 0 || strcmp(type, "Exit") == 0)
		mcp_say(s, "The code called exit with status %d; variables remain", (int)code);
	else if (code == 0)
		mcp_say(s, "The code has run");
	else
		mcp_say(s, "The code raised an exception; stderr has it, and variables remain");
}

static void say_exit(struct mcp_prose *s, const struct json_node *result)
{
	uint64_t code = json_get_number(result, "exit_code");
	const struct json_node *cell = mcp_member(result, "cell");
	const char *message = json_get_text(mcp_member(result, "error"), "message");
	const struct json_node *err = mcp_member(result, "stderr");
	bool has_stderr = mcp_text(err, "text")[0] || mcp_text(err, "base64")[0];

	if (message)
		mcp_say(s, "The interpreter could not be executed: %.600s", message);
	else if (json_is_true(cell, "lost"))
		mcp_say(s, "The code ended the interpreter's process with status %d", (int)code);
	else if (cell)
		say_cell_end(s, cell, code);
	else if (code == 0)
		mcp_say(s, "The program exited with status 0");
	else
		mcp_say(s, "The program exited with status %d%s", (int)code,
			has_stderr ? "; stderr says why" : "");
}

/* What programs say when there is no network: resolvers, the C library, Node, requests. */
static bool says_no_network(const struct json_node *stream)
{
	static const char *const words[] = { "name resolution",    "Network is unreachable",
					     "resolve host",       "ENETUNREACH",
					     "EAI_AGAIN",          "ENOTFOUND",
					     "Network unreachable" };
	const char *text = mcp_text(stream, "text");

	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

#define TARGETS_SAID 8

static void say_targets(struct mcp_prose *s, const char *before, const struct json_node *m)
{
	size_t said = 0;

	for (; m; m = m->next, said++)
		if (said < TARGETS_SAID)
			mcp_say(s, "%s%.64s", said == 0 ? before : ", ",
				m->type == JSON_STRING ? m->text : "");
	if (said > TARGETS_SAID)
		mcp_say(s, " and %zu more", said - TARGETS_SAID);
}

void mcp_say_rules(struct mcp_prose *s, const struct json_node *network)
{
	const struct json_node *allow = json_get_items(network, "allow");

	if (strcmp(mcp_text(network, "mode"), "none") == 0) {
		mcp_say(s, "The session's network is closed: nothing leaves it.");
		return;
	}
	mcp_say(s, "The session's network reaches %s", allow ? "only " : "the public Internet");
	say_targets(s, "", allow);
	say_targets(s, ", but not ", json_get_items(network, "deny"));
	mcp_say(s, ".");
}

/* A program that failed without a network would fail again. */
static void say_network(struct mcp_prose *s, const struct json_node *result)
{
	const struct json_node *network = mcp_member(result, "network");
	const struct json_node *rules = mcp_member(network, "rules");
	bool is_off = strcmp(mcp_text(rules ? rules : network, "mode"), "none") == 0;
	bool is_lost = strcmp(mcp_text(network, "state"), "failed") == 0 ||
		       strcmp(mcp_text(network, "uplink"), "none") == 0;

	if (is_lost || (is_off && (says_no_network(mcp_member(result, "stderr")) ||
				   says_no_network(mcp_member(result, "stdout")))))
		mcp_say(s, "; there is no network here: do not retry what needs one");
}

void mcp_say_result(struct mcp_prose *s, const struct json_node *result,
		    const struct mcp_tool *tool)
{
	const char *status = mcp_text(result, "status");

	if (strcmp(status, "exited") == 0)
		say_exit(s, result);
	else if (strcmp(status, "signaled") == 0)
		mcp_say(s, "Signal %d ended the program", (int)json_get_number(result, "signal"));
	else if (strcmp(status, "timeout") == 0)
		say_timeout(s, result, tool);
	else if (strcmp(status, "oom") == 0)
		say_oom(s, result);
	else if (strcmp(status, "cpu_limit") == 0)
		mcp_say(s, "The limit of CPU time ended the program; compute less in one call");
	else if (strcmp(status, "output_limit") == 0)
		mcp_say(s, "The program wrote more output than allowed; print less");
	else if (strcmp(status, "setup_error") == 0)
		say_setup_error(s, result);
	else
		mcp_say(s, "The run was cancelled");
	if (json_is_true(mcp_member(result, "cell"), "restarted"))
		mcp_say(s, "; the interpreter is a new one, in which variables of earlier code are "
			   "gone");
	if (json_is_true(mcp_member(result, "cell"), "lost"))
		mcp_say(s, "; all variables are gone, and the next call gets a new interpreter: "
			   "import and define again what it needs");
	if (strcmp(status, "exited") != 0 || json_get_number(result, "exit_code") != 0)
		say_network(s, result);
	if (mcp_text_is_truncated(result, tool))
		mcp_say(s, "; the middle of the output is missing: %s",
			json_get_text(result, "session")
			    ? "write it to a file, and print the parts of the file that matter"
			    : "print only what matters");
	if (json_get_items(result, "denied_syscalls") ||
	    json_get_items(mcp_member(result, "network"), "denied"))
		mcp_say(s, "; 'denied' lists what the sandbox refused");
	mcp_say(s, ".");
	const struct json_node *rules = mcp_member(mcp_member(result, "network"), "rules");
	if (json_is_true(rules, "changed")) {
		mcp_say(s, " Since the last call the network has changed. ");
		mcp_say_rules(s, rules);
	}
}
