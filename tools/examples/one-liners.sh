#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# cejail in one line each.  Copy a line, or run all of them:
#
#	sh tools/examples/one-liners.sh
#
# They need cejail in PATH, python3, and nothing else.  All of them run without a network.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
printf '30\n7\n12\n' > numbers.txt
echo 'import sys; print("total", sum(map(int, open(sys.argv[1]))))' > total.py

# Code from anywhere, with five seconds and 128 MiB.
echo 'print(6 * 7)' | cejail run --network none -t 5s -m 128M -p python -

# A file of code, with a data file copied in beside it.
cejail run --network none -f numbers.txt total.py numbers.txt

# A filter in a pipe: -i connects standard input.
cejail run --network none -i -- sort -n < numbers.txt

# A converter that may be hostile to its host: a file goes in, files from /box/out come back.
cejail run --network none -f numbers.txt -o converted -- sh -c 'sort -n numbers.txt > out/sorted.txt'
cat converted/sorted.txt

# A command that changes a directory, tried on a copy: the directory stays as it is.
cejail run --network none --overlay "$work:/data" -w /data -- sh -c 'rm -r ./*; ls | wc -l'
ls

# An endless loop: the time limit ends it, and the exit status is 124.
cejail run --network none --no-report -t 500ms -p python -c 'while True: pass' || echo "exit status $?"

# Why did it end?  The result says so, for programs.
cejail run --json --network none -t 500ms -p python -c 'while True: pass' |
	python3 -c 'import json, sys; print("status", json.load(sys.stdin)["status"])'
