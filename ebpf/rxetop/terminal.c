// SPDX-License-Identifier: GPL-2.0-only
#include "terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* alternate screen, no cursor, no wrapping; and back */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

static struct termios before;
static volatile sig_atomic_t is_ours, changed;

static void put(const char *text, size_t length)
{
	while (length) {
		ssize_t n = write(STDOUT_FILENO, text, length);

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return;
		if (n > 0) {
			text += n;
			length -= n;
		}
	}
}

/* both are called by handlers, too: only what is safe there */
static int enter(void)
{
	struct termios raw = before;

	raw.c_lflag &= ~(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	if (tcsetattr(STDIN_FILENO, TCSANOW, &raw))
		return -errno;
	is_ours = 1;
	put(ENTER, sizeof(ENTER) - 1);
	return 0;
}

static void leave(void)
{
	if (!is_ours)
		return;
	is_ours = 0;
	put(LEAVE, sizeof(LEAVE) - 1);
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void on_resize(int number __attribute__((unused)))
{
	changed = 1;
}

/* the end, or a stop: what the signal does without us, after the terminal is as it was */
static void on_fatal(int number)
{
	sigset_t only;

	leave();
	signal(number, SIG_DFL);
	raise(number);
	sigemptyset(&only);
	sigaddset(&only, number);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	/* only a stop comes back */
	signal(number, on_fatal);
	enter();
	changed = 1;
}

int terminal_open(void)
{
	static const int fatal[] = {SIGTSTP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
	struct sigaction resize = {.sa_handler = on_resize};

	if (tcgetattr(STDIN_FILENO, &before))
		return -errno;
	atexit(leave);
	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		signal(fatal[i], on_fatal);
	/* without SA_RESTART: poll() returns, and the screen is drawn again */
	sigaction(SIGWINCH, &resize, NULL);
	return enter();
}

void terminal_close(void)
{
	leave();
}

bool terminal_changed(void)
{
	bool was = changed;

	changed = 0;
	return was;
}

void terminal_size(int *columns, int *lines)
{
	struct winsize size = {};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row)
		size = (struct winsize){.ws_col = 80, .ws_row = 24};
	*columns = size.ws_col;
	*lines = size.ws_row;
}

void terminal_draw(const char *text, size_t length)
{
	char *whole = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&whole, &size);

	if (!out)
		return;
	fputs("\033[H", out);
	for (const char *end = text + length; text < end;) {
		const char *newline = memchr(text, '\n', end - text);
		const char *stop = newline ?: end;

		fwrite(text, 1, stop - text, out);
		fputs("\033[K", out);
		if (newline && newline + 1 < end)
			fputc('\n', out);
		text = stop + 1;
	}
	fputs("\033[J", out);
	if (!fclose(out))
		put(whole, size);
	free(whole);
}

/* one byte that is there; 0: none, -1: never again */
static int byte_now(void)
{
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	unsigned char byte;

	if (poll(&fd, 1, 0) <= 0)
		return 0;
	if (read(STDIN_FILENO, &byte, 1) == 1)
		return byte;
	return fd.revents & (POLLHUP | POLLERR | POLLNVAL) ? -1 : 0;
}

/* what follows an escape: the arrows and their neighbours; of others, nothing */
static int escaped_key(void)
{
	int byte = byte_now(), number = 0;

	if (byte != '[' && byte != 'O')
		return KEY_ESCAPE;
	for (byte = byte_now(); byte >= '0' && byte <= '9'; byte = byte_now())
		number = (10 * number + byte - '0') % 1000;
	switch (byte) {
	case 'A':
		return KEY_UP;
	case 'B':
		return KEY_DOWN;
	case 'H':
		return KEY_HOME;
	case 'F':
		return KEY_END;
	case '~':
		return number == 5 ? KEY_PAGE_UP : number == 6 ? KEY_PAGE_DOWN : KEY_ESCAPE;
	default:
		return KEY_ESCAPE;
	}
}

int terminal_key(void)
{
	int byte = byte_now();

	return byte == '\033' ? escaped_key() : byte;
}
