# shellcheck shell=bash disable=SC2154
# Finds where to go on in a job's log, for ssh/job/scripts/follow.sh, which comes behind it. Defined before: answer, state, unique; lines (begin
# with so many, empty: all), or offset and `last` (hex digits of the bytes before it), where another connection has been.
# Numbers by the launcher and stat: offset size.
size_of() { stat -L -c %s -- "$1" 2> /dev/null || echo 0; }
# whether file $1 has those bytes at that place
holds() {
  local count=$((${#last} / 2))
  [ "$(size_of "$1")" -ge "$offset" ] &&
    [ "$(tail -c "+$((offset - count + 1))" -- "$1" | head -c "$count" | od -An -v -tx1 | tr -d ' \n')" = "$last" ]
}
[ -d "$state" ] || { answer error "the run's folder is not there: dtool kill has taken it away"; exit 1; } >&2
file=$state/log
if [ -n "$lines" ]; then
  size=$(size_of "$file")
  offset=$((size - $(head -c "$size" -- "$file" | tail -n "$lines" | wc -c)))
elif [ "$offset" -gt 0 ] && ! holds "$file"; then
  file=''
  for each in "$(readlink -f "$state/log")"?*; do
    holds "$each" && file=$each
  done
  if [ -z "$file" ]; then
    file=$state/log
    offset=0
    printf 'tail: %s: lost\n' "$unique"
  fi
fi
printf 'tail: %s: from %s\n' "$unique" "$offset"
