#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every test that SECURITY.md names exists: tests/front/test_claims.sh [DOCUMENT]
#
# A proof is written `SUBJECT: SENTENCE` (tests/*/SUBJECT.py), `unit TEST: NAME` (tests/*/TEST.c) or
# `fuzz NAME`.  A row of a promise, or of what reaches the supervisor, without a proof is a failure, too.
set -euo pipefail
cd "$(dirname "$0")/../.."

DOCUMENT=${1:-SECURITY.md}
failed=0
named=0

# The rows of the tables of promises, and of what reaches the supervisor.
promises() {
	sed -n -e '/^## What is promised/,/^## What is not/p' -e '/own attack surface/,/^## /p' "$DOCUMENT" |
		grep -E '^\| ' | grep -vE '^\| (promise|what) '
}

report() {
	echo "$1 claims: $2"
	if [ "$1" = FAIL ]; then failed=1; fi
}

exists() {
	local where=$1 what=$2
	case $where in
	fuzz\ *) [ -e "tests/fuzz/fuzz_${where#fuzz }.c" ] ;;
	unit\ *) grep -qsE "^static void $what\(void" tests/*/"${where#unit }.c" ;;
	*) grep -qsF "\"$what\"" tests/*/"$where.py" ;;
	esac
}

# shellcheck disable=SC2016 # backquotes of Markdown, not of the shell
proofs() {
	promises | grep -oE '`((unit )?[a-z_]+: [^`]*|fuzz [a-z_]+)`' | tr -d '`'
}

while IFS= read -r proof; do
	named=$((named + 1))
	exists "${proof%%: *}" "${proof#*: }" || report FAIL "there is no test '$proof'"
done < <(proofs)

# shellcheck disable=SC2016 # likewise
while IFS= read -r row; do
	report FAIL "no proof stands beside '$row'"
done < <(promises | grep -vE '`((unit )?[a-z_]+: |fuzz )' | cut -d'|' -f2)

# Rows of threats point to tests in C, too.
while IFS= read -r proof; do
	exists "${proof%%: *}" "${proof#*: }" || report FAIL "there is no test '$proof', which tests/escape names"
done < <(grep -ohE '"unit [a-z_]+: [a-z_0-9]+"' tests/escape/*.py | tr -d '"')

if [ "$named" = 0 ]; then report FAIL "$DOCUMENT names no test at all"; fi
if [ $failed = 0 ]; then report pass "each of the $named tests that $DOCUMENT names exists"; fi
exit $failed
