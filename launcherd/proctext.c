/* launcherd: reads a text of the kernel, which is trusted, up to a limit. */
#include "launcherd/proctext.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/cleanup.h"

#define TEXT_MAX (4u << 20)

char *
proctext_read(const char *path)
{
	autofree char *text = malloc(TEXT_MAX);
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;

	if (text == NULL || fd < 0)
		return NULL;
	for (;;) {
		ssize_t n = read(fd, text + len, TEXT_MAX - 1 - len);

		if (n < 0)
			return NULL;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len == TEXT_MAX - 1)
			return NULL; /* cut text could hide a mount */
	}
	text[len] = '\0';
	return take_ptr(&text);
}
