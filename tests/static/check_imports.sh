#!/bin/sh
# stockaded is root and must parse nothing that comes from outside: its binary
# holds no RPC, HTTP, TLS, shell or JSON code and loads no library for one. The
# twin runs the same check over stockade-control, where it must find something:
# so the check can fail.
build=${STOCKADE_BUILD:-.}
supervisor=$build/sbin/stockaded
control=$build/libexec/stockade-control

# Libraries that may be loaded, by the start of their names.
libraries='^(libc|libevent_core[^ ]*|libcap-ng|libseccomp|ld-linux[^ ]*|libasan|libubsan|libm|libgcc_s|libpthread|libdl|linux-vdso)\.so'
# Symbols (ours and imported) of code that has no business here. The packer of
# msgpack-c is inline, writes only, and leaves no such symbol.
symbols='rpc_|msgpack_unpack|msgpack_zone|http1_|SSL_|EVP_|json|curl_|shell_|yyparse|conf_parse|lex_|hostname_parse|plan_decode|lookup_.*_decode|egress_lists_decode|getaddrinfo|inet_pton|regcomp|wordexp|popen|^system$'

# Names of every function that is defined or imported; the program is not
# stripped in the build tree.
names() {
	nm "$1" 2>/dev/null | awk '{ print $NF }' | sed 's/@.*//'
	nm -D "$1" 2>/dev/null | awk '{ print $NF }' | sed 's/@.*//'
}

found_libraries() {
	readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' |
	    grep -Ev "$libraries"
}

found_symbols() {
	names "$1" | grep -E "$symbols" | sort -u
}

n=0
failed=0
result() { # NAME TEXT: not ok when there is text
	n=$((n + 1))
	if test -z "$2"; then
		echo "ok $n - $1"
	else
		failed=1
		echo "not ok $n - $1"
		echo "$2" | sed 's/^/# /'
	fi
}

if ! test -x "$supervisor" || ! test -x "$control"; then
	echo "1..0 # SKIP not built: $supervisor, $control"
	exit 0
fi

echo 1..5
result "stockaded has a symbol table to look at" \
    "$(names "$supervisor" | grep -qx clients_add || echo 'none found')"
result "stockaded loads no parser" "$(found_libraries "$supervisor")"
result "stockaded holds no parser" "$(found_symbols "$supervisor")"
result "twin: the check of libraries fails for stockade-control" \
    "$(test -n "$(found_libraries "$control")" || echo 'nothing found')"
result "twin: the check of symbols fails for stockade-control" \
    "$(test -n "$(found_symbols "$control")" || echo 'nothing found')"
exit $failed
