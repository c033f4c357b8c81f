# SPDX-License-Identifier: Apache-2.0
# A Python that waits in a sealed jail for its one program: python3 ... -c LINE [MODULE...]
# LINE reads this text from descriptor 3 and executes it: plan_launcher.c.
# On descriptor 3 it then says with a byte that it is ready, then reads to the end of file: "1" if the
# program has an input, "1" if it has tools to call, the file to run, its arguments, each with a NUL
# behind it.  The program then runs as if `python3 ... FILE ARG...` had just started, with two frames of ours below its own.
main_dict = dict(globals())  # what this version of Python has in __main__

import sys

started_modules = set(sys.modules)  # a plain start has them, too
import atexit
import gc
import io
import os
import warnings

loaders = sys.modules["_frozen_importlib_external"]
ModuleType = type(sys)

LINK = 3
CALLS = 4  # calls.h
SCRATCH = 4  # a zygote has it
NULL = "/dev/null"
FDS = "/proc/self/fd"
# In each home, as skeleton.c writes it.  A zygote compiles it once, and site would in each jail.
PTH = "cejail.pth"
PTH_LINE = (
    b"import os, sys; os.environ.get('PYTHONUNBUFFERED') == 'lines' and "
    b"'-u' not in getattr(sys, 'orig_argv', ()) and "
    b"[s.reconfigure(line_buffering=True, write_through=False) "
    b"for s in (sys.stdout, sys.stderr) if hasattr(s, 'reconfigure')]\n"
)
HAS_OWN_DIRECTORY = not (sys.flags.isolated or getattr(sys.flags, "safe_path", False))


def preload(names):
    if HAS_OWN_DIRECTORY:
        del sys.path[0]  # the working directory: the program's own directory takes its place
    for name in names:
        try:
            __import__(name)
        except ImportError:  # this host's Python is a smaller one
            pass


# --- a zygote --------------------------------------------------------------------------------


def preload_outside(names):
    """
    The zygote is not in a jail.  Here /box and /tmp are the host's, where modules must not write
    or find anything: the variables that name them name the empty directory that is descriptor 4.
    """
    place = f"/proc/self/fd/{SCRATCH}"
    variables = dict(os.environ)
    try:
        for name, value in {**variables, "HOME": "/box", "TMPDIR": "/tmp"}.items():
            if f"{value}/".startswith(("/box/", "/tmp/", "/var/tmp/", "/dev/shm/")):
                os.environ[name] = place
        preload(names)
    finally:
        os.environ.clear()
        os.environ.update(variables)
    list_files()
    os.close(SCRATCH)
    if tempfile := sys.modules.get("tempfile"):
        tempfile.tempdir = None


def list_files():
    """The service replaces the zygote when one of these files changes: zygote_keeper.h."""
    files = {getattr(module, "__file__", None) for module in tuple(sys.modules.values())}
    with open("/proc/self/maps") as maps:
        files.update(line.rstrip("\n").split(None, 5)[-1] for line in maps)
    names = [os.fsencode(file) for file in files if isinstance(file, str) and file.startswith("/")]
    listed = os.open("files", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=SCRATCH)
    with open(listed, "wb") as file:
        file.write(b"\n".join(names))


def await_threads():
    """A thread that a module has stopped may still be ending; fork() refuses more than one task."""
    import time

    until = time.monotonic() + 2
    while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < until:
        time.sleep(0.01)


def has_only_ours(packages):
    try:
        return os.listdir(packages) == [PTH] and read_all(os.open(f"{packages}/{PTH}", os.O_RDONLY)) == PTH_LINE
    except OSError:
        return False


def add_packages(site, packages, is_trial):
    """As site.addsitedir(); faster where a home has only our own file, as almost all have."""
    if has_only_ours(packages) or is_trial:
        sys.path.append(os.path.abspath(packages))
        exec(pth_code, {})
    else:
        site.addsitedir(packages)


def enter_home(is_trial):
    """PYTHONUSERBASE has kept the zygote from every home; the jail's has what pip has installed there."""
    os.environ.pop("PYTHONUSERBASE", None)
    site = sys.modules.get("site")
    if not site or not site.ENABLE_USER_SITE:
        return
    site.USER_BASE = site.USER_SITE = None
    packages = site.getusersitepackages()
    if is_trial:
        packages = FDS  # there are no modules
    if sysconfig := sys.modules.get("sysconfig"):
        sysconfig.get_config_vars()["userbase"] = site.USER_BASE
    if os.path.isdir(packages):
        ours = set(site.getsitepackages())
        at = next((i for i, path in enumerate(sys.path) if path in ours), len(sys.path))
        behind = sys.path[at:]
        del sys.path[at:]
        add_packages(site, packages, is_trial)
        sys.path += behind


def renew_randomness():
    """What the modules' own hooks of fork() leave as it was in the zygote: no two jails may share it."""
    fresh = {
        "numpy.random": lambda m: m.seed(),
        "ssl": lambda m: m.RAND_add(os.urandom(32), 32.0),
        "tempfile": lambda m: vars(m).update(_name_sequence=None),
        "uuid": lambda m: vars(m).update(_node=None, _last_timestamp=None),
        "multiprocessing.process": lambda m: setattr(m.current_process(), "authkey", os.urandom(32)),
        "random": lambda m: m.seed(),
    }
    for name, renew in fresh.items():
        if module := sys.modules.get(name):
            renew(module)


def pid_namespace():
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def enter_jail():
    """
    Returns False in a process of a jail, and never in the zygote; and once True, in the trial, which
    is outside every jail.  What the trial has used of the memory, every child gets at once.
    """
    await_threads()
    outside = pid_namespace()
    while os.fork():
        pass
    is_trial = outside is not None and pid_namespace() == outside
    renew_randomness()
    enter_home(is_trial)
    threading = sys.modules.get("threading")
    if hasattr(threading, "main_thread") and hasattr(threading.main_thread(), "_set_native_id"):
        threading.main_thread()._set_native_id()
    return is_trial


# --- its input -------------------------------------------------------------------------------


def open_stdin():
    """sys.stdin as Python makes it for what descriptor 0 is now."""
    old = sys.stdin
    buffer = open(0, "rb", closefd=False)
    buffer.raw.name = "<stdin>"
    text = io.TextIOWrapper(buffer, encoding=old.encoding, errors=old.errors)
    text.mode = "r"
    return text


def without_input():
    """What to have ready for a program that has no input; descriptor 0 is the pipe again."""
    null, pipe = os.open(NULL, os.O_RDONLY), os.dup(0)
    os.dup2(null, 0)
    stdin = open_stdin()
    os.dup2(pipe, 0)
    os.close(pipe)
    return null, stdin


def read_all(fd):
    parts = []
    try:
        while part := os.read(fd, 65536):
            parts.append(part)
    finally:
        os.close(fd)
    return b"".join(parts)


def load(path):
    """Its code object.  Warnings wait until there is one: see start_over()."""
    source = read_all(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    with warnings.catch_warnings(record=True) as told:
        code = compile(source, path, "exec", dont_inherit=True)
    for w in told:
        warnings.showwarning(w.message, w.category, w.filename, w.lineno)
    return code


def start_over():
    """What does not compile, Python itself says best."""
    os.execv(sys.executable, sys.orig_argv)


def take_words(link):
    has_input, has_tools, *argv = os.fsdecode(read_all(link)).split("\0")[:-1]
    if has_tools == "1":
        os.environ["CEJAIL_CALLS_FD"] = str(CALLS)
    else:
        os.close(CALLS)
    if has_input == "1":
        os.close(null_fd)
    else:
        os.dup2(null_fd, 0)
        os.close(null_fd)
        sys.stdin = sys.__stdin__ = null_stdin
    sys.orig_argv[sys.orig_argv.index("-c") :] = argv
    sys.argv[:] = argv
    return argv[0]


def forget_directories():
    """Directories that were looked at before the program's files were written."""
    for path, finder in list(sys.path_importer_cache.items()):
        if finder is None or not path.startswith(sys.base_prefix + "/"):
            del sys.path_importer_cache[path]


def hides_preloaded(directory):
    """Has the directory a module with the name of one that is loaded already?"""
    names = {name.partition(".")[0] for name in os.listdir(directory)}
    return not names.isdisjoint(preloaded_modules)


def forget_lines():
    """Python 3.13 keeps the lines of `-c LINE` and shows them for any code that is called "<string>"."""
    kept = getattr(sys.modules.get("linecache"), "_interactive_cache", None)
    if kept:
        kept.clear()


def take_directory(directory):
    """Modules beside the program come first.  Those that are loaded already, only a new start can replace."""
    forget_directories()
    packages = getattr(sys.modules.get("site"), "USER_SITE", None)
    if packages in sys.path and hides_preloaded(packages):
        start_over()
    if not HAS_OWN_DIRECTORY:
        return
    if hides_preloaded(directory):
        start_over()
    sys.path.insert(0, directory)


def make_main(path):
    main = ModuleType("__main__")
    main.__dict__.update(main_dict, __file__=path, __cached__=None)
    main.__loader__ = loaders.SourceFileLoader("__main__", path)
    sys.modules["__main__"] = main
    return main.__dict__


# --- how it ends: pythonrun.c and pylifecycle.c in our words ---------------------------------


def status_of(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 255 if -(2**63) <= code < 2**63 else 255
    if sys.stderr is not None:
        try:
            sys.stderr.write(str(code) + "\n")
        except Exception:
            pass
    return 1


def show(error):
    """The exit status; an exception that nobody caught is shown without our frame."""
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        return status_of(error.code)
    error.__traceback__ = error.__traceback__.tb_next
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    second = None
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except BaseException as raised:
        second = raised
    if isinstance(second, SystemExit):
        return status_of(second.code)
    if second:
        second.__traceback__ = second.__traceback__.tb_next
        sys.stderr.write("Error in sys.excepthook:\n")
        sys.__excepthook__(type(second), second, second.__traceback__)
        sys.stderr.write("\nOriginal exception was:\n")
        sys.__excepthook__(type(error), error, error.__traceback__)
    return 1


def ignore(error, where):
    if sys.stderr is not None:
        sys.stderr.write(f"Exception ignored in: {where!r}\n{type(error).__name__}: {error}\n")


def flush_streams():
    """Is all written?"""
    is_written = True
    for stream in (sys.stdout, sys.stderr):
        if stream is None or getattr(stream, "closed", False):
            continue
        try:
            stream.flush()
        except BaseException as error:
            is_written = False
            if stream is sys.stdout:
                ignore(error, stream)
    return is_written


def new_modules():
    """
    In a fork, to look at a module's name copies its page.  So look at those that are behind the last
    known one, if that is all: if their number says that the program has not removed others.
    """
    newest = []
    for name in reversed(sys.modules):
        if name == last_known:
            break
        newest.append(name)
    if len(newest) == len(sys.modules) - len(known_modules):
        return newest
    return set(sys.modules) - known_modules


def has_foreign_code():
    """Modules in machine code may have something to do at the very end."""
    for name in new_modules():
        module = sys.modules.get(name)
        loader = module.__dict__.get("__loader__") if type(module) is ModuleType else None
        if isinstance(loader, loaders.ExtensionFileLoader):
            return True
    return False


def forget(names):
    """The last reference to the program's own objects: their destructors run, files are written."""
    sys.modules.pop("__main__", None)
    for name in names:
        setattr(sys, name, None)
    gc.collect()
    for thing in gc.get_objects():
        if issubclass(type(thing), (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)):
            try:
                thing.flush()
            except Exception:  # closed, only readable, or its disk is full: as Python has it
                pass


def end():
    """
    What Python does at its end, but for taking itself apart, which would take longer than most
    programs.  Objects that others than the program hold are not destroyed: the language
    promises that for none.
    """
    threading = sys.modules.get("threading")
    if threading:
        try:
            threading._shutdown()
        except BaseException as error:
            ignore(error, threading)
    atexit._run_exitfuncs()


# --- both, once before the program comes ------------------------------------------------------


def rehearse():
    """
    A program that does nothing, read, run and ended by the functions of the real one.  What they
    load is there then.
    """
    main = sys.modules["__main__"]
    os.fsdecode(b"0").split("\0")
    forget_directories()
    scope = make_main(NULL)
    exec(load(NULL), scope)
    exec(compile(b"print('', end='', flush=True)\n", NULL, "exec", dont_inherit=True), scope)
    show(None)
    flush_streams()
    has_foreign_code()
    del scope
    forget([])
    sys.modules["__main__"] = main


def pipe_with(text):
    """The end to read it from."""
    near, far = os.pipe()
    os.write(far, text)
    os.close(far)
    return near


def begin_trial():
    """
    The trial gets its words from us, for a program that prints a line.  So it uses the pages that
    the real ones use, up to their last step, where it says that it is ready.
    """
    atexit._clear()  # what modules do at their end may concern more than this process
    os.dup2(os.open(NULL, os.O_WRONLY), 1)
    program = f"{FDS}/{pipe_with(b'print(1)')}"
    # no input, and "tools": it has no descriptor CALLS that could be closed
    return pipe_with(f"0\0001\0{program}\0".encode())


def end_trial():
    os.write(LINK, b".")
    os.read(LINK, 1)  # until it is killed


is_zygote = sys.argv[1:2] == ["--zygote"]
if is_zygote:
    pth_code = compile(PTH_LINE, "<string>", "exec", dont_inherit=True)
    preload_outside(sys.argv[2:])
else:
    preload(sys.argv[1:])
known_modules, last_known = set(), None
rehearse()
known_modules = set(sys.modules)
last_known = next(reversed(sys.modules))
preloaded_modules = known_modules - started_modules
gc.collect()
gc.freeze()  # never looked at again
is_trial = is_zygote and enter_jail()
null_fd, null_stdin = without_input()
if is_trial:
    link = begin_trial()
else:
    link = LINK
    os.write(link, b".")

path = take_words(link)
forget_lines()
take_directory(os.path.dirname(path))
try:
    code = load(path)
except BaseException:
    start_over()
scope = make_main(path)
failure = None
try:
    exec(code, scope)
except BaseException as error:
    failure = error  # told once it is no longer being handled
status = show(failure)
is_interrupt = type(failure) is KeyboardInterrupt
del failure

end()
is_written = flush_streams()
del code, scope
if has_foreign_code():
    gc.unfreeze()
else:
    forget([name for name in vars(sys) if name.startswith("last_")])
    is_written &= flush_streams()
    if is_trial:
        end_trial()
    if not is_interrupt:
        os._exit(status if is_written else 120)
if is_interrupt:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
sys.exit(status)
