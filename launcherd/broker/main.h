/*
 * The channel to launcherd, for the modules that report.
 */
#ifndef BROKER_MAIN_H
#define BROKER_MAIN_H

#include <stdbool.h>

#include "protocol/message.h"

/* Sends unless the channel is full; false then. Never blocks, never ends the
 * process: the loop sees the end of the channel. */
bool channel_try(enum msg_type type, const void *msg);
/* Sends, and waits until launcherd has read enough of what came before: only
 * for what it asked for, and at the end. */
void channel_tell(enum msg_type type, const void *msg);

#endif
