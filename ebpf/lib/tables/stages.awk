# SPDX-License-Identifier: GPL-2.0-only
# tables/stages.csv as lists for the C preprocessor, one for each event:
# X(WQE, "wqe", 0, REQUESTS, 0): identifier, name, part of the capsule's sum or not, who passes it,
# there on the stock driver or not.

function flag(name,   value) {
	value = word(name)
	return value == "none" || value == "no" ? 0 : 1
}

{
	list = toupper(word("event"))
	if (!(list in rows))
		lists[++nlists] = list
	rows[list] = rows[list] " \\\n\tX(" toupper(word("stage")) ", \"" word("stage") "\", " \
		     flag("capsule") ", " toupper(word("passed")) ", " flag("stock") ")"
}

END {
	if (failed)
		exit 1
	for (i = 1; i <= nlists; i++)
		print "#define " lists[i] "_STAGES(X)" rows[lists[i]]
}
