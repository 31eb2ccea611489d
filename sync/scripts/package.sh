# shellcheck shell=bash disable=SC2030,SC2031,SC2034,SC2154
# How a package (sync/package.h) is put in its place: standard input has it. Follows changes.sh, and is followed by unpack.sh or
# ask.sh, which take the lock before. Defined before, too: names_change (no where the tree has the files that it had), decompress
# (empty: it is not compressed), patience (seconds), key (of a sealed package, which pass_on.sh, between these two, gets; else
# empty), and others_are_untouched (yes: ask.sh has looked at all files behind this very lock, and they are few).
# What comes is unpacked aside; only when all of it is there do all new files take their places together.

# Whatever it is, rsync then does it in its own way, and tells better what is wrong.
give_up() {
  answer broken "$1"
  ! command -v gzip > /dev/null || answer has gzip  # for the names that go with rsync
  exit 0
}

# Prints the number of the process that reads, what the programs complain of, and how they ended. tar makes the folder aside.
unpack() {
  local extract=(tar --extract --file=- --one-top-level="$staging" --preserve-permissions --no-same-owner)
  if [ -z "$decompress" ]; then
    (echo "reader $BASHPID" && exec "${extract[@]}")
    echo "codes 0 $?"
    return
  fi
  {
    echo "reader $BASHPID" >&2
    [ -z "$key" ] || exec < <(unseal)
    # shellcheck disable=SC2086
    exec $decompress
  } | "${extract[@]}"
  echo "codes ${PIPESTATUS[*]}"
}

# A launcher whose machine has vanished never ends what it sends, and would hold the lock for hours: the server here has
# nothing to say to it, and so does not notice. `patience` without a byte ends it. Sets said to the first complaint.
receive() {
  local line='' state=0 reader='' codes='' before='' now=''
  said=
  exec 6<&0
  exec 7< <(unpack <&6 2>&1)
  until [ -n "$codes" ]; do
    read -r -t "$patience" line <&7
    state=$?
    if ((state == 0)); then
      case $line in
        'reader '*) reader=${line#* } ;;
        'codes '*) codes=${line#* } ;;
        *) said=${said:-$line} ;;
      esac
      continue
    fi
    ((state > 128)) || break
    before=$now
    now=
    # shellcheck disable=SC2162
    { read -d '' now < "/proc/$reader/io"; } 2> /dev/null
    [ -z "$now" ] || [ "$now" != "$before" ] || kill "$reader"
  done
  # tar leaves at the archive's end, and may do so before the last zeros have come.
  [[ $codes == '0 0' || $codes == '141 0' ]]
}

# $1: a name, $2: a folder. Whether the file or link there has what the one here has.
is_like() {
  if [[ -L $1 || -L $2/$1 ]]; then
    [[ -L $1 && -L $2/$1 && $(readlink -n -- "$1"; echo .) = "$(readlink -n -- "$2/$1"; echo .)" ]]
  else
    cmp -s -- "$1" "$2/$1"
  fi
}

# $1: a list of names that come. Ends the script where files that dtool did not put there bear some of them and differ.
refuse_foreign() {
  local name found=() folder=$PWD
  [ "$foreign" = look ] || return 0
  while IFS= read -r -d '' name; do
    [[ -e $name || -L $name ]] || continue
    [[ ! -d $name || -L $name ]] || continue  # a folder is never replaced
    is_like "./$name" "$staging/tree" || found+=("$name")
  done < "$1"
  [ ${#found[@]} != 0 ] || return 0
  answer foreign "${#found[@]}"
  [[ $folder != "$HOME"/* ]] || folder='~'${folder#"$HOME"}
  answer foreign_folder "$folder"
  for name in "${found[@]:0:10}"; do answer foreign_file "$name"; done
  remove_marks
  exit 0
}

# Names that come now are in the manifest before the files are there, so that whatever stays behind is known as dtool's.
note_names() {
  local name
  [ "$names_change" = yes ] || return
  [ -e "$manifest" ] || : > "$manifest"
  only_in "$manifest" "$work/removed" "$work/kept"
  sort -zmu "$work/kept" "$work/incoming" > "$work/new" || fail_to_write
  only_in "$work/incoming" "$manifest" "$work/added"
  refuse_foreign "$work/added"
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

# Before anything takes its place. What is looked at once more where it lies then has only to be there: tar does not notice
# where an archive was cut off between two files. Sets names and announced, for settle_changes.
expect_what_was_announced() {
  local name reason="the package is not what was announced"
  cd "$staging/tree" || give_up "the package cannot be entered"
  if [ "$others_are_untouched" = no ]; then
    if [ ! -e "$work/facts" ] || ! are_as "$work/facts" "$work/incoming" "$facts"; then give_up "$reason"; fi
  else
    mapfile -d '' names < "$work/incoming"
    mapfile -d '' announced < "$work/facts"
    for name in "${names[@]}"; do [[ -e $name || -L $name ]] || give_up "$reason"; done
  fi
  cd "$OLDPWD" || give_up "the folder has gone"
}

# As settle, where all the other files have just been seen to be untouched: only those that have come are looked at, and their
# stamps put in place of the old ones. Fails where that cannot be done for sure.
settle_changes() {
  local lines=() record name line low high middle
  [ "$others_are_untouched" = yes ] && [ "$names_change" = no ] && ((${#names[@]} > 0)) || return 1
  mapfile lines < "$stamps"
  # One look for both, as settle: an edit since they took their places is seen.
  [ "$(look_at_few "$facts" -fprintf "$stamps" "${stamp%\\n}\\0" 2> /dev/null)"$'\n' = "${announced-}" ] || return 1
  while IFS= read -r -d '' record; do
    # Stamps are sorted by name, as the manifest is.
    name=${record#* ./}
    low=0 high=${#lines[@]}
    while ((low < high)); do
      middle=$(((low + high) / 2))
      line=${lines[middle]#* ./}
      if [[ ${line%?} < $name ]]; then low=$((middle + 1)); else high=$middle; fi
    done
    line=${lines[low]-}
    # Not found: a name with an end of line in it.
    [ "${line#* ./}" = "$name"$'\n' ] || return 1
    lines[low]=$record$'\n'
  done < "$stamps"
  printf %s "${lines[@]}" > "$stamps" && printf '%s\n' "$tree" > "$whole"
}

# Behind the lock, in the destination. Answers unpacked and removed, or broken.
put_in_place() {
  local said='' names=() announced=()
  remove_leftovers
  staging=$PWD/.~dtool~.$$$RANDOM
  work=$staging
  trap clear_up EXIT
  if [ -n "$key" ]; then
    mkdir "$staging" || give_up "no folder can be made in $PWD"
    take_package
  fi
  receive || give_up "the package cannot be unpacked: $said"
  [ -d "$staging/tree" ] || mkdir "$staging/tree"
  is_new=no
  if [ ! -s "$manifest" ]; then
    # There is no tree that could be spoilt: what has come is looked at once, in its place.
    is_new=yes
    names_change=no
    save_manifest "$work/incoming"
  else
    expect_what_was_announced
  fi
  note_names
  : > "$whole"
  place_files || give_up "the files cannot take their places: $(head -n 1 "$work/said")"
  removed=0
  [ ! -s "$work/removed" ] || remove < "$work/removed"
  [ "$names_change" = no ] || save_manifest "$work/new"
  # Before their stamps are taken: a file whose other name goes is changed by that.
  rm -rf -- "$staging" "$marks"* 2> /dev/null || remove_folder "$staging"
  if [ -z "$key" ]; then staging='' work=''; fi  # else a file that is being served may be left
  settle_changes || settle || give_up "the tree is not what it should be"
  answer unpacked yes
  answer removed "$removed"
  [ -z "$key" ] || stop_serving
}
