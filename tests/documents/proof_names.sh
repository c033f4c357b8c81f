# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Documents that name the tests of what they say; sourced from the top folder of the tree.  Below each "## " are
# paragraphs, and below each of them a list of tests in backquotes; tests/PROOFS.md has their forms.

# proof_entries FILE: "SECTION<TAB>KIND<TAB>TEXT": an entry, which is a promise or a title, or one of its tests.
proof_entries() {
	awk '
		function flush() { if (text) print section "\t" kind "\t" text; text = "" }
		/^(#|$|- )/ { flush() }
		/^## / { section = substr($0, 4); next }
		!section || /^$/ { next }
		/^- `.*`$/ { print section "\ttest\t" substr($0, 4, length($0) - 4); next }
		/^- / { print section "\tno test\t" substr($0, 3); next }
		!text { kind = section !~ /^(Not promised|Data)/ ? "promise" : /^\*\*.*\*\*$/ ? "title" : "note" }
		{ text = text (text ? " " : "") $0 }
		END { flush() }' "$1"
}

# proof_missing: of such lines, the entries below which no test stands.
proof_missing() {
	awk -F'\t' '
		$2 == "test" { tests++ }
		$2 == "promise" || $2 == "title" { if (last && !tests) print last; last = $3; tests = 0 }
		END { if (last && !tests) print last }'
}

# proof_exists SUBJECT SENTENCE, proof_exists "unit TEST" NAME, proof_exists "fuzz NAME"
proof_exists() {
	local pattern="\"$2\"" matching=-F files name
	case $1 in
	fuzz\ *) name=fuzz_${1#fuzz }.c pattern=LLVMFuzzerTestOneInput ;;
	unit\ *) name=${1#unit }.c pattern="^static void $2\(void" matching=-E ;;
	*) name=$1.py ;;
	esac
	mapfile -t files < <(find tests -name "$name")
	[ ${#files[@]} -gt 0 ] && grep -qs $matching -e "$pattern" "${files[@]}"
}
