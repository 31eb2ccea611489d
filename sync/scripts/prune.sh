# shellcheck shell=bash disable=SC2154
# Deletes what dtool put there before and the tree no longer has. Follows manifest.sh; runs after rsync.
cd -P "$destination" || fail "cannot enter $destination"
find_manifest
only_in "$work/old" "$work/new" "$work/stale"
remove < "$work/stale"
save_manifest "$work/new"
answer removed "$removed"
