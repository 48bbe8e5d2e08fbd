// SPDX-License-Identifier: GPL-2.0-only
/*
 * A terminal for programs that draw on one: starts a program on a pseudo terminal of
 * a given size, keeps what it draws as a screen would, types keys, and says how the
 * terminal was left. Steps are taken in their order:
 *
 *   terminal rows=24 cols=80 see=TEXT lack=TEXT type=KEYS kill=15 run=COMMAND -- PROGRAM ARG...
 *
 *   see, lack	wait until the text is, or is not, on the screen, in one row
 *   type	as if these keys were pressed
 *   kill	send the program this signal
 *   run	a command of the shell
 *
 * Then the program is to end by itself. Printed are its exit status, whether the
 * terminal's settings are as before, whether the cursor is shown, and whether the
 * program left the screen that it drew on.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <utmp.h>
#include "params.h"

enum {
	MAX_ROWS = 200,
	MAX_COLS = 400,
	MAX_NUMBERS = 16,
	/* Longest wait for what a working program does at once. */
	PATIENCE_S = 45,
};

/* ---- the screen ---- */

static char cells[MAX_ROWS][MAX_COLS + 1];
static int rows, cols, row, col;
static bool cursor_shown = true, alternate;

static void clear(void)
{
	for (int i = 0; i < MAX_ROWS; i++)
		memset(cells[i], ' ', MAX_COLS);
}

static void put(char c)
{
	if (row < MAX_ROWS && col < MAX_COLS)
		cells[row][col] = c;
	col++;
}

/* What a sequence of escape ends with, and the numbers before that. */
static void control(char final, bool private, const int *numbers)
{
	switch (final) {
	case 'H':
		row = numbers[0] ? numbers[0] - 1 : 0;
		col = numbers[1] ? numbers[1] - 1 : 0;
		break;
	case 'J':
		clear();
		break;
	case 'h':
	case 'l':
		if (private && numbers[0] == 25)
			cursor_shown = final == 'h';
		if (private && numbers[0] == 1049)
			alternate = final == 'h';
		break;
	}
}

/* One byte that the program wrote. */
static void draw(unsigned char c)
{
	static enum { TEXT, ESCAPE, SEQUENCE } state;
	static int numbers[MAX_NUMBERS], n;
	static bool private;

	switch (state) {
	case TEXT:
		if (c == 0x1b)
			state = ESCAPE;
		else if (c == '\r')
			col = 0;
		else if (c == '\n')
			row++;
		else if (c < 0x80 && c >= ' ')
			put(c);
		else if (c >= 0xc0) /* of several bytes, lines of boxes: one cell */
			put('#');
		break;
	case ESCAPE:
		state = c == '[' ? SEQUENCE : TEXT;
		memset(numbers, 0, sizeof(numbers));
		n = 0;
		private = false;
		break;
	case SEQUENCE:
		if (c == '?')
		private
		= true;
		else if (c >= '0' && c <= '9') numbers[n] = numbers[n] * 10 + c - '0';
		else if (c == ';' && n + 1 < MAX_NUMBERS) n++;
		else if (c >= '@')
		{
			control(c, private, numbers);
			state = TEXT;
		}
		break;
	}
}

static bool is_on_screen(const char *text)
{
	for (int i = 0; i < MAX_ROWS; i++)
		if (strstr(cells[i], text))
			return true;
	return false;
}

static void __attribute__((noreturn)) give_up(const char *what, const char *which)
{
	for (int i = 0; i < rows; i++)
		fprintf(stderr, "|%.*s|\n", cols, cells[i]);
	die("%s %s", what, which);
}

/* ---- the program ---- */

static int master, program_fd;
static pid_t program;

static int left_ms(time_t until)
{
	time_t now = time(NULL);

	return now < until ? (until - now) * 1000 : 0;
}

/* Takes in what is drawn, for so long at most; false if the program has ended. */
static bool take_in(int ms)
{
	struct pollfd fds[] = { { .fd = master, .events = POLLIN },
				{ .fd = program_fd, .events = POLLIN } };
	unsigned char bytes[4096];
	ssize_t n;

	if (poll(fds, 2, ms) < 0)
		die("poll: %s", strerror(errno));
	if (!fds[0].revents)
		return !fds[1].revents;
	n = read(master, bytes, sizeof(bytes));
	for (ssize_t i = 0; i < n; i++)
		draw(bytes[i]);
	return true;
}

static void await(const char *text, bool there)
{
	time_t until = time(NULL) + PATIENCE_S;

	while (is_on_screen(text) != there)
		if (!left_ms(until) || !take_in(left_ms(until)))
			give_up(there ? "there is no" : "there still is", text);
}

static void type(const char *keys)
{
	if (write(master, keys, strlen(keys)) != (ssize_t)strlen(keys))
		die("cannot type: %s", strerror(errno));
}

static int await_end(void)
{
	time_t until = time(NULL) + PATIENCE_S;
	int status;

	while (take_in(left_ms(until)))
		if (!left_ms(until))
			give_up("does not end:", "the program");
	if (waitpid(program, &status, 0) != program)
		die("wait: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool same(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
	       a->c_lflag == b->c_lflag && !memcmp(a->c_cc, b->c_cc, sizeof(a->c_cc));
}

int main(int argc, char **argv)
{
	struct termios before, after;
	struct winsize size;
	int slave, status;
	char **step;

	params = argv + 1;
	for (step = params; *step && strcmp(*step, "--"); step++)
		;
	if (!*step || !step[1])
		die("which program?");
	(void)argc;
	rows = atoi(param("rows", "24"));
	cols = atoi(param("cols", "80"));
	size = (struct winsize){ .ws_row = rows, .ws_col = cols };
	clear();
	if (openpty(&master, &slave, NULL, NULL, &size) || tcgetattr(slave, &before))
		die("no terminal: %s", strerror(errno));
	program = fork();
	if (program < 0)
		die("fork: %s", strerror(errno));
	if (!program) {
		close(master);
		login_tty(slave);
		setenv("TERM", "xterm", 1);
		execv(step[1], step + 1);
		die("%s: %s", step[1], strerror(errno));
	}
	program_fd = syscall(SYS_pidfd_open, program, 0);
	if (program_fd < 0)
		die("pidfd_open: %s", strerror(errno));
	for (step = params; strcmp(*step, "--"); step++) {
		if (!strncmp(*step, "see=", 4))
			await(*step + 4, true);
		else if (!strncmp(*step, "lack=", 5))
			await(*step + 5, false);
		else if (!strncmp(*step, "type=", 5))
			type(*step + 5);
		else if (!strncmp(*step, "kill=", 5))
			kill(program, atoi(*step + 5));
		else if (!strncmp(*step, "run=", 4) && system(*step + 4))
			die("%s: it failed", *step + 4);
	}
	status = await_end();
	/* The slave is open here still, so that the settings outlive the program. */
	if (tcgetattr(slave, &after))
		die("no terminal any more: %s", strerror(errno));
	printf("status=%d restored=%d cursor=%d alternate=%d\n", status, same(&before, &after),
	       cursor_shown, alternate);
	return 0;
}
