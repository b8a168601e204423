/*
 * The sandbox setting `on`, `off`, `require` and where it came from
 * (SPEC A12..A14).  Pure.
 */
#ifndef SUPERVISOR_CONTROL_SETTING_H
#define SUPERVISOR_CONTROL_SETTING_H

#include <stddef.h>

enum setting {
	SETTING_ON = 0, /* wrap when the host offers a backend */
	SETTING_OFF,
	SETTING_REQUIRE /* an unwrapped run is refused */
};

enum setting_source {
	SETTING_FROM_OPTION = 0,
	SETTING_FROM_ENVIRONMENT,
	SETTING_FROM_CONFIGURATION,
	SETTING_FROM_DEFAULT
};

struct setting_choice {
	enum setting setting;
	enum setting_source source;
};

/* "on", "off", "require"; letter case and surrounding blanks are ignored. */
int setting_parse(const char *text, enum setting *ret);
const char *setting_name(enum setting setting);

/* "option --sandbox", "environment CC_SERVER_SANDBOX", ... */
const char *setting_source_name(enum setting_source source);

/*
 * The first of the three texts that is not NULL decides; all NULL is `on`
 * from the default.  An empty text is a value, and a bad one.  Returns 0, or
 * the exit status to end with (2; 1 if the configuration's value is bad) with
 * one line that names the source in message.
 */
int setting_choose(const char *option, const char *environment,
    const char *configuration, struct setting_choice *ret, char *message,
    size_t size);

#endif
