/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read a profile and its parents, merge their keys into a config.
 *
 * Every file of the chain is read before the first key is applied, then they are
 * applied parents first, so that a child's value is the later one.
 */
#include "profiles/profile.h"

#include <stdio.h>
#include <string.h>

#include "profiles/settings.h"
#include "runtime/base/json/json_record.h"
#include "runtime/base/text.h"

/* --- one key ---------------------------------------------------------------- */

/* A file named in a profile lies beside it, wherever cejail is started. */
static const char *beside_profile(struct arena *a, const char *path, const char *file)
{
	const char *slash = strrchr(path, '/');
	if (file[0] == '/' || strcmp(file, "default") == 0 || !slash)
		return file;
	return arena_printf(a, "%.*s/%s", (int)(slash - path), path, file);
}

static int set_setting(const struct json_reader *in, const struct json_key *k, const char *text,
		       void *record, struct cj_error *err)
{
	const struct setting *s = k->detail;
	if (s->offset == offsetof(struct config, seccomp))
		text = beside_profile(in->arena, in->file, text);
	if (!text)
		return cj_fail(err, ENOMEM, "read '%s'", in->file);
	return s->parse(record, s, text, err);
}

/* "NAME=VALUE" for each member, so that an option and a key go the same way. */
static int read_env(const struct json_reader *in, const struct json_key *k,
		    const struct json_node *node, void *record, struct cj_error *err)
{
	struct json_key member = *k; /* a NAME, whose value is a string */
	int rc = 0;

	member.types = JSON_TAKES_STRING;
	member.read = NULL;
	for (const struct json_node *n = node->child; n && rc == 0; n = n->next) {
		if (strchr(n->key, '='))
			return json_reject(in->file, n, err, "env: '%s' has a '=' in its name",
					   n->key);
		struct json_node pair = *n;
		if (n->type == JSON_STRING) {
			pair.text = arena_printf(in->arena, "%s=%s", n->key, n->text);
			if (!pair.text)
				return cj_fail(err, ENOMEM, "read '%s'", in->file);
		}
		rc = json_key_read(in, &member, &pair, record, err);
	}
	return rc;
}

static unsigned types_of(const struct setting *s)
{
	if (s->kind == SETTING_FLAG)
		return JSON_TAKES_BOOL;
	return JSON_TAKES_STRING | (s->is_number ? JSON_TAKES_NUMBER : 0);
}

/* A list that is also an option grows along the chain; a profile's own list is replaced. */
static struct json_key json_key_of(const struct setting *s)
{
	const bool is_env = s->offset == offsetof(struct config, env);
	return (struct json_key){
		.name = s->key,
		.types = is_env ? JSON_TAKES_OBJECT : types_of(s),
		.wanted = is_env ? "an object of NAME: \"VALUE\"" : NULL,
		.is_list = s->kind == SETTING_LIST && !is_env,
		.replaces = !s->option,
		.offset = s->offset,
		.detail = s,
		.set = set_setting,
		.read = is_env ? read_env : NULL,
	};
}

int profile_apply(struct config *c, const char *path, const struct setting *s,
		  const struct json_node *node, struct cj_error *err)
{
	const struct json_reader in = { .file = path, .arena = &c->arena };
	const struct json_key k = json_key_of(s);
	return json_key_read(&in, &k, node, c, err);
}

/* --- one profile ------------------------------------------------------------ */

/* Keys that stand in an object of this name. */
static bool is_group(const char *name)
{
	size_t size = strlen(name);
	for (size_t i = 0; i < settings_count; i++)
		if (settings[i].key && strncmp(settings[i].key, name, size) == 0 &&
		    settings[i].key[size] == '.')
			return true;
	return false;
}

struct walk {
	const char *path;
	profile_visitor visit;
	void *context;
};

static int visit_dotted(const struct walk *w, const char *group, const char *name,
			const struct json_node *node, struct cj_error *err)
{
	char key[64];
	(void)snprintf(key, sizeof(key), "%s.%s", group, name);
	return w->visit(w->context, key, setting_by_key(key), node, err);
}

/* "network": "none" is short for "network": {"mode": "none"}. */
static int visit_group(const struct walk *w, const struct json_node *node, struct cj_error *err)
{
	if (node->type != JSON_OBJECT && strcmp(node->key, "network") == 0)
		return visit_dotted(w, node->key, "mode", node, err);
	if (node->type != JSON_OBJECT)
		return json_reject(w->path, node, err, "%s must be an object, not %s", node->key,
				   json_type_name(node->type));

	int rc = 0;
	for (const struct json_node *n = node->child; n && rc == 0; n = n->next)
		rc = visit_dotted(w, node->key, n->key, n, err);
	return rc;
}

int profile_walk(const char *path, const struct json_node *root, profile_visitor visit,
		 void *context, struct cj_error *err)
{
	const struct walk w = { .path = path, .visit = visit, .context = context };

	int rc = 0;
	for (const struct json_node *n = root->child; n && rc == 0; n = n->next) {
		/* the dot is the table's spelling, not JSON's */
		const struct setting *s = strchr(n->key, '.') ? NULL : setting_by_key(n->key);
		rc = is_group(n->key) ? visit_group(&w, n, err) : visit(context, n->key, s, n, err);
	}
	return rc;
}

/* A profile while its keys are applied. */
struct reading {
	struct config *c;
	const char *path;
};

static int apply_visited(void *context, const char *key, const struct setting *s,
			 const struct json_node *node, struct cj_error *err)
{
	const struct reading *r = context;
	if (strcmp(key, "$schema") == 0 && node->type == JSON_STRING) /* for editors */
		return 0;
	if (s)
		return profile_apply(r->c, r->path, s, node, err);
	return json_reject_unknown(r->path, node, key, setting_suggest_key(key), err);
}

static int apply_profile(struct config *c, const char *path, const struct json_node *root,
			 struct cj_error *err)
{
	struct reading r = { .c = c, .path = path };
	return profile_walk(path, root, apply_visited, &r, err);
}

static int parse_profile(struct arena *a, const char *path, const char *text, size_t size,
			 const struct json_node **out, struct cj_error *err)
{
	int rc = json_parse(path, text, size, a, out, err);
	if (rc < 0)
		return rc;
	if ((*out)->type != JSON_OBJECT)
		return json_reject(path, *out, err, "a profile is an object, not %s",
				   json_type_name((*out)->type));
	return 0;
}

/* The parent's name, or NULL; anything but a name is refused when the key is applied. */
static const char *parent_of(const struct json_node *root)
{
	const struct json_node *node = json_get(root, "extends");
	bool is_good = node && node->type == JSON_STRING && is_name(node->text);
	return is_good ? node->text : NULL;
}

int profile_read_text(struct config *c, const char *path, const char *text, size_t size,
		      const char **out_extends, struct cj_error *err)
{
	const struct json_node *root;
	int rc = parse_profile(&c->arena, path, text, size, &root, err);
	if (rc == 0)
		rc = apply_profile(c, path, root, err);
	if (rc == 0)
		*out_extends = parent_of(root);
	return rc;
}

/* --- the chain -------------------------------------------------------------- */

struct link {
	struct profile_source source;
	const struct json_node *root;
};

struct chain {
	struct link links[PROFILE_EXTENDS_MAX + 1]; /* the profile asked for first */
	size_t count;
};

static int reject_cycle(const struct chain *chain, const char *name, struct cj_error *err)
{
	char route[256] = "";
	size_t used = 0;
	bool is_in_cycle = false;
	for (size_t i = 0; i < chain->count && used < sizeof(route); i++) {
		is_in_cycle |= strcmp(chain->links[i].source.name, name) == 0;
		if (is_in_cycle)
			used += (size_t)snprintf(route + used, sizeof(route) - used, "%s -> ",
						 chain->links[i].source.name);
	}
	return cj_reject(err, "'%s' extends itself: %s%s", name, route, name);
}

static bool has_link(const struct chain *chain, const char *name)
{
	for (size_t i = 0; i < chain->count; i++)
		if (strcmp(chain->links[i].source.name, name) == 0)
			return true;
	return false;
}

/* "base" that extends "base" means the one that it hides. */
static bool extends_hidden(const struct chain *chain, const char *name)
{
	return chain->count > 0 && strcmp(chain->links[chain->count - 1].source.name, name) == 0;
}

static int check_link(const struct chain *chain, const char *name, struct cj_error *err)
{
	if (has_link(chain, name) && !extends_hidden(chain, name))
		return reject_cycle(chain, name, err);
	if (chain->count > PROFILE_EXTENDS_MAX)
		return cj_reject(err, "'%s' extends more than %d others in a row",
				 chain->links[0].source.name, PROFILE_EXTENDS_MAX);
	return 0;
}

static int read_chain(struct arena *a, const char *name, struct chain *chain, struct cj_error *err)
{
	while (name) {
		int rc = check_link(chain, name, err);
		if (rc < 0)
			return rc;

		struct link *link = &chain->links[chain->count];
		const bool is_hidden = extends_hidden(chain, name);
		rc = profile_source_read(name, is_hidden ? link[-1].source.next_dir : 0, a,
					 &link->source, err);
		if (rc == -ENOENT && is_hidden)
			return reject_cycle(chain, name, err);
		if (rc < 0 && chain->count > 0)
			return cj_wrap(err, "%s: extends", link[-1].source.path);
		if (rc < 0)
			return rc;
		rc = parse_profile(a, link->source.path, link->source.text, link->source.size,
				   &link->root, err);
		if (rc < 0)
			return rc;
		chain->count++;
		name = parent_of(link->root);
	}
	return 0;
}

/* The defaults of all profiles: what an image says counts more, every other profile yet more. */
static int note_base(struct config *c, const struct link *link, struct cj_error *err)
{
	if (strcmp(link->source.name, PROFILE_BASE) != 0)
		return 0;
	c->base_env = (struct strings){ 0 }; /* one "base" may extend another */
	for (size_t i = 0; i < c->env.count; i++)
		if (strings_add(&c->base_env, &c->arena, c->env.items[i]) < 0)
			return cj_fail(err, ENOMEM, "keep the environment");
	c->base_workdir = c->workdir;
	return 0;
}

int profile_load(struct config *c, const char *name, struct cj_error *err)
{
	const char *kept = arena_strdup(&c->arena, name);
	if (!kept)
		return cj_fail(err, ENOMEM, "read profile '%s'", name);

	struct chain chain = { 0 };
	int rc = read_chain(&c->arena, kept, &chain, err);
	if (rc < 0)
		return rc;

	struct sha256 hash;
	sha256_init(&hash);
	for (size_t i = chain.count; i-- > 0;) {
		const struct link *link = &chain.links[i];
		rc = apply_profile(c, link->source.path, link->root, err);
		if (rc == 0)
			rc = note_base(c, link, err);
		if (rc < 0)
			return rc;
		sha256_update(&hash, link->source.text, link->source.size);
	}
	sha256_final(&hash, c->profile_sha256);
	c->profile_name = kept;
	c->profile_allow = c->allow.count;
	return 0;
}

/* --- showing it ------------------------------------------------------------- */

/* Length of the group in "group.key"; 0: none. */
static size_t group_length(const struct setting *s)
{
	const char *dot = s->key ? strchr(s->key, '.') : NULL;
	return dot ? (size_t)(dot - s->key) : 0;
}

static bool is_same_group(const struct setting *a, const struct setting *b)
{
	size_t size = group_length(a);
	return size == group_length(b) && (size == 0 || strncmp(a->key, b->key, size) == 0);
}

/* The rows of a group stand together in the table. */
static void open_group(struct json_writer *w, const struct setting *s)
{
	char group[64];
	(void)snprintf(group, sizeof(group), "%.*s", (int)group_length(s), s->key);
	json_member_object(w, group);
}

void profile_put(struct json_writer *w, const struct config *c, const bool *wanted)
{
	const struct setting *group = NULL; /* whose object is open */

	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *s = &settings[i];
		if (!s->key || !s->write || (wanted && !wanted[i]))
			continue;
		if (group && !is_same_group(group, s)) {
			json_close_object(w);
			group = NULL;
		}
		if (!group && group_length(s) > 0) {
			open_group(w, s);
			group = s;
		}
		s->write(w, c, s);
	}
	if (group)
		json_close_object(w);
}

void profile_write(struct json_writer *w, const struct config *c)
{
	json_open_object(w);
	profile_put(w, c, NULL);
	json_close_object(w);
}
