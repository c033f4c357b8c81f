# SPDX-License-Identifier: Apache-2.0
"""The examples of the manual pages and of the README: examples.py CEJAIL

Each `cejail run` is planned (--dry-run) in a directory that has the files it names, and the options of each
`cejail mcp` are read; each JSON file is read by the command that would read it.  A page's quotation marks must not be nested: that is how mdoc(7) shows a
macro that was meant to be a word.
"""

import hashlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile

CEJAIL = os.path.abspath(sys.argv[1])
TYPED = "cejail-recipes.7"  # tests/system/service/recipes.py types all of its commands
PAGES = sorted(os.path.join("man", name) for name in os.listdir("man") if name[-1].isdigit() and name != TYPED)
OF_ENGINES = ("man/cejail-oci.8",)  # its examples configure podman, containerd and Kubernetes: tests/system/oci
failed = []


def report(is_good, sentence, why=""):
    print(f"{'pass' if is_good else 'FAIL'} examples: {sentence}")
    if not is_good:
        print("".join(f"     {line}\n" for line in why.strip().splitlines()[:10]), end="")
        failed.append(sentence)


def rendered(page):
    shown = subprocess.run(["mandoc", "-Tutf8", page], capture_output=True, text=True, check=True).stdout
    return re.sub(".\b", "", shown)


def blocks(page):
    """The literal displays of a page, of one line and of many, as they are shown."""
    with open(page) as file:
        text = re.sub(r"^\.Dl (.*)$", r".Bd -literal\n\1\n.Ed", file.read(), flags=re.M)
        for block in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", text, re.S | re.M):
            yield block.replace("\\e", "\\").replace("\\&", "").replace("\\(dq", '"')


def readme_blocks():
    with open("README.md") as file:
        for block in re.findall(r"(?:^    .*\n)+", file.read(), re.M):
            yield re.sub("^    ", "", block, flags=re.M)


def commands(block):
    """What follows a "$ ": up to the next prompt, as far as it is one command."""
    for text in re.split(r"^[$#] ", block, flags=re.M)[1:]:
        lines = text.splitlines()
        command = lines.pop(0)
        while lines and (command.endswith("\\") or has_open_quote(command)):
            command += "\n" + lines.pop(0)
        yield command


def has_open_quote(command):
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return True
    return False


def plan(command, folder):
    """Why `cejail run` would refuse this, or ""."""
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    words = words[words.index("cejail") :]
    if "|" in words:
        words = words[: words.index("|")]
    if "--remote" in words:
        return ""  # it needs a service
    if "--tools-from" in words:  # only servers that are started list their tools
        at = words.index("--tools-from")
        del words[at : at + 2]
    for word in words:
        if re.fullmatch(r"(\./)?[a-z-]+\.(py|js|sh|csv)", word):
            with open(os.path.join(folder, word), "w"):
                pass
    if any("--connect" in word for word in words):
        if "--network" not in words:
            return "it opens one port and, by the shipped profiles, the Internet: say --network none"
        words = [word.replace("unix:/run/tools/api.sock", f"unix:{folder}/api.sock") for word in words]
    if any(word == "--upstream" for word in words):
        with open(os.path.join(folder, "api.key"), "w"):
            pass
        words = [word.replace("@/etc/keys/model", "@api.key") for word in words]
    done = subprocess.run([CEJAIL, "run", "--dry-run", *words[2:]], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder}, stdin=subprocess.DEVNULL)  # fmt: skip
    return "" if done.returncode == 0 else done.stderr or f"exit status {done.returncode}"


def configure(command):
    """Why `cejail mcp` would refuse these options, or ""."""
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    words = words[words.index("cejail") :]
    if ">" in words:
        words = words[: words.index(">")]
    if "--print-config" not in words:
        words += ["--print-config", "claude"]
    done = subprocess.run([CEJAIL, *words[1:]], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return "" if done.returncode == 0 else done.stderr or f"exit status {done.returncode}"


def sandbox(command, folder):
    """Why `cejail bwrap` does not make this sandbox, for /bin/true and without a network, which would be this host's."""
    options = command.replace("\\\n", " ").partition(" -- ")[0].replace("cejail", CEJAIL, 1)
    options = re.sub(r"(--cejail-network) \S+", r"\1 none", options)
    done = subprocess.run(["bash", "-c", options + " -- /bin/true"], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.stderr.strip()


def wrap(command, folder):
    """Why `cejail mcp wrap` would refuse these options, or ""."""
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    words = [re.sub(r"^(~/\.nvm/versions/node/v[0-9.]+|/srv/data)$", folder, word) for word in words]
    done = subprocess.run([CEJAIL, "mcp", "wrap", "--dry-run", *words[3:]], capture_output=True, text=True,
                          env={**os.environ, "HOME": folder}, stdin=subprocess.DEVNULL)  # fmt: skip
    return "" if done.returncode == 0 else done.stderr or f"exit status {done.returncode}"


def read_servers(path):
    """Why `cejail mcp --tools-from` would refuse this file, or "": else it finds no server's command here."""
    done = subprocess.run([CEJAIL, "mcp", "--tools-from", path, "--check"], capture_output=True, text=True,
                          env={"PATH": "/nonexistent"}, stdin=subprocess.DEVNULL, timeout=60)  # fmt: skip
    return done.stderr if done.returncode == 0 or path in done.stderr else ""


def ask_nobody(command, folder):
    """Why `cejail session` would refuse these arguments, or "": else it fails to connect."""
    command = re.sub(r"^[a-z]+=\$\((.*)\)$", r"\1", command.strip()).replace("$id", "ID").replace("$exec", "EXEC")
    words = shlex.split(command, comments=True)
    words = words[: words.index("<")] if "<" in words else words
    for name in ("numbers.csv", "names.txt"):
        with open(os.path.join(folder, name), "w"):
            pass
    done = subprocess.run([CEJAIL, *words[1:3], "--remote=/no/such.sock", *words[3:]], cwd=folder, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)  # fmt: skip
    return "" if "connect to '/no/such.sock'" in done.stderr else done.stderr or f"exit status {done.returncode}"


# A member that only such an answer of the service has, and its schema.
ANSWERS = {"lease_until": "session", "detached": "exec", "entries": "file-list", "displays": "result"}


def check_answer(answer, name):
    """Why the schema refuses an answer of the service, or ""."""
    try:
        import jsonschema
    except ImportError:
        return ""
    with open(f"profiles/schema/{name}.json") as file:
        schema = json.load(file)
    if name == "result":
        schema = {**schema["properties"]["cell"], "$defs": schema["$defs"]}
    return "\n".join(problem.message for problem in jsonschema.Draft202012Validator(schema).iter_errors(answer))


def check_json(text, folder):
    """Why the command that reads such a file refuses it, or ""."""
    path = os.path.join(folder, "numbers.json")
    text = text.replace("/etc/cejail/tests.token", f"{folder}/token").replace("www-data", "root")
    text = text.replace("/srv/numbers", folder)
    with open(path, "w") as file:
        file.write(text)
    known = json.loads(re.sub(r',\s*"[a-z]+": \{\.\.\.\}', "", text))
    if "mcpServers" in known:
        return read_servers(path)
    for member in ANSWERS.keys() & known:
        return check_answer(known, ANSWERS[member])
    if "answers" in known:
        done = subprocess.run([sys.executable, "-m", "cejail.fake", path, "--check"], capture_output=True, text=True, cwd="tools/clients/python")
        return done.stdout + done.stderr
    elif "callers" in known:
        words = ["serve", "--config", path, "--check"]
    else:
        words = ["profile", "check", path]
    done = subprocess.run([CEJAIL, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def is_message(block):
    """A protocol's lines, each of them an object with an id: cejail-tools(7)."""
    return all(line.startswith('{"id":') for line in block.splitlines())


def read_messages(block):
    """Why the lines are no JSON, or ""."""
    try:
        for line in block.splitlines():
            json.loads(line)
    except ValueError as problem:
        return str(problem)
    return ""


def offer(tools, folder):
    """Why `cejail run --tools` refuses this file, or ""."""
    import socket

    if not os.path.exists("profiles/tools/tools.py"):
        return ""  # each run with tools copies it in
    path = os.path.join(folder, "offered.json")
    with open(path, "w") as file:
        file.write(tools)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        words = ["--tools", path, "--calls-fd", str(theirs.fileno()), "--", "/bin/true"]
        done = subprocess.run([CEJAIL, "run", "--dry-run", *words], capture_output=True, text=True, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    return "" if done.returncode == 0 else done.stderr or f"exit status {done.returncode}"


def archive(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            made.addfile(info, io.BytesIO(data))
    return out.getvalue()


def import_images(folder):
    """An image with a command, under each name that the examples use."""
    layer = archive({"bin/app": b"#!/bin/sh\n"})
    config = {"rootfs": {"diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}, "config": {"Cmd": ["/bin/app"]}}
    text = json.dumps(config).encode()
    name = hashlib.sha256(text).hexdigest() + ".json"
    manifest = json.dumps([{"Config": name, "Layers": ["layer.tar"]}]).encode()
    with open(f"{folder}/image.tar", "wb") as file:
        file.write(archive({"manifest.json": manifest, name: text, "layer.tar": layer}))
    for image in ("python", "debian", "app"):
        subprocess.run([CEJAIL, "image", "import", image, f"{folder}/image.tar"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "XDG_DATA_HOME": folder})  # fmt: skip


def prepare(folder):
    """What the examples expect to be there."""
    import socket

    os.chmod(folder, 0o755)
    os.makedirs(f"{folder}/cejail/profiles")
    import_images(folder)
    with open(f"{folder}/cejail/profiles/numbers.json", "w") as file:
        file.write('{"extends": "python"}')
    with open(os.open(f"{folder}/token", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write("0123456789abcdef" * 4)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{folder}/api.sock")
    listener.listen()
    os.chmod(f"{folder}/api.sock", 0o666)
    return listener


for page in PAGES:
    text = rendered(page)
    nested = re.findall(r"“[^”]{0,300}“[^”]*”|‘[^’]{0,300}‘[^’]*’", text)
    report(not nested, f"no quotation marks stand in each other in {page}", "\n".join(nested))
    lists = re.findall(r"‘[^’ ]+,(?: [^’ ,]+,?)+’", " ".join(text.split()))
    report(not lists, f"no list of words stands in one pair of quotation marks in {page}", "\n".join(lists))

with tempfile.TemporaryDirectory(prefix="cejail-examples.") as folder:
    listener = prepare(folder)
    for page in [*PAGES, "README.md"]:
        tried = 0
        for block in readme_blocks() if page == "README.md" else blocks(page):
            if is_message(block):
                tried += 1
                why = read_messages(block)
                report(not why, f"{page}: the lines of the example {tried} are JSON", why)
            elif block.startswith("[{"):
                tried += 1
                why = offer(block, folder)
                report(not why, f"{page}: the tools of the example {tried} are accepted", why)
            elif block.lstrip().startswith("{") and '"cejail.result/' not in block:
                tried += 1
                why = check_json(block, folder)
                report(not why, f"{page}: the JSON example {tried} is accepted", why)
            for command in commands(block):
                if re.search(r"\bcejail run ", command):
                    tried += 1
                    why = plan(command, folder)
                    report(not why, f"{page}: {' '.join(command.split())}", why)
                elif command.startswith("cejail bwrap "):
                    tried += 1
                    why = sandbox(command, folder)
                    report(not why, f"{page}: {' '.join(command.split())}", why)
                elif command.startswith("cejail mcp wrap "):
                    tried += 1
                    why = wrap(command, folder)
                    report(not why, f"{page}: {' '.join(command.split())}", why)
                elif re.search(r"\bcejail session ", command):
                    tried += 1
                    why = ask_nobody(command, folder)
                    report(not why, f"{page}: {' '.join(command.split())}", why)
                elif re.search(r"\bcejail mcp ", command):
                    tried += 1
                    why = configure(command)
                    report(not why, f"{page}: {' '.join(command.split())}", why)
        if page not in OF_ENGINES:
            report(tried > 0, f"{page} has examples")

with open("README.md") as file, tempfile.TemporaryDirectory(prefix="cejail-examples.") as folder:
    programs = re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)
    report(len(programs) > 0, "README.md has a program")
    for program in programs:
        path = f"{os.path.dirname(CEJAIL)}:/usr/bin:/bin"
        library = os.path.abspath("tools/clients/python")
        done = subprocess.run(["/usr/bin/python3", "-c", program], cwd=folder, capture_output=True, text=True,
                              env={**os.environ, "PATH": path, "PYTHONPATH": library, "PYTHONDONTWRITEBYTECODE": "1"}, stdin=subprocess.DEVNULL)  # fmt: skip
        report(done.stdout == "exited 144\n\n6.5\n\n", "README.md: the Python program runs", done.stdout + done.stderr)

sys.exit(1 if failed else 0)
