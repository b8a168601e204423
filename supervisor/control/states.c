/*
 * In stockade-control: states of a session and the moves between them (SPEC K2,
 * K3). A table, no I/O.
 */
#include <string.h>

#include "supervisor/control/session.h"

static const char *const state_names[SESSION_STATES] = { "created", "warm",
	"active", "suspended", "destroyed", "error" };

#define TO(s) (1u << SESSION_##s)
#define TO_END (TO(DESTROYED) | TO(ERROR))
static const unsigned moves[SESSION_STATES] = {
	[SESSION_CREATED] = TO(WARM) | TO_END,
	[SESSION_WARM] = TO(ACTIVE) | TO(SUSPENDED) | TO_END,
	[SESSION_ACTIVE] = TO(WARM) | TO(SUSPENDED) | TO_END,
	[SESSION_SUSPENDED] = TO(WARM) | TO(ACTIVE) | TO_END,
	[SESSION_DESTROYED] = 0,
	[SESSION_ERROR] = TO(DESTROYED),
};

const char *
session_state_name(enum session_state state)
{
	return (unsigned)state < SESSION_STATES ? state_names[state] :
						  "unknown";
}

int
session_state_find(const char *name)
{
	for (int i = 0; i < SESSION_STATES; i++)
		if (strcmp(state_names[i], name) == 0)
			return i;
	return -1;
}

bool
session_move_permitted(enum session_state from, enum session_state to)
{
	return (unsigned)from < SESSION_STATES &&
	    (unsigned)to < SESSION_STATES && (moves[from] & (1u << to)) != 0;
}
