# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # its reader has $failed
# For tests of documents: . tests/documents/check.sh SUBJECT.  $failed becomes their exit status.
subject=$1

# check SENTENCE COMMAND...: the sentence is true when the command succeeds.
check() {
	local sentence=$1 out
	shift
	if out=$("$@" 2>&1); then
		echo "pass $subject: $sentence"
	else
		echo "FAIL $subject: $sentence"
		tail -n 10 <<< "$out" | sed 's/^/     /'
		failed=1
	fi
}
