# shellcheck shell=bash disable=SC2154,SC2034
# What prepare.sh and prune.sh begin with: enters the destination and finds its manifest, the sorted, NUL-separated
# names of all files that dtool may have put there, behind its lock. Defined before: answer, names, destination.
export LC_ALL=C
own_umask=$(umask)
umask 077
trees=$HOME/.dtool/trees
work=

# $1: a sentence, $2: a hint
fail() {
  answer error "$1"
  [ -z "${2-}" ] || answer hint "$2"
  exit 1
}

find_manifest() {
  local devices key
  mkdir -p "$trees" || fail "cannot make the folder $trees"
  work=$(mktemp -d "$trees/work.XXXXXX") || fail_to_write
  trap 'rm -rf "$work"' EXIT
  # Homes are often shared between hosts where the destination is not; then each host has a manifest of its own.
  devices=$(stat -c %d . "$trees")
  key=$PWD
  [ "${devices%%$'\n'*}" = "${devices##*$'\n'}" ] || key+=" on $(uname -n)"
  key=$(printf %s "$key" | sha256sum) || fail "cannot make a name for the manifest"
  manifest=$trees/${key%% *}.manifest
  # Under the lock it names the tree that is being sent; rsync, which runs between the scripts, is behind it too.
  lock=$trees/${key%% *}.lock
  exec 9<> "$lock" || fail "cannot write $lock"
  flock -w 600 9 || fail "another dtool is sending its code to $PWD" "try again when it has"
  [ -e "$manifest" ] || : > "$manifest"
  sort -zu "$manifest" > "$work/old" || fail_to_write
  names > "$work/new" || fail_to_write
}

fail_to_write() { fail "cannot write into $trees: is the disk full?"; }

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
