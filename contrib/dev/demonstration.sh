# The guided demonstration of `./bootstrap run`; sourced by it. Every step says
# what should happen, does it in a sandbox, and compares.

STEPS=0
WRONG=0
UNSHOWN=0

# step TEXT: what is shown next.
step()
{
	STEPS=$((STEPS + 1))
	printf '\n%d. %s\n' $STEPS "$*"
}

# inside CMD...: runs CMD in a sandbox of the work directory, keeping the
# output in OUT, standard error in ERR and the status in STATUS.
inside()
{
	printf '   $ stockadectl run --'
	printf ' %q' "$@"
	printf '\n'
	in_sandbox -- "$@" >"$INSTANCE/out" 2>"$INSTANCE/err" </dev/null
	STATUS=$?
	OUT=$(cat "$INSTANCE/out")
	ERR=$(cat "$INSTANCE/err")
	sed 's/^/     /' "$INSTANCE/out" "$INSTANCE/err"
}

# outcome CONDITION...: the step is as stated if the test holds.
outcome()
{
	if "$@"; then
		printf '   as stated (status %s)\n' "$STATUS"
	else
		WRONG=$((WRONG + 1))
		printf '   NOT AS STATED (status %s)\n' "$STATUS"
	fi
}

contains()
{
	case $1 in
	*"$2"*) return 0 ;;
	*) return 1 ;;
	esac
}

make_repository()
{
	as_user sh -ec '
	cd "$1"
	git init -q -b main .
	printf "int\nmain(void)\n{\n\treturn (0);\n}\n" >main.c
	git add main.c
	git -c user.name=demo -c user.email=demo@localhost commit -q \
	    -m "first commit, made outside"
	' sh "$WORK"
}

step_worktree()
{
	step "A git work tree is there, and git works in it."
	inside git log --oneline
	outcome eval '[ $STATUS = 0 ] && contains "$OUT" "made outside"'
	inside sh -c 'echo "written inside" >note.txt && git add note.txt &&
	    git -c user.name=demo -c user.email=demo@localhost \
	    commit -q -m "second commit, made inside" && git log --oneline'
	outcome eval '[ $STATUS = 0 ] && contains "$OUT" "made inside" &&
	    contains "$(as_user git -C "$WORK" log --oneline)" "made inside" &&
	    [ "$(cat "$WORK/note.txt")" = "written inside" ]'
}

step_secret()
{
	step "A secret of the same user, outside the work tree, is not there."
	SECRET=$(mktemp "${TMPDIR:-/tmp}/stockade-secret.XXXXXX")
	echo "token-of-the-demonstration" >"$SECRET"
	chown "$RUN_USER:" "$SECRET"
	printf '   outside, %s reads it: %s\n' "$RUN_USER" \
	    "$(as_user cat "$SECRET")"
	inside cat "$SECRET"
	outcome eval '[ $STATUS != 0 ] && contains "$ERR" "No such file" &&
	    ! contains "$OUT" token-of'
	rm -f "$SECRET"
}

step_write()
{
	step "Outside the work tree nothing can be changed, nor git's hooks."
	inside sh -c 'echo x >/usr/bin/planted'
	outcome eval '[ $STATUS != 0 ] && [ ! -e /usr/bin/planted ]'
	inside sh -c 'echo "#!/bin/sh" >.git/hooks/pre-commit'
	outcome eval '[ $STATUS != 0 ] &&
	    [ ! -e "$WORK/.git/hooks/pre-commit" ]'
}

step_privilege()
{
	step "The command is never root and can gain nothing."
	inside sh -c 'id -u; grep -E "^(CapEff|CapBnd|NoNewPrivs|Seccomp):" \
	    /proc/self/status'
	outcome eval '[ $STATUS = 0 ] && ! [ "${OUT%%[!0-9]*}" = 0 ] &&
	    contains "$OUT" "NoNewPrivs:	1" &&
	    contains "$OUT" "CapBnd:	0000000000000000"'
}

step_allowed()
{
	step "A host on the list is reached, through the proxy."
	if ! as_user curl -sS -m 20 -o /dev/null \
	    "https://registry$NPM_DOMAIN/is-number" 2>/dev/null; then
		UNSHOWN=$((UNSHOWN + 1))
		echo "   not shown: this machine itself does not reach" \
		    "registry$NPM_DOMAIN"
		return
	fi
	inside curl -sS -m 30 -o /dev/null -w '%{http_code}\n' \
	    "https://registry$NPM_DOMAIN/is-number"
	outcome eval '[ $STATUS = 0 ] && [ "$OUT" = 200 ]'
}

step_refused()
{
	step "A host that is not on the list is refused, and the tool says so."
	inside curl -sS -m 30 https://example.org
	outcome eval '[ $STATUS != 0 ] && contains "$ERR" "stockade: denied" &&
	    contains "$ERR" example.org && contains "$ERR" "allow with"'
	step "There is no way round the proxy."
	inside curl -sS -m 5 --noproxy '*' https://192.0.2.1/
	outcome eval '[ $STATUS != 0 ]'
}

step_status()
{
	step "The command's exit status is the tool's."
	inside sh -c 'exit 7'
	outcome eval '[ $STATUS = 7 ]'
}

# A session that stays, so that its record can be asked for.
step_violations()
{
	local id pid tries command

	step "What was refused is on record while the session lives."
	command='curl -s -m 30 https://example.org; echo done; read x'
	printf '   $ stockadectl run --quiet -- sh -c %q &\n' "$command"
	mkfifo "$INSTANCE/hold"
	in_sandbox --quiet -- sh -c "$command" \
	    <>"$INSTANCE/hold" >"$INSTANCE/out" 2>/dev/null &
	pid=$!
	for ((tries = 0; tries < 200; tries++)); do
		grep -q done "$INSTANCE/out" && break
		sleep 0.1
	done
	id=$(as_user "$INSTANCE/bin/stockadectl" --socket "$SOCKET" ps \
	    --json | grep -o '"sessionId": *"[^"]*"' | head -1 | cut -d'"' -f4)
	printf '   $ stockadectl violations %s\n' "$id"
	OUT=$(as_user "$INSTANCE/bin/stockadectl" --socket "$SOCKET" \
	    violations "$id" 2>&1)
	STATUS=$?
	printf '%s\n' "$OUT" | sed 's/^/     /'
	outcome eval '[ $STATUS = 0 ] && contains "$OUT" example.org'
	# Read and write: the run may have ended, then nobody reads.
	echo 1<>"$INSTANCE/hold"
	wait $pid
}

step_nothing_left()
{
	step "Afterwards nothing of the runs is left."
	printf '   $ stockadectl ps --json\n'
	OUT=$(as_user "$INSTANCE/bin/stockadectl" --socket "$SOCKET" ps \
	    --json 2>&1)
	STATUS=$?
	printf '%s\n' "$OUT" | sed 's/^/     /'
	outcome eval '[ $STATUS = 0 ] && ! contains "$OUT" sessionId'
}

# Returns 0 only if every outcome was as stated.
demonstrate()
{
	echo "stockade: a private instance in $INSTANCE, user $RUN_USER," \
	    "work tree $WORK"
	make_repository || {
		echo "the work tree could not be made"
		return 125
	}
	step_worktree
	step_secret
	step_write
	step_privilege
	step_allowed
	step_refused
	step_status
	step_violations
	step_nothing_left
	printf '\n%d steps, %d outcomes not as stated, %d not shown\n' \
	    $STEPS $WRONG $UNSHOWN
	[ $WRONG = 0 ]
}
