# shellcheck shell=bash disable=SC2154
# Makes the destination ready for rsync. Follows names.sh; runs after ask.sh. Standard input: the tree's names.
# Names that come now are in the manifest before rsync starts, so that whatever it leaves behind is known as dtool's.
command -v rsync > /dev/null || fail "rsync is not installed" "its package is called rsync on every system"
enter_destination
find_manifest
take_names
# What comes and was never put there by dtool, though something bears its name.
only_in "$work/new" "$work/old" "$work/added"
foreign_files=${lock%.lock}.foreign
while IFS= read -r -d '' name; do
  if [[ -L $name || (-e $name && ! -d $name) ]]; then printf '%s\0' "$name"; fi
done < "$work/added" > "$foreign_files" || fail_to_write
if [ -s "$foreign_files" ] && [ "$foreign" = look ]; then
  answer foreign "$foreign_files"
  exit 0
fi
rm -f -- "$foreign_files"
printf '%s\n' "$tree" > "$lock" || fail_to_write
answer lock "$lock"
: > "$whole"
if cmp -s "$work/old" "$work/new"; then
  answer prepared yes
  exit 0
fi

# What stands there already becomes dtool's once rsync has been over it.
declare -A in_the_way=()
while IFS= read -r -d '' name; do
  if [[ -d $name && ! -L $name ]]; then
    in_the_way[/$name]=yes
  elif [[ ! -e $name && ! -L $name ]]; then
    printf '%s\0' "$name"
  fi
done < "$work/added" > "$work/coming" || fail_to_write
sort -zmu "$work/old" "$work/coming" > "$work/both" || fail_to_write
save_manifest "$work/both"

# rsync replaces a folder by a file only where the folder is empty.
if [ ${#in_the_way[@]} != 0 ]; then
  only_in "$work/old" "$work/new" "$work/stale"
  while IFS= read -r -d '' name; do
    folder=$name
    while [[ $folder == */* ]]; do
      folder=${folder%/*}
      [ -z "${in_the_way[/$folder]-}" ] || printf '%s\0' "$name"
    done
  done < "$work/stale" | sort -zu > "$work/blockers"
  remove < "$work/blockers"
fi
answer prepared yes
