#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The manual page, --help, the completions and the schema name what the program's tables have, and
# nothing more: tests/documents/test_manual.sh [MANUAL]
# (of a profile: tests/profiles/test_settings.c)
#
#	CEJAIL   the program whose --help is checked (default: build/release/bin/cejail)
set -euo pipefail
export LC_ALL=C # sort and --help in one order, one language
cd "$(dirname "$0")/../.."

CEJAIL=${CEJAIL:-build/release/bin/cejail}
MANUAL=${1:-man/cejail.1}
failed=0

# Two lists, a word a line, in order.  An empty one means that the test itself is broken.
same() {
	local sentence=$1 wanted=$2 seen=$3
	if [ -z "$wanted" ]; then
		echo "FAIL manual: $sentence: nothing was found to compare with"
		failed=1
	elif [ "$wanted" = "$seen" ]; then
		echo "pass manual: $sentence"
	else
		echo "FAIL manual: $sentence (< the program's, > the document's)"
		{ diff <(echo "$wanted") <(echo "$seen") || true; } | sed -n 's/^\([<>]\)/     \1/p'
		failed=1
	fi
}

skip() {
	echo "skip manual: $1 ($2)"
	if [ "${CEJAIL_TEST_STRICT:-}" = 1 ]; then failed=1; fi
}

# --- the program's tables -----------------------------------------------------------

# "letter --option value" of each row that is an option; "-" where there is no letter or value.
table_options() {
	awk -F'"' '
		function flush() { if (name != "") print letter, "--" name, value }
		/^const struct setting settings\[\]/ { inside = 1 }
		inside && /^};/ { flush(); exit }
		inside && /^\t\{ / {
			flush()
			name = $0 ~ /^\t\{ NULL/ ? "" : $2
			letter = "-"; value = "-"
			if (match($0, /\047[a-zA-Z]\047/)) letter = "-" substr($0, RSTART + 1, 1)
			if ($0 ~ /SIZE\(/) value = "SIZE"
			if ($0 ~ /DURATION\(/) value = "DUR"
			if ($0 ~ /COUNT\(/) value = "N"
			if (match($0, /SETTING_(VALUE|LIST), "[^"]*"/)) {
				value = substr($0, RSTART, RLENGTH)
				gsub(/^[^"]*"|"$/, "", value)
			}
		}
		inside && match($0, /\.value = "[^"]*"/) {
			value = substr($0, RSTART + 10, RLENGTH - 11)
		}' profiles/settings.c
}

# The words of one table of outcome.c, sorted.
table_words() {
	sed -n "/$1\[\] = {/,/^};/p" runtime/jail/outcome.c | grep -o '= "[^"]*"' | tr -d '= "' | sort
}

verbs() {
	sed -n '/} verbs\[\] = {/,/^};/s/^\t{ "\([a-z]*\)".*/\1/p' runtime/front/cli/main.c | sort
}

# Exit codes that are cejail's own, and 128+N.
exit_codes() {
	sed -n 's/^#define EXIT_[A-Z_]* *\([0-9]*\).*/\1/p' runtime/jail/outcome.c | sort
}

environment() {
	grep -rhoE 'getenv\("[A-Z_]+"\)' "$@" --include='*.c' | cut -d'"' -f2 | sort -u
}

# --- what the manual names ----------------------------------------------------------

section() {
	sed -n "/^\.S[hs] $1\$/,/^\.S[hs] /p" "$MANUAL"
}

chapter() {
	sed -n "/^\.Sh $1\$/,/^\.Sh /p" "$MANUAL"
}

# The same shape as table_options: ".It Fl p , Fl -profile Ar NAME|FILE".
manual_options() {
	chapter OPTIONS | sed -n 's/^\.It Fl //p' | sed 's/Ns Op = Ns Ar/Ar/' | awk '{
		letter = "-"; i = 1
		if ($1 !~ /^-/) { letter = "-" $1; i = 4 }
		value = $(i + 1) == "Ar" ? $(i + 2) : "-"
		print letter, "-" $i, value }'
}

manual_words() {
	section "$1" | sed -n 's/^\.It Cm \(.*\)/\1/p' | tr -d ' ' | tr , '\n' | sort
}

manual_verbs() {
	chapter "${1:-VERBS}" | sed -n 's/^\.It Cm \([a-z]*\).*/\1/p' | sort -u
}

# --- what --help and the completions name -------------------------------------------

help_options() {
	"$CEJAIL" run --help | grep -E '^  (-[a-zA-Z],|   ) --' | sed 's/^  //; s/^   /-/; s/   *[^ ].*$//' |
		awk '{
			sub(/,$/, "", $1)
			if (sub(/\[=/, " ", $2)) sub(/\]$/, "", $2)
			$0 = $0
			print $1, $2, $3 == "" ? "-" : $3 }'
}

# Options that are not settings: of other verbs, and what every program has.
completion_options() {
	grep -o -- '--[a-z][a-z-]*' "$1" | grep -vxE -- '--(help|version|names|output|print-config)' | sort -u
}

# The list in bash's is words of one string, in zsh's "verb:what it does" a line.
completion_verbs() {
	sed -n -e 's/.*_cejail_words "\(run [a-z ]*\)".*/\1/p' \
		-e "/verbs=(/,/)/s/^\t*'\([a-z]*\):.*/\1/p" "$1" | tr ' ' '\n' | sort
}

# --- the comparisons ----------------------------------------------------------------

same "the manual names every option with its letter and value, in the table's order" \
	"$(table_options)" "$(manual_options)"
same "the manual names every status" "$(table_words status_names)" "$(manual_words Status)"
same "the manual names every limit" \
	"$(table_words limit_names)" "$(manual_words "Limits in the result")"
same "the manual names every way to enforce a limit" \
	"$(table_words limit_enforcer_names)" "$(manual_words "Enforcement of limits")"
same "the manual names every layer" "$(table_words layer_names)" "$(manual_words Layers)"
same "the manual names every state of a layer" \
	"$(table_words layer_state_names)" "$(manual_words "State of a layer")"
same "the manual names every verb" "$(verbs)" "$(manual_verbs)"

same "the manual names every exit code" "$(exit_codes)" \
	"$(chapter "EXIT STATUS" | sed -n 's/^\.It \([0-9][0-9 ,]*\).*/\1/p' | tr -d ' ' | tr , '\n' | sort)"
same "the manual names every variable that is read" "$(environment --exclude-dir=service --exclude-dir=container runtime netns rootfs profiles)" \
	"$(chapter ENVIRONMENT | sed -n 's/^\.It Ev //p' | tr -d ' ' | tr , '\n' | sort)"
if [ -x "$CEJAIL" ]; then
	same "--help names every option with its letter and value, in the table's order" \
		"$(table_options)" "$(help_options)"
else
	skip "--help names every option" "'$CEJAIL' is not built"
fi

# What bash offers at the end of these words, as readline breaks them: at '=', too.
offered() {
	bash -c '. tools/completions/bash/cejail
		compopt() { :; }
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_cejail
		printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}

same "bash completes a value behind '='" "$(printf 'pasta\n')" "$(offered cejail run --uplink = pa)"
same "bash completes an empty value behind '='" "$(printf 'public\nnone\n')" "$(offered cejail run --network =)"
same "bash completes the MCP hosts" "$(sed -n 's/^\t{ "\([a-z-]*\)", ".*/\1/p' runtime/front/mcp/mcp_options.c)" \
	"$(offered cejail mcp --print-config '')"

# Those of fish, and of cejail-oci in bash, ask the programs themselves.
PATH=$(dirname "$CEJAIL"):$PATH
offered_by_fish() { fish -c 'source tools/completions/cejail.fish; complete -C "$argv"' "$1" | cut -f1; }
if command -v fish >/dev/null; then
	same "fish completes the verbs" "$(verbs)" "$(offered_by_fish 'cejail ' | sort)"
	same "fish completes the options of a verb" "$(table_options | awk '{ print $2 }' | sort)" \
		"$(offered_by_fish 'cejail run --' | grep -vx -- --help | sort)"
	same "fish completes the options of a session's verb" --detach "$(offered_by_fish 'cejail session exec --det')"
	same "fish completes the options of cejail-oci" --bundle "$(offered_by_fish 'cejail-oci create --bu')"
else
	skip "completions of fish" "fish is not installed"
fi
offered_of_oci() {
	bash -c '. tools/completions/bash/cejail-oci
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_cejail_oci
		printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}
same "bash completes the commands of cejail-oci" "$(printf 'start\nstate\n')" "$(offered_of_oci cejail-oci --root /x sta)"
same "bash completes the options of cejail-oci" --bundle "$(offered_of_oci cejail-oci create --bu)"

for file in tools/completions/_cejail tools/completions/bash/cejail; do
	same "$file names every option" \
		"$(table_options | awk '{ print $2 }' | sort)" "$(completion_options "$file")"
	same "$file names every verb" "$(verbs)" "$(completion_verbs "$file")"
done

if [ -f profiles/schema/result.json ]; then
	same "the manual names every member of the result" \
		"$(python3 -c 'import json
print("\n".join(sorted(json.load(open("profiles/schema/result.json"))["properties"])))')" \
		"$(section RESULT | sed -n 's/^\.It Va //p' | tr -d ' ' | tr , '\n' | sort)"
else
	skip "the manual names every member of the result" "there is no schema"
fi

# --- the service ----------------------------------------------------------------------

SERVICE=man/cejail-serve.8
schema() { # FILE, an expression of `schema`: names, a line each
	python3 -c "import json
schema = json.load(open('profiles/schema/$1'))
print('\n'.join($2))"
}

# "--option VALUE" and "key VALUE" of `cejail serve --help`, in its order; objects' keys follow.
serve_help() {
	local dir
	dir=$(dirname "$CEJAIL")/../libexec/cejail
	"$dir/serve" --help | awk -v want="$1" '
		/^ *(-h, )?--/ { sub(/-h, /, ""); if (want == "options") print $1, $2 ~ /^[A-Z:]+$/ ? $2 : "-"; next }
		/^[A-Z]/ { keys = /^Keys|^In each/; next }
		keys && want == "keys" && /^  [a-z_]/ { print $1 }'
}
serve_manual() {
	MANUAL=$SERVICE chapter "$1" | sed -n 's/^\.It \(Fl\|Va\) //p' | sed 's/^-/--/'
}

if [ -x "$(dirname "$CEJAIL")/../libexec/cejail/serve" ]; then
	same "$SERVICE names every option with its value" "$(serve_help options | sort)" \
		"$(serve_manual OPTIONS | awk '{ print $1, $2 == "Ar" ? $3 : "-" }' | sort)"
	same "$SERVICE names every key of the configuration" "$(serve_help keys | sort)" \
		"$(serve_manual CONFIGURATION | awk '{ print $1 }' | sort)"
else
	skip "$SERVICE names every option and key" "the service is not built"
fi
same "$SERVICE names every error with its status" \
	"$(sed -n 's/.*= { "\([a-z_]*\)", \([0-9]*\),.*/\1 \2/p' runtime/service/log/api_error.c | sort)" \
	"$(MANUAL=$SERVICE chapter "THE API" | awk '/^\.It Cm [a-z_]*$/ { code = $3; next } code { sub(/[:;].*/, ""); print code, $1; code = "" }' | sort)"
same "the error's schema has every code" \
	"$(sed -n 's/.*= { "\([a-z_]*\)", [0-9]*,.*/\1/p' runtime/service/log/api_error.c | sort)" \
	"$(schema error.json "schema['properties']['error']['properties']['code']['enum']" | sort)"
same "$SERVICE names every route, as the OpenAPI file does" \
	"$(schema openapi.json "sorted(f'{m.upper()} {p}' for p, i in schema['paths'].items() for m in i)" | sed 's/{\([a-z]*\)}/\U\1/g' | sort)" \
	"$(MANUAL=$SERVICE chapter "THE API" | sed -n 's/^\.It Cm \([A-Z]* \/.*\)/\1/p' | sort)"
same "$SERVICE names every variable that is read" "$(environment runtime/service)" \
	"$(MANUAL=$SERVICE chapter ENVIRONMENT | sed -n 's/^\.It Ev //p' | tr -d ' ' | tr , '\n' | sort)"

# --- the MCP server -------------------------------------------------------------------

MCP=man/cejail-mcp.1
mcp=$(dirname "$CEJAIL")/../libexec/cejail/mcp
# The first list of `cejail mcp --help`: the options that `run` does not have.
mcp_help() {
	"$mcp" mcp --help | sed -n '/^Options of/q; s/^ *\(--[a-z-]*\).*/\1/p' | sort
}
# The arguments of tools whose kinds match $1.
mcp_arguments() {
	sed -n '/} known\[\] = {/,/^};/p' runtime/run/mcp/mcp_request.c |
		grep -E "$1" | grep -o '{ "[a-z_]*"' | cut -d'"' -f2 | sort
}
if [ -x "$mcp" ]; then
	same "$MCP names every option of its own" "$(mcp_help)" \
		"$(MANUAL=$MCP chapter OPTIONS | sed -n 's/^\.It Fl -\([a-z-]*\).*/--\1/p' | grep -vxE -- '--(remote|trace-file)' | sort)"
else
	skip "$MCP names every option of its own" "the MCP server is not built"
fi
same "$MCP names every host of --print-config" \
	"$(sed -n '/} hosts\[\] = {/,/^};/s/^\t{ "\([a-z-]*\)".*/\1/p' runtime/front/mcp/mcp_options.c | sort)" \
	"$(MANUAL=$MCP chapter OPTIONS | sed -n 's/^\.Cm \([a-z-]*\).*/\1/p' | sort)"
same "$MCP names every argument of a session's tools" "$(mcp_arguments 'EXEC|CREATE' | grep -vxE "$(mcp_arguments RUN | paste -sd'|')")" \
	"$(MANUAL=$MCP chapter SESSIONS | sed -n 's/^\.Va \([a-z_]*\).*/\1/p' | grep -xE 'profile|context|lease_seconds|command' | sort -u)"
same "$MCP names every tool of sessions" \
	"$(sed -n 's/^\t"\(session_[a-z_]*\)": {$/\1/p' runtime/run/mcp/tools.json | sort)" \
	"$(MANUAL=$MCP chapter SESSIONS | sed -n 's/^\.It Cm //p' | sort)"
same "$MCP names every argument of a tool" "$(mcp_arguments RUN)" \
	"$(MANUAL=$MCP chapter TOOLS | sed '/^The answer has/,$d' | sed -n 's/^\.It Va //p' | sort)"
same "$MCP names every member of an answer" \
	"$(sed -n '/^static void put_facts(/,/^}/p; /^static void put_end(/,/^}/p; /^static void put_session(/,/^}/p' runtime/run/mcp/mcp_answer.c | sed '/json_member_object(/,/json_close_object(/{/json_member_object(/!d}' |
		grep -oE '(member_[a-z0-9]+|put_key|put_stream)\(w, (a, )?"[a-z_]*"' | cut -d'"' -f2 | cat - <(printf '%s\n' files denied warnings) | sort)" \
	"$(MANUAL=$MCP chapter TOOLS | sed -n '/^The answer has/,/^\.El/s/^\.It Va //p' | tr -d ' ' | tr , '\n' | sort)"

# --- sessions -------------------------------------------------------------------------

SESSION=man/cejail-session.1
session_verbs() {
	"$CEJAIL" session --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p'
}
# "VERB -x --option" of the first list of each --help.
session_help() {
	local verb
	for verb in $(session_verbs); do
		"$CEJAIL" session "$verb" --help | awk -v verb="$verb" '
			/^Options of/ { over = 1 }
			!over && /^  (-[a-z],|   ) --/ {
				letter = $1 ~ /^-[a-z],$/ ? substr($1, 1, 2) : "-"
				name = letter == "-" ? $1 : $2
				if (name != "--help") print verb, letter, name }'
	done
}
session_manual() {
	MANUAL=$SESSION chapter VERBS | awk '
		/^\.It Cm / { verb = $3 }
		/^Each verb has/ { over = 1 }
		!over && /^\.It Fl / {
			letter = $3 ~ /^-/ ? "-" : "-" $3
			print verb, letter, "-" (letter == "-" ? $3 : $6) }'
}
if [ -x "$CEJAIL" ]; then
	same "$SESSION names every verb" "$(session_verbs | sort)" "$(MANUAL=$SESSION manual_verbs)"
	same "$SESSION names every option of its verbs with its letter" \
		"$(session_help | sort)" "$(session_manual | grep -v -- '--profile$' | sort)"
else
	skip "$SESSION names every verb and option" "'$CEJAIL' is not built"
fi

same "the fake service of the Python client has the errors of the service" \
	"$(sed -n 's/.*= { "\([a-z_]*\)", \([0-9]*\),.*/\1 \2/p' runtime/service/log/api_error.c | sort)" \
	"$(sed -n '/^STATUSES/,/^}/p' tools/clients/python/cejail/fake.py | grep -oE '"[a-z_]+": [0-9]+' | tr -d '":' | sort)"
same "the fake service of the Python client has the keys of a request" \
	"$(python3 -c 'import json; print("\n".join(sorted(json.load(open("profiles/schema/request.json"))["properties"])))')" \
	"$(PYTHONPATH=tools/clients/python python3 -c 'import cejail.fake; print("\n".join(sorted(cejail.fake.REQUEST_KEYS)))')"

# --- tools --------------------------------------------------------------------------------

TOOLS=man/cejail-tools.7
# constant NAME FILE: the value of a #define
constant() {
	local value
	value=$(sed -n "s/^#define $1  *\([^/]*[^/ ]\).*/\1/p" "$2" | tr -d 'u"')
	echo $((value))
}
tools_say() { # WORDS: the page has them, however its lines are broken
	sed 's/^\.[A-Z][a-z] //' "$TOOLS" | paste -sd' ' | grep -oF -- "$1" | head -n 1
}
CALLS=runtime/jail/supervise
same "$TOOLS has the options, keys and defaults of the limits of calls" \
	"$(paste -d' ' <(sed -n 's/^\t{ "\(calls-[a-z]*\)", "\(calls\.[a-z]*\)".*/--\1 \2/p' profiles/settings.c) \
		<(sed -nE 's/^\t+\.run_limits\.calls(_outstanding|_per_second)? = ([0-9]+),/\2/p; s/^\t+\.run_limits\.call_ms = ([0-9]+) \* 1000,/\1s/p' profiles/config.c))" \
	"$(MANUAL=$TOOLS chapter LIMITS | sed -n 's/^\.It Fl -/--/p' | awk '{ print $1, $4, $6 }')"
for words in "at most $(constant CALL_LINE_MAX $CALLS/calls.h) bytes (1 MiB)" \
	"An answer has at most $(($(constant CALL_ANSWER_MAX $CALLS/calls.h) >> 20)) MiB." \
	"leaves $(($(constant CALL_ANSWER_MAX $CALLS/calls.h) >> 20)) MiB of answers unread" \
	"descriptor $(constant CALLS_FD runtime/jail/protocol.h)," \
	"a string of at most $(constant CALL_ID_MAX $CALLS/call_line.h) bytes" \
	"from 0 to $(constant ID_NUMBER_MAX $CALLS/call_line.c) " \
	"$(constant JSON_NODES_MAX runtime/base/json/json.h) values" \
	"$(constant JSON_DEPTH_MAX runtime/base/json/json.h) levels" \
	"described in at most $(($(constant JSON_BYTES_MAX runtime/base/json/json.h) >> 20)) MiB" \
	"A name has 1 to $(constant TOOL_NAME_MAX profiles/plan/plan.h) characters" \
	"A run has at most $(constant TOOLS_MAX profiles/plan/plan_tools.c) tools"; do
	same "$TOOLS says '$words'" "$words" "$(tools_say "$words")"
done
same "$TOOLS names every end of a call" \
	"$(sed -n '/call_end_names\[CALL_END_COUNT\] = {/,/^};/p' $CALLS/calls.c | grep -o '"[a-z]*"' | grep -v refused | tr -d '"')" \
	"$(MANUAL=$TOOLS chapter "RESULT AND EVENTS" | sed -n '/^\.Va outcome/,/^\.It/s/^\.Ql \([a-z]*\).*/\1/p')"
same "$TOOLS names every count of the result" \
	"$(schema result.json "n for n in schema['properties']['calls']['items']['properties'] if n != 'name'" | sort)" \
	"$(MANUAL=$TOOLS chapter "RESULT AND EVENTS" | sed -n 's/^\.It Va //p' | sort)"
same "$TOOLS names the events of calls" \
	"$(sed -n '/^bool events_add_call/,/^}/p' runtime/run/report/events.c | grep -o 'EVENT_[A-Z]*' | sed 's/EVENT_//' | tr A-Z a-z | sort -u)" \
	"$(MANUAL=$TOOLS chapter "RESULT AND EVENTS" | sed -n 's/^\.It Cm //p' | sort)"

# --- bubblewrap's command line ------------------------------------------------------------

BWRAP=man/cejail-bwrap.1
bwrap=$(dirname "$CEJAIL")/../libexec/cejail/bwrap
# "--option ARGUMENTS", and "refused" where it is; in the order of --help.
if [ -x "$bwrap" ]; then
	same "$BWRAP names every option with its arguments, and says which are refused" \
		"$("$bwrap" --help | sed -n 's/^    \(--[a-z0-9-]*\( [A-Z][A-Z]*\)*\)  *\(refused\)\{0,1\}.*/\1 \3/p')" \
		"$(MANUAL=$BWRAP chapter OPTIONS | awk '
			/^\.It Fl / { if (name != "") print name " "; name = "-" $3 ($4 == "Ar" ? substr($0, index($0, " Ar ") + 3) : ""); next }
			/^Refused: / { print name " refused"; name = "" }
			END { if (name != "") print name " " }')"
else
	skip "$BWRAP names every option" "libexec/cejail/bwrap is not built"
fi

# --- the OCI runtime --------------------------------------------------------------------

OCI=man/cejail-oci.8
OCI_PROGRAM=$(dirname "$CEJAIL")/cejail-oci

# "VERB -x --option VALUE" of each --help; "-" where there is no verb, letter or value.
oci_help() {
	local verb
	for verb in "" $(oci_verbs); do
		# shellcheck disable=SC2086 # no word for the program's own options
		"$OCI_PROGRAM" $verb --help | awk -v verb="${verb:--}" '
			/^  (-[a-zA-Z], )?--/ {
				letter = $1 ~ /^-[a-zA-Z],$/ ? substr($1, 1, 2) : "-"
				name = letter == "-" ? 1 : 2
				if (verb != "-" && $name == "--help") next
				print verb, letter, $name, $(name + 1) ~ /^[A-Z][]A-Z:=[]*$/ ? $(name + 1) : "-" }'
	done
}
oci_verbs() {
	"$OCI_PROGRAM" --help | awk '/^Commands:/ { inside = 1; next } /^$/ { inside = 0 } inside && /^  [a-z]/ { print $1 }'
}
# run has the options of create, too; the page says so.
oci_manual() {
	MANUAL=$OCI chapter OPTIONS | oci_rows -
	MANUAL=$OCI chapter COMMANDS | awk '/^\.It Cm / { verb = $3 } { print verb, $0 }' | while read -r verb line; do
		oci_rows "$verb" <<< "$line"
	done
	MANUAL=$OCI chapter COMMANDS | sed -n '/^\.It Cm create/,/^\.It Cm start/p' | oci_rows run
}
oci_rows() {
	sed -n 's/^\.It Fl //p' | sed 's/ Ns Op : Ns Ar GID/[:GID]/; s/ Ns = Ns Ar VALUE/=VALUE/' | awk -v verb="$1" '{
		letter = "-"; i = 1
		if ($1 !~ /^-/) { letter = "-" $1; i = 4 }
		print verb, letter, "-" $i, $(i + 1) == "Ar" ? $(i + 2) : "-" }'
}

if [ -x "$OCI_PROGRAM" ]; then
	same "$OCI names every command" "$(oci_verbs | sort)" "$(MANUAL=$OCI manual_verbs COMMANDS)"
	same "$OCI names every option of every command with its letter and value" "$(oci_help | sort)" "$(oci_manual | sort)"
else
	skip "$OCI names every command and option" "cejail-oci is not built"
fi
same "$OCI names every variable that is read" "$(environment runtime/container)" \
	"$(MANUAL=$OCI chapter ENVIRONMENT | sed -n 's/^\.It Ev //p' | tr -d ' ' | tr , '\n' | sort)"

if command -v mandoc >/dev/null; then
	for page in "$MANUAL" "$SERVICE" "$MCP" "$SESSION" "$TOOLS" "$BWRAP"; do
		complaints=$(mandoc -Tlint -Wwarning "$page" 2>/dev/null || true)
		same "mandoc has no complaint about $page" none "${complaints:-none}"
	done
else
	skip "mandoc has no complaint about the manuals" "mandoc is not installed"
fi
exit $failed
