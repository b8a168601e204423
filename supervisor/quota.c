/* How often something may be logged; see quota.h. In stockaded. */
#include "supervisor/quota.h"

bool
quota_take(struct quota *quota, uint64_t now_ms, uint64_t *ret_left_out)
{
	if (quota->second != now_ms / 1000) {
		quota->second = now_ms / 1000;
		quota->used = 0;
	}
	if (quota->used >= QUOTA_MAX) {
		quota->left_out++;
		return false;
	}
	quota->used++;
	*ret_left_out = quota->left_out;
	quota->left_out = 0;
	return true;
}
