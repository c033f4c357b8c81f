/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/cli/run_state.h"

#include <signal.h>
#include <sys/stat.h>

#include "profiles/setting_types.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"

#define FORMAT_MAX 32
#define LIST_MAX   400 /* of denied system calls on one line */

#define DENIED_MAX 10                 /* lines about denied packets */
#define TARGET_MAX (IP_TEXT_MAX + 24) /* "icmpv6 [ADDRESS]:65535" */

static void note_cancel(const struct outcome *o)
{
	if (o->is_cancelled_elsewhere)
		return;

	bool by_signal = o->cancel_signal != 0 && o->cancel_signal != SIGPIPE;
	const char *name = by_signal ? sigabbrev_np(o->cancel_signal) : NULL;

	if (name)
		log_note("cancelled by SIG%s", name);
	else
		log_note("cancelled: the reader of the output closed it");
}

static void note_status(const struct outcome *o)
{
	const struct limit_state *l = o->limits;
	char text[FORMAT_MAX];
	const char *name;

	switch (o->status) {
	case STATUS_SIGNALED:
		name = strsignal(o->signal); /* English: setlocale() is never called */
		log_note("ended by signal %d (%s)", o->signal, name ? name : "unknown");
		break;
	case STATUS_TIMEOUT:
		log_report("timeout: ended after %s (--timeout)",
			   text_format_duration(l[LIMIT_WALL].value, text, sizeof(text)));
		break;
	case STATUS_CPU_LIMIT:
		log_report("CPU time limit: ended after %s of CPU time (--cpu-time)",
			   text_format_duration(l[LIMIT_CPU_TIME].value, text, sizeof(text)));
		break;
	case STATUS_OOM:
		if (l[LIMIT_MEMORY].hit == HIT_YES)
			log_report("out of memory: the limit of %s was reached (--memory)",
				   text_format_size(l[LIMIT_MEMORY].value, text, sizeof(text)));
		else
			log_report(
			    "out of memory: the host, or a parent cgroup, has no memory left");
		break;
	case STATUS_OUTPUT_LIMIT:
		log_report("output limit: ended after more than %s (--max-output, "
			   "--on-output-limit)",
			   text_format_size(l[LIMIT_OUTPUT].value, text, sizeof(text)));
		break;
	case STATUS_CANCELLED:
		note_cancel(o);
		break;
	case STATUS_EXITED:
	case STATUS_SETUP_ERROR: /* notes_print() prints the error */
	case STATUS_COUNT:
		break;
	}
}

/* "mount (2 times), ptrace" */
static void note_denied(const struct outcome *o)
{
	char list[LIST_MAX] = "";
	size_t i = 0;

	for (; i < o->ndenied && strlen(list) + 64 < sizeof(list); i++) {
		const struct denied_syscall *d = &o->denied[i];
		char count[32] = "";
		if (d->count > 1)
			(void)snprintf(count, sizeof(count), " (%u times)", d->count);
		text_append(list, sizeof(list), "%s%.30s%s", i ? ", " : "", d->name, count);
	}
	if (i > 0)
		log_report("denied system calls: %s%s", list, i < o->ndenied ? ", and more" : "");
}

/* "tcp 169.254.169.254:80", "udp [fd00:ec2::254]:53", "icmp 10.0.0.5" */
static const char *format_target(const struct denial *d, char out[static TARGET_MAX])
{
	const char *protocol = denial_protocol_name(d->protocol);
	bool has_brackets = d->address.family == 6 && d->port != 0;
	char address[IP_TEXT_MAX], port[8] = "";

	if (d->port != 0)
		(void)snprintf(port, sizeof(port), ":%u", d->port);
	(void)snprintf(out, TARGET_MAX, "%s %s%s%s%s", protocol, has_brackets ? "[" : "",
		       ip_format(&d->address, address), has_brackets ? "]" : "", port);
	return out;
}

static void note_denial(const struct denial *d)
{
	unsigned long long count = d->count;
	const char *others = d->is_shared ? ", perhaps sent by another exec" : "";
	char target[TARGET_MAX], times[40] = "";

	if (count > 1)
		(void)snprintf(times, sizeof(times), ", %llu times", count);
	if (d->name[0] != '\0') {
		log_report("network: denied the name %s (not allowed)%s%s", d->name, times, others);
		return;
	}
	if (d->address.family == 0) {
		log_report("network: denied %llu more (%s)%s", count, net_class_names[d->class],
			   others);
		return;
	}
	log_report("network: denied %s (%s)%s%s", format_target(d, target),
		   net_class_names[d->class], times, others);
}

/* The order of stdout and stderr is unknown, so stdout counts only if stderr is empty. */
void notes_follow_output(const struct outcome *o)
{
	const struct capture *last = &o->output[1];
	struct stat out, err;

	if (last->total == 0 && o->output[0].total > 0 && fstat(STDOUT_FILENO, &out) == 0 &&
	    fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev && out.st_ino == err.st_ino)
		last = &o->output[0];
	if (!capture_ends_line(last))
		log_on_fresh_line();
}

/* One line for all that this host lacks.  The result, and -v, have a sentence for each. */
static void note_degraded(const struct outcome *o, const struct strings *accepted)
{
	bool lacks[DEGRADED_COUNT + 1] = { false };
	char list[LIST_MAX] = "";

	for (size_t i = 0; i < o->warnings.count; i++)
		lacks[degraded_of(o->warnings.items[i])] = true;
	for (size_t i = 0; i < DEGRADED_COUNT; i++)
		if (lacks[i] && !strings_has(accepted, degraded_names[i]))
			text_append(list, sizeof(list), "%s%s", list[0] ? ", " : "",
				    degraded_names[i]);
	if (list[0])
		log_warning("this host does not fully enforce: %s (see 'cejail doctor'; "
			    "--accept-weaker hides this)",
			    list);
}

void notes_print(const struct outcome *o, const struct strings *accepted)
{
	const bool is_error = o->status == STATUS_SETUP_ERROR;

	if (!is_error)
		note_degraded(o, accepted);
	/* an error is one line; the result has the warnings */
	for (size_t i = 0; i < o->warnings.count && !is_error; i++) {
		if (degraded_of(o->warnings.items[i]) == DEGRADED_COUNT)
			log_warning("%s", o->warnings.items[i]);
		else
			log_debug("%s", o->warnings.items[i]);
	}
	if (o->code_real)
		log_debug("the program is the file '%s'", o->code_real);
	for (size_t i = 0; i < o->artifacts.count; i++)
		log_debug("artifact: %s (%llu bytes)", o->artifacts.items[i].path,
			  (unsigned long long)o->artifacts.items[i].bytes);
	/* Limits that slow a run down or make its calls fail, but do not end it. */
	char text[FORMAT_MAX];
	if (o->limits[LIMIT_PIDS].hit == HIT_YES)
		log_report("the limit of %llu processes was reached (--pids-limit)",
			   (unsigned long long)o->limits[LIMIT_PIDS].value);
	if (o->limits[LIMIT_DISK].hit == HIT_YES)
		log_report("the writable space of %s was full (--disk)",
			   text_format_size(o->limits[LIMIT_DISK].value, text, sizeof(text)));
	note_denied(o);
	if (o->network.state == NETWORK_READY)
		log_debug("network: ready, uplink '%s'", uplink_names[o->network.uplink]);
	else if (o->network.state == NETWORK_FAILED)
		log_debug("network: failed: %s",
			  o->network.why ? o->network.why : "no reason is known");
	for (size_t i = 0; i < o->network.ndenied && i < DENIED_MAX; i++)
		note_denial(&o->network.denied[i]);
	if (o->network.ndenied > DENIED_MAX)
		log_report("network: ... and %zu more (--json lists all)",
			   o->network.ndenied - DENIED_MAX);
	if (is_error || o->exec_errno != 0)
		log_error(&o->error);
	note_status(o);
}
