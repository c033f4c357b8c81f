/* SPDX-License-Identifier: Apache-2.0 */
#include "netns/relay/name_servers.h"

#include <fcntl.h>
#include <netinet/in.h>

#include "netns/relay/tcp_proxy.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

#define FILE_BYTES_MAX 65536 /* of a resolv.conf(5), which has a few lines */

int name_servers_read(const char *path, struct name_servers *out, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	char *text = NULL;
	size_t size;
	/* Usually a link into /run.  O_NONBLOCK: a fifo there must not block. */
	auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		return cj_fail(err, errno, "open '%s'", path);
	if (fd >= 0) {
		int rc = fd_read_all(fd, FILE_BYTES_MAX, &a, &text, &size, path, err);
		if (rc < 0)
			return rc;
	}
	out->count = resolver_read_conf(text ? text : "", out->items);
	return 0;
}

int name_servers_connect(const struct name_servers *servers, size_t server, int type)
{
	struct sockaddr_storage address;
	if (server >= servers->count || (type != SOCK_DGRAM && type != SOCK_STREAM))
		return -EINVAL;
	socklen_t size = ip_socket_address(&servers->items[server], RESOLVER_PORT, &address);
	return tcp_proxy_dial((struct sockaddr *)&address, size, type);
}
