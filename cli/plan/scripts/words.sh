# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Checks words that come from elsewhere: from other machines, from files that others can write, from schedulers. When bash
# computes with a word, it runs commands in the word's array index. So such a word is checked here before anything computes with
# it. It comes before the scripts that use such words; tests/check_sources (words) checks all scripts.

# Whether all are whole numbers in bash's form: without a sign, and without a leading zero, which would make them octal.
is_number() {
  local word
  for word; do [[ $word =~ ^(0|[1-9][0-9]{0,14})$ ]] || return 1; done
}

# For a script that is started with numbers as arguments.
refuse_unless_numbers() {
  is_number "$@" && return
  echo "dtool: the numbers of this process are not what they should be: $*" | tr -c '[:print:]\n' '?' >&2
  exit 2
}
