/* SPDX-License-Identifier: GPL-2.0-only */
/* The terminal while rxetop draws on it: keys one by one, a screen that leaves no trace. */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

enum { KEY_UP = 256, KEY_DOWN, KEY_PAGE_UP, KEY_PAGE_DOWN, KEY_HOME, KEY_END, KEY_ESCAPE };

/*
 * Take it over. It is restored by terminal_close(), by exit(), and before a signal ends or stops
 * the process. 0 or a negative errno.
 */
int terminal_open(void);
void terminal_close(void);
/* Whether it has another size, or is ours again after a stop, since the last call. */
bool terminal_changed(void);
void terminal_size(int *columns, int *lines);
/* Replace the screen's text. Lines are separated by newlines. */
void terminal_draw(const char *text, size_t length);
/* The next key of what can be read now; 0: there is none, -1: the terminal has gone. */
int terminal_key(void);

#endif /* TERMINAL_H */
