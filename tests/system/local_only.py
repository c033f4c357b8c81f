# SPDX-License-Identifier: Apache-2.0
"""What of these tests is only about a run that takes place here.

With CEJAIL_TEST_REMOTE every `run` is a service's.  A row: subject, a part of the sentence, and why
such a run can't be asked that.
"""

ELSEWHERE = "the program is a process below the service, not below the test"
OWN_NAMES = "the record bears the prepared jail's name; GET /v1/runs has the run's"
ITS_OWN = "profiles are the service's own, and their names alone are sent"
OTHER_NET = "the tests' Internet is a network namespace, and the service is in another"
TERMINAL = "a service has no terminal to give"

ROWS = (
    ("basics", "--dry-run prints", "the plan is the service's"),
    ("basics", "--dry-run does not show", "the plan is the service's"),
    ("inputs", "copies a directory with all below it", "symbolic links can't be sent to a service, and are refused"),
    ("inputs", "--file keeps modes and times", "symbolic links can't be sent to a service, and are refused"),
    ("builds", "a tree of --file keeps the modes", "times of files are not sent to a service: cejail(1)"),
    ("overlays", "--dry-run lists", "the plan is the service's"),
    ("inputs", "--file refuses a link by name", "symbolic links can't be sent to a service, and are refused"),
    ("inputs", "--args-json becomes /box/args.json", "the value is sent, not its spelling"),
    ("output", "a full device as standard", "the run may have ended before that is seen here: its status stays, the exit status is 125"),
    ("isolation", "host uid 0 is never mapped", ELSEWHERE),
    ("isolation", "a writable bind or an --artifacts that leads", "the service has a runtime directory of its own"),
    ("isolation", "two jails of root have", ELSEWHERE),
    ("limits", "a weakness that --accept-weaker", ITS_OWN),
    ("hosts", "", "the service is not started below the sandboxes of these tests"),
    ("tool_calls", "a program on a terminal", TERMINAL),
    ("tool_calls", 'a request has "tools"', "--request-fd is for a run here"),
    ("tool_calls", "a request can't raise", "--request-fd is for a run here"),
    ("tool_calls", "the limits of calls are above zero", "a caller of a service can only lower them"),
    ("traces", "", "a service writes its own: service/tracing.py"),
    ("traces_official", "", "a service writes its own: service/tracing.py"),
    ("typescript", "Node.js runs TypeScript that keeps", "--request-fd is for a run here"),
    ("typescript", "a program of Deno calls its tools", "--calls-fd is for a run here: cejail-tools(7)"),
    ("images", "", "the service's images are its own, and its callers name no files of the host"),
    ("hostile_images", "", "an import has no service"),
    ("podman_images", "", "an import has no service"),
    ("setup_command", "", "a service has sessions, whose network changes: session/session_network.py"),
    ("network", "", OTHER_NET),
    ("network_closed", "", OTHER_NET),
    ("network_allow", "", OTHER_NET),
    ("network_names", "", OTHER_NET),
    ("network_deny", "", OTHER_NET),
    ("network_checked", "", OTHER_NET),
    ("network_ends", "", OTHER_NET),
    ("upstreams", "", "the service reads the file and connects: the last test of the subject"),
    ("first_use", "", OTHER_NET),
    ("first_use_ends", "", OTHER_NET),
    ("upstream_program", "", "it is about a program that cejail starts, started alone"),
    ("tools_module", "", "it is about the modules: a service gives a program the same ones"),
    ("lifecycle", "a program that passes its output descriptor", TERMINAL),
    ("lifecycle", "ps lists a run", OWN_NAMES),
    ("lifecycle", "kill ends a run by its id", OWN_NAMES),
    ("lifecycle", "gc removes what a killed", OWN_NAMES),
    ("lifecycle", "an id can be in use only once", "the words are the service's: service/api.py"),
    ("lifecycle", "the supervisor's memory", "the supervisor is the service's: service/load.py"),
    ("verbs", "ps --json is one JSON value", OWN_NAMES),
    ("lifecycle", "--tty gives", TERMINAL),
    ("lifecycle", "TIOCSTI", TERMINAL),
    ("bad_input", "larger than --disk", "the service's own caps come first: service/malformed.py"),
    ("bad_input", "a profile's name can't lead out", ITS_OWN),
    ("bad_input", "an unknown key is refused", ITS_OWN),
    ("bad_input", "a duplicate key is refused", ITS_OWN),
    ("bad_input", "malformed JSON and trailing", ITS_OWN),
    ("bad_input", "deep, huge and non-UTF-8", ITS_OWN),
    ("bad_input", "a value of the wrong kind", ITS_OWN),
    ("bad_input", "a profile that others may write", ITS_OWN),
    ("bad_input", "a missing interpreter is named", ITS_OWN),
    ("habits", "a bind or a socket that hands out", "HOME and SSH_AUTH_SOCK are the caller's, and not sent"),
    ("habits", "a file after -- that is on the host", "the message is the service's, which has no such file"),
    ("requests", "", "a service takes the same request itself: service/api.py"),
    *((subject, "", "its runs are of the MCP server, which has --remote: mcp/mcp_tools.py") for subject in ("mcp_protocol", "mcp_tools", "mcp_ends", "mcp_sdk", "mcp_traces")),
    ("mcp_sessions", "each door", "a door is the command line of this host"),
    ("programs", "a virtual environment", "a service uses none: the test itself tries --remote"),
    ("programs", "what stands above a file", "a service uses no environment"),
    ("programs", "--project shows", "the files are not the service's"),
    ("profiles", "in the user's own directory", ITS_OWN),
    ("profiles", "an option overrides the profile", ITS_OWN),
    ("profiles", "{args} is replaced by", ITS_OWN),
    ("profiles", "the seccomp file of a profile", ITS_OWN),
)


def reason(subject, sentence):
    """None: it can be asked of any run."""
    for wanted, part, why in ROWS:
        if wanted == subject and part in sentence:
            return why
    return None
