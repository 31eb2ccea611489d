# shellcheck shell=bash disable=SC2154,SC2034
# What the scripts of a push begin with: enters the destination and finds, behind its lock, what dtool knows of it.
#   KEY.manifest  the sorted, NUL-separated names of all files that dtool may have put there
#   KEY.whole     the fingerprint of the tree that is whole there, and stamps of its files by which an edit is seen
#   KEY.lock      the fingerprint of the tree that is being sent
# Defined before: answer, destination, tree.
export LC_ALL=C
own_umask=$(umask)
umask 077
trees=$HOME/.dtool/trees
# By which hosts that share the destination find each other: a link to the push and the host that has it in hand.
mark=.~dtool~mark
work=
staging=

# $1: a sentence, $2: a hint
fail() {
  answer error "$1"
  [ -z "${2-}" ] || answer hint "$2"
  exit 1
}

fail_to_write() { fail "cannot write into $trees: is the disk full?"; }

# Finds the files about the destination, which is the current folder, and takes the lock. known_lock is what an earlier
# script of the push found, or empty.
find_trees() {
  local devices key
  if [ -n "${known_lock-}" ]; then
    take_lock "${known_lock%.lock}"
    return
  fi
  [ -d "$trees" ] || mkdir -p "$trees" || fail "cannot make the folder $trees"
  # Homes are often shared between hosts where the destination is not; then each host has a manifest of its own.
  devices=$(stat -c %d . "$trees")
  key=$PWD
  [ "${devices%%$'\n'*}" = "${devices##*$'\n'}" ] || key+=" on $(uname -n)"
  key=$(printf %s "$key" | sha256sum) || fail "cannot make a name for the manifest"
  take_lock "$trees/${key%% *}"
}

# Under the lock it names the tree that is being sent; rsync, which runs between the scripts, is behind it too.
take_lock() {
  manifest=$1.manifest
  whole=$1.whole
  lock=$1.lock
  exec 9<> "$lock" || fail "cannot write $lock"
  flock -w 600 9 || fail "another dtool is sending its code to $PWD" "try again when it has"
}

# Makes a folder for lists of names, which ends with the script.
make_work() {
  work=$(mktemp -d "$trees/work.XXXXXX") || fail_to_write
  trap clear_up EXIT
}

clear_up() {
  [ -z "$staging" ] || remove_folder "$staging"
  [ -z "$work" ] || rm -rf "$work"
}

# Of a folder without leave to write nothing can be deleted.
remove_folder() {
  rm -rf -- "$1" 2> /dev/null || { chmod -R u+rwX -- "$1" && rm -rf -- "$1"; }
}

find_manifest() {
  find_trees
  make_work
  [ -e "$manifest" ] || : > "$manifest"
  sort -zu "$manifest" > "$work/old" || fail_to_write
}

# Takes the tree's names from standard input.
take_names() {
  ${decompress:?} > "$work/new" || fail "the names of the tree's files did not come"
}

# Writes the names that only file $1 has, of $1 and $2, to file $3.
only_in() {
  comm -z -23 "$1" "$2" > "$3" || fail "cannot compare lists of files" "GNU coreutils 8.25 or later must be there"
}

save_manifest() {
  mv -f "$1" "$manifest" || fail "cannot write $manifest"
}

# A file or link below the destination, with nothing but folders above it: a link there could lead anywhere.
is_inside() {
  local folder=$1
  case /$1/ in *//* | */./* | */../*) return 1 ;; esac
  [[ -e $1 || -L $1 ]] || return 1
  [[ ! -d $1 || -L $1 ]] || return 1
  while [[ $folder == */* ]]; do
    folder=${folder%/*}
    [[ -d $folder && ! -L $folder ]] || return 1
  done
}

# Deletes the files named on standard input, as far as they are inside, and the folders that this leaves empty.
remove() {
  local name said
  while IFS= read -r -d '' name; do
    is_inside "$name" && printf '%s\0' "$name"
  done > "$work/remove"
  said=$(xargs -0r rm -f -- < "$work/remove" 2>&1) || fail "cannot delete what is no longer in the tree: $said"
  while IFS= read -r -d '' name; do
    [[ $name == */* ]] && printf '%s\0' "${name%/*}"
  done < "$work/remove" | sort -zu | xargs -0r rmdir -p --ignore-fail-on-non-empty -- 2> /dev/null
  removed=$(tr -cd '\0' < "$work/remove" | wc -c)
}

# What the kernel changes whenever somebody touches one of the manifest's files; what is missing is told as well.
stamps() {
  xargs -0r stat --printf='%f %i %s %.9Z %n\n' -- < "$manifest" 2>&1 | sha256sum
}

# Whether the files named on standard input look as the launcher's, which has this digest of them (sync/listing.h).
listing() {
  local sum names format='%p\0%s %T@ %m %l\0'
  mapfile -d '' names
  if ((${#names[@]} == 0)); then
    sum=$(sha256sum < /dev/null)
  elif ((${#names[@]} < 2000)); then
    sum=$(find "${names[@]/#/./}" -maxdepth 0 ! -type d -printf "$format" | sha256sum)
  else
    # shellcheck disable=SC2016
    sum=$(printf '%s\0' "${names[@]/#/./}" |
      xargs -0 sh -c 'format=$0; exec find "$@" -maxdepth 0 ! -type d -printf "$format"' "$format" | sha256sum)
  fi
  [ "${sum%% *}" = "$1" ]
}

# The marker that all of the tree is there is written last, and only if that is so: $1 is what the listing must be.
settle() {
  [ ! -L "$mark" ] || rm -f "$mark"
  listing "$1" < "$manifest" || return
  printf '%s\n%s\n' "$tree" "$(stamps)" > "$whole.new$$" && mv -f "$whole.new$$" "$whole"
}
