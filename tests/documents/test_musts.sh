#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each requirement of the OCI runtime specification has tests, and they exist: tests/documents/test_musts.sh [FILE]
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/documents/proof_names.sh
. tests/documents/proof_names.sh

MUSTS=${1:-tests/system/oci/MUSTS.md}
failed=0

report() {
	echo "$1 musts: $2"
	if [ "$1" = FAIL ]; then failed=1; fi
}

entries=$(proof_entries "$MUSTS")
while IFS= read -r entry; do
	report FAIL "no test stands below '$entry'"
done < <(proof_missing <<< "$entries")
while IFS=$'\t' read -r _ kind text; do
	case $kind in
	'no test') report FAIL "'$text' is not a test in backquotes" ;;
	test) proof_exists "${text%%: *}" "${text#*: }" || report FAIL "there is no test '$text'" ;;
	esac
done <<< "$entries"
for document in config config-linux runtime features; do
	grep -q "^$document.md"$'\tpromise\t' <<< "$entries" || report FAIL "$document.md has no requirement"
done

count=$(awk -F'\t' '$2 == "promise"' <<< "$entries" | wc -l)
if [ $failed = 0 ]; then report pass "each of $count requirements of the specification has tests that exist"; fi
exit $failed
