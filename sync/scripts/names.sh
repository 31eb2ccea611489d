# shellcheck shell=bash disable=SC2030,SC2031,SC2034,SC2154
# The tree's names on their way before and after rsync. Follows changes.sh. Defined before, too: decompress.

# Makes a folder for lists of names, which ends with the script.
make_work() {
  work=$(mktemp -d "$trees/work.XXXXXX") || fail_to_write
  trap clear_up EXIT
}

find_manifest() {
  find_trees
  make_work
  [ -e "$manifest" ] || : > "$manifest"
  sort -zu "$manifest" > "$work/old" || fail_to_write
}

# Takes the tree's names from standard input, unless the launcher's machine has vanished in the middle of them.
take_names() {
  # shellcheck disable=SC2086
  timeout 300 ${decompress:?} > "$work/new" || fail "the names of the tree's files did not come"
}
