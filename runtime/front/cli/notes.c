/* SPDX-License-Identifier: Apache-2.0 */
/* The lines after a run, from the outcome.  Acts only through log.h. */
#include "runtime/front/cli/notes.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/text.h"

#define WORD_MAX 32
#define LIST_MAX 400 /* of refused calls on one line */

static const char *size_word(uint64_t bytes, char out[static WORD_MAX])
{
	text_format_size(bytes, out, WORD_MAX);
	return out;
}

static const char *time_word(uint64_t ms, char out[static WORD_MAX])
{
	text_format_duration(ms, out, WORD_MAX);
	return out;
}

static void note_signal(const struct outcome *o)
{
	const char *words = strsignal(o->signal); /* English: setlocale() is never called */
	log_note("ended by signal %d (%s)", o->signal, words ? words : "unknown");
}

static void note_cancel(const struct outcome *o)
{
	bool by_signal = o->cancel_signal != 0 && o->cancel_signal != SIGPIPE;
	const char *name = by_signal ? sigabbrev_np(o->cancel_signal) : NULL;

	if (name)
		log_note("cancelled by SIG%s", name);
	else
		log_note("cancelled: nobody takes the output any more");
}

static void note_status(const struct outcome *o, const struct limits_spec *l)
{
	char word[WORD_MAX];

	switch (o->status) {
	case STATUS_SIGNALED:
		note_signal(o);
		break;
	case STATUS_TIMEOUT:
		log_note("timeout: ended after %s (--timeout)", time_word(l->wall_ms, word));
		break;
	case STATUS_CPU_LIMIT:
		log_note("CPU time: ended after %s of it (--cpu-time)", time_word(l->cpu_ms, word));
		break;
	case STATUS_OOM:
		log_note("out of memory: the limit of %s was reached (--memory)",
			 size_word(l->memory_bytes, word));
		break;
	case STATUS_OUTPUT_LIMIT:
		log_note("output limit: more than %s came (--max-output, --on-output-limit)",
			 size_word(l->output_bytes, word));
		break;
	case STATUS_CANCELLED:
		note_cancel(o);
		break;
	case STATUS_EXITED:
	case STATUS_SETUP_ERROR: /* an error, told as such */
	case STATUS_COUNT:
		break;
	}
}

/* Limits that do not end a run, only hold it back. */
static void note_limits(const struct outcome *o, const struct plan *plan)
{
	char word[WORD_MAX];

	if (o->limits[LIMIT_PIDS].hit)
		log_note("the limit of %llu processes was reached (--pids-limit)",
			 (unsigned long long)plan->limits.pids);
	if (o->limits[LIMIT_DISK].hit)
		log_note("the writable space of %s was full (--disk)",
			 size_word(plan->root.scratch_bytes, word));
}

/* "mount (2 times), ptrace" */
static void note_denied(const struct outcome *o)
{
	char list[LIST_MAX] = "";
	size_t used = 0, i = 0;

	for (; i < o->ndenied && used + 64 < sizeof(list); i++) {
		const struct denied_syscall *d = &o->denied[i];
		char count[32] = "";
		if (d->count > 1)
			(void)snprintf(count, sizeof(count), " (%u times)", d->count);
		int n = snprintf(list + used, sizeof(list) - used, "%s%.30s%s", i ? ", " : "",
				 d->name, count);
		used += n > 0 ? (size_t)n : 0;
	}
	if (i > 0)
		log_note("refused: %s%s", list, i < o->ndenied ? ", and more" : "");
}

static void note_artifacts(const struct outcome *o)
{
	for (size_t i = 0; i < o->artifacts.count; i++)
		log_debug("copied out: %s (%llu bytes)", o->artifacts.items[i].path,
			  (unsigned long long)o->artifacts.items[i].bytes);
}

void notes_print(const struct outcome *o, const struct plan *plan)
{
	for (size_t i = 0; i < o->warnings.count; i++)
		log_warning("%s", o->warnings.items[i]);
	note_artifacts(o);
	note_limits(o, plan);
	note_denied(o);
	if (o->status == STATUS_SETUP_ERROR || o->exec_errno != 0)
		log_error(&o->error);
	note_status(o, &plan->limits);
}
