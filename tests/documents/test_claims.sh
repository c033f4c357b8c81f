#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SECURITY.md, the manual pages and tests/PROOFS.md agree, and every test that they name exists:
# tests/documents/test_claims.sh [SECURITY.md [PROOFS.md]]
#
# A promise is a list item below "## Promises" of SECURITY.md, or below ".Ss Promises" of a manual page, there
# with macros in place of the marks of Markdown.  PROOFS.md repeats it word for word as a
# paragraph, with its tests as a list below.  The other entries of PROOFS.md have a title in bold type; one below
# "## Not promised" is the title of such an item in SECURITY.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/documents/proof_names.sh
. tests/documents/proof_names.sh

SECURITY=${1:-SECURITY.md}
PROOFS=${2:-tests/PROOFS.md}
failed=0

report() {
	echo "$1 claims: $2"
	if [ "$1" = FAIL ]; then failed=1; fi
}

# The list items of SECURITY.md's promises, one a line.
promises() {
	awk '
		/^## /{ inside = $0 == "## Promises" }
		/^(#|$|- )/ { if (item) print item; item = "" }
		inside && /^- / { item = substr($0, 3); next }
		item { sub(/^ */, ""); item = item " " $0 }
		END { if (item) print item }' "$SECURITY"
	awk '
		function word(n) { if (item != "" && $n !~ /^[.,:;)]$/) item = item " "; item = item $n }
		/^\.S[sh] / { inside = $0 == ".Ss Promises"; next }
		!inside { next }
		/^\.(It|El)/ { if (item != "") print item; item = ""; next }
		/^\.Xr / { item = item " " $2 "(" $3 ")"; for (i = 4; i <= NF; i++) word(i); next }
		/^\.Ql / { $1 = ""; sub(/^ /, ""); }
		/^\.Bl/ { next }
		{ for (i = 1; i <= NF; i++) word(i) }' man/*.[1-9]
}

# Text without the marks of Markdown.
plain() { tr -d '`*'; }

# The titles of SECURITY.md's limits.
limits() {
	awk '/^## /{ inside = /^## Not promised/ } inside' "$SECURITY" | sed -n 's/^- \*\*\([^*]*\)\*\*.*/\1/p' | sed 's/\.$//'
}

# --- the two documents say the same ------------------------------------------

repeated=$(proof_entries "$PROOFS" | awk -F'\t' '$2 == "promise" { print $3 }')
while IFS= read -r promise; do
	report FAIL "$PROOFS has no tests for the promise '$promise'"
done < <(promises | plain | grep -vxFf <(plain <<< "$repeated") || true)
while IFS= read -r promise; do
	report FAIL "neither $SECURITY nor a manual page has the promise '$promise', which $PROOFS proves"
done < <(plain <<< "$repeated" | grep -vxFf <(promises | plain) || true)
while IFS= read -r title; do
	report FAIL "$SECURITY has no limit '$title', which $PROOFS names"
done < <(proof_entries "$PROOFS" | awk -F'\t' '$1 == "Not promised" && $2 == "title" { gsub(/\*\*/, "", $3); print $3 }' | grep -vxFf <(limits) || true)

# --- each entry has tests, and they exist ------------------------------------

while IFS= read -r entry; do
	report FAIL "no test stands below '$entry'"
done < <(proof_entries "$PROOFS" | proof_missing)
while IFS= read -r item; do
	report FAIL "'$item' in $PROOFS is not a test in backquotes"
done < <(proof_entries "$PROOFS" | awk -F'\t' '$2 == "no test" { print $3 }')

named=0
while IFS= read -r proof; do
	named=$((named + 1))
	proof_exists "${proof%%: *}" "${proof#*: }" || report FAIL "there is no test '$proof'"
done < <(proof_entries "$PROOFS" | awk -F'\t' '$2 == "test" { print $3 }')

# Rows of threats point to tests in C, too.
while IFS= read -r proof; do
	proof_exists "${proof%%: *}" "${proof#*: }" || report FAIL "there is no test '$proof', which tests/system/escape names"
done < <(grep -ohE '"unit [a-z_]+: [a-z_0-9]+"' tests/system/escape/*.py | tr -d '"')

count=$(promises | wc -l)
if [ "$count" = 0 ] || [ "$named" = 0 ]; then report FAIL "$SECURITY has promises and $PROOFS tests"; fi
if [ $failed = 0 ]; then report pass "each of $count promises has tests, and each of the $named tests named exists"; fi
exit $failed
