# shellcheck shell=bash disable=SC2154
# Makes a job run in a screen session that no log-in ends: what begin is for start.sh, unless a launcher has another way.
begin_in_screen() {
  local said i
  exec 8<> <(:)  # has nothing to read: a pause that costs no process
  command -v screen > /dev/null || fail "screen is not installed"
  said=$(screen -dmS "$session" bash ./session "$log" 2>&1 8>&- 9>&-) || fail "screen did not start: $said"
  for ((i = 0; i < 500; i++)); do
    [ -e process ] && break
    read -rt 0.02 -u 8
  done
  [ -e process ] || fail "the screen session $session did not come up: $said"
  if [ "$beginning" = told ]; then
    # A program that is not there is known at once; what takes longer, an environment that is set up, goes on by itself.
    for ((i = 0; i < 250; i++)); do
      [ ! -s fault ] || fail "$(< fault)"
      if [ -e begun ] || [ -e exit_code ]; then break; fi
      read -rt 0.02 -u 8
    done
  fi
  answer started "$(< process)"
}
