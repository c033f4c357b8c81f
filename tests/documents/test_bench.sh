#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/bench measures each subject or says why not, and writes JSON, a chart and the manual's tables:
# tests/documents/test_bench.sh
#
# No time is checked.  All subjects are measured in the long form only.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

work=$(mktemp -d /var/tmp/cejail-bench-test.XXXXXX)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
failed=0

report() {
	echo "$1 bench: $2"
	if [ "$1" = FAIL ]; then
		tail -n 10 "$work/out" | sed 's/^/     /'
		failed=1
	fi
}

# check SENTENCE COMMAND...: the sentence is true when the command succeeds.
check() {
	local sentence=$1
	shift
	if "$@" > "$work/out" 2>&1; then report pass "$sentence"; else report FAIL "$sentence"; fi
}

refuses() { # STATUS WORDS ARGUMENT...
	local status=$1 words=$2 said
	shift 2
	said=$(tools/bench --output "$work/refused" "$@" 2>&1)
	[ $? -eq "$status" ] && grep -qF -- "$words" <<< "$said"
}

check "an unknown subject is refused" refuses 2 "unknown subject 'speed'" speed
check "a program that does not exist is refused" refuses 1 "'/nowhere/cejail' is not a program" --cejail /nowhere/cejail true

if [ "$(id -u)" = 0 ] && ! unshare --net --mount true 2> /dev/null; then
	echo "skip bench: every measurement (root may not make a network namespace here)"
	exit $failed
fi

# A copy of what it needs, run where the system tests that run meanwhile do not see its jails.
mkdir -p "$work/tree/man"
cp -a README.md tools "$work/tree/"
cp man/cejail-performance.7 "$work/tree/man/"
make -s install DESTDIR="$work/installed" PREFIX=/usr/local > "$work/out" 2>&1
program=$work/installed/usr/local/bin/cejail
alone=()
[ "$(id -u)" != 0 ] || alone=(tests/system/alone "$work")
measure() {
	timeout 600 "${alone[@]}" "$work/tree/tools/bench" --rounds 1 --largest 10 --cejail "$program" --output "$work/json" \
		--publish --tree "$work/tree" "$@"
}
cold=(true python bwrap stages options oci) served=(request call tools tool-list)
if [ "${CEJAIL_TEST_LONG:-}" = 1 ]; then
	cold+=(two-workers network throughput) served+=(network-two-workers refill burst session scale memory)
fi
check "what a run costs is measured" measure --also "other=$program" "${cold[@]}"
check "the service is measured" measure "${served[@]}"

cat > "$work/look.py" <<'END'
import glob, json, re, sys
import xml.etree.ElementTree as tree

sys.dont_write_bytecode = True
what, place, *wanted = sys.argv[1:]
found = {}
for path in glob.glob(f"{place}/json/*.json"):
    table = json.load(open(path))
    found[table["subject"]] = table


def numbers(row):
    return [v for k, v in row.items() if k not in ("name", "who") and v is not None]


def subjects():
    assert set(wanted) == set(found), (wanted, set(found))
    for name, table in found.items():
        assert table["schema"] == "cejail.bench/1" and table["rounds"] == 1, name
        assert table["rows"] or table["absent"], f"{name} has neither rows nor reasons"
        assert all(row["name"] and numbers(row) for row in table["rows"]), name
        assert all(entry["name"] and entry["reason"] for entry in table["absent"]), name
        assert all(v >= 0 for row in table["rows"] for k, v in row.items() if k.endswith("_ms") and v is not None)
        assert {"cpu", "cpus", "kernel", "virtual", "date", "versions"} <= set(table["machine"]), name


def peers():
    table = found["true"]
    for who in {row["who"] for row in table["rows"]}:
        named = {e["name"] for e in table["rows"] + table["absent"] if e["who"] == who}
        assert named == {"bare", "cejail", "other", "bwrap", "crun", "runc", "nsjail", "isolate", "firejail"}, named
    for row in table["rows"]:
        is_peer = row["name"] not in ("bare", "cejail", "other")
        assert (row["name"] in table["does_not_do"]) == is_peer, row


def chart():
    for path in (f"{place}/json/bench.svg", f"{place}/tree/man/bench.svg"):
        root = tree.parse(path).getroot()
        assert root.tag.endswith("svg")
    words = " ".join(root.itertext())
    assert found["true"]["machine"]["kernel"] in words


def manual():
    page = open(f"{place}/tree/man/cejail-performance.7").read()
    parts = re.findall(r'^\.\\" bench: (\S+)$\n(.*?)^\.\\" end$', page, re.M | re.S)
    assert len(parts) > 8 and all(body.strip() for _, body in parts), [name for name, body in parts if not body]
    assert "other" not in dict(parts)["true"]
    assert found["true"]["machine"]["kernel"] in open(f"{place}/tree/README.md").read()


globals()[what]()
END
look() { /usr/bin/python3 "$work/look.py" "$1" "$work" "${cold[@]}" "${served[@]}"; }
check "each subject's JSON has the machine, and rows or reasons" look subjects
check "each peer has a row that says what it does not do, or a reason" look peers
check "the chart is an SVG with the machine's description" look chart
check "the tables go into the manual and the README" look manual
if command -v mandoc > /dev/null; then
	check "the manual with its tables is free of warnings" mandoc -Tlint -Wwarning "$work/tree/man/cejail-performance.7"
fi
exit $failed
