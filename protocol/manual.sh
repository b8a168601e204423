#!/bin/sh
# Writes the tables of protocol.7 anew, between its BEGIN and END lines; to
# standard output. Run from the source directory:
#	protocol/manual.sh >protocol/protocol.7.new
set -eu
dir=$(dirname "$0")
: "${AWK:=awk}"

table()
{
	"$AWK" -f "$dir/manual.awk" -v what="$1" -v causes="$dir/cause.h" "$2"
}

keep=1
while IFS= read -r line; do
	case $line in
	'.\" BEGIN methods')
		printf '%s\n' "$line"
		table methods "$dir/methods.def"
		keep=0 ;;
	'.\" BEGIN events')
		printf '%s\n' "$line"
		table events "$dir/methods.def"
		keep=0 ;;
	'.\" BEGIN messages')
		printf '%s\n' "$line"
		table messages "$dir/messages.def"
		keep=0 ;;
	'.\" END'*)
		printf '%s\n' "$line"
		keep=1 ;;
	*)
		if [ "$keep" = 1 ]; then
			printf '%s\n' "$line"
		fi ;;
	esac
done <"$dir/protocol.7"
