# shellcheck shell=bash disable=SC2154
# Deletes what dtool put there before and the tree no longer has, and notes that the tree is whole. Follows names.sh;
# runs after rsync. Standard input: the tree's names.
enter_destination
find_manifest
take_names
# Another one is being sent since: it prunes.
read -r newest <&9
[ "$newest" = "$tree" ] || { answer removed 0; exit; }
remove_leftovers
only_in "$work/old" "$work/new" "$work/stale"
remove < "$work/stale"
save_manifest "$work/new"
# Where times are kept less finely than here, the next push compares again.
settle
remove_marks
answer removed "$removed"
