/*
 * Unicode host names to A-labels: see idna.h.  Runs in stockade-control on
 * the operator's configuration only.
 */
#include "supervisor/control/idna.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/size.h"

#define LABEL_POINTS 63 /* code points of a label; more cannot fit anyway */

/* RFC 3492 section 5. */
#define PUNY_BASE 36u
#define PUNY_TMIN 1u
#define PUNY_TMAX 26u
#define PUNY_SKEW 38u
#define PUNY_DAMP 700u
#define PUNY_BIAS 72u
#define PUNY_N 128u

struct range {
	uint32_t first;
	uint32_t last;
	uint32_t step; /* 2 where upper and lower case alternate */
};

/*
 * Code points that RFC 5892 calls PVALID, that no case mapping changes and
 * that NFC leaves alone; without those that IDNA2003 mapped to others.
 */
static const struct range letters[] = {
	{ 0x00e0, 0x00f6, 1 }, { 0x00f8, 0x00ff, 1 },
	{ 0x0101, 0x0131, 2 }, /* Latin Extended-A, lower case */
	{ 0x0135, 0x0137, 2 }, { 0x013a, 0x013e, 2 }, { 0x0142, 0x0148, 2 },
	{ 0x014b, 0x0177, 2 }, { 0x017a, 0x017e, 2 },
	{ 0x03ac, 0x03af, 1 }, /* Greek, without final sigma */
	{ 0x03b1, 0x03c1, 1 }, { 0x03c3, 0x03ce, 1 },
	{ 0x0430, 0x045f, 1 }, /* Cyrillic */
	{ 0x0491, 0x0491, 1 }, { 0x05d0, 0x05ea, 1 }, /* Hebrew */
	{ 0x0620, 0x063f, 1 }, /* Arabic */
	{ 0x0641, 0x064a, 1 }, { 0x3041, 0x3096, 1 }, /* Hiragana */
	{ 0x30a1, 0x30fa, 1 }, /* Katakana */
	{ 0x30fc, 0x30fc, 1 }, { 0x4e00, 0x9fff, 1 }, /* Han */
	{ 0xac00, 0xd7a3, 1 }, /* Hangul */
};

static bool
is_letter(uint32_t c)
{
	for (size_t i = 0; i < ARRAY_LEN(letters); i++)
		if (c >= letters[i].first && c <= letters[i].last)
			return (c - letters[i].first) % letters[i].step == 0;
	return false;
}

/* One UTF-8 sequence of 2 or 3 bytes; the letters need no longer ones. */
static size_t
decode(const unsigned char *p, size_t len, uint32_t *ret)
{
	uint32_t c;

	if (len >= 2 && (p[0] & 0xe0) == 0xc0 && (p[1] & 0xc0) == 0x80) {
		c = ((uint32_t)(p[0] & 0x1f) << 6) | (p[1] & 0x3f);
		if (c < 0x80)
			return 0;
		*ret = c;
		return 2;
	}
	if (len >= 3 && (p[0] & 0xf0) == 0xe0 && (p[1] & 0xc0) == 0x80 &&
	    (p[2] & 0xc0) == 0x80) {
		c = ((uint32_t)(p[0] & 0x0f) << 12) |
		    ((uint32_t)(p[1] & 0x3f) << 6) | (p[2] & 0x3f);
		if (c < 0x800 || (c >= 0xd800 && c <= 0xdfff))
			return 0;
		*ret = c;
		return 3;
	}
	return 0;
}

/* Output with room for the terminator. */
struct out {
	char *text;
	size_t size;
	size_t n;
	bool full;
};

static void
put(struct out *out, char c)
{
	if (out->n + 1 >= out->size)
		out->full = true;
	else
		out->text[out->n++] = c;
}

static void
put_digit(struct out *out, uint32_t digit)
{
	put(out, (char)(digit < 26 ? 'a' + digit : '0' + (digit - 26)));
}

static uint32_t
adapt(uint32_t delta, uint32_t points, bool first)
{
	uint32_t k = 0;

	delta = first ? delta / PUNY_DAMP : delta / 2;
	delta += delta / points;
	for (; delta > ((PUNY_BASE - PUNY_TMIN) * PUNY_TMAX) / 2;
	     k += PUNY_BASE)
		delta /= PUNY_BASE - PUNY_TMIN;
	return k + (PUNY_BASE - PUNY_TMIN + 1) * delta / (delta + PUNY_SKEW);
}

/* One generalised variable-length integer, RFC 3492 section 6.3. */
static void
put_delta(struct out *out, uint32_t delta, uint32_t bias)
{
	uint32_t q = delta;

	for (uint32_t k = PUNY_BASE;; k += PUNY_BASE) {
		uint32_t t = k <= bias    ? PUNY_TMIN :
		    k >= bias + PUNY_TMAX ? PUNY_TMAX :
					    k - bias;

		if (q < t)
			break;
		put_digit(out, t + (q - t) % (PUNY_BASE - t));
		q = (q - t) / (PUNY_BASE - t);
	}
	put_digit(out, q);
}

/* The smallest code point of at least n. */
static uint32_t
next_point(const uint32_t *points, size_t count, uint32_t n)
{
	uint32_t least = UINT32_MAX;

	for (size_t i = 0; i < count; i++)
		if (points[i] >= n && points[i] < least)
			least = points[i];
	return least;
}

/*
 * 63 code points below 0x10000 keep delta below 2^22 + 2^16: no overflow
 * check is needed.
 */
static void
punycode(const uint32_t *points, size_t count, struct out *out)
{
	uint32_t n = PUNY_N, delta = 0, bias = PUNY_BIAS;
	uint32_t basic = 0, done;

	for (size_t i = 0; i < count; i++)
		if (points[i] < 0x80) {
			put(out, (char)points[i]);
			basic++;
		}
	if (basic > 0)
		put(out, '-');
	for (done = basic; done < count; n++, delta++) {
		uint32_t m = next_point(points, count, n);

		delta += (m - n) * (done + 1);
		n = m;
		for (size_t i = 0; i < count; i++) {
			if (points[i] < n)
				delta++;
			if (points[i] != n)
				continue;
			put_delta(out, delta, bias);
			bias = adapt(delta, done + 1, done == basic);
			delta = 0;
			done++;
		}
	}
}

/* A label with at least one byte above 0x7f. */
static int
convert_label(const char *label, size_t len, struct out *out,
    const char **ret_why)
{
	uint32_t points[LABEL_POINTS];
	size_t count = 0, step;

	for (size_t i = 0; i < len; i += step) {
		unsigned char c = (unsigned char)label[i];
		uint32_t point = c;

		step = 1;
		if (c >= 0x80) {
			step = decode((const unsigned char *)label + i, len - i,
			    &point);
			if (step == 0 || !is_letter(point)) {
				*ret_why =
				    "a character that cannot be "
				    "converted safely: write the name as "
				    "A-labels (xn--...)";
				return -EINVAL;
			}
		} else if (c >= 'A' && c <= 'Z') {
			point = c - 'A' + (uint32_t)'a';
		}
		if (count == LABEL_POINTS) {
			*ret_why = "a label is too long";
			return -EINVAL;
		}
		points[count++] = point;
	}
	for (const char *p = "xn--"; *p != '\0'; p++)
		put(out, *p);
	punycode(points, count, out);
	return 0;
}

static bool
is_ascii(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] >= 0x80)
			return false;
	return true;
}

int
idna_to_ascii(const char *text, size_t len, char *out, size_t size,
    const char **ret_why)
{
	struct out o = { .text = out, .size = size };
	size_t from = 0;
	int r;

	if (size == 0)
		return -ENOSPC;
	for (;;) {
		const char *dot = memchr(text + from, '.', len - from);
		size_t n =
		    dot != NULL ? (size_t)(dot - text) - from : len - from;

		if (is_ascii(text + from, n)) {
			for (size_t i = 0; i < n; i++)
				put(&o, text[from + i]);
		} else {
			r = convert_label(text + from, n, &o, ret_why);
			if (r < 0)
				return r;
		}
		if (dot == NULL)
			break;
		put(&o, '.');
		from += n + 1;
	}
	o.text[o.n] = '\0';
	return o.full ? -ENOSPC : 0;
}
