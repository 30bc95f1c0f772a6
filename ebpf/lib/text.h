/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers and names for terminals, and prefixes of names. */
#ifndef ROCELAB_TEXT_H
#define ROCELAB_TEXT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define TEXT_NUMBER 7 /* of text_number() and text_time(), with the end */

/* "0", "0.4", "12345", "123k", "1.23M": at most six characters, three digits at least */
void text_number(char into[TEXT_NUMBER], double value);
/* "450ns", "12.3us", "1.20ms", "4.29s" */
void text_time(char into[TEXT_NUMBER], __u64 ns);
/* A name that others chose: what is not printable ASCII becomes \xNN. */
void text_escaped(char *into, size_t size, const char *name);
bool text_has_prefix(const char *text, const char *prefix);

#endif /* ROCELAB_TEXT_H */
