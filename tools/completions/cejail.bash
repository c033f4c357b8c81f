# SPDX-License-Identifier: Apache-2.0
# bash completion for cejail(1).  Checked against the table of settings by tests/documents/test_manual.sh.

_cejail_profiles() {
	cejail profile list --names 2>/dev/null
}

_cejail_ids() {
	cejail ps 2>/dev/null | sed -n '2,$s/ .*//p'
}

_cejail_images() {
	cejail image list 2>/dev/null | sed -n '2,$s/ .*//p'
}

_cejail_serve_options() {
	cejail serve --help 2>/dev/null | sed -n 's/^ *\(--[a-z-]*\).*/\1/p'
}

_cejail_mcp_options() {
	cejail mcp "$@" --help 2>/dev/null | sed -n 's/^ .*\(--[a-z][a-z-]*\).*/\1/p'
}

_cejail_session_verbs() {
	cejail session --help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p'
}

_cejail_session_options() {
	cejail session "$1" --help 2>/dev/null | sed -n 's/^ .*\(--[a-z][a-z-]*\).*/\1/p'
}

_cejail_sessions() {
	cejail session list 2>/dev/null | awk '$4 == "live" { print $1 }'
}

_cejail_words() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_cejail_files() {
	compopt -o filenames
	mapfile -t COMPREPLY < <(compgen "$@")
}

# The value of option $1, so far $2; false: it takes none.
_cejail_value() {
	case $1 in
	-p | --profile) _cejail_words "$(_cejail_profiles)" "$2" ;;
	-w | --workdir | -c | --code | -t | --timeout | --cpu-time | -m | --memory | --cpus | --pids-limit | \
		--nofile | --disk | --max-output | --tmpfs | --connect | --allow | --file-text | --request-fd | --result-fd | --events-fd | --calls-fd | --calls-max | \
		--calls-outstanding | --calls-rate | --calls-timeout | --id | --hostname) ;;
	-e | --env) _cejail_words "$(compgen -e)" "$2" ;;
	-o | --artifacts | --cgroup-parent | --venv | --project) _cejail_files -d -- "$2" ;;
	-f | --file | --ro-bind | --bind | --tools | --tools-from | --trace-file | --args-json | --env-file) _cejail_files -f -- "${2#@}" ;;
	--value-path) _cejail_words none "$2" ;;
	--accept-weaker) _cejail_words "limits landlock network network_filter syscall_report hostname record" "$2" ;;
	--on-output-limit) _cejail_words "truncate kill" "$2" ;;
	--network) _cejail_words "public none" "$2" ;;
	--uplink) _cejail_words "auto host pasta slirp4netns none" "$2" ;;
	--network-start) _cejail_words "first-use early" "$2" ;;
	--rootfs) _cejail_files -W "host $(_cejail_images)" -d -- "$2" ;;
	--seccomp) _cejail_files -W default -f -- "$2" ;;
	*) return 1 ;;
	esac
}

_cejail_run_options="--profile --code --remote --timeout --cpu-time --memory --cpus --pids-limit --nofile
	--disk --max-output --on-output-limit --calls-max --calls-outstanding --calls-rate --calls-timeout --env --env-file --interactive --tty --workdir --file --file-text --tools --tools-from --args-json
	--ro-bind --bind --overlay --tmpfs --venv --project --connect --artifacts --artifact-path --value-path --network --uplink --network-start --allow --allow-private --hostname --rootfs --writable
	--noexec --seccomp --strict --accept-weaker --request-fd --json --result-fd --events-fd --calls-fd --trace-file --cgroup-parent --id --verbose --quiet --no-report --dry-run --help"

_cejail() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}

	# readline breaks words at '=': "--uplink=pa" is three of them
	if [ "$word" = = ]; then
		word=
	elif [ "$before" = = ]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		_cejail_words "run shell profile image serve mcp session report ps kill gc doctor version help" "$word"
		return
	fi
	case ${COMP_WORDS[1]} in
	run | shell)
		_cejail_value "$before" "$word" && return
		if [[ $word == -* ]]; then
			_cejail_words "$_cejail_run_options" "$word"
		else
			_cejail_files -f -- "$word"
		fi
		;;
	profile)
		case $COMP_CWORD:${COMP_WORDS[2]} in
		2:*) _cejail_words "list show check" "$word" ;;
		*:list) _cejail_words "--names" "$word" ;;
		*:show) _cejail_words "$(_cejail_profiles)" "$word" ;;
		*) _cejail_files -f -- "$word" ;;
		esac
		;;
	image)
		case $COMP_CWORD:${COMP_WORDS[2]} in
		2:*) _cejail_words "import list rm" "$word" ;;
		3:import) ;;
		*:import) _cejail_files -f -- "$word" ;;
		*:list) _cejail_words "--json" "$word" ;;
		*:rm) _cejail_words "$(_cejail_images)" "$word" ;;
		esac
		;;
	kill) _cejail_words "$(_cejail_ids) --help" "$word" ;;
	serve)
		if [[ $word == -* ]]; then
			_cejail_words "$(_cejail_serve_options)" "$word"
		else
			_cejail_files -f -- "$word"
		fi
		;;
	mcp)
		if [ "$before" = --print-config ]; then
			_cejail_words "claude claude-code vscode cursor windsurf gemini zed" "$word"
			return
		fi
		_cejail_value "$before" "$word" && return
		if [ "${COMP_WORDS[2]}" = wrap ] && [ "$COMP_CWORD" -gt 2 ]; then
			_cejail_words "$(_cejail_mcp_options wrap)" "$word"
		else
			_cejail_words "wrap $(_cejail_mcp_options)" "$word"
		fi
		;;
	session)
		if [ "$COMP_CWORD" -eq 2 ]; then
			_cejail_words "$(_cejail_session_verbs)" "$word"
		elif [[ $word == -* ]]; then
			_cejail_words "$(_cejail_session_options "${COMP_WORDS[2]}")" "$word"
		elif ! _cejail_value "$before" "$word"; then
			_cejail_files -W "$(_cejail_sessions)" -f -- "$word"
		fi
		;;
	report)
		if [[ $word == -* ]]; then
			_cejail_words "--output --help" "$word"
		else
			_cejail_files -f -- "$word"
		fi
		;;
	ps | doctor) _cejail_words "--json --help" "$word" ;;
	gc | version) _cejail_words "--help" "$word" ;;
	help) _cejail_words "$(cejail help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p')" "$word" ;;
	esac
}

complete -F _cejail cejail
