# shellcheck shell=bash disable=SC2154
# Takes the package that a host lacks as it has told. Follows package.sh; runs after ask.sh.
enter_destination
find_trees
read -r newest <&9
[ "$newest" = "$tree" ] || fail "another dtool is sending another tree there" \
  "try again when it has, or give each a folder of its own with --code_path"
# Another launcher has sent the same meanwhile.
noted=
{ read -r noted < "$whole"; } 2> /dev/null
if [ -z "$key" ] && [ "$noted" = "$tree" ] && is_untouched; then
  answer unpacked yes
  answer removed 0
  exit 0
fi
put_in_place
