#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# git.sh PRISTINE OUT VERSION PATCH...: make a git repository in OUT: the pristine driver, tagged so,
# and a commit for each patch. In the environment, SIGNER ("Name <address>") becomes the author who
# signs off, and NEW is a list of PATCH_FILE:FILE, files that are new in that patch's commit.
set -eu
. "$(dirname "$0")/fail.sh"
pristine=$1 out=$2 version=$3
shift 3
rxe=drivers/infiniband/sw/rxe

command -v git >/dev/null ||
	fail "the program git is missing" "it is not installed" "apt-get install git"
[ ! -e "$out" ] ||
	fail "$out exists" "what was changed there may not have been written back" \
		"make renew, then remove the folder"

# as PERSON WORDS...: commit in that name
as() {
	person=$1
	shift
	GIT_AUTHOR_NAME=${person% <*} GIT_COMMITTER_NAME=${person% <*} \
		GIT_AUTHOR_EMAIL=$(expr "$person" : '.*<\(.*\)>') GIT_COMMITTER_EMAIL=$(expr "$person" : '.*<\(.*\)>') \
		git -c core.hooksPath=/dev/null -c commit.gpgSign=false commit -q --cleanup=whitespace "$@"
}

mkdir -p "$out"
cp -R "$pristine/drivers" "$out/"
cd "$out"
git init -q .
git add -A
as "rocelab developers <rocelab@localhost>" -m "rxe $version"
git tag pristine

for p; do
	git mailinfo -k .git/text .git/diff <"$p" >.git/mail
	from=$(sed -n 's/^Author: //p' .git/mail)
	signer="$from <$(sed -n 's/^Email: //p' .git/mail)>"
	{
		sed -n 's/^Subject: \[PATCH\] //p' .git/mail
		echo
		if [ -n "${SIGNER:-}" ]; then
			grep -v '^Signed-off-by: ' .git/text
			echo "Signed-off-by: $SIGNER"
		else
			cat .git/text
		fi
	} >.git/message
	said=$(LC_ALL=C patch -s -p1 -F0 -N -f --no-backup-if-mismatch <"$p") ||
		fail "$(basename "$p") does not apply: $said" "the driver has changed since it was made" \
			"take another kernel of the line, or adapt $p"
	for new in ${NEW:-}; do
		[ "${new%%:*}" != "$(basename "$p")" ] || cp "${new#*:}" $rxe/
	done
	git add -A
	GIT_AUTHOR_DATE=$(sed -n 's/^Date: //p' .git/mail) as "${SIGNER:-$signer}" -F .git/message
done
