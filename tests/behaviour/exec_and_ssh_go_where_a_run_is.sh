#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `dtool exec` runs a command, and `dtool ssh` a shell in this terminal, in a run's tree and environment with its variables, whether it
# runs or has ended. Ctrl-C, a lost connection and dtool kill end them, and they do nothing to the run.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program tmux
lab 2

for host in 1 2; do
  on "$host" /usr/bin/python3 -m venv --without-pip env
done
mkdir code
cd code
echo 'name = "the run'\''s own tree"' >tree.py
cat >train.sh <<'END'
env -0 | sort -z >variables
until [ -e ~/stop ]; do sleep 0.2; done
END
# shellcheck disable=SC2088
expect_exit 0 dtool run --json --runs_on h1,h2 --env_activate_path '~/env' --export 'GREETING=two  words' --export lower=case -- bash train.sh
id=$(json 'd["run_id"]')
echo 'name = "edited since"' | tee "$DTOOL_LAB_FOLDER"/host[12]/root/code/tree.py >/dev/null
eventually 20 on h2 test -e ".dtool/runs/$id/tree/variables"

# What the program has, commands have: but for the numbers of a rank, and what is the log-in's own.
expect_exit 0 dtool exec last --machine 1 --json -- 'env -0 | sort -z | cmp -s variables - || diff <(tr "\0" "\n" <variables) <(env | sort); python -c "import tree, sys; print(tree.name, sys.prefix)"'
expect_equal "[('h2', 1, 0)]" "$(json '[(h["host"], h["machine"], h["exit_code"]) for h in d["hosts"]]')"
json 'd["hosts"][0]["stdout"]' >said
expect_equal "> the run's own tree /root/env" "$(grep -o "the run's own tree.*" said | sed 's/^/> /')"
expect_equal '' "$(sed -n 's/^[<>] \([A-Za-z_]*\)=.*/\1/p' said | sort -u | { grep -vxE '(LOCAL_|ROLE_)?RANK|SSH_.*|STY|TERM|TERMCAP|WINDOW|SHLVL|_|OLDPWD|DTOOL_(LAST_WORDS|RANK_LOG)' || true; } | xargs)"
expect_exit 0 dtool exec "$id" -- printf '%s|' '$HOME' 'a  b' ''
for host in h1 h2; do expect_output "^$host: \\\$HOME\\|a  b\\|\\|\$"; done
expect_exit 0 dtool exec last -m h1 -- 'echo "$GREETING, $lower, $WORLD_SIZE, ${RANK-none}, $DTOOL_MACHINE_ID of $DTOOL_RUN_ID"'
expect_output "^h1: two  words, case, 2, none, 0 of $id\$"

# How it ends, and what is wrong with it.
expect_exit 1 dtool exec last -m 0 -- 'exit 3'
expect_error 'exit code 3$'
expect_exit 1 dtool exec last -m 0 -- no_such_program at all
expect_error 'no_such_program: no such program on this host'
expect_exit 2 dtool exec last -m 7 -- true
expect_error 'has no machine 7'
expect_exit 2 dtool exec no_such_run -- true
expect_error "no run 'no_such_run' is recorded"
expect_exit 2 dtool exec last
expect_error 'it goes after --: dtool exec RUN --'
expect_exit 2 dtool ssh last
expect_error 'dtool ssh needs a terminal'

# $1: words before the command, which writes into the file `here` beside it.
begin() {
  env --default-signal=INT "$DTOOL" exec "$@" >"$out" 2>"$err" &
  pid=$!
}
sleeps() { on h1 pgrep -fx "$1" >/dev/null; }
begin last -m 0 -- 'trap "" HUP; sleep 3091 & wait; sleep 3091'
eventually 10 sleeps 'sleep 3091'
kill -INT "$pid"
expect_ended 130 "$pid"
expect_error 'interrupted: the command ends on h1'
eventually 5 eval '! sleeps "sleep 3091"'
begin last -m 0 -- sleep 3092
eventually 10 sleeps 'sleep 3092'
kill -KILL "$pid"
eventually 5 eval '! sleeps "sleep 3092"'
expect_exit 1 dtool exec last -m 0 --timeout 1 -- sleep 3093
eventually 5 eval '! sleeps "sleep 3093"'
expect_exit 0 dtool status last --json
expect_equal "{'running'}" "$(json '{m["state"] for m in d["machines"]}')"

# A shell, in the terminal's size; Ctrl-C reaches what runs in it. Without a run it is a host's.
pane() { tmux -L "dtool-$$" -f /dev/null "$@"; }
shows() { pane capture-pane -pJ | grep -Eq -e "$1"; }
types() { pane send-keys -l "$1" && pane send-keys Enter; }
pane new-session -d -x 100 -y 30 'timeout --signal=KILL 100 bash --norc'
types "$DTOOL ssh -m 1; echo code=\$?"
eventually 20 shows "^$id machine1 .*tree \\$"
types 'clear; echo "$DTOOL_MACHINE_ID $VIRTUAL_ENV $(stty size)"; sleep 3094'
eventually 10 shows '^1 /root/env 30 100$'
eventually 10 on h2 pgrep -fx 'sleep 3094'
pane send-keys C-c
pane resize-window -x 90 -y 20
types 'clear; stty size; exit 3'
eventually 10 shows '^20 90$'
eventually 10 shows '^code=0$'
types "clear; $DTOOL ssh h2 -- 'hostname; exit 3'; echo code=\$?"
eventually 20 shows '^dtool: hostname; exit 3 on h2: exit code 3$'
eventually 10 shows '^code=1$'
types "clear; $DTOOL ssh h2; echo code=\$?"
eventually 20 on h2 pgrep -fx '[^ ]*sh -l'
types 'echo "${DTOOL_RUN_ID-no run}, $PWD"; exit'
eventually 10 shows '^no run, /root$'

# It has ended: as long as its tree is there.
expect_process_with "$id"
on h1 touch stop
on h2 touch stop
eventually 20 expect_no_process_with "$id"
expect_exit 0 dtool exec last -- 'python -c "import tree; print(tree.name)"'
expect_equal 2 "$(grep -c "the run's own tree" "$out")"
begin last -m 0 -- 'sleep 3095'
eventually 10 sleeps 'sleep 3095'
expect_exit 0 dtool kill last --yes
expect_ended 1 "$pid"
expect_exit 0 dtool list --prune
expect_exit 1 dtool exec last -- true
expect_error "the run's folder .*/tree is not there any more"
types "clear; $DTOOL ssh; echo code=\$?"
eventually 20 shows 'no recorded run runs'
