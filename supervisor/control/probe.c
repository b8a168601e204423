/*
 * The probe's rows as they come from launcherd, and the report that is made of
 * them once (SPEC A1). In stockade-control. The rows are the supervisor's
 * word; what was not executed counts as not available.
 */
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/size.h"
#include "supervisor/control/control.h"

#define TOOL_FOUND 1u
#define TOOL_NEW_ENOUGH 2u

void
control_probe_row(struct control *control, unsigned row, bool available,
    const char *detail)
{
	struct control_probe *p = &control->probe;

	if (row >= PROBE_MECHANISMS || p->done)
		return;
	/* a row given twice holds only if both say so */
	p->available[row] = available && (!p->seen[row] || p->available[row]);
	p->seen[row] = true;
	(void)log_clean(p->detail[row], sizeof(p->detail[row]), detail,
	    strlen(detail));
}

static size_t
collect_rows(const struct control_probe *p,
    struct probe_row_in rows[PROBE_MECHANISMS])
{
	size_t n = 0;

	for (unsigned i = 0; i < PROBE_MECHANISMS; i++)
		if (p->seen[i])
			rows[n++] = (struct probe_row_in){ (enum probe_row)i,
				p->available[i], p->detail[i] };
	return n;
}

void
control_probe_done(struct control *control, unsigned tools, const char *error)
{
	struct probe_row_in rows[PROBE_MECHANISMS];
	const struct probe_tool tool = { "bubblewrap",
		tools == (TOOL_FOUND | TOOL_NEW_ENOUGH) };
	struct control_probe *p = &control->probe;
	struct probe_input in = {
		.system = control->host.sysname,
		.release = control->host.release,
		.machine = control->host.machine,
		.tools = &tool,
		.ntools = 1,
		.rows = rows,
		.error = error[0] != '\0' ? error : NULL,
		.microvm_note = "The enclosed VM is not in this version",
		.setting = control->setting.setting,
	};

	if (p->done)
		return;
	in.nrows = collect_rows(p, rows);
	probe_report_make(&in, &p->report);
	p->done = true;
	log_event(EV_PROBE_RESULT,
	    LF_STR(LK_BACKEND, backend_name(p->report.recommendation)),
	    LF_STR(LK_REASON, p->report.results[BACKEND_NATIVE].note));
}
