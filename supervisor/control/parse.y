/*
 * The grammar of stockade.conf(5), in the manner of pf.conf.  Linked into
 * stockade-control only.
 *
 * Actions call conf_build.c, which owns every word; nothing is freed here.
 * After an error the rest of the sentence is skipped, so all errors are
 * found in one pass.
 */
%define api.pure full
%define api.prefix {conf_yy}
%define parse.error custom
%param { struct build *b }
%expect 0

%code requires {
#include "supervisor/control/conf_build.h"
}

%code {
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/size.h"

#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wswitch-enum"

static int conf_yylex(union CONF_YYSTYPE *value, struct build *b);
static void conf_yyerror(struct build *b, const char *text);
}

%union {
	struct build_word *word;
	struct build_list list;
}

%token END 0 "end of file"
%token NEWLINE "end of line"
%token OPEN "{"
%token CLOSE "}"
%token BAD "bad text"
%token LATER "a sentence of a later version"
%token <word> TEXT "a word"
%token ADDITIONS "additions"
%token ADMIN_GROUP "admin-group"
%token ALLOW "allow"
%token BACKEND "backend"
%token BASELINE "baseline"
%token CLIENT_GROUP "client-group"
%token DEFAULT "default"
%token DENY "deny"
%token EGRESS "egress"
%token EXCEPT "except"
%token FOR "for"
%token HOME_MOUNT "home-mount"
%token GUARD "guard"
%token HOST "host"
%token INCLUDE "include"
%token LEVEL "level"
%token LIMIT "limit"
%token LOG "log"
%token METRICS "metrics"
%token NAME "name"
%token NAME_EXEMPTIONS "name-exemptions"
%token PERMIT "permit"
%token PORT "port"
%token PRIVATE "private"
%token READ "read"
%token RUN_USER "run-user"
%token RUNTIME_DIR "runtime-dir"
%token SANDBOX "sandbox"
%token SOCKET "socket"
%token STATE_DIR "state-dir"
%token SYSTEM_PATH "system-path"
%token TERMINAL "terminal"
%token USER_NAMESPACES "user-namespaces"
%token WRITE "write"

%type <word> port
%type <list> list words

%%

file:
	%empty
	| file NEWLINE
	| file sentence NEWLINE		{ build_line(b, true); }
	| file error NEWLINE		{ build_line(b, false); yyerrok; }
	;

sentence:
	INCLUDE TEXT			{ build_include(b, $2); }
	| SANDBOX TEXT			{ build_sandbox(b, $2); }
	| BACKEND DEFAULT TEXT		{ build_backend(b, $3); }
	| GUARD TEXT			{ build_guard(b, $2); }
	| TERMINAL DEFAULT TEXT		{ build_terminal(b, $3); }
	| RUN_USER TEXT			{ build_run_user(b, $2); }
	| CLIENT_GROUP TEXT		{ build_group(b, BUILD_CLIENT_GROUP, $2); }
	| ADMIN_GROUP TEXT		{ build_group(b, BUILD_ADMIN_GROUP, $2); }
	| SOCKET TEXT			{ build_dir(b, BUILD_SOCKET, $2); }
	| STATE_DIR TEXT		{ build_dir(b, BUILD_STATE_DIR, $2); }
	| RUNTIME_DIR TEXT		{ build_dir(b, BUILD_RUNTIME_DIR, $2); }
	| LOG LEVEL TEXT		{ build_log(b, $3); }
	| METRICS TEXT			{ build_metrics(b, $2); }
	| EGRESS ADDITIONS TEXT		{ build_switch(b, BUILD_ADDITIONS, $3); }
	| PERMIT USER_NAMESPACES TEXT	{ build_switch(b, BUILD_USER_NAMESPACES, $3); }
	| ALLOW HOST list port		{ build_allow(b, &$3, $4); }
	| DENY HOST list		{ build_deny(b, &$3); }
	| BASELINE EXCEPT list		{ build_except(b, &$3); }
	| PERMIT PRIVATE list FOR list	{ build_private(b, &$3, &$5); }
	| DENY NAME list		{ build_deny_names(b, &$3); }
	| PERMIT NAME_EXEMPTIONS TEXT	{ build_switch(b, BUILD_NAME_EXEMPTIONS, $3); }
	| DENY READ list		{ build_paths(b, BUILD_DENY_READ, &$3); }
	| DENY WRITE list		{ build_paths(b, BUILD_DENY_WRITE, &$3); }
	| SYSTEM_PATH list		{ build_paths(b, BUILD_SYSTEM_PATH, &$2); }
	| PERMIT HOME_MOUNT list	{ build_paths(b, BUILD_HOME_MOUNT, &$3); }
	| LIMIT TEXT TEXT		{ build_limit(b, $2, $3); }
	| LATER				{ build_later(b, ""); }
	| DENY LATER			{ build_later(b, "deny "); }
	| PERMIT LATER			{ build_later(b, "permit "); }
	;

port:
	%empty				{ $$ = NULL; }
	| PORT TEXT			{ $$ = $2; }
	;

list:
	TEXT				{ $$.first = $$.last = $1; }
	| OPEN words CLOSE		{ $$ = $2; }
	;

words:
	%empty				{ $$.first = $$.last = NULL; }
	| words TEXT {
		$$ = $1;
		if ($$.last == NULL)
			$$.first = $2;
		else
			$$.last->next_in_list = $2;
		$$.last = $2;
	}
	;

%%

struct keyword {
	const char *word;
	int token;
};

/*
 * Words outside of lists and quotes.  LATER: the parts of SPEC Z4..Z9 that
 * this version does not have; their sentences are refused whole (Z13).
 */
static const struct keyword keywords[] = {
	{ "additions", ADDITIONS },
	{ "admin-group", ADMIN_GROUP },
	{ "allow", ALLOW },
	{ "audit", LATER },
	{ "autonomy", LATER },
	{ "backend", BACKEND },
	{ "baseline", BASELINE },
	{ "client-group", CLIENT_GROUP },
	{ "default", DEFAULT },
	{ "deny", DENY },
	{ "egress", EGRESS },
	{ "except", EXCEPT },
	{ "for", FOR },
	{ "github", LATER },
	{ "guard", GUARD },
	{ "home-mount", HOME_MOUNT },
	{ "host", HOST },
	{ "include", INCLUDE },
	{ "level", LEVEL },
	{ "limit", LIMIT },
	{ "log", LOG },
	{ "loopback-port", LATER },
	{ "managed", LATER },
	{ "metrics", METRICS },
	{ "name", NAME },
	{ "name-exemptions", NAME_EXEMPTIONS },
	{ "permit", PERMIT },
	{ "port", PORT },
	{ "private", PRIVATE },
	{ "read", READ },
	{ "run-user", RUN_USER },
	{ "runtime-dir", RUNTIME_DIR },
	{ "sandbox", SANDBOX },
	{ "sni", LATER },
	{ "socket", SOCKET },
	{ "state-dir", STATE_DIR },
	{ "system-path", SYSTEM_PATH },
	{ "template", LATER },
	{ "terminal", TERMINAL },
	{ "token", LATER },
	{ "unix-socket", LATER },
	{ "upstream", LATER },
	{ "user-namespaces", USER_NAMESPACES },
	{ "write", WRITE },
};

/*
 * `microvm` begins a sentence of a later version but is also a value of
 * `backend default`, so it counts only at the beginning of a line.
 */
static const struct keyword first_words[] = {
	{ "microvm", LATER },
};

static const struct keyword *
keyword_find(const struct keyword *table, size_t n,
    const struct lex_token *token)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(table[i].word) == token->len &&
		    memcmp(table[i].word, token->text, token->len) == 0)
			return &table[i];
	return NULL;
}

/* A word's token: a keyword, or text that the builder keeps. */
static int
word_token(struct build *b, const struct lex_token *token, bool in_list,
    union CONF_YYSTYPE *value)
{
	const struct keyword *k = NULL;

	if (token->kind == LEX_WORD && !in_list) {
		if (!b->line_begun)
			k = keyword_find(first_words, ARRAY_LEN(first_words),
			    token);
		if (k == NULL)
			k = keyword_find(keywords, ARRAY_LEN(keywords), token);
	}
	if (k != NULL) {
		b->seen = k->word;
		if (k->token == LATER) {
			b->later = k->word;
			b->skipping = true;
		}
		return k->token;
	}
	value->word = build_word(b, token);
	if (value->word == NULL)
		return END;
	b->seen = value->word->text;
	return TEXT;
}

/* The next token of the sentence; the end of a file ends its line too. */
static void
next_raw(struct build *b, struct lex_token *token, bool *ret_in_list)
{
	for (;;) {
		struct build_file *file = &b->files[b->depth - 1];

		*ret_in_list = file->lex.in_list;
		lex_next(&file->lex, token);
		b->here.file = file->name;
		b->here.line = token->line;
		if (token->kind != LEX_END)
			return;
		if (b->line_begun) {
			token->kind = LEX_NEWLINE;
			return;
		}
		if (!build_pop(b))
			return;
	}
}

static int
conf_yylex(union CONF_YYSTYPE *value, struct build *b)
{
	static const int tokens[] = {
		[LEX_END] = END,
		[LEX_NEWLINE] = NEWLINE,
		[LEX_OPEN] = OPEN,
		[LEX_CLOSE] = CLOSE,
		[LEX_BAD] = BAD,
	};
	struct lex_token token;
	bool in_list;
	int code;

	if (b->no_memory || b->too_much)
		return END;
	do {
		next_raw(b, &token, &in_list);
	} while (b->skipping && token.kind != LEX_NEWLINE &&
	    token.kind != LEX_END);
	if (token.kind == LEX_BAD) {
		build_error(b, &b->here, "%s", token.fault);
		b->quiet = true;
		b->skipping = true;
	}
	if (token.kind == LEX_WORD || token.kind == LEX_STRING) {
		code = word_token(b, &token, in_list, value);
	} else {
		code = tokens[token.kind];
		b->seen = NULL;
	}
	if (token.kind == LEX_NEWLINE || token.kind == LEX_END) {
		b->line_begun = false;
		b->skipping = false;
		b->quiet = false;
	} else {
		b->line_begun = true;
	}
	return code;
}

/* Only "memory exhausted" comes here; errors of form go to the function below. */
static void
conf_yyerror(struct build *b, const char *text)
{
	build_error(b, &b->here, "%s", text);
	b->too_much = true;
}

/* "unexpected X, expected A, B or C", or the word nobody knows. */
static int
yyreport_syntax_error(const yypcontext_t *context, struct build *b)
{
	enum { NAMES = 5 };
	yysymbol_kind_t expected[NAMES];
	yysymbol_kind_t found = yypcontext_token(context);
	char text[256];
	size_t used = 0;
	int n;

	if (b->quiet || b->no_memory || b->too_much)
		return 0;
	n = yypcontext_expected_tokens(context, expected, NAMES);
	for (int i = 0; i < n; i++)	/* nobody should write these */
		if (expected[i] == YYSYMBOL_LATER)
			expected[i--] = expected[--n];
	for (int i = 0; i < n && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
		    "%s%s", i == 0 ? ", expected " :
		    i == n - 1 ? " or " : ", ", yysymbol_name(expected[i]));
	if (n <= 0)	/* more than NAMES */
		text[0] = '\0';
	if (found == YYSYMBOL_TEXT && n <= 0)
		build_error(b, &b->here, "unknown word \"%s\"", b->seen);
	else if (b->seen != NULL)
		build_error(b, &b->here, "unexpected \"%s\"%s", b->seen, text);
	else
		build_error(b, &b->here, "unexpected %s%s",
		    yysymbol_name(found), text);
	/* one error a sentence: what follows in it would only repeat it */
	b->skipping = found != YYSYMBOL_NEWLINE && found != YYSYMBOL_YYEOF;
	return 0;
}

int
build_parse(struct build *b)
{
	int r = conf_yyparse(b);

	if (b->no_memory || r == 2)
		return -ENOMEM;
	if (r != 0)	/* given up at the end of the file; told already */
		b->failed = true;
	return 0;
}
