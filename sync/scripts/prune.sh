# shellcheck shell=bash disable=SC2154
# Deletes what dtool put there before and the tree no longer has. Follows manifest.sh; runs after rsync. Defined before: tree.
cd -P "$destination" || fail "cannot enter $destination"
find_manifest
# Another one is being sent since: it prunes.
[ "$(< "$lock")" = "$tree" ] || { answer removed 0; exit; }
only_in "$work/old" "$work/new" "$work/stale"
remove < "$work/stale"
save_manifest "$work/new"
answer removed "$removed"
