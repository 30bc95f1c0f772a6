// SPDX-License-Identifier: GPL-2.0-or-later
#include "json.h"

void json_string(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte == '"' || byte == '\\')
			fprintf(out, "\\%c", byte);
		else if (byte < ' ')
			fprintf(out, "\\u%04x", byte);
		else
			putc(byte < 0x7f ? byte : '?', out);
	}
	putc('"', out);
}
