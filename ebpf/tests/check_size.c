// SPDX-License-Identifier: GPL-2.0-only
/* Size classes: the table that BPF indexes by 64-byte units gives the class of every payload. */
#include <stdlib.h>

#include "check.h"
#include "size_class.h"

int main(void)
{
	for (unsigned int payload = 0; payload <= 0xffff; payload++) {
		unsigned int index = (payload + (1 << SIZE_UNIT_BITS) - 1) >> SIZE_UNIT_BITS;
		__u8 class = size_class_of(payload);
		const char *name = size_class_name(class);
		unsigned int low = atoi(name), high = low;
		char dash;

		CHECK(index < SIZE_TABLE_LEN, "%u is beyond the table", payload);
		CHECK(size_class_of(index << SIZE_UNIT_BITS) == class, "%u: table and class differ",
		      payload);
		if (sscanf(name, "%u%c%u", &low, &dash, &high) == 2)
			high = 0xffff;
		CHECK(low <= payload && payload <= high, "%u is not in %s", payload, name);
	}
	return check_end("size");
}
