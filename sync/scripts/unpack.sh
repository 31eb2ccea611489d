# shellcheck shell=bash disable=SC2154
# Takes the package that a host lacks as it has told. Follows package.sh; runs after ask.sh.
enter_destination
find_trees
read -r newest <&9
[ "$newest" = "$tree" ] || fail "another dtool is sending another tree there" \
  "try again when it has, or give each a folder of its own with --code_path"
put_in_place
