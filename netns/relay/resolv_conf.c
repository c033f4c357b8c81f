/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name servers of a resolv.conf(5), read as the C library reads it: the keyword is at the start
 * of the line, and a blank, '#' or ';' ends the address.  Pure.
 *
 * An address with a zone (fe80::1%eth0) is skipped: a struct ip has no interface.
 */
#include "netns/relay/resolv_conf.h"

#include <stdbool.h>
#include <string.h>

#define BLANKS " \t\r\v\f"

static bool parse_line(const char *line, size_t length, struct ip *out)
{
	static const char keyword[] = "nameserver";
	const size_t skip = sizeof(keyword) - 1;
	if (length <= skip || memcmp(line, keyword, skip) != 0)
		return false;

	size_t blanks = strspn(line + skip, BLANKS);
	const char *word = line + skip + blanks;
	size_t size = strcspn(word, BLANKS "\n#;");
	char address[IP_TEXT_MAX];
	if (blanks == 0 || size >= sizeof(address))
		return false;
	memcpy(address, word, size);
	address[size] = '\0';
	return ip_parse(address, out);
}

size_t resolv_conf_servers(const char *text, struct ip out[static RESOLV_CONF_SERVERS_MAX])
{
	size_t count = 0;
	while (*text != '\0' && count < RESOLV_CONF_SERVERS_MAX) {
		size_t length = strcspn(text, "\n");
		if (parse_line(text, length, &out[count]))
			count++;
		text += length + (text[length] == '\n');
	}
	if (count > 0)
		return count;
	out[0] = (struct ip){ .family = 4, .bytes = { 127, 0, 0, 1 } };
	return 1;
}
