#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# mail.sh KERNEL PRISTINE OUT VERSION PATCH...: write the mails of the series to OUT. They come by theme:
# patches/GROUP/covers/ has a cover letter for each, in the order in which they apply, and below a line
# of two dashes the names of its patches without their numbers. Events and v1 follow the fixes as RFCs.
# Whoever git says you are signs off.
set -eu
. "$(dirname "$0")/fail.sh"
. "$(dirname "$0")/new-files.sh"
kernel=$1 pristine=$2 out=$3 version=$4
shift 4

name=$(git config user.name) || name=
address=$(git config user.email) || address=
[ -n "${name:+$address}" ] ||
	fail "nobody signs off" "git knows no name or address of yours" \
		"git config --global user.name NAME; git config --global user.email ADDRESS"

rm -rf "$out"
mkdir -p "$out"
SIGNER="$name <$address>" NEW=$(new_files "$kernel") \
	sh "$kernel/scripts/git.sh" "$pristine" "$out/git" "$version" "$@"

in_git() {
	git -C "$out/git" -c core.hooksPath=/dev/null -c commit.gpgSign=false "$@"
}

# NAME COMMIT, a line for each patch
in_git rev-list --reverse pristine..HEAD >"$out/commits"
for p; do
	file=$(basename "$p" .patch)
	echo "${file#????-}"
done | paste -d' ' - "$out/commits" >"$out/named"
series=$(in_git rev-parse HEAD)
in_git checkout -q -b mail pristine

# mails FOLDER COVER NAMES OPTIONS...: put these patches on top, and write them as mails
mails() {
	folder=$1 cover=$2 names=$3
	shift 3
	base=$(in_git rev-parse HEAD)
	for name in $names; do
		commit=$(sed -n "s/^$name //p" "$out/named")
		[ -n "$commit" ] || continue # left out
		said=$(in_git cherry-pick "$commit" 2>&1) ||
			fail "$name does not apply in the order of the mails: $said" \
				"it needs a patch of a later theme" "move it in patches/*/covers"
	done
	in_git format-patch -q --cover-letter --zero-commit "$@" -o "$out/$folder" "$base..HEAD"
	sed -e 1,2d -e '/^--$/,$d' "$cover" >"$out/blurb"
	sed -i -e "s|\*\*\* SUBJECT HERE \*\*\*|$(head -n 1 "$cover")|" \
		-e "/\*\*\* BLURB HERE \*\*\*/{" -e "r $out/blurb" -e 'd' -e '}' "$out/$folder"/0000-*
	echo "wrote $out/$folder: $(sed -n 's/^Subject: //p' "$out/$folder"/0000-* | head -n 1)"
}

for group in fixes events v1; do
	for cover in "$kernel/patches/$group/covers"/*; do
		rfc=
		[ "$group" = fixes ] || rfc=--rfc
		mails "$(basename "$cover")" "$cover" "$(sed '1,/^--$/d' "$cover")" $rfc
	done
done
[ -z "$(in_git diff --name-only "$series")" ] ||
	fail "the mails make another driver than the series" "a patch is in no theme" \
		"see patches/*/covers"
rm "$out/blurb" "$out/commits" "$out/named"
