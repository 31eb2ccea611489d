# shellcheck shell=bash disable=SC2154
# Tells which screen session shows a job, or how the job ended. Defined before: answer, state, session.
cd "$state" 2> /dev/null || exit 0
if [ -e exit_code ]; then answer exit_code "$(< exit_code)"; exit 0; fi
if [ -e killed ]; then answer killed yes; exit 0; fi
# By its whole name: `screen -x` takes the beginning of another's, too.
answer session "$(screen -ls | awk -v name="$session" 'substr($1, index($1, ".") + 1) == name { print $1; exit }')"
