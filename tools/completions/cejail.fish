# SPDX-License-Identifier: Apache-2.0
# Completions of cejail and cejail-oci for fish.  Their own --help has the verbs and the options.

function __cejail_offer
    set -l words (commandline -opc)
    set -l asked
    switch "$words[2]"
        case '' '-*'
        case session
            set asked $words[2..3]
        case mcp
            set asked mcp
            test "$words[3]" = wrap
            and set asked mcp wrap
        case '*'
            set asked $words[2]
    end
    test (count $asked) -eq 0 -o "$asked" = session
    and $words[1] $asked --help 2>/dev/null | sed -nE 's/^  ([a-z]+)( [^ ]+)*  +([^ ].*)/\1\t\3/p'
    $words[1] $asked --help 2>/dev/null | sed -nE 's/^  (-[a-zA-Z], |    )(--[a-z-]+)(.*  +([^ ].*))?.*/\2\t\4/p'
end

for program in cejail cejail-oci
    complete -c $program -a '(__cejail_offer)'
    complete -c $program -f -n 'test (count (commandline -opc)) -eq 1'
end
