#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The AppArmor profile is one that the host's parser accepts, and gives away no more than it says:
# tests/documents/test_apparmor.sh
#
#	APPARMOR_PARSER   another parser, with its options (default: apparmor_parser)
#
# Nothing is loaded into the kernel.  Without a parser the sentences about it are skipped.
set -u
cd "$(dirname "$0")/../.." || exit 1
PATH=$PATH:/usr/sbin:/sbin

work=$(mktemp -d /var/tmp/cejail-apparmor.XXXXXX)
trap 'rm -rf "$work"' EXIT
read -ra parser <<< "${APPARMOR_PARSER:-apparmor_parser}"
failed=0

# shellcheck source=tests/documents/check.sh
. tests/documents/check.sh apparmor

installs() { # FORM
	make -s -o all install DESTDIR="$work/$1" PREFIX=/usr APPARMOR="$1" && [ -s "$work/$1/etc/apparmor.d/cejail" ] &&
		cmp "$work/$1/etc/apparmor.d/cejail" "$work/$1/usr/share/cejail/apparmor/cejail"
}
check "make install APPARMOR=yes installs the profile" installs yes
check "make install APPARMOR=3.0 installs it for older parsers" installs 3.0
none_unasked() {
	! make -n -o all install DESTDIR="$work/none" | grep -F "$work/none/etc"
}
check "make install alone writes nothing below /etc" none_unasked
refuses_shared() { ! make -n install APPARMOR=yes STATIC=no; }
check "a program with shared libraries, into which LD_PRELOAD brings any code, gets no profile" refuses_shared

# The rules of a profile, without comments.
rules_of() { sed -n "/^profile $1 /,/^}/{ /^\t/s/^\t//p }" "$work/yes/etc/apparmor.d/cejail"; }
names_programs() {
	local path
	grep -q '^profile cejail /usr/bin/cejail ' "$work/yes/etc/apparmor.d/cejail" || return 1
	for path in $(rules_of cejail | sed -n 's|^Px \([^ ]*\) .*|\1|p'); do
		[ -x "$work/yes$path" ] || { echo "$path is not installed"; return 1; }
	done
	! grep -F /usr/local/bin/cejail "$work/yes/etc/apparmor.d/cejail"
}
check "it names the installed programs" names_programs
stacks_others() {
	rules_of cejail | grep -qxF 'px /[^%]** -> cejail//&cejail-inside,' &&
		! rules_of cejail | grep -E '^[A-Za-z]*x ' |
			grep -vE '^px [^ ]+ -> cejail//&cejail-(inside|helper|zygote),$|^Px /usr/(bin/cejail|libexec/cejail/[a-z-]+) -> cejail(//&cejail-helper)?,$' &&
		! sed 's/#.*//' "$work/yes/etc/apparmor.d/cejail" | grep unconfined
}
check "whatever cejail executes has a profile more, or is a program of its own" stacks_others
has_no_right() {
	[ -n "$(rules_of cejail-inside)" ] && [ -n "$(rules_of cejail-helper)" ] && [ -n "$(rules_of cejail-zygote)" ] &&
		! rules_of cejail-inside | grep -vE '^(file|network|unix|dbus|signal|ptrace|mqueue|io_uring),$' &&
		! { rules_of cejail-helper; rules_of cejail-zygote; } | grep -E 'userns|change_profile|all,' && rules_of cejail | grep -qx 'userns,'
}
check "only cejail itself creates user namespaces, and in a jail there is no capability and no mount" has_no_right

if ! command -v "${parser[0]}" >/dev/null; then
	echo "skip apparmor: ${parser[0]} accepts the profile: it is not installed (package apparmor)"
	exit $failed
fi
parses() {
	local file=$work/$1/etc/apparmor.d/cejail
	sed 's/^\tcapability,/\tcapabilities,/' "$file" > "$work/broken"
	"${parser[@]}" -Q -K "$file" && ! "${parser[@]}" -Q -K "$work/broken"
}
version=$("${parser[@]}" --version | sed -n '1s/[^0-9]*//p')
check "AppArmor $version accepts the form for older parsers" parses 3.0
case $version in
[0-3].*) ;; # without the rule "userns"
*) check "AppArmor $version accepts the profile" parses yes ;;
esac
exit $failed
