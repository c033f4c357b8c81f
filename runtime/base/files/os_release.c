/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/files/os_release.h"

#include <fcntl.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/text.h"

/* The words of ID and ID_LIKE. */
static const struct os_family {
	const char *id, *command, *python; /* `python`: the package of python3 */
} families[] = {
	{ "debian", "sudo apt-get install", "python3" },
	{ "ubuntu", "sudo apt-get install", "python3" },
	{ "fedora", "sudo dnf install", "python3" },
	{ "rhel", "sudo dnf install", "python3" },
	{ "suse", "sudo zypper install", "python3" },
	{ "opensuse", "sudo zypper install", "python3" },
	{ "arch", "sudo pacman -S", "python" },
	{ "alpine", "sudo apk add", "python3" },
};

/* A line is NAME=VALUE, and the value may have quotes. */
static bool has_word(const char *line, const char *name, const char *word)
{
	const char *at = text_after(line, name), *end = strchrnul(line, '\n');

	for (size_t size; at && at < end; at += size + 1) {
		size = strcspn(at, " \"'\n");
		if (size == strlen(word) && text_begins_with(at, word))
			return true;
	}
	return false;
}

static bool is_of_family(const char *text, const char *id)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (has_word(line, "ID=", id) || has_word(line, "ID_LIKE=", id))
			return true;
	}
	return false;
}

void os_install_of(const char *text, const char *package, char out[static INSTALL_MAX])
{
	bool is_python = strcmp(package, "python3") == 0;

	for (size_t i = 0; text && i < COUNT_OF(families); i++) {
		if (!is_of_family(text, families[i].id))
			continue;
		(void)snprintf(out, INSTALL_MAX, "%s %s", families[i].command,
			       is_python ? families[i].python : package);
		return;
	}
	(void)snprintf(out, INSTALL_MAX, "install the package '%s'", package);
}

void os_install(const char *package, char out[static INSTALL_MAX])
{
	char text[SYSTEM_FILE_SMALL];
	bool is_there = system_file_read(AT_FDCWD, "/etc/os-release", text, sizeof(text)) > 0 ||
			system_file_read(AT_FDCWD, "/usr/lib/os-release", text, sizeof(text)) > 0;

	os_install_of(is_there ? text : NULL, package, out);
}
