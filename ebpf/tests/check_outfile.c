// SPDX-License-Identifier: GPL-2.0-only
/* Result files: a plain file is replaced as a whole; anything else is written in place. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "outfile.h"

static char folder[] = "/tmp/check_outfile.XXXXXX";

/* a name in our folder; the buffer of the call before last is overwritten */
static const char *in_folder(const char *name)
{
	static char paths[2][PATH_MAX];
	static int next;

	next = !next;
	snprintf(paths[next], PATH_MAX, "%s/%s", folder, name);
	return paths[next];
}

static bool has_content(const char *path, const char *expected)
{
	char content[64] = "";
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(content, 1, sizeof(content) - 1, f) : 0;

	if (f)
		fclose(f);
	return f && n == strlen(expected) && !strcmp(content, expected);
}

static mode_t type_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) ? 0 : st.st_mode & S_IFMT;
}

static int write_result(const char *path, const char *text)
{
	struct outfile f = {};
	int status = outfile_open(&f, path, false);

	if (status)
		return status;
	fputs(text, f.stream);
	return outfile_commit(&f);
}

static void check_plain(void)
{
	const char *path = in_folder("plain");
	struct outfile f = {};

	CHECK(!outfile_open(&f, path, false), "a new file");
	fputs("one", f.stream);
	fflush(f.stream);
	CHECK(!type_of(path), "it is not there before it is whole");
	CHECK(!outfile_commit(&f) && has_content(path, "one"), "a new file");
	CHECK(!outfile_open(&f, path, false), "a file that is there");
	fputs("two", f.stream);
	outfile_discard(&f);
	CHECK(has_content(path, "one"), "a result that is given up leaves the old one");
	CHECK(!write_result(path, "three") && has_content(path, "three"), "the next result");
}

static void check_growing(void)
{
	const char *path = in_folder("growing");
	struct outfile f = {};

	CHECK(!write_result(path, "an old result"), "an old one");
	CHECK(!outfile_open(&f, path, true) && has_content(path, ""), "it starts anew");
	fputs("one", f.stream);
	fflush(f.stream);
	CHECK(has_content(path, "one"), "what is flushed is there");
	fputs("two", f.stream);
	CHECK(!outfile_commit(&f) && has_content(path, "onetwo"), "and so is the rest");
}

static void check_pipe(void)
{
	const char *path = in_folder("pipe");
	char got[16] = "";
	int fds[2];
	pid_t reader;

	CHECK(!mkfifo(path, 0600) && !pipe(fds), "a pipe");
	reader = fork();
	if (!reader) {
		int fd = open(path, O_RDONLY);

		alarm(10); /* if nothing arrives, the pipe was replaced */
		_exit(fd < 0 || read(fd, got, sizeof(got)) < 0 ||
		      write(fds[1], got, strlen(got)) < 0);
	}
	close(fds[1]);
	CHECK(!write_result(path, "result"), "into a pipe");
	CHECK(type_of(path) == S_IFIFO, "the pipe is still one");
	if (type_of(path) != S_IFIFO)
		kill(reader, SIGKILL);
	CHECK(read(fds[0], got, sizeof(got) - 1) == 6 && !strcmp(got, "result"),
	      "its reader got: %s", got);
	close(fds[0]);
	waitpid(reader, NULL, 0);
}

static void check_symlinks(void)
{
	const char *target = in_folder("target"), *link = in_folder("link");

	CHECK(!write_result(target, "old and long") && !symlink(target, link), "a link");
	CHECK(!write_result(link, "new"), "through a link");
	CHECK(type_of(link) == S_IFLNK, "the link is still one");
	CHECK(has_content(target, "new"), "its target is written");
	CHECK(!unlink(target) && !write_result(link, "made"), "through a link to nothing yet");
	CHECK(type_of(link) == S_IFLNK && has_content(target, "made"), "its target is made");
}

/* a terminal stands for all devices: not even root can replace it by a rename */
static void check_device(void)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY);
	const char *path = NULL;
	char got[16] = "";

	if (terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal))
		path = ptsname(terminal);
	CHECK(path, "a terminal");
	if (!path)
		return;
	CHECK(!write_result(path, "result"), "on a device");
	CHECK(type_of(path) == S_IFCHR, "the device is still one");
	fcntl(terminal, F_SETFL, O_NONBLOCK);
	CHECK(read(terminal, got, sizeof(got) - 1) == 6 && !strcmp(got, "result"), "it got: %s",
	      got);
	close(terminal);
}

static void check_stdout(void)
{
	struct outfile f = {};

	CHECK(!chdir(folder) && !outfile_open(&f, "-", false) && f.stream == stdout, "- is stdout");
	CHECK(!outfile_commit(&f) && !type_of("-"), "and no file");
}

/* whether the errors since the last call have the text and the cause, and not the other */
static bool errors_say(FILE *errors, const char *text, const char *other, const char *cause)
{
	static char said[4096];
	size_t len;

	fflush(stderr);
	rewind(errors);
	len = fread(said, 1, sizeof(said) - 1, errors);
	said[len] = 0;
	rewind(errors);
	return !ftruncate(fileno(errors), 0) && strstr(said, text) && strstr(said, cause) &&
	       !strstr(said, other);
}

/* what is wrong with a name is said, and what no other name would mend is no error of its user */
static void check_refused(void)
{
	static char longest[NAME_MAX + 2];
	const struct {
		const char *name, *said, *cause;
	} refused[] = {
		{".", "Is a directory", "a folder is given"},
		{"none/file", "No such file", "its folder is missing"},
		{"plain/file", "Not a directory", "a file, not a folder"},
		{longest, "File name too long", "longer than"},
		{"circle/file", "Too many levels", "leads back to itself"},
	};
	FILE *errors = tmpfile();
	int kept = dup(2), status, files;
	struct rlimit limit, none;
	struct outfile f = {};
	bool said;

	memset(longest, 'x', sizeof(longest) - 1);
	CHECK(errors && kept >= 0 && !symlink("circle", in_folder("circle")), "to begin with");
	for (int i = 0; i < (int)(sizeof(refused) / sizeof(*refused)); i++) {
		CHECK(dup2(fileno(errors), 2) == 2, "stderr in a file");
		status = outfile_open(&f, in_folder(refused[i].name), false);
		said = errors_say(errors, refused[i].said, "cannot name", refused[i].cause);
		dup2(kept, 2);
		CHECK(status == 2 && said, "%s", refused[i].name);
	}
	getrlimit(RLIMIT_NOFILE, &limit);
	files = dup(0);
	close(files);
	none = (struct rlimit){files, limit.rlim_max};
	dup2(fileno(errors), 2);
	setrlimit(RLIMIT_NOFILE, &none);
	status = outfile_open(&f, in_folder("plain"), false);
	setrlimit(RLIMIT_NOFILE, &limit);
	said = errors_say(errors, "Too many open files", "folder", "ulimit -n");
	dup2(kept, 2);
	CHECK(status == 1 && said, "no more files");
	close(kept);
	fclose(errors);
}

/* what cannot be written is an error, and leaves neither a result nor a temporary file */
static void check_full(void)
{
	FILE *errors = tmpfile();
	struct outfile f = {};
	int kept = dup(2), full, taken;
	bool blamed, named;
	struct stat st;

	CHECK(errors && kept >= 0 && dup2(fileno(errors), 2) == 2, "stderr in a file");
	full = write_result("/dev/full", "text");
	blamed = errors_say(errors, "No space left", "folder", "the disk is full");
	CHECK(!outfile_open(&f, in_folder("plain"), false), "a file");
	CHECK(!mkdir(in_folder("taken"), 0700), "a folder");
	f.replaced = in_folder("taken");
	taken = outfile_commit(&f);
	named = errors_say(errors, "cannot name", "the disk is full", "folder");
	dup2(kept, 2);
	CHECK(full == 1 && blamed, "a device without room");
	CHECK(taken == 1 && stat(f.temporary, &st) && named, "a name that a folder has");
	close(kept);
	fclose(errors);
}

int main(void)
{
	char command[PATH_MAX];

	CHECK(mkdtemp(folder), "%s", folder);
	check_plain();
	check_growing();
	check_pipe();
	check_symlinks();
	check_device();
	check_stdout();
	check_refused();
	check_full();
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	CHECK(!system(command), "%s", command);
	return check_end("outfile");
}
