# shellcheck shell=bash
# What words from elsewhere may be: of other machines, of files that others can write, of schedulers. Bash runs what stands in the index
# of a word that it computes with, so such a word is matched here before anything computes with it. Stands before the scripts that take
# them; tests/check_sources (words) holds all scripts to it.

# Whether all are whole numbers as bash writes them: without a sign, and without a zero in front, which would make them octal.
is_number() {
  local word
  for word; do [[ $word =~ ^(0|[1-9][0-9]{0,14})$ ]] || return 1; done
}

# For a script that others start with numbers.
refuse_unless_numbers() {
  is_number "$@" && return
  echo "dtool: the numbers of this process are not what they should be: $*" | tr -c '[:print:]\n' '?' >&2
  exit 2
}
