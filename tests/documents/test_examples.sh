#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The examples of the documents are accepted by the program: tests/documents/test_examples.sh
#
#	CEJAIL   the program (default: build/release/bin/cejail)
set -u
cd "$(dirname "$0")/../.." || exit 1

CEJAIL=${CEJAIL:-build/release/bin/cejail}
if ! [ -x "$CEJAIL" ]; then
	echo "FAIL examples: '$CEJAIL' is not built"
	exit 1
fi
exec /usr/bin/python3 tests/documents/examples.py "$CEJAIL"
