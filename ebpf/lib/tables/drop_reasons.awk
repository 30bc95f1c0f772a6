# SPDX-License-Identifier: GPL-2.0-only
# tables/drop_reasons.csv as a list for the C preprocessor: X(NO_DEVICE, "no_device", 0), in the
# order of the driver's numbers, which is that of the lines. 1: always in a queue pair's task.

{ rows = rows " \\\n\tX(" toupper(word("name")) ", \"" word("name") "\", " \
	(cell("place") !~ /arrival|none/) ")" }

END {
	if (failed)
		exit 1
	print "#define DROP_REASONS(X)" rows
}
