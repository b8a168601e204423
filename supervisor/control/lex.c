/*
 * The lexer of stockade.conf(5), in stockade-control: see lex.h.  Every call
 * moves forward or returns LEX_END, so no input makes it stand still.
 */
#include "supervisor/control/lex.h"

#include <string.h>

void
lex_init(struct lex *lex, const char *text, size_t len)
{
	memset(lex, 0, sizeof(*lex));
	lex->text = text;
	lex->len = len;
	lex->line = 1;
}

static bool
is_control(char c)
{
	return ((unsigned char)c < ' ' && c != '\t' && c != '\n') || c == 0x7f;
}

/* Ends a word without belonging to it. */
static bool
ends_word(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '{' || c == '}' ||
	    c == '#' || c == ',' || is_control(c);
}

/* Blanks and comments; inside a list ends of lines and commas too. */
static void
skip_blanks(struct lex *lex)
{
	for (; lex->pos < lex->len; lex->pos++) {
		char c = lex->text[lex->pos];

		if (c == '#') {
			const char *p = lex->text + lex->pos;
			const char *end = memchr(p, '\n', lex->len - lex->pos);

			if (end == NULL) {
				lex->pos = lex->len;
				return;
			}
			lex->pos += (size_t)(end - p);
			c = '\n';
		}
		if (c == '\n' && lex->in_list)
			lex->line++;
		else if (c != ' ' && c != '\t' && !(c == ',' && lex->in_list))
			return;
	}
}

static void
bad(struct lex_token *ret, const char *fault)
{
	ret->kind = LEX_BAD;
	ret->fault = fault;
}

static void
read_string(struct lex *lex, struct lex_token *ret)
{
	size_t at = lex->pos + 1;
	const char *fault = NULL;

	ret->kind = LEX_STRING;
	ret->text = lex->text + at;
	for (; at < lex->len && lex->text[at] != '"'; at++) {
		char c = lex->text[at];

		if (c == '\n')
			break;
		if (is_control(c) || c == '\t')
			fault = "a control byte in a string";
		if (c != '\\')
			continue;
		if (at + 1 < lex->len &&
		    (lex->text[at + 1] == '"' || lex->text[at + 1] == '\\'))
			at++;
		else
			fault = "only \\\" and \\\\ may follow a backslash "
				"in a string";
	}
	ret->len = (size_t)(lex->text + at - ret->text);
	if (at >= lex->len || lex->text[at] != '"') {
		lex->pos = at < lex->len ? at : lex->len;
		bad(ret, "a string is not closed on its line");
		return;
	}
	lex->pos = at + 1;
	if (lex->pos < lex->len && !ends_word(lex->text[lex->pos]))
		fault = "text follows a string without a blank";
	if (fault == NULL && ret->len > LEX_TEXT_MAX)
		fault = "a string is longer than 4095 bytes";
	if (fault != NULL)
		bad(ret, fault);
}

static void
read_word(struct lex *lex, struct lex_token *ret)
{
	size_t from = lex->pos;
	bool quote = false;

	while (lex->pos < lex->len && !ends_word(lex->text[lex->pos])) {
		if (lex->text[lex->pos] == '"' || lex->text[lex->pos] == '\\')
			quote = true;
		lex->pos++;
	}
	ret->kind = LEX_WORD;
	ret->text = lex->text + from;
	ret->len = lex->pos - from;
	if (quote)
		bad(ret, "a quote or backslash inside a word");
	else if (ret->len > LEX_TEXT_MAX)
		bad(ret, "a word is longer than 4095 bytes");
}

/* One byte that is a token, or that cannot begin one. */
static bool
read_single(struct lex *lex, struct lex_token *ret)
{
	char c = lex->text[lex->pos];

	if (c == '\n') {
		ret->kind = LEX_NEWLINE;
		lex->line++;
	} else if (c == '{') {
		ret->kind = LEX_OPEN;
		if (lex->in_list)
			bad(ret, "a list inside a list");
		else
			lex->list_line = lex->line;
		lex->in_list = true;
	} else if (c == '}') {
		ret->kind = LEX_CLOSE;
		lex->in_list = false;
	} else if (c == ',') {
		bad(ret, "a comma outside a list");
	} else if (c == '\0') {
		bad(ret, "a NUL byte");
	} else if (c == '\r') {
		bad(ret, "a carriage return");
	} else if (is_control(c)) {
		bad(ret, "a control byte");
	} else {
		return false;
	}
	lex->pos++;
	return true;
}

void
lex_next(struct lex *lex, struct lex_token *ret)
{
	memset(ret, 0, sizeof(*ret));
	skip_blanks(lex);
	ret->line = lex->line;
	if (lex->pos >= lex->len) {
		ret->kind = LEX_END;
		if (lex->in_list && !lex->ended) {
			ret->line = lex->list_line;
			bad(ret, "the list is not closed");
		}
		lex->ended = true;
		lex->in_list = false;
		return;
	}
	ret->text = lex->text + lex->pos;
	ret->len = 1;
	if (read_single(lex, ret))
		return;
	if (lex->text[lex->pos] == '"')
		read_string(lex, ret);
	else
		read_word(lex, ret);
}

size_t
lex_copy(const struct lex_token *token, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < token->len && n + 1 < size; i++) {
		if (token->kind == LEX_STRING && token->text[i] == '\\')
			i++;
		out[n++] = token->text[i];
	}
	out[n] = '\0';
	return n;
}
