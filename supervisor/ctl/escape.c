/* Output for people, with text that others wrote; see escape.h. */
#include "supervisor/ctl/escape.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"

#define BLOCK 1024 /* bytes cleaned at once; each may become four */

/* How many of at most BLOCK bytes to take so that no UTF-8 character is cut:
 * bytes of a character that goes on beyond them are left for the next block. */
static size_t
block_length(const char *text, size_t len)
{
	size_t n = len < BLOCK ? len : BLOCK;
	size_t back = 0;

	if (n == len)
		return n;
	while (back < 3 && (text[n - back] & 0xc0) == 0x80)
		back++;
	/* Four bytes of continuation are no character: take them as they are. */
	return (text[n - back] & 0xc0) == 0x80 ? n : n - back;
}

void
escape_put(FILE *f, const char *text, size_t len)
{
	char clean[BLOCK * 4 + 1];

	while (len > 0) {
		size_t n = block_length(text, len);

		(void)log_clean(clean, sizeof(clean), text, n);
		(void)fputs(clean, f);
		text += n;
		len -= n;
	}
}

void
escape_puts(FILE *f, const char *text)
{
	if (text == NULL)
		text = "-";
	escape_put(f, text, strlen(text));
}

void
escape_column(FILE *f, const char *text, unsigned width)
{
	char clean[BLOCK * 4 + 1];
	unsigned columns = 0;
	size_t len, i = 0;

	if (text == NULL)
		text = "-";
	len = block_length(text, strlen(text));
	len = log_clean(clean, sizeof(clean), text, len);
	while (i < len) {
		size_t next = i + 1;

		while (next < len && (clean[next] & 0xc0) == 0x80)
			next++;
		if (columns == width)
			break;
		(void)fwrite(clean + i, 1, next - i, f);
		i = next;
		columns++;
	}
	for (; columns < width; columns++)
		(void)fputc(' ', f);
}

void
escape_printf(FILE *f, const char *fmt, ...)
{
	autofree char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		return;
	}
	escape_put(f, text, (size_t)n);
}

/* ------------------------------------------------ colour */

bool
escape_colour_on(FILE *f)
{
	const char *no = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	int fd = fileno(f);

	if (no != NULL && *no != '\0')
		return false;
	if (term == NULL || strcmp(term, "dumb") == 0)
		return false;
	return fd >= 0 && isatty(fd) == 1;
}

void
escape_colour_begin(FILE *f, enum escape_colour colour)
{
	static const char *const codes[ESCAPE_COLOURS] = {
		[ESCAPE_BOLD] = "\033[1m",
		[ESCAPE_DIM] = "\033[2m",
		[ESCAPE_RED] = "\033[31m",
		[ESCAPE_GREEN] = "\033[32m",
		[ESCAPE_YELLOW] = "\033[33m",
	};

	if (colour < ESCAPE_COLOURS && escape_colour_on(f))
		(void)fputs(codes[colour], f);
}

void
escape_colour_end(FILE *f)
{
	if (escape_colour_on(f))
		(void)fputs("\033[0m", f);
}
