#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# lint.sh KERNEL: run checkpatch on the series of each line and on the sources, and shellcheck on the
# scripts; check what the lines have otherwise.
set -eu
. "$(dirname "$0")/fail.sh"
cd "$1"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0

sh scripts/check-lines.sh . "$scratch" || status=1

for checkpatch in "${CHECKPATCH:-}" "${KDIR:-}/scripts/checkpatch.pl" \
	/usr/src/linux-source-*/scripts/checkpatch.pl /usr/src/linux-headers-*/scripts/checkpatch.pl; do
	[ -e "$checkpatch" ] && break
done
[ -e "$checkpatch" ] ||
	fail "checkpatch.pl is missing" "Debian ships it in the linux-source packages only" \
		"apt-get install linux-source and unpack it in /usr/src, or set CHECKPATCH"

# Ignore what needs a kernel tree with MAINTAINERS and history.
run() {
	perl "$checkpatch" --no-tree --quiet --show-types --strict \
		--ignore FILE_PATH_CHANGES,UNKNOWN_COMMIT_ID "$@"
}
run patches/fixes/*.patch patches/events/*.patch patches/v1/*.patch patches/test/*.patch || status=1
for fixup in patches/lines/*/*.fixup; do
	line=$(basename "$(dirname "$fixup")")
	for f in "$scratch/$line"/????-"$(basename "$fixup" .fixup)".patch; do
		run "$f" || status=1
	done
done
for f in src/*.[ch] src/test/*.[ch]; do
	[ -e "$f" ] || continue
	case $f in
	# a trace header is a data structure in macros, which checkpatch takes for bad code
	src/rxe_trace*.h | src/rxe_names.h | src/rxe_record.h | src/rxe_values.h)
		run --ignore COMPLEX_MACRO,MULTISTATEMENT_MACRO_USE_DO_WHILE,MACRO_ARG_REUSE,MACRO_WITH_FLOW_CONTROL,TRAILING_SEMICOLON,OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT,MACRO_ARG_UNUSED,MACRO_ARG_PRECEDENCE,SPACING \
			--file "$f" || status=1
		;;
	*) run --file "$f" || status=1 ;;
	esac
done
# programs of user space
for f in selftests/rdma/*.[ch]; do
	run --ignore PREFER_KERNEL_TYPES --file "$f" || status=1
done
if command -v shellcheck >/dev/null; then
	shellcheck -x -P SCRIPTDIR scripts/*.sh selftests/rdma/*.sh || status=1
fi
exit $status
