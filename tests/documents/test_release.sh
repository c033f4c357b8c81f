#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/release refuses what is not ready, and makes the same bytes twice: tests/documents/test_release.sh
#
# All of it happens in temporary clones.
set -u
cd "$(dirname "$0")/../.." || exit 1
top=$PWD

work=$(mktemp -d /var/tmp/cejail-release.XXXXXX)
trap 'rm -rf "$work"' EXIT
failed=0
# No setting of the caller's counts, but the checkout may be another user's.
printf '[safe]\n\tdirectory = *\n' > "$work/gitconfig"
export GIT_CONFIG_GLOBAL=$work/gitconfig GIT_CONFIG_SYSTEM=/dev/null HOME=$work

if ! git rev-parse --git-dir >/dev/null 2>&1; then
	echo "skip release: every check (this is no git checkout)"
	exit 0
fi

# shellcheck source=tests/documents/check.sh
. tests/documents/check.sh release

# clone NAME: of the commit, with the tool as it is in the tree; its NEWS has a date.
clone() {
	git clone -q --no-tags "$top" "$work/$1" && cd "$work/$1" || exit 1
	git config user.name Release && git config user.email release@example.com
	cp "$top/tools/release" tools/release
	cp "$top/NEWS" NEWS
	sed -i "s/^cejail $version (.*)$/cejail $version (2026-01-02)/" NEWS
	git add -A && git commit -q --date 2026-01-02T00:00:00Z -m 'a release'
}

refuses() { # WORDS OPTION...
	local words=$1 said
	shift
	said=$(tools/release --tested --output "$work/refused" "$@" 2>&1) && return 1
	[ ! -e "$work/refused" ] && [ -z "$(git tag)" ] && grep -qF "$words" <<< "$said"
}

refuses_after() { # COMMAND WORDS
	sh -c "$1" && refuses "$2"
	local status=$?
	git reset -q --hard start && git clean -qfd
	return $status
}

sets_version() {
	tools/release --set 9.8.7 &&
		[ "$(git diff --numstat | sort)" = "$(printf '1\t1\t%s\n' Makefile tools/clients/node/package.json tools/clients/python/pyproject.toml tools/rpm/cejail.spec)" ] &&
		grep -qx 'VERSION := 9.8.7' Makefile && grep -qx 'version = "9.8.7"' tools/clients/python/pyproject.toml &&
		grep -qx 'Version: *9.8.7' tools/rpm/cejail.spec &&
		python3 -c 'import json; assert json.load(open("tools/clients/node/package.json"))["version"] == "9.8.7"'
	local status=$?
	git reset -q --hard start
	return $status
}

commit='git commit -qam change'
version=$(sed -n 's/^VERSION := //p' Makefile)
name=cejail-$version.tar.gz
export GIT_COMMITTER_DATE=2026-01-02T00:00:00Z

clone one
git branch start
check "a changed file is refused" refuses_after 'echo >> README.md' 'not committed'
check "a file that git does not know is refused" refuses_after 'touch new' 'not committed'
check "a version without an entry in NEWS is refused" \
	refuses_after "tools/release --set 9.9.9; $commit" "no entry 'cejail 9.9.9"
check "a client whose version is another one is refused" \
	refuses_after "sed -i 's/^VERSION := .*/VERSION := 9.9.9/' Makefile; $commit" "pyproject.toml is '$version'"
check "a version that is not three numbers is refused" refuses "not three numbers" --set 9.9
check "--set writes the version to the Makefile, both clients and the RPM spec, and nothing else" sets_version
check "an entry without a date is refused" \
	refuses_after "sed -i 's/^cejail $version (.*/cejail $version (unreleased)/' NEWS; $commit" 'no date'
check "a version that is no number is refused" \
	refuses_after "sed -i 's/^VERSION := .*/VERSION := next/' Makefile; $commit" "'next'"
check "an unknown option is refused" refuses "unknown option '--now'" --now

dry_run() {
	local said
	said=$(tools/release --dry-run --output "$work/dry") && [ ! -e "$work/dry" ] && [ -z "$(git tag)" ] &&
		grep -q 'make check-all' <<< "$said" && grep -q "git tag --annotate v$version" <<< "$said"
}
check "--dry-run says what it would do, and does nothing" dry_run

check "a release is made" tools/release --tested --output "$work/first"
annotated() {
	[ "$(git cat-file -t "v$version")" = tag ] && [ "$(git rev-parse "v$version^{commit}")" = "$(git rev-parse HEAD)" ] &&
		git tag -l --format='%(contents)' "v$version" | grep -qF 'The first release.'
}
check "the tag is annotated, and has the entry of NEWS" annotated
check "a version that has its tag is refused" bash -c '! tools/release --tested'
check "the sum beside the tarball is its own" bash -c "cd '$work/first' && sha256sum -c '$name.sha256'"

# Somewhere else, by another caller: other places, modes, times and settings.
clone two
# A stand-in for gpg: it signs anything.
printf '#!/bin/sh\ncat >/dev/null\nprintf "\n[GNUPG:] SIG_CREATED D\n" >&2\nprintf -- "-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n"\n' \
	> "$work/gpg" && chmod +x "$work/gpg"
git config user.signingkey ABCD && git config gpg.program "$work/gpg" && git config core.autocrlf true
find . -path ./.git -prune -o -type f -exec touch -d 2001-01-01 {} +
check "a release is made elsewhere" bash -c "umask 077; TZ=Asia/Tokyo LC_ALL=C tools/release --tested --output '$work/second'"
check "two releases of one commit are the same bytes" cmp "$work/first/$name" "$work/second/$name"
check "the tag is signed where git has a key" bash -c "git cat-file tag 'v$version' | grep -q 'BEGIN PGP SIGNATURE'"

complete() {
	cd "$work" && tar xzf "first/$name" && diff <(cd "cejail-$version" && find . -type f -o -type l | sort) \
		<(cd one && git ls-files | sed 's|^|./|' | sort) &&
		[ -z "$(tar tvzf "first/$name" --numeric-owner | awk '$2 != "0/0"')" ]
}
check "the tarball has every file of the commit, all of root's" complete
exit $failed
