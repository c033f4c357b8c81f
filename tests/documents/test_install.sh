#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make install writes its own paths, make uninstall leaves nothing, and a packager's settings are respected:
# tests/documents/test_install.sh
#
# Nothing is compiled: it installs build/release, or looks at what make would do.
set -u
cd "$(dirname "$0")/../.." || exit 1

work=$(mktemp -d /var/tmp/cejail-install.XXXXXX)
trap 'rm -rf "$work"' EXIT
failed=0

# shellcheck source=tests/documents/check.sh
. tests/documents/check.sh install

# A target, of what is built already.
quiet_make() { make -s -o all "$@"; }

files_of() { (cd "$1" && find . ! -type d -printf '%P\n' | sort); }

own='/usr/local/(bin/cejail|libexec/cejail|share/cejail|share/doc/cejail)'
check "make install fills a tree" quiet_make install DESTDIR="$work/usr" PREFIX=/usr
no_other_prefix() {
	[ ! -e "$work/usr/usr/local" ] && [ "$(files_of "$work/usr" | wc -l)" -gt 80 ] &&
		! grep -rIEn "$own" "$work/usr"
}
check "a text that is installed below /usr names no path of cejail below /usr/local" no_other_prefix
names_its_own() {
	grep -q '^ExecStart=/usr/bin/cejail serve$' "$work/usr/usr/lib/systemd/system/cejail.service" &&
		grep -q '^\.It Pa /usr/libexec/cejail/name-helper$' "$work/usr/usr/share/man/man1/cejail.1" &&
		grep -q '"/usr/bin/cejail-oci"' "$work/usr/usr/share/doc/cejail/examples/containerd.toml"
}
check "units, manuals and examples name the paths of the installation" names_its_own
keeps_run_bit() {
	diff <(cd tools/examples && find . -type f -perm -u+x | sort) \
		<(cd "$work/usr/usr/share/doc/cejail/examples" && find . -type f -perm -u+x | sort)
}
check "the examples keep their run bit, below share/doc" keeps_run_bit

folders=(BINDIR=/opt/c/sbin MANDIR=/m DOCDIR=/d UNITDIR=/u USERUNITDIR=/uu SYSUSERSDIR=/s TMPFILESDIR=/t BASHDIR=/b ZSHDIR=/z FISHDIR=/f)
puts_elsewhere() {
	quiet_make install DESTDIR="$work/apart" PREFIX=/opt/c "${folders[@]}" &&
		[ "$(cd "$work/apart" && echo *)" = 'b d f m opt s t u uu z' ] &&
		[ "$(cd "$work/apart/opt/c" && echo *)" = 'libexec sbin share' ] &&
		[ "$(cd "$work/apart/opt/c/share" && echo *)" = cejail ] && grep -q '^ExecStart=/opt/c/sbin/cejail serve$' "$work/apart/u/cejail.service"
}
check "each folder can be chosen" puts_elsewhere
refuses_bindir() { ! make -n install BINDIR=/elsewhere/bin; }
check "a BINDIR in which programs would not find their helpers is refused" refuses_bindir

links_bwrap() {
	[ ! -e "$work/usr/usr/lib/cejail/bwrap" ] && quiet_make install DESTDIR="$work/linked" PREFIX=/usr BWRAP=yes &&
		[ "$(readlink "$work/linked/usr/lib/cejail/bwrap/bwrap")" = /usr/libexec/cejail/bwrap ] &&
		quiet_make uninstall DESTDIR="$work/linked" PREFIX=/usr BWRAP=yes && ! find "$work/linked" -mindepth 1 2>/dev/null | grep .
}
check "make install BWRAP=yes makes a link in a folder of its own, and make uninstall BWRAP=yes removes it" links_bwrap

touch "$work/usr/usr/share/cejail/profiles/mine.json"
mkdir "$work/usr/usr/share/cejail/clients/python/cejail/__pycache__"
uninstalls() {
	quiet_make uninstall DESTDIR="$work/usr" PREFIX=/usr && [ "$(files_of "$work/usr")" = usr/share/cejail/profiles/mine.json ]
}
check "make uninstall leaves what it did not install" uninstalls
uninstalls_all() {
	quiet_make uninstall DESTDIR="$work/apart" PREFIX=/opt/c "${folders[@]}"
	! find "$work/apart" -mindepth 1 2>/dev/null | grep .
}
check "make uninstall removes the folders that are empty" uninstalls_all
keeps_folders() {
	mkdir -p "$work/local/bin" "$work/local/share/man"
	quiet_make install PREFIX="$work/local" && quiet_make uninstall PREFIX="$work/local" &&
		[ "$(cd "$work/local" && find . | sort | tr '\n' ' ')" = '. ./bin ./lib ./share ./share/man ' ]
}
check "on the host, make uninstall keeps the folders that every host has" keeps_folders

# --- a packager's settings, by the commands that make would run -----------------

planned() { make -nB V=1 all OUT=build/planned "$@" 2>&1; }
respects() {
	local plan
	plan=$(planned CFLAGS=-DC_WORD CPPFLAGS=-DCPP_WORD LDFLAGS=-Wl,-z,word STATIC="$1")
	[ "$(grep -cE '^cc .* -c ' <<< "$plan")" -gt 100 ] || return 1
	! grep -E '^cc .* -c ' <<< "$plan" | grep -v -e '-DCPP_WORD -DC_WORD' || return 1
	! grep -E '^(cc|.*-Wl,-z,relro).* -o build/planned/(bin|libexec)/' <<< "$plan" | grep -v -e '-Wl,-z,word'
}
check "CFLAGS, CPPFLAGS and LDFLAGS reach every command" respects yes
check "and with STATIC=no" respects no
shares() { ! planned STATIC=no | grep -E -- '-Bstatic|static-pie|yajl_s' && planned | grep -q -- -static-pie; }
check "STATIC=no links no archive" shares
fortifies_once() { ! planned CPPFLAGS=-D_FORTIFY_SOURCE=3 | grep -F -- '_FORTIFY_SOURCE=2' && planned | grep -qF -- '_FORTIFY_SOURCE=2'; }
check "another _FORTIFY_SOURCE replaces ours" fortifies_once
maps_paths() { ! planned | grep -E '^cc .* -c ' | grep -vF -- "-ffile-prefix-map=$PWD=."; }
check "no path of the build is compiled in" maps_paths
warns() { # of a tree without .git, a warning is no error
	mkdir "$work/tree" && ln -s "$PWD"/* "$work/tree/" &&
		! make -C "$work/tree" -nB V=1 all OUT=build/planned | grep -E -- '-Werror( |$)' && planned WERROR= | grep -q '^cc ' &&
		! planned WERROR= | grep -E -- '-Werror( |$)' && planned WERROR=-Werror | grep -qE -- '-Werror '
}
check "a warning is an error in a git checkout only" warns
# --- the packages ---------------------------------------------------------------

keeps_strangers() { # in a directory, behind a link to one, and a file
	local place
	mkdir "$work/mine" && touch "$work/mine/file" && ln -s mine "$work/link" || return 1
	for place in "$work/mine" "$work/link" "$work/mine/file"; do
		! tools/deb 0 "$place" 2> "$work/said" || return 1
		[ "$(cat "$work/said")" = "tools/deb: '$place' exists, and tools/deb has not made it: remove it, or name another directory" ] || return 1
	done
	[ -f "$work/mine/file" ]
}
check "tools/deb does not empty a directory that it has not made" keeps_strangers
# What dpkg calls, with empty file systems in place of /run and /var.
keeps_records() {
	unshare --user --map-root-user --mount sh -ec '
		mount -t tmpfs none /run && mount -t tmpfs none /var
		mkdir -p /run/cejail/runs /run/cejail-serve /run/cejail-oci/one /var/log/cejail /var/lib/cejail/images /var/lib/cejail-oci/results
		: > /run/cejail/runs/dead.json
		exec 9> /run/cejail/runs/alive.json
		flock 9
		purge() { sh tools/debian/$1.postrm purge 2> /run/said; }
		left() { find /run /var -name "cejail*"; }
		purge cejail
		grep -q "^cejail: jails still run" /run/said
		[ -f /run/cejail/runs/alive.json ] && [ -d /var/lib/cejail/images ] && [ ! -e /var/log/cejail ]
		purge cejail-oci
		grep -q "^cejail-oci: /run/cejail-oci has" /run/said
		[ -d /run/cejail-oci/one ] && [ ! -e /var/lib/cejail-oci ]
		exec 9>&-
		rmdir /run/cejail-oci/one
		purge cejail-oci
		[ ! -s /run/said ]
		purge cejail
		[ ! -s /run/said ] && [ -z "$(left)" ]'
}
check "the purge of the packages leaves nothing but what living jails and containers need" keeps_records
names_licenses() {
	[ "$(grep -rhoE --exclude-dir=build --exclude-dir=.git '^.{0,9}SPDX-License-Identifier: [^ ]*' . | sed 's/.*: //' | sort -u)" = Apache-2.0 ]
}
check "debian/copyright has the license of every source" names_licenses
exit $failed
