/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mistakes that only the request can be the reason for, so that its caller gets the message.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "netns/address/allowlist.h"
#include "runtime/run/request/request.h"

#define NAME "request"

static const struct json_node *list_of(const struct request *r, const char *object, const char *key)
{
	const struct json_node *outer = json_get(r->root, object);
	const struct json_node *list = json_get_typed(outer, key, JSON_ARRAY);

	return list ? list->child : NULL;
}

/* An address is checked here; a name is resolved only when the run begins. */
static int check_address(const struct json_node *node, const struct config *c, struct arena *a,
			 struct cj_error *err)
{
	struct endpoints ignored;
	struct cj_error why = { 0 };
	struct allowlist_entry target;

	if (node->type != JSON_STRING || allowlist_parse(node->text, a, &target, &why) < 0 ||
	    target.name || allowlist_resolve(&target, 1, c->allow_private, a, &ignored, &why) >= 0)
		return 0;
	/* Leave out the hint about the command line. */
	char *never = strstr(why.msg, ", and --allow");
	const char *reason = strchr(why.msg, '\'');
	if (never)
		*never = '\0';
	cj_refuse(err, NAME ":%u:%u: network.allow: %s", node->line, node->column,
		  reason ? reason : why.msg);
	if (!never)
		cj_hint(err, "a profile, or a caller with \"host_paths\", may set "
			     "network.allow_private");
	return -err->code;
}

/* A command that is the file itself runs a program, or a script by its "#!" line. */
static bool has_interpreter(const struct request *r, const struct config *c)
{
	if (c->command.count == 0)
		return false;
	if (strcmp(c->command.items[0], "{file}") != 0)
		return true;
	return (r->code.size >= 2 && memcmp(r->code.bytes, "#!", 2) == 0) ||
	       (r->code.size >= SELFMAG && memcmp(r->code.bytes, ELFMAG, SELFMAG) == 0);
}

int request_check(const struct request *r, const struct config *c, struct arena *a,
		  struct cj_error *err)
{
	if (r->has_code && !has_interpreter(r, c)) {
		(void)!json_reject(NAME, json_get(r->root, "code"), err,
				   "code: profile '%s' has no interpreter for it", r->profile);
		return cj_hint(err, "choose another profile, or send a command");
	}
	for (const struct json_node *n = list_of(r, "network", "allow");
	     n && c->network != NETWORK_NONE; n = n->next)
		if (check_address(n, c, a, err) < 0)
			return -err->code;
	return 0;
}

bool request_names(const struct request *r, const char *text)
{
	const struct json_node *workdir = json_get(r->root, "workdir");

	if (workdir && workdir->type == JSON_STRING && strcmp(workdir->text, text) == 0)
		return true;
	for (size_t i = 0; i < r->nfiles; i++)
		if (strcmp(r->files[i].path, text) == 0)
			return true;
	for (const struct json_node *n = list_of(r, "network", "allow"); n; n = n->next)
		if (n->type == JSON_STRING && strcmp(n->text, text) == 0)
			return true;
	return false;
}
