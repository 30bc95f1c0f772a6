# SPDX-License-Identifier: GPL-2.0-only
# tables/opcode_classes.csv as a list for the C preprocessor: X(WRITE, "RDMA_WRITE", 0): class, name,
# a response or not.

{
	rows = rows " \\\n\tX(" toupper(word("class")) ", \"" word("name") "\", " \
	       (word("response") == "yes") ")"
}

END {
	if (failed)
		exit 1
	print "#define OPCODE_CLASSES(X)" rows
}
