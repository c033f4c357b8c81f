#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `make demo` is short, names its steps and not its commands, and what it suggests works:
# tests/documents/test_demo.sh
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

LINES_MAX=60  # on a bare machine: the line of tools/setup and those of the build included
BUILD_LINES=9 # which are not there when all is built

failed=0

report() {
	echo "$1 demo: $2"
	if [ "$1" = FAIL ]; then failed=1; fi
}

# A build of everything, only planned: what `make demo` would print of it.
planned() {
	make -n all OUT=build/planned "$@" 2>&1
}

steps=$(planned | grep -cE '^(CC|AR|GEN|LINK) ')
progress=$(planned STEPS="$steps" | grep '^building ')
if [ "$(wc -l <<< "$progress")" -le $BUILD_LINES ] && [ "$(tail -n 1 <<< "$progress")" = "building $steps/$steps" ]; then
	report pass "the build shows its progress in a few lines, up to the last step"
else
	report FAIL "the build shows its progress in a few lines, up to the last step: $progress"
fi

# A command in a place where no user namespace can be made.
without_namespaces() {
	unshare --user --map-root-user sh -c 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"' sh "$@" 2>&1 < /dev/null
}

if [ "$(without_namespaces echo yes)" = yes ]; then
	out=$(without_namespaces make --no-print-directory demo OUT=build/unbuilt) && report FAIL "where no jail is possible, make demo fails"
	if grep -q '^No jail is possible here' <<< "$out" && ! grep -q '^building' <<< "$out" && [ ! -e build/unbuilt ]; then
		report pass "where no jail is possible, make demo says so before it builds"
	else
		report FAIL "where no jail is possible, make demo says so before it builds: $(head -n 3 <<< "$out")"
	fi
	out=$(without_namespaces make --no-print-directory demo)
	if grep -q '^user namespaces  *missing' <<< "$out"; then
		report pass "after a demo that failed comes what doctor finds"
	else
		report FAIL "after a demo that failed comes what doctor finds: $(tail -n 3 <<< "$out")"
	fi
else
	echo "skip demo: no place without user namespaces can be made here"
fi

# route WORD...: what the demo says of the way to the Internet
route() {
	build/release/bin/cejail run -q --profile python "$@" tools/demo.py 2> /dev/null | sed -n 's/^  a route to the Internet  *//p'
}

wanted=refused
found=$(build/release/bin/cejail doctor)
grep -q '^a public network  *ok' <<< "$found" && wanted='there is one'
case "$(route) / $(route --uplink none) / $(route --network none)" in
"$wanted"*" / refused"*" / refused"*) report pass "the demo has a route to the Internet only with an uplink" ;;
*) report FAIL "the demo has a route to the Internet only with an uplink: $(route) / $(route --uplink none) / $(route --network none)" ;;
esac

if [ "$(grep -E 'userns|make .* demo$' tools/examples/ci-job.yml | head -n 1 | grep -c userns)" = 1 ]; then
	report pass "the CI job permits user namespaces before the demo"
else
	report FAIL "the CI job permits user namespaces before the demo"
fi

if ! out=$(make --no-print-directory demo 2>&1 < /dev/null); then
	report FAIL "make demo runs: $(tail -n 5 <<< "$out")"
	exit 1
fi
if [ "$(wc -l <<< "$out")" -le $((LINES_MAX - BUILD_LINES)) ] && ! grep -qE '^(cc|gcc|make|cp|mkdir) ' <<< "$out"; then
	report pass "make demo prints at most $LINES_MAX lines, and no command"
else
	report FAIL "make demo prints at most $LINES_MAX lines, and no command: $(wc -l <<< "$out") without the build"
fi

while IFS= read -r command; do
	sh -c "cd / && $command" > /dev/null 2>&1 < /dev/null
	# doctor says by 1 that the host gives less than all
	case $command:$? in
	*:0 | *doctor:1) report pass "what make demo suggests works when pasted: ${command#"$PWD"/}" ;;
	*) report FAIL "what make demo suggests works when pasted: $command" ;;
	esac
done < <(sed -n '/^Now try:$/,$s/^  //p' <<< "$out")
[ "$(grep -c '^  /' <<< "$out")" -ge 2 ] || report FAIL "make demo ends with commands to try"
exit $failed
