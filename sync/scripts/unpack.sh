# shellcheck shell=bash disable=SC2030,SC2031,SC2154
# Puts a package (sync/package.h) in its place: standard input has it. Follows manifest.sh; defined before, too:
# incoming_digest, names_change (no where the tree has the files that it had), decompress, patience (seconds), and key (of
# a sealed package, which pass_on.sh, between these two, gets; else empty). What comes is unpacked aside and looked at; only
# then do all new files take their places together.
enter_destination

# Whatever it is, rsync then does it in its own way, and tells better what is wrong.
give_up() {
  answer broken "$1"
  exit 0
}

unpack() {
  exec 5>&1
  {
    echo "$BASHPID" >&5
    [ -z "$key" ] || exec < <(unseal 5>&-)
    # shellcheck disable=SC2086
    exec $decompress 5>&- 2> "$staging/said"
  } | tar --extract --file=- --directory="$staging" --preserve-permissions --no-same-owner 5>&- 2>> "$staging/said"
  echo "${PIPESTATUS[*]}"
}

# A launcher whose machine has vanished never ends what it sends, and would hold the lock for hours: the server here has
# nothing to say to it, and so does not notice. `patience` without a byte ends it.
receive() {
  local reader codes='' before='' now=''
  exec 6<&0
  exec 7< <(unpack <&6)
  read -r reader <&7
  until read -r -t "$patience" codes <&7; do
    (($? > 128)) || break
    before=$now
    now=
    # shellcheck disable=SC2162
    { read -d '' now < "/proc/$reader/io"; } 2> /dev/null
    [ -z "$now" ] || [ "$now" != "$before" ] || kill "$reader"
  done
  # tar leaves at the archive's end, and may do so before the last zeros have come.
  [[ $codes == '0 0' || $codes == '141 0' ]]
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
  way+=(--target-directory=. --)
  shopt -s dotglob nullglob
  tops=("$staging/tree"/*)
  if ((${#tops[@]} == 0)); then
    return 0
  elif ((${#tops[@]} < 500)); then
    "${way[@]}" "${tops[@]}" > "$work/said" 2>&1
  else
    printf '%s\0' "${tops[@]}" | xargs -0 "${way[@]}" > "$work/said" 2>&1
  fi
}

find_trees
read -r newest <&9
[ "$newest" = "$tree" ] || fail "another dtool is sending another tree there" \
  "try again when it has, or give each a folder of its own with --code_path"
remove_leftovers
staging=$PWD/.~dtool~.$$$RANDOM
work=$staging
trap clear_up EXIT
mkdir "$staging" || give_up "no folder can be made in $PWD"
[ -z "$key" ] || take_package
receive || give_up "the package cannot be unpacked: $(head -n 1 "$work/said")"
[ -d "$staging/tree" ] || mkdir "$staging/tree"
cd "$staging/tree" || give_up "the package cannot be entered"
look "$facts" < "$work/incoming" 2> /dev/null | sha256sum | read -r sum _
[ "$sum" = "$incoming_digest" ] || give_up "the package is not what was announced"
cd "$OLDPWD" || give_up "the folder has gone"

is_new=no
if [ ! -s "$manifest" ]; then
  is_new=yes
  names_change=no
  cp "$work/incoming" "$work/both" && save_manifest "$work/both"
fi
note_names
: > "$whole"
place_files || give_up "the files cannot take their places: $(head -n 1 "$work/said")"
removed=0
[ ! -s "$work/removed" ] || remove < "$work/removed"
[ "$names_change" = no ] || save_manifest "$work/new"
# Before their stamps are taken: a file whose other name goes is changed by that.
rm -rf -- "$staging" "$mark" 2> /dev/null || remove_folder "$staging"
if [ -z "$key" ]; then staging='' work=''; fi  # else a file that is being served may be left
settle || give_up "the tree is not what it should be"
answer unpacked yes
answer removed "$removed"
[ -z "$key" ] || stop_serving
