/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_service_config - any text as the service's configuration.
 *
 * Asserted: a refusal has a message with the file's name in front; what is taken keeps every bound
 * of the tables, names nobody that can't call, and listens on nothing but the loopback.
 */
#include "runtime/service/config/service_config.h"

#include <netinet/in.h>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const struct service_table *table_of(const char *name)
{
	for (size_t i = 0; i < service_tables_count; i++)
		if (strcmp(service_tables[i].name, name) == 0)
			return &service_tables[i];
	assert(!"such a table");
	return NULL;
}

/* Every row that counts has unsigned, size_t or uint64_t at its place. */
static void check_bound(const char *table, const char *key, uint64_t value)
{
	const struct service_table *t = table_of(table);
	for (size_t i = 0; i < t->count; i++) {
		if (strcmp(t->keys[i].json.name, key) != 0)
			continue;
		assert(value >= t->keys[i].json.min && value <= t->keys[i].json.max);
		return;
	}
	assert(!"such a key");
}

static void check_file(const struct service_config *c)
{
	if (c->concurrency > 0)
		check_bound("", "concurrency", c->concurrency);
	check_bound("", "queue", c->queue);
	check_bound("", "queue_wait", c->queue_ms);
	check_bound("", "receive_timeout", c->receive_ms);
	check_bound("", "body_max", c->caps.body_bytes);
	check_bound("", "code_max", c->caps.code_bytes);
	check_bound("", "file_max", c->caps.file_bytes);
	check_bound("", "stdin_max", c->caps.stdin_bytes);
	check_bound("", "pool_age", c->pool_age_ms);
	check_bound("", "zygote_age", c->zygote_age_ms);
	check_bound("", "zygote_children", c->zygote_children);
	check_bound("", "drain", c->drain_ms);
	check_bound("", "probe_interval", c->probe_ms);
	assert(!c->probe_profile || is_name(c->probe_profile));
	assert(c->socket_mode == 0600 || c->socket_mode == 0660 || c->socket_mode == 0666);
	assert(!c->socket || (c->socket[0] == '/' && strlen(c->socket) <= 107));
	assert(!c->token_file || c->token_file[0] == '/');
	assert(!c->audit.file || (c->audit.file[0] == '/' && strlen(c->audit.file) <= 255));
	assert(c->npools <= POOLS_MAX);
	for (size_t i = 0; i < c->npools; i++) {
		assert(is_name(c->pools[i].profile));
		check_bound("pool.PROFILE", "jails", c->pools[i].jails);
		check_bound("pool.PROFILE", "interpreters", c->pools[i].interpreters);
		check_bound("pool.PROFILE", "repls", c->pools[i].repls);
	}
}

static void check_tcp(const char *text)
{
	union tcp_address a;
	socklen_t size;
	struct cj_error err = { 0 };
	int rc = tcp_address_parse(text, &a, &size, &err);
	assert(rc == 0);
	if (a.any.sa_family == AF_INET)
		assert(ntohl(a.v4.sin_addr.s_addr) >> 24 == 127 && a.v4.sin_port != 0);
	else
		assert(IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr) && a.v6.sin6_port != 0);
}

static void check_rights(const struct rights *r)
{
	uint64_t ceilings[sizeof(r->ceilings) / sizeof(uint64_t)];
	memcpy(ceilings, &r->ceilings, sizeof(ceilings));
	for (size_t i = 0; i < sizeof(ceilings) / sizeof(ceilings[0]); i++)
		assert(ceilings[i] == CEILING_NONE || ceilings[i] < (uint64_t)1 << 62);
	if (r->concurrent != CONCURRENT_HALF)
		check_bound("callers.NAME", "concurrent", r->concurrent);
	check_bound("callers.NAME", "queued", r->queued);
	check_bound("callers.NAME", "rate_per_minute", r->rate_per_minute);
	check_bound("callers.NAME", "burst", r->burst);
	for (size_t i = 0; i < r->profiles.count; i++)
		assert(is_name(r->profiles.items[i]));
}

static void check_callers(const struct callers *c)
{
	assert(c->count <= CALLERS_MAX);
	check_rights(&c->standard);
	for (size_t i = 0; i < c->count; i++) {
		const struct caller_row *row = &c->rows[i];
		bool is_token = strncmp(row->name, "token:", 6) == 0;
		assert(strlen(row->name) < CALLER_NAME_MAX);
		assert(is_token ? is_name(row->name + 6) : strncmp(row->name, "uid:", 4) == 0);
		assert(is_token || !row->token_file);
		assert(!row->has_token);
		check_rights(&row->rights);
		for (size_t k = 0; k < i; k++)
			assert(strcmp(row->name, c->rows[k].name) != 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	auto_free char *text = bytes_text((struct bytes){ bytes, size });
	static struct service_config c; /* too large for a small stack */
	struct cj_error err = { 0 };

	service_config_init(&c);
	int rc = service_config_read(&c, "serve.json", text, size, &err);
	if (rc < 0) {
		assert(err.code == -rc && strncmp(err.msg, "serve.json:", 11) == 0);
	} else {
		check_file(&c);
		check_callers(&c.callers);
		if (c.tcp)
			check_tcp(c.tcp);
		if (service_config_check(&c, &err) < 0)
			assert(err.msg[0] != '\0');
	}
	service_config_fini(&c);
	return 0;
}
