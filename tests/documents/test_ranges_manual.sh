#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cejail-network(7) lists the closed ranges as the table has them, in its order, and its classes:
# tests/documents/test_ranges_manual.sh [MANUAL]
#
#	PRINT_RANGES   the program that prints the table (default: build/release/bin/print-ranges)
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/../.."

PRINT_RANGES=${PRINT_RANGES:-build/release/bin/print-ranges}
MANUAL=${1:-man/cejail-network.7}
failed=0

# Two lists, a line each.  An empty one means that the test itself is broken.
same() {
	local sentence=$1 wanted=$2 seen=$3
	if [ -z "$wanted" ]; then
		echo "FAIL ranges: $sentence: nothing was found to compare with"
		failed=1
	elif [ "$wanted" = "$seen" ]; then
		echo "pass ranges: $sentence"
	else
		echo "FAIL ranges: $sentence (< the program's, > the document's)"
		diff <(echo "$wanted") <(echo "$seen") | sed -n 's/^\([<>]\)/     \1/p'
		failed=1
	fi
}

section() {
	sed -n "/^\.Sh $1\$/,/^\.Sh /p" "$MANUAL"
}

if [ ! -x "$PRINT_RANGES" ]; then
	echo "FAIL ranges: there is no $PRINT_RANGES (make probes)"
	exit 1
fi

same "the manual lists exactly the closed ranges, with their classes" \
	"$("$PRINT_RANGES" | cut -f 1-2)" \
	"$(section RANGES | sed -n 's/^\.It Li \([^ ]*\) Ta Cm \([a-z_]*\) Ta .*/\1\t\2/p')"

same "the manual gives a meaning for each class, and for no other" \
	"$(sed -n '/net_class_names\[NET_CLASS_COUNT\] = {/,/^};/s/.*= "\([a-z_]*\)",/\1/p' netns/address/ranges.c | sort)" \
	"$(section 'DENIED PACKETS' | sed -n 's/^\.It Cm \([a-z_]*\)$/\1/p' | sort)"

exit $failed
