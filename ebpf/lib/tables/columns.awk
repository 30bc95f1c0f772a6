# SPDX-License-Identifier: GPL-2.0-only
# Columns of a CSV file of tables/ by their names: column["name"]. Lines that are comments or the
# head never reach the rules of the program that follows. Nothing is read of a quoted column with
# commas or of the columns that follow it.

BEGIN { FS = "," }

# a value that becomes part of a C identifier
function word(name,   value) {
	value = cell(name)
	if (value !~ /^[A-Za-z0-9_]+$/)
		fail("'" value "' is not a word")
	return value
}

function cell(name) {
	if (!(name in column))
		fail("no column '" name "'")
	return $column[name]
}

function fail(what) {
	print FILENAME ":" FNR ": " what > "/dev/stderr"
	failed = 1
	exit 1
}

/^#/ { next }
!head {
	for (i = 1; i <= NF; i++)
		column[$i] = i
	head = 1
	next
}
