# shellcheck shell=bash disable=SC2030,SC2031,SC2034,SC2154
# What the scripts of a push begin with: how to work behind the lock with what dtool knows of the destination.
#   KEY.manifest  the sorted, NUL-separated names of all files that dtool may have put there
#   KEY.whole     the fingerprint of the tree that is whole there; empty while there is none
#   KEY.stamps    what the kernel knew of the files of that tree when they were put there
#   KEY.lock      the fingerprint of the tree that is being sent
# Defined before: answer, destination, tree, digest (of the whole tree), known_lock (empty in ask.sh, which finds it).
# Hosts are many, and in tests and virtual machines share their cores: what bash can do by itself starts no process.
export LC_ALL=C
shopt -s lastpipe
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

enter_destination() {
  cd -P "$destination" || fail "cannot enter $destination"
  umask 077
}

# $1: the beginning of the files' names.
name_files() {
  manifest=$1.manifest
  whole=$1.whole
  stamps=$1.stamps
  lock=$1.lock
}

# Under the lock it names the tree that is being sent; rsync, which runs between the scripts, is behind it too.
take_lock() {
  exec 9<> "$lock" || fail "cannot write $lock"
  flock -w 600 9 || fail "another dtool is sending its code to $PWD" "try again when it has"
}

find_trees() {
  name_files "${known_lock%.lock}"
  take_lock
}

# Makes a folder for lists of names, which ends with the script.
make_work() {
  work=$(mktemp -d "$trees/work.XXXXXX") || fail_to_write
  trap clear_up EXIT
}

clear_up() {
  local process
  # What holds a file open there (pass_on.sh), of which NFS would leave another name behind.
  for process in ${fetching-} ${server-}; do kill "$process" && wait "$process"; done 2> /dev/null
  [ -z "$staging" ] || remove_folder "$staging"
  [ -z "$work" ] || [ "$work" = "$staging" ] || rm -rf "$work"
}

# Of a folder without leave to write nothing can be deleted. A file's mode stays: it may have another name that is wanted.
remove_folder() {
  rm -rf -- "$1" 2> /dev/null || { find "$1" -type d -exec chmod u+rwx {} + && rm -rf -- "$1"; }
}

# What an interrupted unpacking has left. Behind the lock.
remove_leftovers() {
  local left
  for left in .~dtool~.[0-9]*; do
    [ ! -d "$left" ] || remove_folder "$left"
  done
}

find_manifest() {
  find_trees
  make_work
  [ -e "$manifest" ] || : > "$manifest"
  sort -zu "$manifest" > "$work/old" || fail_to_write
}

# Takes the tree's names from standard input, unless the launcher's machine has vanished in the middle of them.
take_names() {
  # shellcheck disable=SC2086
  timeout 300 ${decompress:?} > "$work/new" || fail "the names of the tree's files did not come"
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
  local name said folder mode
  local -A modes=()
  while IFS= read -r -d '' name; do
    is_inside "$name" && printf '%s\0' "$name"
  done > "$work/remove"
  while IFS= read -r -d '' name; do  # from a folder without leave to write nothing can be deleted
    folder=./$name
    folder=${folder%/*}
    [ -w "$folder" ] || { mode=$(stat -c %a -- "$folder") && chmod u+w -- "$folder" && modes[$folder]=$mode; }
  done < "$work/remove"
  said=$(xargs -0r rm -f -- < "$work/remove" 2>&1) || fail "cannot delete what is no longer in the tree: $said"
  while IFS= read -r -d '' name; do
    [[ $name == */* ]] && printf '%s\0' "${name%/*}"
  done < "$work/remove" | sort -zu | xargs -0r rmdir -p --ignore-fail-on-non-empty -- 2> /dev/null
  for folder in "${!modes[@]}"; do
    [ ! -d "$folder" ] || chmod "${modes[$folder]}" -- "$folder"
  done
  removed=$(tr -cd '\0' < "$work/remove" | wc -c)
}

# What the kernel changes whenever somebody touches a file.
stamp='%y %m %i %s %C@ %p\n'
# What of a file the launcher compares (sync/listing.h).
facts='%p\0%s %T@ %m %l\0'

# How many names find is given as arguments; more than these are in a file for it to read.
most_arguments=2000

# Prints what format $2 says of the files that the list $1 names, in its order, and into file $3, if there is one, what $4
# says. Each file is looked at once, so an edit that comes in between is seen by both. To be an element of a pipeline, whose
# process it takes.
look() {
  local names
  mapfile -d '' -n "$most_arguments" names < "$1"
  if ((${#names[@]} == 0)); then
    exit
  elif ((${#names[@]} < most_arguments)); then
    exec find "${names[@]/#/./}" -maxdepth 0 ! -type d -printf "$2" ${3:+-fprintf "$3" "$4"}
  elif has_files0_from; then
    # It prints the names as the list has them.
    exec find -files0-from "$1" -maxdepth 0 ! -type d -printf "${2/[%]p/./%p}" ${3:+-fprintf "$3" "${4/[%]p/./%p}"}
  fi
  # First those by which an edit is seen: one that comes in between is then seen by either.
  [ -z "${3-}" ] || look_at_many "$1" "$4" > "$3"
  look_at_many "$1" "$2"
  exit
}

# findutils have it since 4.9.
# shellcheck disable=SC2185
has_files0_from() { find -files0-from /dev/null 2> /dev/null; }

look_at_many() {
  # shellcheck disable=SC2016
  sed -z 's,^,./,' "$1" | xargs -0 sh -c 'format=$0; exec find "$@" -maxdepth 0 ! -type d -printf "$format"' "$2"
}

# Nobody has touched what the last push left there.
is_untouched() {
  [ -s "$stamps" ] && look "$manifest" "$stamp" 2> /dev/null | cmp -s - "$stamps"
}

# The marker that all of the tree is there is written last, and only if that is so.
settle() {
  local sum=''
  look "$manifest" "$facts" "$stamps" "$stamp" 2> /dev/null | sha256sum | read -r sum _
  [ "$sum" = "$digest" ] && printf '%s\n' "$tree" > "$whole"
}
