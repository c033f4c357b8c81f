# SPDX-License-Identifier: Apache-2.0
# Completions of cejail-oci for bash.  Its own --help has the commands and the options.

_cejail_oci() {
	local word=${COMP_WORDS[COMP_CWORD]} verb='' i words
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} != [a-z]* || ${COMP_WORDS[i - 1]} == --* ]] || { verb=${COMP_WORDS[i]} && break; }
	done
	words=$(cejail-oci ${verb:+"$verb"} --help 2>/dev/null |
		sed -nE 's/^  (-[a-zA-Z], |    )(--[a-z-]+).*/\2/p; s/^  ([a-z]+) .*/\1/p')
	[ -z "$verb" ] || [[ $word == -* ]] || words=$(cejail-oci list --quiet 2>/dev/null)
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -o default -F _cejail_oci cejail-oci
