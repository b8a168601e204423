/*
 * The sandbox setting and its precedence (SPEC A12).  Runs in
 * stockade-control at start-up; the texts come from whoever starts it.
 */
#include "supervisor/control/setting.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/size.h"

static const char *const setting_names[] = {
	[SETTING_ON] = "on",
	[SETTING_OFF] = "off",
	[SETTING_REQUIRE] = "require",
};

static const char *const source_names[] = {
	[SETTING_FROM_OPTION] = "option --sandbox",
	[SETTING_FROM_ENVIRONMENT] = "environment CC_SERVER_SANDBOX",
	[SETTING_FROM_CONFIGURATION] = "configuration",
	[SETTING_FROM_DEFAULT] = "default",
};

int
setting_parse(const char *text, enum setting *ret)
{
	static const char blanks[] = " \t\r\n\v\f";
	size_t n;

	text += strspn(text, blanks);
	n = strlen(text);
	while (n > 0 && strchr(blanks, text[n - 1]) != NULL)
		n--;
	for (size_t i = 0; i < ARRAY_LEN(setting_names); i++) {
		if (strlen(setting_names[i]) != n ||
		    strncasecmp(setting_names[i], text, n) != 0)
			continue;
		*ret = (enum setting)i;
		return 0;
	}
	return -EINVAL;
}

const char *
setting_name(enum setting setting)
{
	return setting_names[setting];
}

const char *
setting_source_name(enum setting_source source)
{
	return source_names[source];
}

int
setting_choose(const char *option, const char *environment,
    const char *configuration, struct setting_choice *ret, char *message,
    size_t size)
{
	const char *const texts[] = { option, environment, configuration };
	enum setting setting;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (texts[i] == NULL)
			continue;
		if (setting_parse(texts[i], &setting) < 0) {
			(void)snprintf(message, size,
			    "%s: the sandbox setting must be on, off or "
			    "require",
			    source_names[i]);
			return i == SETTING_FROM_CONFIGURATION ? 1 : 2;
		}
		ret->setting = setting;
		ret->source = (enum setting_source)i;
		return 0;
	}
	ret->setting = SETTING_ON;
	ret->source = SETTING_FROM_DEFAULT;
	return 0;
}
