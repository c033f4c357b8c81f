/* SPDX-License-Identifier: Apache-2.0 */
/* The whole plan as JSON: every field, so that --dry-run hides nothing but secrets. */
#include "profiles/plan/plan.h"

#include "profiles/setting_types.h"

static const char *const root_kind_names[] = {
	[ROOT_HOST] = "host",
	[ROOT_LAYERS] = "layers",
};

static const char *const bind_kind_names[] = {
	[BIND_READ_ONLY] = "read-only", [BIND_WRITABLE] = "writable", [BIND_KEPT] = "kept",
	[BIND_SOCKET] = "socket",       [BIND_OVERLAY] = "overlay",   [BIND_TMPFS] = "tmpfs",
};

static const char *const code_source_names[] = {
	[CODE_NONE] = "none",
	[CODE_FILE] = "file",
	[CODE_STRING] = "string",
	[CODE_STDIN] = "stdin",
};

static void put_binds(struct json_writer *w, const struct rootfs_spec *root)
{
	json_member_array(w, "binds");
	for (size_t i = 0; i < root->nbinds; i++) {
		json_open_object(w);
		json_member_text(w, "kind", bind_kind_names[root->binds[i].kind]);
		json_member_text(w, "source", root->binds[i].source);
		json_member_text(w, "target", root->binds[i].target);
		json_close_object(w);
	}
	json_close_array(w);
}

/* USER is shown, and decides nothing: a jail has one user, who has no privilege. */
static void put_image(struct json_writer *w, const struct image_record *image)
{
	json_put_key(w, "image");
	if (!image) {
		json_put_null(w);
		return;
	}
	json_open_object(w);
	json_member_text(w, "name", image->name);
	json_member_text(w, "digest", image->digest);
	json_member_filled(w, "user", image->user);
	json_member_u64(w, "uid", image->uid);
	json_close_object(w);
}

static void put_root(struct json_writer *w, const struct rootfs_spec *root,
		     const struct image_record *image)
{
	json_member_object(w, "root");
	json_member_text(w, "kind", root_kind_names[root->kind]);
	put_image(w, image);
	json_member_texts(w, "layers", root->layers.items, root->layers.count);
	json_member_bool(w, "writable", root->writable);
	json_member_bool(w, "noexec_scratch", root->noexec_scratch);
	json_member_bool(w, "tty", root->tty);
	json_member_u64(w, "scratch_bytes", root->scratch_bytes);
	json_member_u64(w, "scratch_inodes", root->scratch_inodes);
	put_binds(w, root);
	json_member_text(w, "hostname", root->hostname);
	json_member_text(w, "packages", root->packages);
	json_member_u64(w, "uid", root->uid);
	json_member_u64(w, "gid", root->gid);
	json_close_object(w);
}

static void put_limits(struct json_writer *w, const struct limits_spec *limits,
		       const struct run_limits *run)
{
	json_member_object(w, "limits");
	json_member_u64(w, "memory_bytes", limits->memory_bytes);
	json_member_milli(w, "cpus", limits->millicpus);
	json_member_u64(w, "pids", limits->pids);
	json_member_u64(w, "wall_ms", run->wall_ms);
	json_member_u64(w, "cpu_ms", limits->cpu_ms);
	json_member_u64(w, "nofile", limits->nofile);
	json_member_u64(w, "fsize_bytes", limits->disk_bytes);
	json_member_u64(w, "output_bytes", run->output_bytes);
	json_member_text(w, "on_output_limit", output_policy_names[run->on_output_limit]);
	json_close_object(w);
}

static void put_upstreams(struct json_writer *w, const struct network_spec *network)
{
	json_member_array(w, "upstreams");
	for (size_t i = 0; i < network->nupstreams; i++) {
		json_open_object(w);
		json_member_text(w, "name", network->upstreams[i].name);
		json_member_text(w, "url", network->upstreams[i].url);
		json_member_text(w, "path", network->upstreams[i].path);
		json_close_object(w);
	}
	json_close_array(w);
}

static void put_plan_network(struct json_writer *w, const struct network_spec *network)
{
	json_member_object(w, "network");
	json_member_text(w, "mode", network_mode_names[network->mode]);
	json_member_text(w, "uplink", uplink_names[network->uplink]);
	json_member_text(w, "start",
			 network_start_names[network->starts_early ? NETWORK_START_EARLY
								   : NETWORK_START_FIRST_USE]);
	json_member_array(w, "allow");
	for (size_t i = 0; i < network->nallow; i++)
		json_put_string(w, network->allow[i].text);
	json_close_array(w);
	json_member_array(w, "deny");
	for (size_t i = 0; i < network->ndeny; i++)
		json_put_string(w, network->deny[i].text);
	json_close_array(w);
	json_member_text(w, "allow_by", network_allow_by_names[network->allow_by]);
	json_member_text(w, "names", network_names_names[network->names]);
	json_member_bool(w, "allow_private", network->allow_private);
	json_member_array(w, "connect_ports");
	for (size_t i = 0; i < network->nports; i++)
		json_put_u64(w, network->ports[i]);
	json_close_array(w);
	put_upstreams(w, network);
	json_close_object(w);
}

static void put_setup(struct json_writer *w, const struct setup_spec *setup)
{
	if (!setup->command)
		return;
	json_member_object(w, "setup");
	json_member_text(w, "command", setup->command);
	json_member_u64(w, "wall_ms", setup->wall_ms);
	if (setup->has_network) { /* `network` is the command's */
		const bool is_closed = setup->lists.is_list && setup->lists.allow.count == 0;
		json_member_object(w, "network_after");
		json_member_text(w, "mode",
				 network_mode_names[is_closed ? NETWORK_NONE : NETWORK_PUBLIC]);
		json_member_texts(w, "allow", setup->lists.allow.items, setup->lists.allow.count);
		json_close_object(w);
	}
	json_close_object(w);
}

static void put_files(struct json_writer *w, const struct program *program)
{
	json_member_array(w, "files");
	for (size_t i = 0; i < program->nfiles; i++) {
		json_open_object(w);
		json_member_text(w, "source", program->files[i].source);
		json_member_text(w, "target", program->files[i].target);
		if (!program->files[i].source)
			json_member_u64(w, "bytes",
					own_file_bytes(program->files[i].own).size +
					    program->files[i].size);
		json_close_object(w);
	}
	json_close_array(w);
}

static void put_code(struct json_writer *w, const struct program *program)
{
	json_member_object(w, "code");
	json_member_text(w, "source", code_source_names[program->code_source]);
	json_member_text(w, "name", program->code_name);
	if (program->code_text)
		json_put_bytes(w, program->code_text, program->code_size);
	else
		json_member_text(w, "text", NULL);
	json_member_text(w, "path", program->code_path);
	json_close_object(w);
}

/* A variable that is copied from the caller may be a key, and a plan ends up in logs. */
static void put_variables(struct json_writer *w, const struct program *program)
{
	json_member_array(w, "env");
	for (size_t i = 0; i < program->env.count; i++) {
		const char *pair = program->env.items[i], *hidden = NULL;
		char text[256];
		for (size_t k = 0; k < program->env_copied.count && !hidden; k++) {
			const char *name = program->env_copied.items[k];
			if (strncmp(pair, name, strlen(name)) == 0 && pair[strlen(name)] == '=')
				hidden = name;
		}
		if (hidden)
			(void)snprintf(text, sizeof(text), "%.200s=(copied)", hidden);
		json_put_string(w, hidden ? text : pair);
	}
	json_close_array(w);
}

static void put_program(struct json_writer *w, const struct program *program)
{
	json_member_object(w, "program");
	json_member_text(w, "id", program->id);
	json_member_texts(w, "argv", program->argv.items, program->argv.count);
	json_member_bool(w, "own_interpreter", program->own_interpreter);
	put_variables(w, program);
	json_member_text(w, "workdir", program->workdir);
	put_code(w, program);
	json_member_text(w, "args_json", program->args_json);
	put_files(w, program);
	json_member_bool(w, "interactive", program->interactive);
	json_member_texts(w, "artifact_paths", program->artifact_paths.items,
			  program->artifact_paths.count);
	json_member_text(w, "value_path", program->value_path);
	json_member_bool(w, "collect_artifacts", program->collect_artifacts);
	json_close_object(w);
}

void plan_write(struct json_writer *w, const struct plan *plan, const struct program *program)
{
	json_open_object(w);
	json_member_text(w, "schema", "cejail.plan/1");
	json_member_object(w, "profile");
	json_member_text(w, "name", plan->profile_name);
	json_member_text(w, "sha256", plan->profile_sha256);
	json_close_object(w);
	put_root(w, &plan->root, plan->image);
	put_limits(w, &plan->limits, &program->limits);
	put_plan_network(w, &plan->network);
	put_setup(w, &plan->setup);
	json_member_object(w, "seccomp");
	json_member_text(w, "profile", plan->policy ? plan->policy->path : "default");
	json_member_texts(w, "notes", plan->policy ? plan->policy->notes.items : NULL,
			  plan->policy ? plan->policy->notes.count : 0);
	json_close_object(w);
	json_member_texts(w, "warnings", plan->warnings.items, plan->warnings.count);
	json_member_text(w, "cgroup_parent", plan->cgroup_parent);
	json_member_bool(w, "strict", plan->strict);
	json_member_bool(w, "reduced", plan->reduced);
	json_member_bool(w, "tty", plan->tty);
	put_program(w, program);
	json_close_object(w);
}
