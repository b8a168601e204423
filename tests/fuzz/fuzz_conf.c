/*
 * The configuration.  The input is the main file; what follows a byte 0xff
 * is the text of every include.  Properties: a refusal has at least one
 * error, all of them printable; what is accepted, printed and read again
 * prints the same.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/control/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

struct part {
	const uint8_t *data;
	size_t len;
};

static int
give_part(void *arg, const char *name, size_t max, char **ret_text,
    size_t *ret_len, const char **ret_why)
{
	const struct part *part = arg;

	if (strchr(name, '/') != NULL)
		abort(); /* the parser checks names */
	if (part->data == NULL || part->len > max) {
		*ret_why = "absent";
		return -ENOENT;
	}
	/* exactly the size, so that a sanitizer sees a byte too many */
	*ret_text = malloc(part->len > 0 ? part->len : 1);
	if (*ret_text == NULL)
		return -ENOMEM;
	memcpy(*ret_text, part->data, part->len);
	*ret_len = part->len;
	return 0;
}

static void
check_errors(const struct conf_errors *errors)
{
	if (errors->n == 0)
		abort();
	for (size_t i = 0; i < errors->n; i++)
		for (const char *p = errors->list[i].text; *p != '\0'; p++)
			if ((unsigned char)*p < ' ' || *p == 0x7f)
				abort();
}

static char *
print(const struct conf *conf, size_t *ret_len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_len);

	if (out == NULL || conf_print(conf, out) < 0 || fclose(out) != 0)
		abort();
	return text;
}

static void
check_round_trip(const struct conf *conf)
{
	struct conf_errors errors = { 0 };
	struct conf *again = NULL;
	size_t once_len, twice_len;
	char *once = print(conf, &once_len);
	char *twice;

	if (once_len <= CONF_BYTES_MAX) {
		if (conf_parse("printed", once, once_len, NULL, NULL, &again,
			&errors) != 0)
			abort();
		twice = print(again, &twice_len);
		if (once_len != twice_len || memcmp(once, twice, once_len) != 0)
			abort();
		free(twice);
		conf_free(again);
	}
	conf_errors_done(&errors);
	free(once);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *cut = len > 0 ? memchr(data, 0xff, len) : NULL;
	struct conf_errors errors = { 0 };
	struct part part = { NULL, 0 };
	struct conf *conf = NULL;
	char *text;
	int r;

	if (cut != NULL) {
		part.data = cut + 1;
		part.len = len - (size_t)(part.data - data);
		len = (size_t)(cut - data);
	}
	text = malloc(len > 0 ? len : 1);
	if (text == NULL)
		return 0;
	if (len > 0)
		memcpy(text, data, len);
	r = conf_parse("fuzz", text, len, give_part, &part, &conf, &errors);
	free(text);
	if (r == -EINVAL) {
		check_errors(&errors);
	} else if (r == 0) {
		if (errors.n != 0 || errors.dropped != 0)
			abort();
		check_round_trip(conf);
		conf_free(conf);
	}
	conf_errors_done(&errors);
	return 0;
}
