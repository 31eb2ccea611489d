# shellcheck shell=bash disable=SC2154
# Starts a job. Defined before: answer, write_files, run_id, session, state, log, fresh_log, beginning; and begin, a function that makes
# it run (begin_in_session.sh, or a launcher's own) and answers `started`, in the state folder and under its lock; and identify with
# `expected`, who this host has to be, or empty.
# Under the lock there is either kill's mark or a session that bears the run id, so no start slips past a kill.
export DTOOL_RUN_ID=$run_id
own_umask=$(umask)
umask 077
fail() { answer error "$1"; exit 1; }
# Who answers to this name now may not be who was looked at, and is recorded.
if [ -n "$expected" ]; then
  identify
  [ "$identity" = "$expected" ] || fail "another host answers now than the one that was looked at: $identity, not $expected"
fi
# The run's folder was made when the host was looked at; kill --delete takes it away, and with it the leave to start.
[ -d "${state%/*}" ] || fail "dtool kill came first"
new=${state%/*}/.new_${state##*/}  # beside the state folder, so that `../` means the same in it
mkdir "$state" "$new" 2> /dev/null
{ [ -d "$state" ] && [ -d "$new" ]; } || fail "cannot make the folder $state"
[ -d "${log%/*}/" ] || mkdir -p "${log%/*}/" || fail "cannot make the folder of $log"
cd "$state" || fail "cannot enter $state"
exec 9> lock
said=$(flock 9 2>&1) || fail "cannot lock $state: $said"
[ ! -e killed ] || fail "dtool kill came first"
[ ! -e process ] || fail "it was started before"
# All are whole before the first bears its name, since kill reads some of them.
{ cd "$new" && write_files && cd "$state" && mv -f "$new"/* . && rmdir "$new"; } || fail "cannot write into $state: is the disk full?"
umask "$own_umask"
if [ "$fresh_log" = yes ]; then : > "$log"; else : >> "$log"; fi || fail "cannot write $log"
ln -sfn "$log" log
begin
