#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cejail-profile(5) lists the public files of the host as rootfs/host.c has them:
# tests/documents/test_public_manual.sh [MANUAL]
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/../.."

MANUAL=${1:-man/cejail-profile.5}
TABLE=rootfs/host.c

# Of host_paths all below /etc and /var; of host_families "/etc/PREFIX*SUFFIX".
in_table() {
	sed -n 's/^\t"\(\/[ev][^"]*\)",$/\1/p' "$TABLE"
	sed -n 's/^\t{ "\([^"]*\)", "\([^"]*\)",$/\/etc\/\1*\2/p; s/^\t{ "\([^"]*\)", "\([^"]*\)", {.*/\/etc\/\1*\2/p' "$TABLE"
}
in_manual() {
	sed -n '/^\.Sh PUBLIC FILES OF THE HOST$/,/^\.Sh FILES/s/^\.It Pa //p' "$MANUAL"
}

wanted=$(in_table | sort)
if [ -z "$wanted" ]; then
	echo "FAIL public: nothing was found in $TABLE"
	exit 1
fi
if [ "$wanted" != "$(in_manual | sort)" ]; then
	echo "FAIL public: the manual lists exactly the public files (< the table's, > the manual's)"
	diff <(echo "$wanted") <(in_manual | sort) | sed -n 's/^\([<>]\)/     \1/p'
	exit 1
fi
echo "pass public: the manual lists exactly the public files"
