/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read a profile and its parents, merge their keys into a config.
 *
 * Every file of the chain is read before the first key is applied, then they are
 * applied parents first, so that a child's value is the later one.
 */
#include "profiles/profile.h"

#include "profiles/paths.h"
#include "profiles/settings.h"
#include "runtime/base/json/json_record.h"
#include "runtime/base/text.h"

static int set_setting(const struct json_reader *in, const struct json_key *k, const char *text,
		       void *record, struct cj_error *err)
{
	const struct setting *s = k->detail;
	const char *slash = strrchr(in->file, '/');
	/* A file named in a profile lies beside it, wherever cejail is started. */
	if (s->offset == offsetof(struct config, seccomp) && text[0] != '/' &&
	    strcmp(text, "default") != 0 && slash)
		text = arena_printf(in->arena, "%.*s/%s", (int)(slash - in->file), in->file, text);
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

/* A list that is also an option grows along the chain; a profile's own list is replaced. */
static struct json_key json_key_of(const struct setting *s)
{
	const bool is_env = s->offset == offsetof(struct config, env);
	const unsigned types = is_env                    ? JSON_TAKES_OBJECT
			       : s->kind == SETTING_FLAG ? JSON_TAKES_BOOL
			       : s->is_number            ? JSON_TAKES_STRING | JSON_TAKES_NUMBER
							 : JSON_TAKES_STRING;
	return (struct json_key){
		.name = s->key,
		.types = types,
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

/* Keys that stand in an object of this name. */
static bool is_group(const char *name)
{
	for (size_t i = 0; i < settings_count; i++) {
		const char *below = settings[i].key ? text_after(settings[i].key, name) : NULL;
		if (below && *below == '.')
			return true;
	}
	return false;
}

struct profile_walk {
	const char *path;
	profile_visitor visit;
	void *context;
};

static int visit_dotted(const struct profile_walk *w, const char *group, const char *name,
			const struct json_node *node, struct cj_error *err)
{
	char key[64];
	(void)snprintf(key, sizeof(key), "%s.%s", group, name);
	return w->visit(w->context, key, setting_by_key(key), node, err);
}

/* "network": "none" is short for "network": {"mode": "none"}. */
static int visit_group(const struct profile_walk *w, const struct json_node *node,
		       struct cj_error *err)
{
	if (node->type != JSON_OBJECT && strcmp(node->key, "network") == 0)
		return visit_dotted(w, node->key, "mode", node, err);
	if (node->type != JSON_OBJECT)
		return json_reject(w->path, node, err, "%s must be an object, not %s", node->key,
				   json_type_name(node->type));

	for (const struct json_node *n = node->child; n; n = n->next)
		if (visit_dotted(w, node->key, n->key, n, err) < 0)
			return -err->code;
	return 0;
}

int profile_walk(const char *path, const struct json_node *root, profile_visitor visit,
		 void *context, struct cj_error *err)
{
	const struct profile_walk w = { .path = path, .visit = visit, .context = context };

	for (const struct json_node *n = root->child; n; n = n->next) {
		/* the dot is the table's spelling, not JSON's */
		const struct setting *s = strchr(n->key, '.') ? NULL : setting_by_key(n->key);
		if ((is_group(n->key) ? visit_group(&w, n, err)
				      : visit(context, n->key, s, n, err)) < 0)
			return -err->code;
	}
	return 0;
}

/* A profile while its keys are applied. */
struct profile_reading {
	struct config *c;
	const char *path;
};

static int apply_visited(void *context, const char *key, const struct setting *s,
			 const struct json_node *node, struct cj_error *err)
{
	const struct profile_reading *r = context;
	if (strcmp(key, "$schema") == 0 && node->type == JSON_STRING) /* for editors */
		return 0;
	if (s)
		return profile_apply(r->c, r->path, s, node, err);
	return json_reject_unknown(r->path, node, key, setting_suggest_key(key), err);
}

static int apply_profile(struct config *c, const char *path, const struct json_node *root,
			 struct cj_error *err)
{
	struct profile_reading r = { .c = c, .path = path };
	return profile_walk(path, root, apply_visited, &r, err);
}

static int parse_profile(struct arena *a, const char *path, const char *text, size_t size,
			 const struct json_node **out, struct cj_error *err)
{
	if (json_parse(path, text, size, a, out, err) < 0)
		return -err->code;
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
	if (parse_profile(&c->arena, path, text, size, &root, err) < 0 ||
	    apply_profile(c, path, root, err) < 0)
		return -err->code;
	*out_extends = parent_of(root);
	return 0;
}

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
	bool is_in_cycle = false;
	for (size_t i = 0; i < chain->count; i++) {
		is_in_cycle |= strcmp(chain->links[i].source.name, name) == 0;
		if (is_in_cycle)
			text_append(route, sizeof(route), "%s -> ", chain->links[i].source.name);
	}
	return cj_reject(err, "'%s' extends itself: %s%s", name, route, name);
}

static int read_link(struct arena *a, const char *name, struct chain *chain, struct cj_error *err)
{
	struct link *link = &chain->links[chain->count];
	struct profile_source *source = &link->source;
	const struct link *child = chain->count > 0 ? &link[-1] : NULL;
	/* "base" that extends "base" means the one that it hides. */
	const bool is_hidden = child && strcmp(child->source.name, name) == 0;
	const size_t first_dir = child && is_hidden ? child->source.next_dir : 0;

	for (size_t i = 0; i < chain->count && !is_hidden; i++)
		if (strcmp(chain->links[i].source.name, name) == 0)
			return reject_cycle(chain, name, err);
	if (chain->count > PROFILE_EXTENDS_MAX)
		return cj_reject(err, "'%s' extends more than %d others in a row",
				 chain->links[0].source.name, PROFILE_EXTENDS_MAX);

	if (child) {
		source->known_dirs = child->source.known_dirs;
		source->absent_dirs = child->source.absent_dirs;
	}
	int rc = profile_source_read(name, first_dir, a, source, err);
	if (rc == -ENOENT && is_hidden)
		return reject_cycle(chain, name, err);
	if (rc < 0)
		return child ? cj_wrap(err, "%s: extends", child->source.path) : rc;
	return parse_profile(a, source->path, source->text, source->size, &link->root, err);
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
	for (const char *next = kept; next; next = parent_of(chain.links[chain.count++].root))
		if (read_link(&c->arena, next, &chain, err) < 0)
			return -err->code;

	struct sha256 hash;
	sha256_init(&hash);
	for (size_t i = chain.count; i-- > 0;) {
		const struct link *link = &chain.links[i];
		if (apply_profile(c, link->source.path, link->root, err) < 0 ||
		    note_base(c, link, err) < 0)
			return -err->code;
		sha256_update(&hash, link->source.text, link->source.size);
	}
	sha256_final(&hash, c->profile_sha256);
	c->profile_name = kept;
	c->profile_allow = c->allow.count;
	return 0;
}

bool profile_runs(const struct config *c, const char *interpreter)
{
	return c->command.count > 0 &&
	       strncmp(paths_name(c->command.items[0]), interpreter, strlen(interpreter)) == 0;
}

void profile_put(struct json_writer *w, const struct config *c, const bool *wanted)
{
	char group[64] = ""; /* whose object is open: the rows of a group stand together */

	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *s = &settings[i];
		if (!s->key || !s->write || (wanted && !wanted[i]))
			continue;
		const size_t size = strcspn(s->key, "."), length = s->key[size] ? size : 0;
		if (strlen(group) != length || strncmp(group, s->key, length) != 0) {
			if (group[0])
				json_close_object(w);
			(void)snprintf(group, sizeof(group), "%.*s", (int)length, s->key);
			if (group[0])
				json_member_object(w, group);
		}
		s->write(w, c, s);
	}
	if (group[0])
		json_close_object(w);
}

void profile_write(struct json_writer *w, const struct config *c)
{
	json_open_object(w);
	profile_put(w, c, NULL);
	json_close_object(w);
}
