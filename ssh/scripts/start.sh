# shellcheck shell=bash disable=SC2154
# Starts a job. Defined before: answer, write_files, run_id, session, state, log, fresh_log, beginning.
# Under the lock there is either kill's mark or a session that bears the run id, so no start slips past a kill.
export DTOOL_RUN_ID=$run_id
own_umask=$(umask)
umask 077
fail() { answer error "$1"; exit 1; }
# The run's folder was made when the host was looked at; kill --delete takes it away, and with it the leave to start.
[ -d "${state%/*}" ] || fail "dtool kill came first"
mkdir "$state" 2> /dev/null || [ -d "$state" ] || fail "cannot make the folder $state"
mkdir -p "$(dirname "$log")" || fail "cannot make the folder of $log"
cd "$state" || fail "cannot enter $state"
exec 9> lock
flock 9 || fail "cannot lock $state"
[ ! -e killed ] || fail "dtool kill came first"
[ ! -e process ] || fail "it was started before"
write_files || fail "cannot write into $state: is the disk full?"
umask "$own_umask"
if [ "$fresh_log" = yes ]; then : > "$log"; else : >> "$log"; fi || fail "cannot write $log"
ln -sfn "$log" log
command -v screen > /dev/null || fail "screen is not installed"
said=$(screen -dmS "$session" bash ./session "$log" 2>&1 9>&-) || fail "screen did not start: $said"
for ((i = 0; i < 200; i++)); do
  [ -e process ] && break
  sleep 0.05
done
[ -e process ] || fail "the screen session $session did not come up: $said"
if [ "$beginning" = told ]; then
  # A program that is not there is known at once; what takes longer, an environment that is set up, goes on by itself.
  for ((i = 0; i < 100; i++)); do
    [ ! -s fault ] || fail "$(< fault)"
    if [ -e begun ] || [ -e exit_code ]; then break; fi
    sleep 0.05
  done
fi
answer started "$(< process)"
