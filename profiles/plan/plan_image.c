/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root that --rootfs names: directories, or the layers of an image; and what else an image
 * says.  Looks at the host, changes nothing.
 *
 * A text with a slash is directories, one without is the name of an image.
 */
#include <sys/stat.h>

#include "profiles/paths.h"
#include "profiles/plan/env_file.h"
#include "profiles/plan/plan_parts.h"
#include "rootfs/image/image_store.h"

bool plan_names_image(const char *rootfs)
{
	return !strchr(rootfs, '/') && strcmp(rootfs, "host") != 0;
}

static int add_layer(struct planner *p, const char *text, struct cj_error *err)
{
	const char *path;
	struct stat st;
	if (paths_resolve(text, &p->c->arena, &path, err) < 0)
		return -err->code;
	if (stat(path, &st) < 0)
		return cj_fail(err, errno, "stat '%s'", path);
	if (!S_ISDIR(st.st_mode))
		return cj_reject(err, "'%s' is not a directory", text);
	return plan_add(p, &p->plan.root.layers, path, err);
}

static int add_directories(struct planner *p, struct cj_error *err)
{
	struct strings parts;
	if (paths_split_all(p->c->rootfs, &p->c->arena, &parts, err) < 0)
		return -err->code;
	for (size_t i = 0; i < parts.count; i++)
		if (add_layer(p, parts.items[i], err) < 0)
			return -err->code;
	return 0;
}

static int add_image_layers(struct planner *p, const struct image_store *store,
			    const struct image_record *image, struct cj_error *err)
{
	for (size_t i = 0; i < image->layers.count; i++) {
		const char *path = image_store_layer(store, image->layers.items[i], &p->c->arena);
		if (!path)
			return cj_fail(err, ENOMEM, "plan the image");
		if (add_layer(p, path, err) < 0) {
			cj_hint(err, "import it again: cejail image rm %s", image->name);
			return cj_wrap(err, "image '%s'", image->name);
		}
	}
	return 0;
}

static int add_image(struct planner *p, struct cj_error *err)
{
	auto_image_store struct image_store store = IMAGE_STORE_NULL;
	struct image_record *image = arena_alloc(&p->c->arena, sizeof(*image));
	if (!image)
		return cj_fail(err, ENOMEM, "plan the image");
	/* without a store image_store_read() says that there is no such image */
	int rc = image_store_open(&store, false, err);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	*err = (struct cj_error){ 0 };
	if (image_store_read(&store, p->c->rootfs, &p->c->arena, image, err) < 0 ||
	    add_image_layers(p, &store, image, err) < 0)
		return -err->code;
	p->plan.image = image;
	return 0;
}

int plan_layers(struct planner *p, struct cj_error *err)
{
	return plan_names_image(p->c->rootfs) ? add_image(p, err) : add_directories(p, err);
}

/* Above the defaults of the profile base, below other profiles and --env. */
int plan_image_env(struct planner *p, struct cj_error *err)
{
	const struct image_record *image = p->plan.image;
	for (size_t i = 0; image && i < image->env.count; i++) {
		const char *text = image->env.items[i];
		const char **there = strings_find_variable(&p->program.env, text);
		bool is_base = false; /* the same text, not an equal one */
		for (size_t k = 0; there && k < p->c->base_env.count; k++)
			is_base |= p->c->base_env.items[k] == *there;
		if (is_base)
			*there = text;
		else if (!there && plan_add(p, &p->program.env, text, err) < 0)
			return -err->code;
	}
	return 0;
}

/* "/" says nothing: builders write it where an image names none. */
int plan_image_workdir(struct planner *p, struct cj_error *err)
{
	const struct image_record *image = p->plan.image;
	p->program.workdir = p->c->workdir;
	if (!image || image->workdir[0] == '\0' || strcmp(image->workdir, "/") == 0 ||
	    p->c->workdir != p->c->base_workdir)
		return 0;
	if (paths_inside(image->workdir, &p->c->arena, &p->program.workdir, err) < 0)
		return cj_wrap(err, "the working directory of image '%s'", image->name);
	return 0;
}

int plan_image_command(struct planner *p, struct cj_error *err)
{
	const struct image_record *image = p->plan.image;
	if (!image || image->command.count == 0) {
		cj_refuse(err, "image '%s' has no command of its own", p->c->rootfs);
		return cj_hint(err, "name one: cejail run --rootfs %s -- COMMAND", p->c->rootfs);
	}
	for (size_t i = 0; i < image->command.count; i++)
		if (plan_add(p, &p->program.argv, image->command.items[i], err) < 0)
			return -err->code;
	return 0;
}
