/*
 * Internal messages. Property: whatever decodes, encodes to the same bytes.
 * First byte: sender, second: receiver, third: descriptors.
 */
#include <stdlib.h>
#include <string.h>

#include "protocol/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	union msg_any msg;
	uint8_t buf[MSG_SIZE_MAX];
	enum proc from, to;
	ptrdiff_t n;
	int type;

	if (len < 3)
		return 0;
	from = (enum proc)(1u << data[0] % 8);
	to = (enum proc)(1u << data[1] % 8);
	type = msg_decode(data + 3, len - 3, data[2] % 9, from, to, &msg, NULL);
	if (type < 0)
		return 0;
	n = msg_encode((enum msg_type)type, &msg, from, to, data[2] % 9, buf,
	    sizeof(buf));
	if (n != (ptrdiff_t)(len - 3) || memcmp(buf, data + 3, len - 3) != 0)
		abort();
	return 0;
}
