/* SPDX-License-Identifier: Apache-2.0 */
/* A result as JSON. */
#include "runtime/container/annotation/result_watch.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "runtime/base/text.h"
#include "runtime/container/annotation/result_place.h"
#include "runtime/container/state/state.h"
#include "runtime/run/report/result.h"

#define DIGITS_MAX 24

/* --- the cgroup's files -------------------------------------------------------------------- */

static const char *find_value(const char *text, const char *key)
{
	if (!key)
		return text;
	size_t size = strlen(key);
	for (; *text; text += *text == '\n') {
		if (strncmp(text, key, size) == 0 && text[size] == ' ')
			return text + size + 1;
		text += strcspn(text, "\n");
	}
	return NULL;
}

struct oci_u64 result_text_number(const char *text, const char *key)
{
	struct oci_u64 number = { 0 };
	struct cj_error none = { 0 };
	char digits[DIGITS_MAX];
	const char *value = find_value(text, key);
	size_t size = value ? strcspn(value, "\n") : 0;

	if (!value || size >= sizeof(digits))
		return number;
	memcpy(digits, value, size);
	digits[size] = '\0';
	number.is_set = parse_u64(digits, 0, UINT64_MAX, &number.value, &none) == 0;
	return number;
}

/* --- JSON ---------------------------------------------------------------------------------- */

static void put_number(struct json_writer *w, const char *key, const struct oci_u64 *number)
{
	json_member_known(w, key, number->is_set, number->value);
}

static void put_hit(struct json_writer *w, const struct oci_u64 *hits)
{
	json_put_key(w, "hit");
	if (hits->is_set)
		json_put_bool(w, hits->value > 0);
	else
		json_put_null(w);
}

/* A process of the container may be killed for lack of memory while the first one goes on. */
static const char *status_of(const struct result_facts *f)
{
	if (!f->has_wait_status)
		return NULL;
	if (!WIFSIGNALED(f->wait_status))
		return "exited";
	bool is_oom = WTERMSIG(f->wait_status) == SIGKILL && f->oom_kills.is_set &&
		      f->oom_kills.value > 0;
	return is_oom ? "oom" : "signaled";
}

static void put_end(struct json_writer *w, const struct result_facts *f)
{
	bool is_exit = f->has_wait_status && WIFEXITED(f->wait_status);
	bool is_signal = f->has_wait_status && WIFSIGNALED(f->wait_status);

	json_member_text(w, "status", status_of(f));
	json_member_known(w, "exit_code", is_exit, (uint64_t)WEXITSTATUS(f->wait_status));
	json_member_known(w, "signal", is_signal, (uint64_t)WTERMSIG(f->wait_status));
}

static void put_time(struct json_writer *w, const char *key, uint64_t epoch_ms)
{
	char text[STATE_TIME_MAX];

	state_status_time(epoch_ms, text);
	json_member_text(w, key, text);
}

static void put_usage(struct json_writer *w, const struct result_facts *f)
{
	const struct oci_u64 cpu_ms = { .is_set = f->cpu_us.is_set,
					.value = f->cpu_us.value / 1000 };

	json_member_object(w, "usage");
	put_number(w, "cpu_ms", &cpu_ms);
	put_number(w, "memory_peak_bytes", &f->memory_peak);
	put_number(w, "pids_peak", &f->pids_peak);
	json_close_object(w);
}

static void put_limits(struct json_writer *w, const struct result_facts *f)
{
	json_member_object(w, "limits");
	json_member_object(w, "memory");
	put_number(w, "value", &f->memory_max);
	put_hit(w, &f->oom_kills);
	put_number(w, "kills", &f->oom_kills);
	json_close_object(w);
	json_member_object(w, "pids");
	put_number(w, "value", &f->pids_max);
	put_hit(w, &f->pids_refused);
	put_number(w, "refused", &f->pids_refused);
	json_close_object(w);
	json_close_object(w);
}

static void put_network(struct json_writer *w, const struct denials *d)
{
	json_put_key(w, "network");
	if (!d) {
		json_put_null(w);
		return;
	}
	json_open_object(w);
	json_member_array(w, "denied");
	for (size_t i = 0; i < d->count; i++)
		result_put_denial(w, &d->items[i]);
	json_close_array(w);
	json_close_object(w);
}

void result_text_write(struct json_writer *w, const struct result_facts *f)
{
	json_open_object(w);
	json_member_text(w, "schema", OCI_RESULT_SCHEMA);
	json_member_text(w, "id", f->id);
	put_end(w, f);
	put_time(w, "created", f->created_ms);
	put_time(w, "ended", f->ended_ms);
	put_usage(w, f);
	put_limits(w, f);
	put_network(w, f->denials);
	json_close_object(w);
}
