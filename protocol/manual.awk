# The tables of protocol.7 from methods.def and messages.def, as mdoc.
# Usage: awk -f manual.awk -v what=methods methods.def
#        awk -f manual.awk -v what=events methods.def
#        awk -f manual.awk -v what=messages messages.def

# Splits the arguments of a macro line: NAME(a, "b, c", d). Fills arg[1..].
function split_args(line,    i, c, quoted, n, text) {
	sub(/^[^(]*\(/, "", line)
	sub(/\)[ \t]*(\/\*.*)?$/, "", line)
	n = 1
	text = ""
	quoted = 0
	for (i = 1; i <= length(line); i++) {
		c = substr(line, i, 1)
		if (c == "\"") {
			quoted = !quoted
			continue
		}
		if (c == "," && !quoted) {
			arg[n++] = trim(text)
			text = ""
			continue
		}
		text = text c
	}
	arg[n] = trim(text)
	return n
}

function trim(text) {
	gsub(/^[ \t]+|[ \t]+$/, "", text)
	return text
}

# Text that mdoc must not take for a macro or an escape.
function plain(text) {
	gsub(/\\/, "\\e", text)
	sub(/^[.']/, "\\\\\\&&", text)
	return text
}

function sentence(text) {
	return text ~ /[.!?]$/ ? text : text "."
}

function kind(k, low, high,    unit) {
	if (k == "UINT" || k == "NUM")
		return tolower(k == "UINT" ? "int" : k) " " low ".." high
	if (k == "BOOL" || k == "ANY")
		return tolower(k)
	unit = (k == "STRS" || k == "MAPS") ? " entries" : \
	    (k == "DICT" || k == "MAP") ? " keys" : " bytes"
	return tolower(k) ", " low ".." high unit
}

function errors(text,    n, i, part, out) {
	gsub(/E\(|\)|[ \t]/, "", text)
	if (text == "0")
		return ""
	n = split(text, part, "|")
	for (i = 1; i <= n; i++)
		out = out (i > 1 ? ", " : "") error_name[part[i]]
	return out
}

function close_list() {
	if (open_list) {
		print ".El"
		open_list = 0
	}
}

function open_rows(label) {
	if (open_list == label)
		return
	close_list()
	print label ":"
	print ".Bl -tag -width Ds -offset indent -compact"
	open_list = label
}

# Names of the errors, from cause.h: X(NOT_FOUND, 6, "notFound").
BEGIN {
	while ((getline line < causes) > 0) {
		while (match(line, /X\([A-Z_]+, [0-9]+, "[a-zA-Z]+"\)/)) {
			row = substr(line, RSTART + 2, RLENGTH - 3)
			line = substr(line, RSTART + RLENGTH)
			split(row, part, /, */)
			gsub(/"/, "", part[3])
			error_name[part[1]] = part[3]
		}
	}
}

# Comments, the description of the table among them.
/^\/\*/ { comment = 1 }
comment { if (/\*\//) comment = 0; next }

# ---- methods and events
what == "methods" && /^METHOD_BEGIN/ {
	split_args($0)
	print ".It Ic " arg[2]
	text = sentence(plain(arg[5]))
	if (arg[3] == "OPERATOR")
		text = text "\nFor operators."
	print text
	failures = errors(arg[4])
}
what == "methods" && /^\tPARAM/ {
	split_args($0)
	open_rows("Parameters")
	print ".It Va " arg[1] " Pq " kind(arg[2], arg[4], arg[5]) \
	    (arg[3] == "OPTIONAL" ? ", optional" : "")
	print plain(arg[6])
}
what == "methods" && /^\tRESULT/ {
	split_args($0)
	open_rows("Result")
	print ".It Va " arg[1] " Pq " arg[2]
	print plain(arg[3])
}
what == "methods" && /^METHOD_END/ {
	close_list()
	if (failures != "")
		print "Errors: " failures "."
}
what == "events" && /^EVENT_BEGIN/ {
	split_args($0)
	print ".It Ic " arg[2]
	print sentence(plain(arg[3]))
}
what == "events" && /^\tFIELD/ {
	split_args($0)
	open_rows("Fields")
	print ".It Va " arg[1] " Pq " arg[2]
	print plain(arg[3])
}
what == "events" && /^EVENT_END/ { close_list() }

# ---- internal messages; a head may go on on the next line
what == "messages" && /^MSG_BEGIN/ { head = $0; reading = 1 }
what == "messages" && reading && !/^MSG_BEGIN/ { head = head " " trim($0) }
what == "messages" && reading && /\)[ \t]*$/ {
	reading = 0
	split_args(head)
	gsub(/PROC_/, "", arg[3])
	gsub(/PROC_/, "", arg[4])
	gsub(/ *\| */, ", ", arg[3])
	gsub(/ *\| */, ", ", arg[4])
	print ".It Ic " arg[1] " Pq " arg[2]
	print "From " tolower(arg[3]) " to " tolower(arg[4]) "."
	if (arg[6] + 0 > 0)
		print "Descriptors: " (arg[5] == arg[6] ? arg[5] : \
		    arg[5] " to " arg[6]) "."
	next
}
what == "messages" && /^\tFIELD/ {
	type = $0
	sub(/^\tFIELD_/, "", type)
	sub(/\(.*/, "", type)
	split_args($0)
	open_rows("Fields")
	print ".It Va " arg[1] " Pq " tolower(type) " " arg[2] ".." arg[3]
}
what == "messages" && /^MSG_END/ { close_list() }
