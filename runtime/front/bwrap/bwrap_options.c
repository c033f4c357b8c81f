/* SPDX-License-Identifier: Apache-2.0 */
/* The options of bubblewrap 0.12: text to a struct.  No system calls. */
#include <linux/sched.h>

#include "runtime/base/text.h"
#include "runtime/front/bwrap/bwrap.h"
#include "runtime/kernel/process/capabilities.h"

struct bwrap_parser {
	struct bwrap_config *out;
	struct arena *arena;
	bwrap_reader *read;
	int perms; /* of the next operation; -1: none is given */
	uint64_t size;
	bool has_size;
	struct strings layers; /* of the next overlay */
	bool is_in_file;       /* --args */
	bool is_in_variable;   /* BWRAP_VARIABLE */
	size_t taken;          /* arguments so far */
};

static int parse(struct bwrap_parser *p, const char *const *args, struct cj_error *err);

static void *field(struct bwrap_parser *p, const struct bwrap_option *o)
{
	return (char *)p->out + o->offset;
}

/* The head of what takes an option. */
#define TAKER(name)                                                                                \
	int take_##name(MAYBE_UNUSED struct bwrap_parser *p,                                       \
			MAYBE_UNUSED const struct bwrap_option *o,                                 \
			MAYBE_UNUSED const char *const *args, MAYBE_UNUSED struct cj_error *err)

static TAKER(flag)
{
	*(bool *)field(p, o) = true;
	return 0;
}

static TAKER(text)
{
	*(const char **)field(p, o) = args[0];
	return 0;
}

static TAKER(request)
{
	p->out->request = (enum bwrap_request)o->value;
	return 0;
}

static int parse_fd(const char *text, int *out, struct cj_error *err)
{
	uint64_t number = 0;
	struct cj_error ignored = { 0 }; /* bubblewrap's sentence stands for it */
	if (parse_u64(text, 0, INT32_MAX, &number, &ignored) < 0)
		return cj_reject(err, "Invalid fd: %s", text);
	*out = (int)number;
	return 0;
}

static TAKER(fd_option)
{
	return parse_fd(args[0], field(p, o), err);
}

static TAKER(id)
{
	uint64_t id = 0;
	struct cj_error ignored = { 0 };
	if (parse_u64(args[0], 0, INT32_MAX, &id, &ignored) < 0)
		return cj_reject(err, "Invalid %s: %s", o->name + 2, args[0]);
	*(int64_t *)field(p, o) = (int64_t)id;
	return 0;
}

/* The value has the namespaces; with an offset they may fail. */
static TAKER(namespaces)
{
	p->out->namespaces |= o->value;
	if (o->offset)
		p->out->optional |= o->value & (CLONE_NEWUSER | CLONE_NEWCGROUP);
	else
		p->out->optional &= ~o->value;
	return 0;
}

static TAKER(shared)
{
	p->out->namespaces &= ~o->value;
	return 0;
}

static int add_variable(struct bwrap_parser *p, const char *name, const char *value,
			struct cj_error *err)
{
	const struct bwrap_variable variable = { name, value };
	if (name && (name[0] == '\0' || strchr(name, '=')))
		return cj_reject(err, "'%s' is not the name of a variable", name);
	if (!arena_append(p->arena, p->out->variables, p->out->nvariables, variable))
		return cj_fail(err, ENOMEM, "list the variables");
	return 0;
}

static TAKER(variable)
{
	return add_variable(p, o->args[0] ? args[0] : NULL, o->value ? args[1] : NULL, err);
}

static TAKER(capability)
{
	bool is_all = strcasecmp(args[0], "ALL") == 0;
	uint64_t bits = is_all ? UINT64_MAX : capabilities_bit(args[0]);
	if (bits == 0)
		return cj_reject(err, "unknown cap: %s", args[0]);
	p->out->sets_caps = true;
	p->out->caps_kept &= ~bits;
	p->out->caps_added = o->value ? p->out->caps_added | bits : p->out->caps_added & ~bits;
	return 0;
}

static int parse_octal(const char *name, const char *text, int *out, struct cj_error *err)
{
	char *end = NULL;
	size_t digits = strspn(text, "01234567");
	unsigned long mode = digits > 0 && digits < 12 ? strtoul(text, &end, 8) : 010000;
	if (mode > 07777 || text[digits] != '\0')
		return cj_reject(err, "%s takes an octal argument <= 07777", name);
	*out = (int)mode;
	return 0;
}

static TAKER(perms)
{
	if (p->perms >= 0)
		return cj_reject(err, "--perms given twice for the same action");
	return parse_octal(o->name, args[0], &p->perms, err);
}

static TAKER(size)
{
	struct cj_error ignored = { 0 };
	if (p->has_size)
		return cj_reject(err, "--size given twice for the same action");
	if (parse_u64(args[0], 1, INT64_MAX, &p->size, &ignored) < 0)
		return cj_reject(err, "%s takes a non-zero number of bytes", o->name);
	p->has_size = true;
	return 0;
}

static TAKER(seccomp)
{
	struct bwrap_config *c = p->out;
	const bool is_single = o->value;
	int fd = -1;
	if (parse_fd(args[0], &fd, err) < 0)
		return -err->code;
	if (c->nseccomp > 0 && c->seccomp_is_single != is_single)
		return cj_reject(err, "--seccomp cannot be combined with --add-seccomp-fd");
	if (is_single)
		c->nseccomp = 0; /* the last one counts */
	if (!arena_append(p->arena, c->seccomp_fds, c->nseccomp, fd))
		return cj_fail(err, ENOMEM, "list the seccomp programs");
	c->seccomp_is_single = is_single;
	return 0;
}

/* "" is no path, and "tmp" is "/tmp". */
static const char *absolute(struct bwrap_parser *p, const char *path, struct cj_error *err)
{
	if (path[0] == '/')
		return path;
	const char *text = path[0] ? arena_printf(p->arena, "/%s", path) : NULL;
	if (!text && path[0])
		(void)!cj_fail(err, ENOMEM, "copy a path");
	else if (!text)
		(void)!cj_reject(err, "an empty text is not a path");
	return text;
}

static TAKER(lock)
{
	const char *path = absolute(p, args[0], err);
	if (!path)
		return -err->code;
	return strings_add(&p->out->lock_files, p->arena, path) < 0
		   ? cj_fail(err, ENOMEM, "list the lock files")
		   : 0;
}

/* The value of an operation's row. */
#define KIND(kind)  ((uint64_t)(kind))
#define READ_ONLY   (UINT64_C(1) << 8)
#define DEVICES     (UINT64_C(1) << 9)
#define TRY         (UINT64_C(1) << 10)
#define FROM_FD     (UINT64_C(1) << 11)
#define TAKES_PERMS (UINT64_C(1) << 12)
#define TAKES_SIZE  (UINT64_C(1) << 13)
#define LAYERS(min) ((uint64_t)(min) << 14) /* an overlay, and how many sources it needs */

static int check_pending(const struct bwrap_parser *p, uint64_t takes, struct cj_error *err)
{
	if (p->perms >= 0 && !(takes & TAKES_PERMS))
		return cj_reject(err, "--perms must be followed by an option that creates a file");
	if (p->has_size && !(takes & TAKES_SIZE))
		return cj_reject(err, "--size must be followed by --tmpfs");
	if (p->layers.count > 0 && !(takes & LAYERS(3)))
		return cj_reject(err, "--overlay-src must be followed by another --overlay-src or "
				      "one of --overlay, --tmp-overlay, or --ro-overlay");
	return 0;
}

static size_t count_args(const struct bwrap_option *o)
{
	size_t count = o->args[0] != '\0';
	for (const char *at = o->args; (at = strchr(at, ' ')); at++)
		count++;
	return count;
}

static TAKER(layer)
{
	return strings_add(&p->layers, p->arena, args[0]) < 0
		   ? cj_fail(err, ENOMEM, "list the sources of an overlay")
		   : 0;
}

static TAKER(operation)
{
	struct bwrap_config *c = p->out;
	struct bwrap_op op = {
		.kind = (enum bwrap_kind)(o->value & 0xff),
		.fd = -1,
		.is_read_only = o->value & READ_ONLY,
		.has_devices = o->value & DEVICES,
		.may_be_missing = o->value & TRY,
		.perms = p->perms,
		.size = p->size,
		.layers = p->layers,
	};
	const size_t count = count_args(o), least = o->value / LAYERS(1);
	if (p->layers.count < least)
		return cj_reject(err, "%s requires at least %s --overlay-src", o->name,
				 least > 1 ? "two" : "one");
	if (o->value & FROM_FD && parse_fd(args[0], &op.fd, err) < 0)
		return -err->code;
	if (op.kind == BWRAP_CHMOD && parse_octal(o->name, args[0], &op.perms, err) < 0)
		return -err->code;
	op.source = count > 1 ? args[0] : NULL;
	op.work = count > 2 ? args[1] : NULL;
	op.dest = absolute(p, args[count - 1], err);
	if (!op.dest)
		return -err->code;
	if (!arena_append(p->arena, c->ops, c->nops, op))
		return cj_fail(err, ENOMEM, "list the operations");
	p->perms = -1;
	p->size = 0;
	p->has_size = false;
	p->layers = (struct strings){ 0 };
	return 0;
}

/* Arguments from a descriptor: each ends with a NUL. */
static TAKER(args)
{
	struct strings list = { 0 };
	char *text = NULL;
	size_t size = 0;
	int fd = -1;
	if (p->is_in_file)
		return cj_reject(err, "--args not supported in arguments file");
	if (parse_fd(args[0], &fd, err) < 0 || p->read(fd, p->arena, &text, &size, err) < 0)
		return -err->code;
	for (const char *at = text; at < text + size; at += strlen(at) + 1)
		if (strings_add(&list, p->arena, at) < 0)
			return cj_fail(err, ENOMEM, "list the arguments");
	if (list.count == 0)
		return 0;
	p->is_in_file = true;
	int rc = parse(p, list.items, err);
	p->is_in_file = false;
	return rc;
}

static TAKER(limit)
{
	return bwrap_limits_take(&p->out->limits, o->name, args[0],
				 p->is_in_variable ? BWRAP_FROM_VARIABLE : BWRAP_FROM_LINE,
				 p->arena, err);
}

#define MEMBER(name) offsetof(struct bwrap_config, name)
#define MAY_FAIL     1 /* an offset of take_namespaces() */
#define ALL                                                                                        \
	(CLONE_NEWUSER | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWUTS |               \
	 CLONE_NEWCGROUP)
#define OP(name, args, kind, help)                                                                 \
	{                                                                                          \
		name, args, help, take_operation, 0, kind                                          \
	}
#define REFUSED(name, args, why)                                                                   \
	{                                                                                          \
		name, args, why, NULL, 0, 0                                                        \
	}

/* clang-format off */
const struct bwrap_option bwrap_options[] = {
	{ "--help", "", "print this help", take_request, 0, BWRAP_HELP },
	{ "--version", "", "print the version", take_request, 0, BWRAP_VERSION },
	{ "--args", "FD", "read more arguments from FD; each ends with a NUL", take_args, 0, 0 },
	{ "--argv0", "VALUE", "argv[0] of the program", take_text, MEMBER(argv0), 0 },
	{ "--level-prefix", "", "begin each message with its level, as <3>", take_flag, MEMBER(has_level_prefix), 0 },
	{ "--unshare-all", "", "all of the following namespaces; user and cgroup if possible", take_namespaces, MAY_FAIL, ALL },
	{ "--share-net", "", "stay in the caller's network namespace, after --unshare-all", take_shared, 0, CLONE_NEWNET },
	{ "--unshare-user", "", "a new user namespace; without root it is always new", take_namespaces, 0, CLONE_NEWUSER },
	{ "--unshare-user-try", "", "the same if possible", take_namespaces, MAY_FAIL, CLONE_NEWUSER },
	{ "--unshare-ipc", "", "a new ipc namespace", take_namespaces, 0, CLONE_NEWIPC },
	{ "--unshare-pid", "", "a new pid namespace", take_namespaces, 0, CLONE_NEWPID },
	{ "--unshare-net", "", "a new network namespace, with a loopback interface", take_namespaces, 0, CLONE_NEWNET },
	{ "--unshare-uts", "", "a new uts namespace", take_namespaces, 0, CLONE_NEWUTS },
	{ "--unshare-cgroup", "", "a new cgroup namespace", take_namespaces, 0, CLONE_NEWCGROUP },
	{ "--unshare-cgroup-try", "", "the same if possible", take_namespaces, MAY_FAIL, CLONE_NEWCGROUP },
	REFUSED("--userns", "FD", "the rights that others have in that namespace are unknown; use --unshare-user"),
	REFUSED("--userns2", "FD", "the rights that others have in that namespace are unknown; use --unshare-user"),
	{ "--disable-userns", "", "no user namespace inside; needs --unshare-user", take_flag, MEMBER(disables_userns), 0 },
	{ "--assert-userns-disabled", "", "fail if a user namespace can be created inside", take_flag, MEMBER(asserts_userns), 0 },
	REFUSED("--pidns", "FD", "processes of that namespace could stop the set-up; use --unshare-pid"),
	{ "--uid", "UID", "the user id inside; needs --unshare-user", take_id, MEMBER(uid), 0 },
	{ "--gid", "GID", "the group id inside; needs --unshare-user", take_id, MEMBER(gid), 0 },
	{ "--hostname", "NAME", "the host name; needs --unshare-uts", take_text, MEMBER(hostname), 0 },
	{ "--chdir", "DIR", "the working directory inside", take_text, MEMBER(directory), 0 },
	{ "--clearenv", "", "remove all variables but PWD", take_variable, 0, false },
	{ "--setenv", "VAR VALUE", "set a variable", take_variable, 0, true },
	{ "--unsetenv", "VAR", "remove a variable", take_variable, 0, false },
	{ "--lock-file", "DEST", "hold a read lock on DEST as long as the sandbox runs", take_lock, 0, 0 },
	{ "--sync-fd", "FD", "keep FD open as long as the sandbox runs", take_fd_option, MEMBER(sync_fd), 0 },
	OP("--bind", "SRC DEST", KIND(BWRAP_BIND), "bind the host's SRC on DEST"),
	OP("--bind-try", "SRC DEST", KIND(BWRAP_BIND) | TRY, "the same; nothing if SRC does not exist"),
	OP("--dev-bind", "SRC DEST", KIND(BWRAP_BIND) | DEVICES, "bind SRC; its devices can be used"),
	OP("--dev-bind-try", "SRC DEST", KIND(BWRAP_BIND) | DEVICES | TRY, "the same; nothing if SRC does not exist"),
	OP("--ro-bind", "SRC DEST", KIND(BWRAP_BIND) | READ_ONLY, "bind SRC, read-only with all mounts below it"),
	OP("--ro-bind-try", "SRC DEST", KIND(BWRAP_BIND) | READ_ONLY | TRY, "the same; nothing if SRC does not exist"),
	OP("--bind-fd", "FD DEST", KIND(BWRAP_BIND) | FROM_FD, "bind the directory or file that FD has open"),
	OP("--ro-bind-fd", "FD DEST", KIND(BWRAP_BIND) | FROM_FD | READ_ONLY, "the same, read-only"),
	OP("--remount-ro", "DEST", KIND(BWRAP_REMOUNT_RO), "make the mount at DEST read-only, but none below it"),
	{ "--overlay-src", "SRC", "a layer of the next overlay, above those before it", take_layer, 0, LAYERS(1) },
	OP("--overlay", "RWSRC WORKDIR DEST", KIND(BWRAP_OVERLAY) | LAYERS(1), "an overlay; writes go to the host's RWSRC, WORKDIR is empty"),
	OP("--tmp-overlay", "DEST", KIND(BWRAP_OVERLAY) | LAYERS(1), "an overlay; what is written vanishes with the sandbox"),
	OP("--ro-overlay", "DEST", KIND(BWRAP_OVERLAY) | LAYERS(2) | READ_ONLY, "a read-only overlay; it needs two --overlay-src"),
	REFUSED("--exec-label", "LABEL", "SELinux labels are not set; set one with runcon(1)"),
	REFUSED("--file-label", "LABEL", "SELinux labels are not set; files have the default label"),
	OP("--proc", "DEST", KIND(BWRAP_PROC), "a procfs; without --unshare-pid the host's"),
	OP("--dev", "DEST", KIND(BWRAP_DEV), "a tmpfs with null, zero, full, random, urandom, tty, pts, shm"),
	OP("--tmpfs", "DEST", KIND(BWRAP_TMPFS) | TAKES_PERMS | TAKES_SIZE, "a new tmpfs, mode 0755"),
	OP("--mqueue", "DEST", KIND(BWRAP_MQUEUE), "the message queues of the ipc namespace"),
	OP("--dir", "DEST", KIND(BWRAP_DIR) | TAKES_PERMS, "a directory, mode 0755; an existing one stays"),
	OP("--file", "FD DEST", KIND(BWRAP_FILE) | FROM_FD | TAKES_PERMS, "a file with the bytes of FD, mode 0666"),
	OP("--bind-data", "FD DEST", KIND(BWRAP_BIND_DATA) | FROM_FD | TAKES_PERMS, "bind a new file with the bytes of FD, mode 0600"),
	OP("--ro-bind-data", "FD DEST", KIND(BWRAP_BIND_DATA) | FROM_FD | READ_ONLY | TAKES_PERMS, "the same, read-only"),
	OP("--symlink", "SRC DEST", KIND(BWRAP_SYMLINK), "a symbolic link to SRC; an equal one stays"),
	{ "--seccomp", "FD", "load the filter, a BPF program, that FD has; the last one counts", take_seccomp, 0, true },
	{ "--add-seccomp-fd", "FD", "the same for several filters", take_seccomp, 0, false },
	{ "--block-fd", "FD", "start the program when FD can be read", take_fd_option, MEMBER(block_fd), 0 },
	REFUSED("--userns-block-fd", "FD", "cejail writes the id maps itself, with one id; use --uid and --gid"),
	{ "--info-fd", "FD", "write the pid and the namespaces to FD, as JSON", take_fd_option, MEMBER(info_fd), 0 },
	{ "--json-status-fd", "FD", "write these and the exit code to FD, a JSON object a line", take_fd_option, MEMBER(status_fd), 0 },
	{ "--new-session", "", "a session without the caller's terminal", take_flag, MEMBER(starts_session), 0 },
	{ "--die-with-parent", "", "end all processes with bwrap and with its parent", take_flag, MEMBER(dies_with_parent), 0 },
	{ "--as-pid-1", "", "the program is pid 1: no process of cejail reaps", take_flag, MEMBER(is_pid_1), 0 },
	{ "--cap-add", "CAP", "keep a capability, over the namespaces of the sandbox; ALL: all", take_capability, 0, true },
	{ "--cap-drop", "CAP", "remove a capability; ALL: all", take_capability, 0, false },
	{ "--perms", "OCTAL", "the mode of what the next option creates", take_perms, 0, 0 },
	{ "--size", "BYTES", "the size of the next --tmpfs", take_size, 0, 0 },
	OP("--chmod", "OCTAL PATH", KIND(BWRAP_CHMOD), "change the mode of PATH, which must exist"),
	REFUSED("--not-a-security-boundary", "", "cejail never continues after a step that failed; leave the option out"),
	{ "--cejail-memory", "SIZE", "memory limit of all processes together: 64M, 1G; no swap", take_limit, 0, 0 },
	{ "--cejail-pids", "N", "maximum number of processes and threads together", take_limit, 0, 0 },
	{ "--cejail-cpu-time", "DUR", "CPU time limit of all processes together: 500ms, 10s, 2m", take_limit, 0, 0 },
	{ "--cejail-timeout", "DUR", "wall-clock limit", take_limit, 0, 0 },
	{ "--cejail-result-fd", "FD", "write the result as JSON to FD, as 'cejail run --json' does", take_limit, 0, 0 },
	{ "--cejail-seccomp", "NAME", "load the filter of 'cejail run': default", take_limit, 0, 0 },
	{ "--cejail-network", "NAME", "none, public or allow:HOST[:PORT],...: a network as that of 'cejail run'", take_limit, 0, 0 },
};
/* clang-format on */
const size_t bwrap_option_count = COUNT_OF(bwrap_options);

static const struct bwrap_option *find(const char *name)
{
	for (size_t i = 0; i < bwrap_option_count; i++)
		if (strcmp(bwrap_options[i].name, name) == 0)
			return &bwrap_options[i];
	return NULL;
}

/* What may stand before it and wait for it, or for the option behind it. */
static uint64_t goes_before(const struct bwrap_option *o)
{
	if (o->take == take_perms || o->take == take_size || o->take == take_args)
		return TAKES_PERMS | TAKES_SIZE;
	return o->take == take_layer || o->take == take_operation ? o->value : 0;
}

static int parse(struct bwrap_parser *p, const char *const *args, struct cj_error *err)
{
	static const char *const counts[] = { "no", "an", "two", "three" };
	while (*args && (*args)[0] == '-' && p->out->request == BWRAP_RUN) {
		const char *name = *args++;
		if (strcmp(name, "--") == 0)
			break;
		const struct bwrap_option *o = find(name);
		if (p->is_in_variable && !text_begins_with(name, BWRAP_PREFIX))
			return cj_reject(
			    err, "'%s' of " BWRAP_VARIABLE " is no " BWRAP_PREFIX " option", name);
		if (!o)
			return cj_reject(err, "Unknown option %s", name);
		if (check_pending(p, goes_before(o), err) < 0)
			return -err->code;
		size_t count = count_args(o);
		for (size_t i = 0; i < count; i++)
			if (!args[i])
				return cj_reject(err, "%s takes %s argument%s", name, counts[count],
						 count > 1 ? "s" : "");
		if (!o->take)
			return cj_reject(err, "%s is refused: %s", name, o->help);
		p->taken += 1 + count;
		if (p->taken > BWRAP_ARGS_MAX)
			return cj_reject(err, "Exceeded maximum number of arguments %d",
					 BWRAP_ARGS_MAX);
		if (o->take(p, o, args, err) < 0)
			return -err->code;
		args += count;
	}
	if ((p->is_in_file || p->is_in_variable) && *args)
		return cj_reject(err,
				 "'%s' of %s is no option; the command follows the options "
				 "of bwrap itself",
				 *args, p->is_in_file ? "--args" : BWRAP_VARIABLE);
	if (!p->is_in_file && !p->is_in_variable)
		p->out->argv = args;
	return 0;
}

int bwrap_parse(const char *const *args, bwrap_reader *read, struct arena *a,
		struct bwrap_config *out, struct cj_error *err)
{
	struct bwrap_parser p = { .out = out, .arena = a, .read = read, .perms = -1 };
	*out = (struct bwrap_config){
		.uid = -1,
		.gid = -1,
		.sync_fd = -1,
		.block_fd = -1,
		.info_fd = -1,
		.status_fd = -1,
		.caps_kept = UINT64_MAX,
		.limits = BWRAP_LIMITS_NULL,
	};
	if (parse(&p, args, err) < 0)
		return -err->code;
	return out->request == BWRAP_RUN ? check_pending(&p, 0, err) : 0;
}

int bwrap_parse_variable(const char *text, struct arena *a, struct bwrap_config *out,
			 struct cj_error *err)
{
	struct bwrap_parser p = { .out = out, .arena = a, .perms = -1, .is_in_variable = true };
	struct strings words = { 0 };
	for (size_t size; text += strspn(text, " \t\n"), size = strcspn(text, " \t\n"), size > 0;
	     text += size) {
		if (strings_add(&words, a, arena_strndup(a, text, size)) < 0)
			return cj_fail(err, ENOMEM, "list the arguments");
	}
	return words.count > 0 ? parse(&p, words.items, err) : 0;
}

int bwrap_check(struct bwrap_config *c, uid_t caller, gid_t group, struct cj_error *err)
{
	if (!c->argv[0])
		return cj_reject(err, "no command; see bwrap --help");
	if (caller != 0) {
		c->namespaces |= CLONE_NEWUSER;
		c->optional &= ~(uint64_t)CLONE_NEWUSER;
	}
	const bool has_user = c->namespaces & CLONE_NEWUSER;
	if (c->uid >= 0 && c->uid != caller && !has_user)
		return cj_reject(err, "Specifying --uid requires --unshare-user or --userns");
	if (c->gid >= 0 && c->gid != group && !has_user)
		return cj_reject(err, "Specifying --gid requires --unshare-user or --userns");
	if (c->hostname && !(c->namespaces & CLONE_NEWUTS))
		return cj_reject(err, "Specifying --hostname requires --unshare-uts");
	if (c->is_pid_1 && !(c->namespaces & CLONE_NEWPID))
		return cj_reject(err, "Specifying --as-pid-1 requires --unshare-pid");
	if (c->is_pid_1 && c->lock_files.count > 0)
		return cj_reject(err, "Specifying --as-pid-1 and --lock-file is not permitted");
	if (c->disables_userns && !has_user)
		return cj_reject(err, "--disable-userns requires --unshare-user");
	return bwrap_limits_check(c, caller, err);
}
