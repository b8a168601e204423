/*
 * The shape of UTF-8; see utf8.h. Linked into every process: what it is asked
 * about comes from runs, clients and the network, so nothing is read beyond
 * `left` and nothing is believed of the bytes but their value.
 */
#include "common/utf8.h"

#include "common/size.h"

size_t
utf8_length(const void *p, size_t left)
{
	/* RFC 3629, section 4: the second byte's range depends on the first. */
	static const struct {
		unsigned char first, last, second_low, second_high, length;
	} forms[] = {
		{ 0x00, 0x7f, 0, 0, 1 },
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	const unsigned char *s = p;
	size_t i = 0;

	while (i < ARRAY_LEN(forms) &&
	    (s[0] < forms[i].first || s[0] > forms[i].last))
		i++;
	if (i == ARRAY_LEN(forms) || forms[i].length > left)
		return 0;
	if (forms[i].length > 1 &&
	    (s[1] < forms[i].second_low || s[1] > forms[i].second_high))
		return 0;
	for (size_t k = 2; k < forms[i].length; k++)
		if ((s[k] & 0xc0) != 0x80)
			return 0;
	return forms[i].length;
}

bool
utf8_valid(const void *p, size_t len)
{
	const unsigned char *s = p;
	size_t n;

	for (size_t i = 0; i < len; i += n) {
		n = utf8_length(s + i, len - i);
		if (n == 0)
			return false;
	}
	return true;
}

bool
utf8_is_control(const void *p, size_t n)
{
	const unsigned char *s = p;

	if (n == 1)
		return s[0] < 0x20 || s[0] == 0x7f;
	return n == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}
