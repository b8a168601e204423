/*
 * The one lexer of the project: words, strings, braces and ends of lines.
 * It knows no keyword; parse.y maps words.  No I/O, no allocation.  The text
 * is the operator's, but may hold any bytes.
 */
#ifndef SUPERVISOR_CONTROL_LEX_H
#define SUPERVISOR_CONTROL_LEX_H

#include <stdbool.h>
#include <stddef.h>

#define LEX_TEXT_MAX 4095 /* bytes of a word or string */

enum lex_kind {
	LEX_END,
	LEX_NEWLINE, /* never inside { } */
	LEX_OPEN,
	LEX_CLOSE,
	LEX_WORD,
	LEX_STRING, /* text is between the quotes, escapes in place */
	LEX_BAD /* fault says what; the next call goes on behind it */
};

/* text points into the input. */
struct lex_token {
	enum lex_kind kind;
	unsigned line; /* from 1 */
	const char *text;
	size_t len;
	const char *fault; /* static, of LEX_BAD */
};

struct lex {
	const char *text;
	size_t len;
	size_t pos;
	unsigned line;
	bool in_list;
	unsigned list_line; /* where the open list begins */
	bool ended; /* a list left open at the end was reported */
};

/* Borrows text. */
void lex_init(struct lex *lex, const char *text, size_t len);

/* The next token; LEX_END again and again at the end. */
void lex_next(struct lex *lex, struct lex_token *ret);

/*
 * Copy a token's text with \" and \\ replaced, terminated; size must be at
 * least len + 1.  Returns the length.
 */
size_t lex_copy(const struct lex_token *token, char *out, size_t size);

#endif
