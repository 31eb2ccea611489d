# shellcheck shell=bash disable=SC2094,SC2154
# Tells what shows a job's terminal, or that it has none, or how the job ended. Defined before: answer, state, session.
cd "$state" 2> /dev/null || exit 0
if [ -e exit_code ]; then answer exit_code "$(< exit_code)"; exit 0; fi
if [ -e killed ]; then answer killed yes; exit 0; fi
holder=screen
{ read -r holder < holder; } 2> /dev/null
case $holder in
  tmux) ! tmux -S tmux has-session 2> /dev/null || answer tmux yes ;;
  none)
    read -r pid start boot 2> /dev/null < process || exit 0
    [ "$boot" = "$(< /proc/sys/kernel/random/boot_id)" ] || exit 0
    { stat=$(< "/proc/$pid/stat"); } 2> /dev/null
    read -ra fields <<< "${stat##*) }"
    [ "${fields[19]-}" != "$start" ] || answer no_terminal yes
    ;;
  # By its whole name: `screen -x` takes the beginning of another's, too.
  *) answer session "$(screen -ls | awk -v name="$session" 'substr($1, index($1, ".") + 1) == name { print $1; exit }')" ;;
esac
