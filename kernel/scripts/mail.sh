#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# mail.sh KERNEL PRISTINE OUT VERSION N PATCH...: write the mails of the series to OUT: fixes/ with the
# first N patches, and on top of them rfc/ with events and RoCE v1, each with a cover letter. Whoever
# git says you are signs off.
set -eu
. "$(dirname "$0")/fail.sh"
. "$(dirname "$0")/new-files.sh"
kernel=$1 pristine=$2 out=$3 version=$4 fixes=$5
shift 5

name=$(git config user.name) || name=
address=$(git config user.email) || address=
[ -n "${name:+$address}" ] ||
	fail "nobody signs off" "git knows no name or address of yours" \
		"git config --global user.name NAME; git config --global user.email ADDRESS"
signer="$name <$address>"

rm -rf "$out"
mkdir -p "$out"
SIGNER=$signer NEW=$(new_files "$kernel") sh "$kernel/scripts/git.sh" "$pristine" "$out/git" "$version" "$@"
above=$(($# - fixes))

# mails FOLDER COVER RANGE OPTIONS...: write the commits as mails with a cover letter
mails() {
	folder=$1 cover=$2 range=$3
	shift 3
	git -C "$out/git" format-patch -q --cover-letter --zero-commit "$@" -o "$folder" "$range"
	sed -i -e "s|\*\*\* SUBJECT HERE \*\*\*|$(head -n 1 "$cover")|" \
		-e "/\*\*\* BLURB HERE \*\*\*/{" -e "r $out/blurb" -e 'd' -e '}' "$folder"/0000-*
}
tail -n +3 "$kernel/patches/fixes/cover-letter" >"$out/blurb"
mails "$out/fixes" "$kernel/patches/fixes/cover-letter" "pristine..HEAD~$above"
tail -n +3 "$kernel/patches/events/cover-letter" >"$out/blurb"
mails "$out/rfc" "$kernel/patches/events/cover-letter" "HEAD~$above..HEAD" --rfc
rm "$out/blurb"
echo "wrote $out/fixes and $out/rfc ($fixes and $above patches), against rxe $version"
