# shellcheck shell=bash disable=SC2154
# Makes a job run in a screen session that no log-in ends: what begin is for start.sh, unless a launcher has another way.
begin_in_screen() {
  local said i
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
}
