# shellcheck shell=bash disable=SC2154
# Puts a package (sync/package.h) in its place: standard input has it. Follows manifest.sh; defined before, too: digest
# (of the whole tree), incoming_digest, incoming_size, removed_size, names_change (no where the tree has the files that it
# had) and decompress. What comes is unpacked aside and
# looked at; only then do all new files take their places together.
cd -P "$destination" || fail "cannot enter $destination"

# Whatever it is, rsync then does it in its own way, and tells better what is wrong.
give_up() {
  answer broken "$1"
  exit 0
}

receive() {
  set -o pipefail
  # shellcheck disable=SC2086
  $decompress 2> "$work/said" | {
    head -c "$incoming_size" > "$work/incoming" && head -c "$removed_size" > "$work/removed" &&
      tar --extract --file=- --directory="$staging/tree" --preserve-permissions --no-same-owner 2>> "$work/said" &&
      cat > /dev/null
  }
}

# Names that come now are in the manifest before the files are there, so that whatever stays behind is known as dtool's.
note_names() {
  local name
  [ "$names_change" = yes ] || return
  [ -e "$manifest" ] || : > "$manifest"
  only_in "$manifest" "$work/removed" "$work/kept"
  sort -zmu "$work/kept" "$work/incoming" > "$work/new" || fail_to_write
  only_in "$work/incoming" "$manifest" "$work/added"
  while IFS= read -r -d '' name; do
    [[ -e $name || -L $name ]] || printf '%s\0' "$name"
  done < "$work/added" > "$work/coming" || fail_to_write
  sort -zmu "$manifest" "$work/coming" > "$work/both" || fail_to_write
  save_manifest "$work/both"
}

# Where nothing was, whole folders are moved; else each file becomes a link, which replaces an older one in one step.
# The destination's own mode stays, since it is not copied onto.
place_files() {
  local way=(mv) tops
  [ "$is_new" = yes ] || way=(cp --recursive --no-dereference --link --force --preserve=mode)
  shopt -s dotglob nullglob
  tops=("$staging/tree"/*)
  printf '%s\0' "${tops[@]}" | xargs -0r "${way[@]}" --target-directory=. -- > "$work/said" 2>&1 || return
  remove_folder "$staging/tree"
}

find_trees
read -r newest <&9
[ "$newest" = "$tree" ] || fail "another dtool is sending another tree there" \
  "try again when it has, or give each a folder of its own with --code_path"
for left in .~dtool~.[0-9]*; do
  [ ! -d "$left" ] || remove_folder "$left"
done
staging=$PWD/.~dtool~.$$$RANDOM
work=$staging
trap clear_up EXIT
mkdir "$staging" "$staging/tree" || give_up "no folder can be made in $PWD"
receive || give_up "the package cannot be unpacked: $(head -n 1 "$work/said")"
(cd "$staging/tree" && listing "$incoming_digest" < "$work/incoming") || give_up "the package is not what was announced"

is_new=no
if [ ! -s "$manifest" ]; then
  is_new=yes
  names_change=no
  cp "$work/incoming" "$work/both" && save_manifest "$work/both"
fi
note_names
[ ! -e "$whole" ] || rm -f "$whole"
place_files || give_up "the files cannot take their places: $(head -n 1 "$work/said")"
removed=0
[ ! -s "$work/removed" ] || remove < "$work/removed"
[ "$names_change" = no ] || save_manifest "$work/new"
settle "$digest" || give_up "the tree is not what it should be"
answer unpacked yes
answer removed "$removed"
