/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles, parsed once. */
#include "runtime/service/config/profile_cache.h"

#include <sys/stat.h>

#include "profiles/profile.h"

#define NAME_MAX_OF_PROFILE 64

struct cached_profile {
	char name[NAME_MAX_OF_PROFILE]; /* "": unused */
	struct config config;
	struct strings paths; /* in config.arena */
	uint64_t stamp;
	uint64_t checked_turn; /* of the last look at the files; 0: without turns */
};

struct profile_cache {
	struct cached_profile entries[PROFILE_CACHE_MAX];
	uint64_t turn; /* 0: there are none */
	size_t next;   /* the one to be replaced when all are in use */
};

struct profile_cache *profile_cache_create(void)
{
	return calloc(1, sizeof(struct profile_cache));
}

static void forget(struct cached_profile *e)
{
	if (e->name[0])
		config_fini(&e->config);
	*e = (struct cached_profile){ .name = "" };
}

void profile_cache_destroy(struct profile_cache **k)
{
	if (!*k)
		return;
	for (size_t i = 0; i < PROFILE_CACHE_MAX; i++)
		forget(&(*k)->entries[i]);
	free(*k);
	*k = NULL;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	for (size_t i = 0; i < sizeof(value); i++)
		hash = (hash ^ ((value >> (8 * i)) & 0xff)) * 0x100000001b3u; /* FNV-1a */
	return hash;
}

static uint64_t stamp_of(const struct strings *paths)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < paths->count; i++) {
		struct stat st = { 0 };
		if (stat(paths->items[i], &st) < 0)
			st = (struct stat){ 0 };
		hash = mix(hash, st.st_dev);
		hash = mix(hash, st.st_ino);
		hash = mix(hash, (uint64_t)st.st_size);
		hash = mix(hash, (uint64_t)st.st_mode);
		hash = mix(hash, (uint64_t)st.st_mtim.tv_sec);
		hash = mix(hash, (uint64_t)st.st_mtim.tv_nsec);
		hash = mix(hash, (uint64_t)st.st_ctim.tv_sec);
		hash = mix(hash, (uint64_t)st.st_ctim.tv_nsec);
	}
	return hash ? hash : 1;
}

static int add_path(struct strings *paths, struct arena *a, const char *path, struct cj_error *err)
{
	return path && strings_add(paths, a, path) == 0 ? 0
							: cj_fail(err, ENOMEM, "keep a profile");
}

/* Every path where the file of `name` is or could appear. */
static int add_places(struct strings *paths, const struct profile_dirs *dirs, struct arena *a,
		      const char *name, struct cj_error *err)
{
	int rc = 0;

	if (strchr(name, '/'))
		return add_path(paths, a, name, err);
	for (size_t i = 0; rc == 0 && i < dirs->count; i++)
		rc = add_path(paths, a, arena_printf(a, "%s/%s.json", dirs->items[i].path, name),
			      err);
	return rc;
}

/* If files change while they are read, the stamp is 0, so the next call reads them again. */
static int fill(struct cached_profile *e, struct cj_error *err)
{
	struct arena *a = &e->config.arena;
	const char *name = arena_strdup(a, e->name);
	struct profile_dirs dirs = { 0 };
	struct config scratch;
	size_t first_dir = 0;
	int rc = name ? profile_dirs_find(a, &dirs, err) : cj_fail(err, ENOMEM, "keep a profile");
	config_init(&scratch);
	/* The files of a profile and of its parents. */
	for (size_t i = 0; rc == 0 && name && i <= PROFILE_EXTENDS_MAX; i++) {
		struct profile_source source = { 0 };
		const char *parent = NULL;
		rc = add_places(&e->paths, &dirs, a, name, err);
		if (rc == 0)
			rc = profile_source_read(name, first_dir, a, &source, err);
		if (rc == 0)
			rc = profile_read_text(&scratch, source.path, source.text, source.size,
					       &parent, err);
		first_dir = parent && strcmp(parent, name) == 0 ? source.next_dir : 0;
		name = rc == 0 && parent ? arena_strdup(a, parent) : NULL;
	}
	config_fini(&scratch);
	if (rc < 0)
		return -err->code;
	uint64_t before = stamp_of(&e->paths);
	if (profile_load(&e->config, e->name, err) < 0)
		return -err->code;
	bool is_same = stamp_of(&e->paths) == before;
	const char *seccomp = e->config.seccomp;
	if (seccomp && strchr(seccomp, '/') &&
	    add_path(&e->paths, &e->config.arena, seccomp, err) < 0)
		return -err->code;
	e->stamp = is_same ? stamp_of(&e->paths) : 0;
	return 0;
}

static struct cached_profile *find(struct profile_cache *k, const char *name)
{
	for (size_t i = 0; i < PROFILE_CACHE_MAX; i++)
		if (strcmp(k->entries[i].name, name) == 0)
			return &k->entries[i];
	return NULL;
}

/* Up to date, or NULL. */
static struct cached_profile *look_up(struct profile_cache *k, const char *name,
				      struct cj_error *err)
{
	struct cached_profile *e = find(k, name);

	if (strlen(name) >= NAME_MAX_OF_PROFILE || name[0] == '\0') {
		cj_refuse(err, "'%s' is no profile's name", name);
		return NULL;
	}
	if (e && stamp_of(&e->paths) == e->stamp) {
		e->checked_turn = k->turn;
		return e;
	}
	if (!e)
		e = find(k, ""); /* an unused one */
	if (!e)
		e = &k->entries[k->next++ % PROFILE_CACHE_MAX];
	forget(e);
	(void)snprintf(e->name, sizeof(e->name), "%s", name);
	config_init(&e->config);
	if (fill(e, err) == 0) {
		e->checked_turn = k->turn;
		return e;
	}
	forget(e);
	return NULL;
}

int profile_cache_get(struct profile_cache *k, const char *name, const struct config **out,
		      struct cj_error *err)
{
	const struct cached_profile *e = look_up(k, name, err);

	if (!e)
		return -err->code;
	*out = &e->config;
	return 0;
}

uint64_t profile_cache_stamp(struct profile_cache *k, const char *name)
{
	struct cj_error ignored = { 0 };
	const struct cached_profile *e = find(k, name);

	if (!e || e->stamp == 0 || e->checked_turn == 0 || e->checked_turn != k->turn)
		e = look_up(k, name, &ignored);
	return e ? e->stamp : 0;
}

void profile_cache_turn(struct profile_cache *k)
{
	k->turn++;
}
