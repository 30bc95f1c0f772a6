# SPDX-License-Identifier: GPL-2.0-only
# tables/opcodes.csv as a list for the C preprocessor: X(0x06, "RC_RDMA_WRITE_FIRST", WRITE,
# LEN_RETH): code, name, class, length of its extended headers.

{
	length_ = cell("headers") == "" ? "0" : "LEN_" toupper(cell("headers"))
	gsub(/ /, " + LEN_", length_)
	rows = rows " \\\n\tX(" word("code") ", \"" word("name") "\", " toupper(word("class")) \
	       ", " length_ ")"
}

END {
	if (failed)
		exit 1
	print "#define OPCODES(X)" rows
}
