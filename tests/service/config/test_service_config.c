/* SPDX-License-Identifier: Apache-2.0 */
/* The service's configuration: its tables, its file. */
#include "runtime/service/config/service_config.h"

#include <setjmp.h>
#include <stdarg.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>

#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "tests/json_file.h"

static int read_text(struct service_config *c, const char *text, struct cj_error *err)
{
	*err = (struct cj_error){ 0 };
	return service_config_read(c, "serve.json", text, strlen(text), err);
}

static void load(struct service_config *c, const char *text)
{
	struct cj_error err;
	service_config_init(c);
	if (read_text(c, text, &err) < 0)
		fail_msg("%s", err.msg);
}

static void assert_refused(const char *text, const char *said)
{
	static struct service_config c;
	struct cj_error err;
	service_config_init(&c);
	if (read_text(&c, text, &err) == 0)
		fail_msg("%s was taken", text);
	if (!strstr(err.msg, said) && !strstr(err.hint, said))
		fail_msg("'%s (%s)' does not say '%s'", err.msg, err.hint, said);
	service_config_fini(&c);
}

/* --- the tables ------------------------------------------------------------------- */

static void every_row_can_be_read_and_explained(void **state)
{
	(void)state;
	for (size_t t = 0; t < service_tables_count; t++) {
		const struct service_table *table = &service_tables[t];
		for (size_t i = 0; i < table->count; i++) {
			const struct service_key *k = &table->keys[i];
			assert_null(strchr(k->json.name, '-'));
			assert_in_range(strlen(k->help), 1, 78);
			assert_in_range(strlen(k->standard), 1, 60);
			assert_true(k->json.max >= k->json.min || k->json.max == 0);
			const bool is_object = k->json.types == JSON_TAKES_OBJECT;
			assert_true((k->json.types == JSON_TAKES_BOOL) == (k->value == NULL));
			assert_true(is_object == (k->json.read != NULL));
			assert_true(is_object == (k->json.set == NULL));
			if (k->option)
				assert_true(t == 0 && k->value && !is_object && !k->json.is_list);
			for (size_t j = 0; j < i; j++)
				assert_string_not_equal(k->json.name, table->keys[j].json.name);
		}
	}
}

/* The object that a row's field is in, of the defaults. */
static void *base_of(struct service_config *c, const char *table, struct caller_row *row,
		     struct pool_config *pool)
{
	if (strcmp(table, "audit") == 0)
		return &c->audit;
	if (strcmp(table, "mcp") == 0)
		return &c->mcp;
	if (strcmp(table, "callers.NAME") == 0)
		return row;
	return strcmp(table, "pool.PROFILE") == 0 ? (void *)pool : c;
}

static void what_the_tables_say_is_the_default_is_it(void **state)
{
	static struct service_config c, before;
	struct caller_row row = { 0 }, row_before;
	struct pool_config pool = { 0 }, pool_before;
	struct cj_error err = { 0 };
	unsigned tried = 0;
	(void)state;
	service_config_init(&c);
	row.rights = c.callers.standard;
	row_before = row;
	pool_before = pool;
	for (size_t t = 0; t < service_tables_count; t++) {
		for (size_t i = 0; i < service_tables[t].count; i++) {
			const struct service_key *k = &service_tables[t].keys[i];
			if (k->standard[0] == '(' || !k->json.set)
				continue;
			memcpy(&before, &c, sizeof(c));
			void *base = base_of(&c, service_tables[t].name, &row, &pool);
			const struct json_reader in = { .arena = &c.arena };
			if (k->json.set(&in, &k->json, k->standard, base, &err) < 0)
				fail_msg("%s: %s", k->json.name, err.msg);
			tried++;
			before.arena = c.arena;
			if (memcmp(&before, &c, sizeof(c)) != 0 ||
			    memcmp(&row, &row_before, sizeof(row)) != 0 ||
			    memcmp(&pool, &pool_before, sizeof(pool)) != 0)
				fail_msg("%s is not %s", k->json.name, k->standard);
		}
	}
	assert_in_range(tried, 18, 60);
	assert_int_equal(c.npools, 1); /* "python: 1 jail, 2 interpreters" */
	assert_string_equal(c.pools[0].profile, "python");
	assert_int_equal(c.pools[0].jails, 1);
	assert_int_equal(c.pools[0].interpreters, 2);
	service_config_fini(&c);
}

static const struct json_node *at(const struct json_node *node, const char *key)
{
	node = json_get(node, key);
	assert_non_null(node);
	return node;
}

static void the_schema_has_the_tables_keys_in_order(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	const struct json_node *root = json_of_file("profiles/schema/serve.json", &a);
	const struct json_node *file = at(root, "properties");
	const struct json_node *objects[] = {
		file,
		at(at(at(file, "pool"), "additionalProperties"), "properties"),
		at(at(at(root, "$defs"), "caller"), "properties"),
		at(at(file, "audit"), "properties"),
		at(at(file, "mcp"), "properties"),
	};
	assert_int_equal(service_tables_count, sizeof(objects) / sizeof(objects[0]));
	for (size_t t = 0; t < service_tables_count; t++) {
		const struct json_node *key = objects[t]->child;
		for (size_t i = 0; i < service_tables[t].count; i++, key = key->next) {
			assert_non_null(key);
			assert_string_equal(key->key, service_tables[t].keys[i].json.name);
		}
		assert_null(key);
	}
}

/* What the schema says about each: tests/documents/check-service-schemas.py. */
static void the_examples_are_taken_and_refused(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	const struct json_node *root = json_of_file("tests/service/configs.json", &a);
	static const char *const kinds[] = { "good", "bad" };
	for (size_t i = 0; i < 2; i++) {
		for (const struct json_node *n = at(root, kinds[i])->child; n; n = n->next) {
			static struct service_config c;
			struct cj_error err = { 0 };
			auto_json_writer struct json_writer *w = json_writer_create(false);
			struct blob text;
			json_put_node(w, n);
			assert_int_equal(json_writer_take(w, &text, &err), 0);
			service_config_init(&c);
			int rc = service_config_read(&c, "x", text.bytes, text.size, &err);
			if ((rc == 0) != (i == 0))
				fail_msg("%s: %s", text.bytes, rc == 0 ? "taken" : err.msg);
			if (rc < 0)
				assert_memory_equal(err.msg, "x:", 2); /* its place */
			service_config_fini(&c);
		}
	}
}

/* --- values ------------------------------------------------------------------------ */

static void values_arrive_in_their_fields(void **state)
{
	static struct service_config c;
	(void)state;
	load(&c,
	     "{\"socket\": \"/run/a.sock\", \"socket_mode\": \"0660\", \"socket_group\": \"g\","
	     " \"tcp\": \"127.0.0.1:80\", \"token_file\": \"/t\", \"concurrency\": 3,"
	     " \"queue\": 4, \"queue_wait\": 5, \"receive_timeout\": \"600ms\","
	     " \"body_max\": \"7K\", \"code_max\": \"8K\", \"file_max\": \"9K\","
	     " \"stdin_max\": \"10K\", \"pool_age\": \"11s\", \"drain\": \"12s\","
	     " \"probe_interval\": \"13s\", \"probe_profile\": \"p\","
	     " \"audit\": {\"file\": \"/a\", \"journal\": true, \"sync\": true,"
	     " \"arguments\": \"2K\"},"
	     " \"mcp\": {\"profiles\": [\"node\", \"x\"], \"text_max\": \"14K\"},"
	     " \"pool\": {\"node\": {\"jails\": 1}, \"x\": {\"interpreters\": 2, \"repls\": 3}}}");
	assert_string_equal(c.socket, "/run/a.sock");
	assert_int_equal(c.socket_mode, 0660);
	assert_string_equal(c.socket_group, "g");
	assert_string_equal(c.tcp, "127.0.0.1:80");
	assert_string_equal(c.token_file, "/t");
	assert_int_equal(c.concurrency, 3);
	assert_int_equal(c.queue, 4);
	assert_int_equal(c.queue_ms, 5000);
	assert_int_equal(c.receive_ms, 600);
	assert_int_equal(c.caps.body_bytes, 7 << 10);
	assert_int_equal(c.caps.code_bytes, 8 << 10);
	assert_int_equal(c.caps.file_bytes, 9 << 10);
	assert_int_equal(c.caps.stdin_bytes, 10 << 10);
	assert_int_equal(c.pool_age_ms, 11000);
	assert_int_equal(c.drain_ms, 12000);
	assert_int_equal(c.probe_ms, 13000);
	assert_string_equal(c.probe_profile, "p");
	assert_string_equal(c.audit.file, "/a");
	assert_true(c.audit.journal && c.audit.sync && c.audit.arguments == 2048);
	assert_int_equal(c.mcp.profiles.count, 2);
	assert_string_equal(c.mcp.profiles.items[1], "x");
	assert_int_equal(c.mcp.text_max, 14 << 10);
	assert_int_equal(c.npools, 2);
	assert_string_equal(c.pools[0].profile, "node");
	assert_int_equal(c.pools[0].jails, 1);
	assert_int_equal(c.pools[0].interpreters, 0);
	assert_string_equal(c.pools[1].profile, "x");
	assert_int_equal(c.pools[1].interpreters, 2);
	assert_int_equal(c.pools[1].repls, 3);
	service_config_fini(&c);
}

static void rights_arrive_in_their_fields(void **state)
{
	static struct service_config c;
	(void)state;
	load(&c, "{\"callers\": {\"token:ci\": {\"profiles\": [\"a\", \"b\"], \"memory\": \"64M\","
		 " \"cpus\": 0.5, \"pids\": 7, \"timeout\": \"8s\", \"disk\": \"1M\","
		 " \"max_output\": \"unlimited\", \"network\": \"public\", \"host_paths\": true,"
		 " \"concurrent\": 2, \"queued\": 3, \"rate_per_minute\": 4, \"burst\": 5,"
		 " \"token_file\": \"/t\"}}}");
	assert_int_equal(c.callers.count, 1);
	const struct caller_row *row = &c.callers.rows[0];
	const struct rights *r = &row->rights;
	assert_string_equal(row->name, "token:ci");
	assert_string_equal(row->token_file, "/t");
	assert_false(row->has_token);
	assert_int_equal(r->profiles.count, 2);
	assert_string_equal(r->profiles.items[1], "b");
	assert_int_equal(r->ceilings.memory_bytes, 64u << 20);
	assert_int_equal(r->ceilings.millicpus, 500);
	assert_int_equal(r->ceilings.pids, 7);
	assert_int_equal(r->ceilings.wall_ms, 8000);
	assert_int_equal(r->ceilings.disk_bytes, 1u << 20);
	assert_true(r->ceilings.output_bytes == CEILING_NONE);
	assert_int_equal(r->network, NETWORK_ANY);
	assert_true(r->host_paths);
	assert_int_equal(r->concurrent, 2);
	assert_int_equal(r->queued, 3);
	assert_int_equal(r->rate_per_minute, 4);
	assert_int_equal(r->burst, 5);
	service_config_fini(&c);
}

static void what_a_caller_leaves_out_is_as_in_default(void **state)
{
	static struct service_config c;
	(void)state;
	load(&c, "{\"callers\": {\"uid:5\": {\"pids\": 9},"
		 " \"default\": {\"memory\": \"32M\", \"profiles\": [\"a\"], \"burst\": 3},"
		 " \"uid:6\": {\"memory\": \"64M\", \"profiles\": [\"b\"]}}}");
	assert_int_equal(c.callers.count, 2);
	assert_int_equal(c.callers.standard.ceilings.memory_bytes, 32u << 20);
	assert_int_equal(c.callers.rows[0].rights.ceilings.memory_bytes, 32u << 20);
	assert_int_equal(c.callers.rows[0].rights.ceilings.pids, 9);
	assert_int_equal(c.callers.rows[0].rights.burst, 3);
	assert_string_equal(c.callers.rows[0].rights.profiles.items[0], "a");
	assert_int_equal(c.callers.rows[1].rights.ceilings.memory_bytes, 64u << 20);
	assert_int_equal(c.callers.rows[1].rights.profiles.count, 1); /* replaced, not added */
	assert_string_equal(c.callers.rows[1].rights.profiles.items[0], "b");
	assert_string_equal(c.callers.standard.profiles.items[0], "a");
	assert_int_equal(c.callers.standard.profiles.count, 1);
	service_config_fini(&c);
}

static void a_configured_pool_replaces_the_default_pool(void **state)
{
	static struct service_config c;
	(void)state;
	load(&c, "{\"pool\": {}}");
	assert_int_equal(c.npools, 0);
	service_config_fini(&c);
	assert_int_equal(c.npools, 1);
}

/* --- mistakes ------------------------------------------------------------------------ */

static void a_mistake_is_reported_with_its_place(void **state)
{
	(void)state;
	assert_refused("{\n \"sokcet\": \"/x\"}", "serve.json:2:2: unknown key 'sokcet'");
	assert_refused("{\n \"sokcet\": \"/x\"}", "did you mean 'socket'?");
	assert_refused("{\"audit\": {\"jurnal\": true}}", "unknown key 'audit.jurnal'");
	assert_refused("{\"audit\": {\"jurnal\": true}}", "did you mean 'journal'?");
	assert_refused("{\"callers\": {\"uid:7\": {\"memroy\": 1}}}",
		       "unknown key 'callers.uid:7.memroy'");
	assert_refused("{\"pool\": {\"python\": {\"jail\": 1}}}", "unknown key 'pool.python.jail'");
	assert_refused("{\n\"queue\": 99999999}",
		       "serve.json:2:10: queue: '99999999' is too large");
	assert_refused("{\"queue\": true}", "queue must be a string or a number, not");
	assert_refused("{\"callers\": {\"uid:7\": {\"pids\": []}}}",
		       "callers.uid:7.pids must be a string or a number");
	assert_refused("{\"audit\": {\"journal\": 1}}", "audit.journal must be true or false");
	assert_refused("{\"socket\": \"/a\", \"socket\": \"/b\"}", "duplicate key 'socket'");
	assert_refused("{} x", "serve.json:1:4");
	assert_refused("[]", "the configuration must be an object");
	assert_refused("{\"audit\": 1}", "audit must be an object");
	assert_refused("{\"pool\": 1}", "pool must be an object");
	assert_refused("{\"callers\": 1}", "callers must be an object");
	assert_refused("{\"callers\": {\"root\": {}}}", "callers: 'root' is not a caller");
	assert_refused("{\"callers\": {\"root\": {}}}", "uid:1000");
	assert_refused("{\"callers\": {\"uid:7\": {\"token_file\": \"/x\"}}}",
		       "callers.uid:7.token_file: only a caller \"token:NAME\" has a token");
	assert_refused("{\"callers\": {\"uid:7\": {\"profiles\": []}}}", "must not be empty");
	assert_refused("{\"callers\": {\"uid:7\": {\"disk\": \"2000T\"}}}", "unlimited");
	assert_refused("{\"queue_wait\": \"2000h\"}", "24h is the most");
	assert_refused("{\"receive_timeout\": \"1ms\"}", "100ms is the least");
	assert_refused("{\"body_max\": \"1G\"}", "256M is the most");
	assert_refused("{\"socket_mode\": \"0777\"}", "0600, 0660 or 0666");
}

static void only_the_loopback_is_listened_on(void **state)
{
	(void)state;
	static const char *const bad[] = { "0.0.0.0:80",
					   "10.0.0.1:80",
					   "128.0.0.1:80",
					   "126.255.255.255:1",
					   "localhost:80",
					   "[::]:80",
					   "[::1%lo]:80",
					   "::1:80",
					   "127.1:80",
					   "0177.0.0.1:80",
					   "[127.0.0.1]:80",
					   ":80",
					   "[::ffff:127.0.0.1]:80",
					   "127.0.0.1 :80" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[128];
		(void)snprintf(text, sizeof(text), "{\"tcp\": \"%s\"}", bad[i]);
		assert_refused(text, "is not an address of the loopback");
	}
	assert_refused("{\"tcp\": \"127.0.0.1\"}", "is not ADDRESS:PORT");
	assert_refused("{\"tcp\": \"127.0.0.1:0\"}", "the port");
	assert_refused("{\"tcp\": \"127.0.0.1:65536\"}", "the port");
	assert_refused("{\"tcp\": \"127.0.0.1:+8\"}", "the port");
	assert_refused("{\"tcp\": \"127.0.0.1:\"}", "the port");
}

static void an_address_is_what_bind_wants(void **state)
{
	union tcp_address a;
	socklen_t size = 0;
	struct cj_error err = { 0 };
	(void)state;
	assert_int_equal(tcp_address_parse("127.1.2.3:8090", &a, &size, &err), 0);
	assert_int_equal(size, sizeof(a.v4));
	assert_int_equal(a.any.sa_family, AF_INET);
	assert_int_equal(ntohs(a.v4.sin_port), 8090);
	assert_int_equal(ntohl(a.v4.sin_addr.s_addr), 0x7f010203);
	assert_int_equal(tcp_address_parse("[::1]:65535", &a, &size, &err), 0);
	assert_int_equal(size, sizeof(a.v6));
	assert_int_equal(a.any.sa_family, AF_INET6);
	assert_int_equal(ntohs(a.v6.sin6_port), 65535);
	assert_true(IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr));
}

static void there_are_no_more_rows_than_the_tables_hold(void **state)
{
	(void)state;
	static struct service_config c;
	static char text[32768];
	struct cj_error err;
	size_t used = 0;
	for (unsigned i = 0; i <= CALLERS_MAX; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\"uid:%u\": {}",
					 i == 0 ? "{\"callers\": {" : ", ", i);
	(void)snprintf(text + used, sizeof(text) - used, "}}");
	assert_refused(text, "callers: more than 256");
	used = 0;
	for (unsigned i = 0; i < POOLS_MAX; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\"p%u\": {}",
					 i == 0 ? "{\"pool\": {" : ", ", i);
	(void)snprintf(text + used, sizeof(text) - used, "}}");
	service_config_init(&c);
	assert_int_equal(read_text(&c, text, &err), 0);
	assert_int_equal(c.npools, POOLS_MAX);
	service_config_fini(&c);
	(void)snprintf(text + used, sizeof(text) - used, ", \"more\": {}}}");
	assert_refused(text, "pool: more than 16");
}

static void settings_that_exclude_each_other_are_refused(void **state)
{
	static struct service_config c;
	struct cj_error err = { 0 };
	(void)state;
	load(&c, "{\"socket_group\": \"cejail\"}");
	assert_int_equal(service_config_check(&c, &err), -EINVAL);
	assert_non_null(strstr(err.hint, "0660"));
	service_config_fini(&c);
	load(&c, "{\"socket_group\": \"cejail\", \"socket_mode\": \"0660\"}");
	assert_int_equal(service_config_check(&c, &err), 0);
	service_config_fini(&c);
	load(&c, "{\"audit\": {\"arguments\": \"1K\"}}");
	assert_int_equal(service_config_check(&c, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "audit.arguments"));
	service_config_fini(&c);
	load(&c, "{\"audit\": {\"sync\": true, \"journal\": true}}");
	assert_int_equal(service_config_check(&c, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "audit.sync"));
	service_config_fini(&c);
	load(&c, "{}");
	assert_int_equal(service_config_check(&c, &err), 0);
	service_config_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_can_be_read_and_explained),
		cmocka_unit_test(what_the_tables_say_is_the_default_is_it),
		cmocka_unit_test(the_schema_has_the_tables_keys_in_order),
		cmocka_unit_test(the_examples_are_taken_and_refused),
		cmocka_unit_test(values_arrive_in_their_fields),
		cmocka_unit_test(rights_arrive_in_their_fields),
		cmocka_unit_test(what_a_caller_leaves_out_is_as_in_default),
		cmocka_unit_test(a_configured_pool_replaces_the_default_pool),
		cmocka_unit_test(a_mistake_is_reported_with_its_place),
		cmocka_unit_test(only_the_loopback_is_listened_on),
		cmocka_unit_test(an_address_is_what_bind_wants),
		cmocka_unit_test(there_are_no_more_rows_than_the_tables_hold),
		cmocka_unit_test(settings_that_exclude_each_other_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
