/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: libexec_find */
/*
 * The shipped launchers in whole jails: little programs behave in an interpreter that waited, and
 * in a fork of a zygote, as in one of their own, to the byte and to the exit status.
 */
#include "tests/forked.h"
#include "tests/jail/built_libexec.h"
#include "tests/jail/whole_jail.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include "profiles/profile.h"
#include "runtime/base/scope.h"
#include "runtime/jail/zygote/zygote.h"

struct example {
	const char *code;
	const char *input; /* NULL: none */
	const char *file;  /* as a file with this name, for its extension; NULL: a string */
	const char *place; /* what to leave out of the comparison: lines with this in them */
	bool has_tools;    /* it may call "add", which a child of ours answers with 42 */
};

/* Where the program's interpreter comes from. */
enum kind { COLD, WAITED, FORKED };

/* --- a run of any kind ----------------------------------------------------------------------- */

struct run {
	struct config config;
	struct plan plan;
	struct program program, launcher;
	struct outcome out;
	int input_fd, calls_fd;
	pid_t caller;
};

static void die(const struct example *e, const struct cj_error *err)
{
	fail_msg("'%s': %s (%s)", e->code, err->msg, err->hint);
}

static int open_input(const char *text)
{
	int ends[2];
	if (!text)
		return -1;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
	close(ends[1]);
	return ends[0];
}

/* The caller: the first call and its answer. */
static void answer_one(int fd)
{
	static const char answer[] = "{\"id\":1,\"result\":42}\n";
	char line[256];
	if (read(fd, line, sizeof(line)) > 0)
		(void)!write(fd, answer, sizeof(answer) - 1);
	(void)!read(fd, line, sizeof(line)); /* until the run has ended */
	_exit(0);
}

static void open_caller(struct run *r)
{
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	r->caller = test_fork();
	assert_true(r->caller >= 0);
	if (r->caller == 0) {
		close(ends[0]);
		answer_one(ends[1]);
	}
	close(ends[1]);
	r->calls_fd = ends[0];
}

static void make_plan(struct run *r, const char *profile, const struct example *e)
{
	static const char *const args[] = { "a", "b c", NULL };
	const struct invocation inv = { .args = args,
					.tools_json = e->has_tools ? "[{\"name\":\"add\"}]"
								   : NULL };
	struct cj_error err = { 0 };
	*r = (struct run){ .input_fd = open_input(e->input) };
	if (e->has_tools)
		open_caller(r);
	config_init(&r->config);
	if (profile_load(&r->config, profile, &err) < 0)
		die(e, &err);
	r->config.network = NETWORK_NONE;
	r->config.limits.millicpus = 2000;
	r->config.limits.memory_bytes = TEST_MEMORY_BYTES;
	if (r->config.limits.memory_bytes < (1ull << 31))
		r->config.limits.memory_bytes = 1ull << 31; /* node reserves much */
	r->config.code = e->code;
	r->config.code_size = strlen(e->code);
	r->config.has_code = true;
	r->config.interactive = e->input;
	if (e->file)
		r->config.file_name = e->file;
	if (plan_make(&r->config, &inv, &r->plan, &r->program, &err) < 0 ||
	    plan_launcher(&r->config, &r->plan, &r->launcher, &err) < 0)
		die(e, &err);
	assert_true(r->launcher.argv.count > 0);
	outcome_init(&r->out, r->program.id, 1 << 20);
}

/* One for all examples. */
static struct zygote zygote = ZYGOTE_NULL;

static int get_zygote(struct run *r, struct cj_error *err)
{
	r->plan.uses_zygote = true;
	if (plan_zygote(&r->config, &r->plan, &r->launcher, err) < 0)
		return -err->code;
	if (zygote.pidfd >= 0)
		return 0;
	struct program outside = r->launcher;
	if (plan_zygote_outside(&r->config, &outside, err) < 0 ||
	    zygote_spawn(&outside, -1, &zygote, err) < 0)
		return -err->code;
	return zygote_await_ready(&zygote, 10000, err);
}

static void run_example(struct run *r, const char *profile, const struct example *e, enum kind kind)
{
	struct jail *jail = NULL;
	struct cj_error err = { 0 };
	make_plan(r, profile, e);
	if (kind == FORKED && get_zygote(r, &err) < 0)
		die(e, &err);
	const struct jail_io io = { .stdin_fd = r->input_fd,
				    .stdout_fd = -1,
				    .stderr_fd = -1,
				    .tty_fd = -1,
				    .hangup_fd = -1,
				    .calls_fd = r->calls_fd };
	int rc = jail_prepare(&r->plan, unique_id(), &jail, &err);
	if (rc == 0 && kind == WAITED)
		rc = jail_warm(jail, JAIL_NO_ZYGOTE, &r->launcher, &err);
	if (rc == 0 && kind == FORKED)
		rc = jail_warm(jail, zygote.sock_fd, &r->launcher, &err);
	if (rc == 0)
		rc = jail_start(jail, &r->program, &io, &err);
	if (rc == 0)
		rc = jail_wait(jail, &r->out, &err);
	if (rc < 0)
		die(e, &err);
	jail_destroy(&jail);
}

static void run_fini(struct run *r)
{
	cj_close(&r->input_fd);
	if (r->caller > 0) {
		close(r->calls_fd);
		(void)kill(r->caller, SIGKILL);
		(void)waitpid(r->caller, NULL, 0);
	}
	outcome_fini(&r->out);
	config_fini(&r->config);
}

/* The lines that are not the same in the two are cut out, where the example knows of them. */
static char *text_of(const struct run *r, size_t stream, const struct example *e)
{
	size_t size, kept;
	char *text = capture_text(&r->out.output[stream], &size, &kept);
	assert_non_null(text);
	for (char *at; e->place && (at = strstr(text, e->place)) != NULL;) {
		while (at > text && at[-1] != '\n')
			at--;
		char *end = strchrnul(at, '\n');
		memmove(at, end, strlen(end) + 1);
	}
	return text;
}

static void compare(const char *profile, enum kind kind, const struct example *examples,
		    size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct example *e = &examples[i];
		struct run cold, warm;
		run_example(&cold, profile, e, COLD);
		run_example(&warm, profile, e, kind);
		if (cold.out.status != warm.out.status ||
		    cold.out.exit_code != warm.out.exit_code || cold.out.signal != warm.out.signal)
			fail_msg("'%s': status %d, %d, signal %d; in one that waited %d, %d, %d",
				 e->code, (int)cold.out.status, cold.out.exit_code, cold.out.signal,
				 (int)warm.out.status, warm.out.exit_code, warm.out.signal);
		for (size_t stream = 0; stream < 2; stream++) {
			auto_free char *expected = text_of(&cold, stream, e);
			auto_free char *seen = text_of(&warm, stream, e);
			if (strcmp(expected, seen) != 0)
				fail_msg("'%s': '%s'; in one that waited '%s'", e->code, expected,
					 seen);
		}
		run_fini(&cold);
		run_fini(&warm);
	}
}

static void skip_without(const char *program)
{
	if (access(program, X_OK) == 0)
		return;
	print_message("skipped: there is no '%s'\n", program);
	if (getenv("CEJAIL_TEST_STRICT"))
		fail();
	skip();
}

/* --- Python ------------------------------------------------------------------------------------
 */

/* clang-format off */
static const struct example python[] = {
	/* what a program finds */
	{ .code = "print(1)" },
	{ .code = "import sys, os\nprint(sys.argv, sys.orig_argv, sys.path, sys.flags, os.getcwd(), sorted(os.environ.items()))" },
	{ .code = "print(__name__, __file__, __spec__, __package__, __doc__, __cached__, type(__loader__), list(globals()))" },
	{ .code = "import __main__, sys\nprint(__main__ is sys.modules['__main__'], vars(__main__) is globals())" },
	{ .code = "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))))" },
	{ .code = "import sys\nprint(sys.stdout.encoding, sys.stdin.encoding, sys.stderr.errors, sys.stdout, sys.stderr)" },
	{ .code = "import os\nprint([f for f in range(20) if os.path.exists(f'/proc/self/fd/{f}')], os.listdir('/box'), os.listdir('/tmp'))" },
	{ .code = "import sys\nprint(sys.stdin, sys.stdin.seekable(), sys.stdin.mode, sys.stdin.buffer, repr(sys.stdin.read()))" },
	{ .code = "import sys\nprint(sys.stdin, sys.stdin.seekable(), sys.stdin.mode, sys.stdin.buffer, repr(sys.stdin.read()))", .input = "one\ntwo\n" },
	{ .code = "print(input('? '))\nprint(input())", .input = "one\n" },
	{ .code = "import os\nprint(os.environ['CEJAIL_CALLS_FD'], sorted(os.listdir('/box')), [f for f in range(20) if os.path.exists(f'/proc/self/fd/{f}')])\nos.write(4, b'{\"id\":7,\"name\":\"add\"}\\n')\nprint(os.read(4, 100))", .has_tools = true },
	{ .code = "import os\nos.spawnlp(os.P_WAIT, 'sh', 'sh', '-c', 'echo $CEJAIL_CALLS_FD; echo {\\\"id\\\":7,\\\"name\\\":\\\"add\\\"} >&4; read a <&4; echo $a')", .has_tools = true },
	/* how it fails */
	{ .code = "def f():\n    raise ValueError('x')\nf()" },
	{ .code = "try:\n    1/0\nexcept Exception as e:\n    raise KeyError('k') from e" },
	{ .code = "x = [\n  1,\n  1/0,\n]" },
	{ .code = "exec('1/0')" },
	{ .code = "import nosuch" },
	{ .code = "assert 0, 'no'" },
	{ .code = "import traceback\ntry:\n    1/0\nexcept Exception:\n    traceback.print_exc()" },
	{ .code = "import json\njson.loads('{')" },
	{ .code = "print(1" },
	{ .code = "x = 1\nprint(x is 1)\nreturn 3" },
	{ .code = "x = 1\nprint(x is 1)" },
	{ .code = "if 1:\nx" },
	{ .code = "# \xe4\nprint('\xe4')" },
	{ .code = "# -*- coding: latin-1 -*-\nprint(ascii('\xe4'))" },
	{ .code = "" },
	{ .code = "import warnings\nwarnings.warn('w')\nwarnings.warn('d', DeprecationWarning)" },
	/* how it ends */
	{ .code = "import sys\nsys.exit(3)" },
	{ .code = "import sys\nprint('o')\nsys.exit('bye')" },
	{ .code = "raise SystemExit(-1)" },
	{ .code = "raise SystemExit(True)" },
	{ .code = "raise SystemExit(2 ** 70)" },
	{ .code = "raise SystemExit" },
	{ .code = "import os\nprint('lost')\nos._exit(7)" },
	{ .code = "import os\nos.abort()" },
	{ .code = "print('a')\nraise KeyboardInterrupt" },
	{ .code = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)" },
	{ .code = "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)" },
	{ .code = "class A:\n    def __del__(self):\n        print('del')\na = A()\nb = [A()]\nb.append(b)\ndef f():\n    return a" },
	{ .code = "class A:\n    def __del__(self):\n        print('del')\ndef f():\n    a = A()\n    1/0\nf()" },
	{ .code = "def g():\n    try:\n        yield 1\n    finally:\n        print('closed')\nx = g()\nnext(x)" },
	{ .code = "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'fin')" },
	{ .code = "import atexit\natexit.register(print, 'bye')\nprint('hi')" },
	{ .code = "import atexit\ndef f():\n    raise ValueError\natexit.register(f)", .place = "<function f at" },
	{ .code = "import sys, atexit\natexit.register(lambda: print(sys.last_type, sys.last_value))\n1/0" },
	{ .code = "import sys\ndef h(t, v, tb):\n    print('hook', t, tb.tb_lineno, sys.exc_info())\nsys.excepthook = h\n1/0" },
	{ .code = "import sys\ndef h(*a):\n    raise KeyError\nsys.excepthook = h\n1/0" },
	{ .code = "import threading, time\ndef f():\n    time.sleep(2)\n    print('t', threading.main_thread().is_alive())\nthreading.Thread(target=f).start()\nprint('m')" },
	{ .code = "import threading\nthreading.Thread(target=lambda: 1/0, name='x').start()" },
	{ .code = "import sys\nprint('x')\nsys.stdout.close()" },
	{ .code = "import sys\nsys.stdout = None" },
	{ .code = "import sys\nsys.stdout.write('a')\nsys.stderr.write('b')" },
	{ .code = "import os\nif os.fork() == 0:\n    f = open('/box/f', 'w')\n    f.write('kept')\nelse:\n    os.wait()\n    print(open('/box/f').read())" },
	{ .code = "import os, json\nif os.fork() == 0:\n    json.f = open('/box/f', 'w')\n    json.f.write('kept')\nelse:\n    os.wait()\n    print(open('/box/f').read())" },
	{ .code = "import ctypes\nctypes.CDLL(None).printf(b'hello\\n')" },
	{ .code = "print('x' * 300000)" },
	/* what it starts */
	{ .code = "import faulthandler\nwith open('/box/t', 'w+') as f:\n    faulthandler.dump_traceback(f)\n    f.seek(0)\n    print(f.readlines()[1])" },
	{ .code = "import ctypes, faulthandler\nfaulthandler.enable(open('/dev/null', 'w'))\nctypes.string_at(0)", .place = "\"<string>\"" },
	{ .code = "import faulthandler, time\nfaulthandler.dump_traceback_later(.1, exit=True, file=open('/dev/null', 'w'))\ntime.sleep(9)" },
	{ .code = "import threading, os\nprint(threading.main_thread().native_id == os.getpid(), threading.active_count())" },
	{ .code = "import signal\nprint([(s, signal.getsignal(s)) for s in signal.valid_signals() if signal.getsignal(s) not in (signal.SIG_DFL, None)], signal.pthread_sigmask(signal.SIG_BLOCK, ()))" },
	{ .code = "import signal, time\nsignal.signal(signal.SIGALRM, lambda *a: print('alarm'))\nsignal.setitimer(signal.ITIMER_REAL, .05)\ntime.sleep(.5)" },
	{ .code = "import os\nprint(os.getpriority(os.PRIO_PROCESS, 0), os.umask(0), os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid(), os.sched_getscheduler(0))" },
	{ .code = "import sys\nprint([s.seekable() for s in (sys.stdin, sys.stdout, sys.stderr)], [s.line_buffering for s in (sys.stdin, sys.stdout, sys.stderr)], [s.write_through for s in (sys.stdout, sys.stderr)], [s.buffer for s in (sys.stdout, sys.stderr)])" },
	{ .code = "import tempfile, os\nprint(tempfile.gettempdir())\nwith tempfile.NamedTemporaryFile() as f:\n    print(os.path.dirname(f.name))" },
	{ .code = "import resource\nprint([resource.getrlimit(n) for n in range(16)])" },
	{ .code = "import multiprocessing as m\ndef f(x):\n    return x * x\nif __name__ == '__main__':\n    with m.Pool(2) as p:\n        print(p.map(f, range(5)))" },
	{ .code = "import multiprocessing as m\ndef f(x):\n    return x * x\nif __name__ == '__main__':\n    with m.get_context('spawn').Pool(2) as p:\n        print(p.map(f, range(5)))" },
	{ .code = "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'print(2)'], capture_output=True))" },
	{ .code = "import asyncio\nasync def m():\n    await asyncio.sleep(0)\n    print('a')\nasyncio.run(m())" },
	{ .code = "import logging\nlogging.basicConfig(format='%(filename)s:%(lineno)d:%(message)s')\nlogging.warning('x')" },
};

/* --- Node.js ---------------------------------------------------------------------------- */

/* In an Error's stack the lowest line says who has called the program: Node's own, either way. */
static const struct example node[] = {
	{ .code = "const fs = require('fs');\nconsole.log(process.env.CEJAIL_CALLS_FD);\nfs.writeSync(4, '{\"id\":7,\"name\":\"add\"}\\n');\nconst b = Buffer.alloc(100);\nconsole.log(b.toString('utf8', 0, fs.readSync(4, b)));", .has_tools = true },
	{ .code = "console.log(1)" },
	{ .code = "console.log(process.argv, process.execArgv, process.env, process.cwd())" },
	{ .code = "console.log(require.main === module, __filename, __dirname, module.id, module.parent, module.paths, Object.keys(require.cache))" },
	{ .code = "console.log(Object.getOwnPropertyNames(globalThis).sort().join(), Object.getOwnPropertyNames(process).sort().join())" },
	{ .code = "console.log(typeof fs, typeof crypto, typeof os, typeof module, process.eventNames(), process.title)" },
	{ .code = "console.log(JSON.stringify(require('fs').readFileSync(0, 'utf8')))" },
	{ .code = "console.log(JSON.stringify(require('fs').readFileSync(0, 'utf8')))", .input = "hello" },
	{ .code = "process.stdin.on('data', d => console.log(String(d))).on('end', () => console.log('end'))", .input = "hello" },
	{ .code = "process.stdin.on('data', d => console.log(String(d))).on('end', () => console.log('end'))" },
	{ .code = "process.nextTick(() => console.log('n')); Promise.resolve().then(() => console.log('p')); setImmediate(() => console.log('i')); console.log('m')" },
	{ .code = "function f() { throw new Error('x') }\nf()", .place = "node:internal/" },
	{ .code = "throw 'x'" },
	{ .code = "process.exit(3)" },
	{ .code = "process.exitCode = 4" },
	{ .code = "process.on('exit', c => console.log('exit', c))" },
	{ .code = "process.on('uncaughtException', (e, o) => console.log(e.message, o)); throw new Error('q')" },
	{ .code = "process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 1000)" },
	{ .code = "console.log('x'.repeat(300000))" },
	{ .code = "console.log(require('child_process').execFileSync(process.execPath, ['-p', '1+1']).toString())" },
	{ .code = "const {Worker, isMainThread} = require('worker_threads');\nif (isMainThread) new Worker(__filename).on('exit', c => console.log('w', c)); else console.log('in')" },
	{ .code = "import fs from 'fs';\nconsole.log(import.meta.url, typeof require, typeof module, process.argv);\nawait 1", .file = "main.mjs" },
	{ .code = "throw new Error('e')", .file = "main.mjs" },
	{ .code = "import x from ;", .file = "main.mjs" },
	{ .code = "await new Promise(() => {})", .file = "main.mjs" },
};
/* clang-format on */

static void a_program_can_hardly_tell_that_its_python_waited(void **state)
{
	(void)state;
	skip_without("/usr/bin/python3");
	compare("python", WAITED, python, sizeof(python) / sizeof(python[0]));
}

static void a_program_can_hardly_tell_that_its_python_is_a_fork(void **state)
{
	(void)state;
	skip_without("/usr/bin/python3");
	compare("python", FORKED, python, sizeof(python) / sizeof(python[0]));
	zygote_end(&zygote);
}

static void a_program_can_hardly_tell_that_its_node_waited(void **state)
{
	(void)state;
	skip_without("/usr/bin/node");
	compare("node", WAITED, node, sizeof(node) / sizeof(node[0]));
}

/* What it was started with is all that /proc shows of it: nothing of the caller's, nothing secret.
 */
static void its_command_line_is_the_launchers(void **state)
{
	(void)state;
	skip_without("/usr/bin/python3");
	const struct example e = { .code = "print(open('/proc/self/cmdline').read())\n"
					   "print(open('/proc/self/environ').read())" };
	struct run r;
	setenv("SECRET_OF_THE_CALLER", "hush", 1);
	run_example(&r, "python", &e, WAITED);
	unsetenv("SECRET_OF_THE_CALLER");
	auto_free char *text = text_of(&r, 0, &e);
	assert_non_null(strstr(text, "python3"));
	assert_null(strstr(text, "hush"));
	assert_null(strstr(text, "b c"));
	run_fini(&r);
}

/* Its environment makes the interpreter look elsewhere, so it gets no launcher. */
static void another_interpreter_or_a_terminal_has_no_launcher(void **state)
{
	(void)state;
	static const char *commands[][4] = {
		{ "bash", "{file}", "{args}" },
		{ "python3", "{args}" },
		{ "python3", "{file}", "-x" },
		{ "{file}", "{args}" },
	};
	for (size_t i = 0; i < 5; i++) {
		struct cj_error err = { 0 };
		struct config c;
		struct program launcher;
		struct plan plan = { .tty = i == 4 };
		config_init(&c);
		assert_int_equal(profile_load(&c, "python", &err), 0);
		if (i < 4)
			c.command = (struct strings){ commands[i], commands[i][2] ? 3 : 2 };
		assert_int_equal(plan_launcher(&c, &plan, &launcher, &err), 0);
		assert_int_equal(launcher.argv.count, 0);
		config_fini(&c);
	}
}

static void a_launcher_keeps_the_profiles_options_and_environment(void **state)
{
	(void)state;
	const char *command[] = { "/usr/bin/python3.11", "-B", "{file}", NULL };
	struct cj_error err = { 0 };
	struct config c;
	struct program launcher;
	const struct plan plan = { .tty = false };
	config_init(&c);
	assert_int_equal(profile_load(&c, "python", &err), 0);
	c.command = (struct strings){ command, 3 };
	assert_int_equal(plan_launcher(&c, &plan, &launcher, &err), 0);
	assert_string_equal(launcher.argv.items[0], "/usr/bin/python3.11");
	assert_string_equal(launcher.argv.items[1], "-B");
	assert_string_equal(launcher.argv.items[2], "-c");
	assert_true(strlen(launcher.argv.items[3]) < 100);
	assert_non_null(strstr(launcher.script, "SPDX-License-Identifier"));
	assert_string_equal(launcher.argv.items[4], c.preload.items[0]);
	assert_int_equal(launcher.argv.count, 4 + c.preload.count);
	assert_int_equal(launcher.env.count, c.env.count);
	assert_string_equal(launcher.workdir, c.workdir);
	config_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_interpreter_or_a_terminal_has_no_launcher),
		cmocka_unit_test(a_launcher_keeps_the_profiles_options_and_environment),
		cmocka_unit_test(its_command_line_is_the_launchers),
		cmocka_unit_test(a_program_can_hardly_tell_that_its_python_waited),
		cmocka_unit_test(a_program_can_hardly_tell_that_its_python_is_a_fork),
		cmocka_unit_test(a_program_can_hardly_tell_that_its_node_waited),
	};
	setenv("XDG_CONFIG_HOME", "/nonexistent", 1); /* only what is shipped */
	return RUN_TESTS_OF_JAILS(tests);
}
