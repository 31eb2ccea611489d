# shellcheck shell=bash disable=SC2154
# Makes a job run in a session that no log-in ends: what begin is for start.sh, unless a launcher has another way. screen holds
# the session; where that is missing tmux does; where that is missing too, nothing does and the job has no terminal. `holder`
# in the state folder says which of the three it is.
hold_with_screen() { screen -dmS "$session" bash ./session "$log" 8>&- 9>&-; }

# By a server of this job's own, with its socket in the state folder: it never meets the user's sessions, and ends with the
# job. Its keys are screen's, so that who attaches need not know which of the two it is.
hold_with_tmux() {
  TMUX='' tmux -S tmux -f /dev/null new-session -d -s job bash ./session "$log" ';' set-option -g status off ';' \
    set-option -g prefix C-a ';' bind-key a send-prefix 8>&- 9>&-
}

# Bash has what it runs aside ignore Ctrl-C otherwise, and with it all that the job starts.
hold_with_nothing() {
  (trap - INT QUIT; exec setsid bash ./session "$log") < /dev/null > /dev/null 2>&1 8>&- 9>&- &
}

begin_in_session() {
  local said i holder=none
  exec 8<> <(:)  # has nothing to read: a pause that costs no process
  if command -v screen > /dev/null; then
    holder=screen
  elif command -v tmux > /dev/null; then
    holder=tmux
  fi
  echo "$holder" > holder || fail "cannot write into $state: is the disk full?"
  case $holder in
    screen) said=$(hold_with_screen 2>&1) || fail "screen did not start: $said" ;;
    tmux) said=$(hold_with_tmux 2>&1) || fail "tmux did not start: $said" ;;
    none)
      command -v setsid > /dev/null || fail "neither screen nor tmux nor setsid is installed"
      hold_with_nothing
      ;;
  esac
  for ((i = 0; i < 500; i++)); do
    [ -e process ] && break
    read -rt 0.02 -u 8
  done
  [ -e process ] || fail "the session $session did not come up: $said"
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
