/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run/options/operands.h"

#include <limits.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/run/options/habits.h"

bool operands_is_file(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool operands_is_command(const char *word)
{
	static const char *const places[] = { "/usr/local/bin", "/usr/bin", "/bin" };

	for (size_t i = 0; !strchr(word, '/') && i < COUNT_OF(places); i++) {
		char path[PATH_MAX];
		int size = snprintf(path, sizeof(path), "%s/%s", places[i], word);
		if (size > 0 && (size_t)size < sizeof(path) && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* The last option may show what FILE was meant to be; 0: it does not. */
static int explain_last_option(const struct options *o, const char *file, struct cj_error *err)
{
	const struct given *last = o->count > 0 ? &o->items[o->count - 1] : NULL;
	if (!last)
		return 0;
	if (strcmp(last->setting->option, "verbose") == 0 && habit_is_volume(file)) {
		cj_refuse(err, "'%s %s': %s is --verbose here", last->named, file, last->named);
		return cj_hint(err, "write --bind %s, or --ro-bind %s for a read-only view", file,
			       file);
	}
	if (last->setting->value && strcmp(last->setting->value, "SRC[:DST]") == 0 &&
	    file[0] == '/' && !strchr(last->value, ':')) {
		cj_refuse(err, "'%s %s %s': the two paths are one argument", last->named,
			  last->value, file);
		return cj_hint(err, "write %s %s:%s", last->named, last->value, file);
	}
	if (last->setting->value_optional && !last->value) {
		cj_refuse(err, "'%s' is neither a program nor the value of '%s'", file,
			  last->named);
		return cj_hint(err, "write %s=%s for the value", last->named, file);
	}
	return 0;
}

int operands_explain(const struct options *o, struct cj_error *err)
{
	const char *file = o->operands[0], *next = file ? o->operands[1] : NULL;
	struct stat st;

	if (!file) {
		/* "-f job.py" and no FILE: the option took FILE as its value. */
		const struct given *last = o->count > 0 ? &o->items[o->count - 1] : NULL;
		if (!last || !last->value || !operands_is_file(last->value))
			return 0;
		cj_refuse(err, "nothing to run: '%s' is the value of '%s'", last->value,
			  last->named);
		return cj_hint(err, "write FILE after the options: see 'cejail run --help'");
	}
	if (o->has_separator || strcmp(file, "-") == 0)
		return 0;
	int rc = explain_last_option(o, file, err);
	if (rc < 0)
		return rc;
	if (stat(file, &st) == 0 || errno != ENOENT)
		return 0;
	if (operands_is_command(file)) {
		cj_refuse(err, "'%s' is a command, not a file", file);
		if (next && operands_is_file(next))
			return cj_hint(err, "write 'cejail run %s', or 'cejail run -f %s -- %s %s'",
				       next, next, file, next);
		return cj_hint(err, "write 'cejail run -- %s'", file);
	}
	if (habit_is_image(file) || (!strchr(file, '/') && next && operands_is_command(next))) {
		cj_refuse(err, "'%s' is not a file; an image is named with --rootfs", file);
		if (next)
			return cj_hint(
			    err,
			    "write 'cejail run -- %s' for the programs of this host, or add "
			    "--rootfs NAME for an image: cejail-image(1)",
			    next);
		return cj_hint(
		    err, "write 'cejail shell' for the programs of this host, or add --rootfs "
			 "NAME for an image: cejail-image(1)");
	}
	if (strrchr(file, '.'))
		return 0;
	(void)!cj_fail(err, ENOENT, "find the file '%s'", file);
	return cj_hint(err, "write a command after '--': see 'cejail run --help'");
}

/* "-m 64M", "-t 5s": many programs have -m and -t, but few with such values. */
static bool is_limit(const char *word, const char *next)
{
	uint64_t number;
	struct cj_error ignored;
	size_t size = next ? strlen(next) : 0;

	if (size < 2 || (next[size - 1] >= '0' && next[size - 1] <= '9'))
		return false;
	return (strcmp(word, "-m") == 0 && parse_size(next, &number, &ignored) == 0) ||
	       (strcmp(word, "-t") == 0 && parse_duration(next, &number, &ignored) == 0);
}

static bool is_long_option(const char *word)
{
	char name[64];
	size_t size = strcspn(word, "=");

	if (!text_begins_with(word, "--") || size <= 2 || size - 2 >= sizeof(name))
		return false;
	memcpy(name, word + 2, size - 2);
	name[size - 2] = '\0';
	return setting_by_option(name) != NULL;
}

const char *operands_stray(const char *const *args)
{
	for (; *args && strcmp(*args, "--") != 0; args++)
		if (is_long_option(*args) || is_limit(*args, args[1]))
			return *args;
	return NULL;
}

bool operands_has_input(int fd)
{
	struct stat st;
	int pending = 0;

	if (fstat(fd, &st) < 0)
		return false;
	if (S_ISFIFO(st.st_mode))
		return ioctl(fd, FIONREAD, &pending) == 0 && pending > 0;
	if (!S_ISREG(st.st_mode))
		return false;
	off_t at = lseek(fd, 0, SEEK_CUR);
	return at >= 0 && at < st.st_size;
}

void operands_print_notes(const char *const *args, bool reads_input)
{
	const char *stray = args ? operands_stray(args) : NULL;

	if (stray)
		log_note("'%.*s' follows FILE, so the program received it: write the options of "
			 "cejail before FILE",
			 (int)strcspn(stray, "="), stray);
	if (!reads_input && operands_has_input(STDIN_FILENO))
		log_note("standard input has data that was not read: add -i to pass it to the "
			 "program, or write '-' for FILE if it is the code");
}
