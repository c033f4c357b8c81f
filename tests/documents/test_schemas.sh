#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The schemas of the service against their examples.
set -u
cd "$(dirname "$0")/../.." || exit 1

if ! /usr/bin/python3 -c 'import jsonschema, yaml' 2>/dev/null; then
	echo "skip schema: those of the service (python3-jsonschema or python3-yaml is not installed)"
	exit 0
fi
/usr/bin/python3 tests/documents/check-service-schemas.py
