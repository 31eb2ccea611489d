# shellcheck shell=bash disable=SC2030,SC2031,SC2034,SC2154
# What the scripts of a push begin with: how to work behind the lock with what dtool knows of the destination.
#   KEY.manifest  the sorted, NUL-separated names of all files that dtool may have put there
#   KEY.whole     the fingerprint of the tree that is whole there; empty while there is none
#   KEY.stamps    what the kernel knew of the files of that tree when they were put there
#   KEY.lock      the fingerprint of the tree that is being sent
# Defined before: answer, destination and tree.
# Hosts are many, and in tests and virtual machines share their cores: what bash can do by itself starts no process.
export LC_ALL=C
shopt -s lastpipe
trees=$HOME/.dtool/trees
# By which hosts of a push that share the destination find each other: a file of that push, which names the host that has the
# destination in hand. What an interrupted push has left is in nobody's way.
marks=.~dtool~mark

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

# Somebody holds the lock, or nobody can.
fail_to_lock() {
  local said
  said=$(flock -n 9 2>&1)
  [ -z "$said" ] || fail "cannot lock files in $trees: ${said%%$'\n'*}" "dtool check names what the host lacks"
  fail "another dtool is sending its code to $PWD" "try again when it has"
}

# Under the lock it names the tree that is being sent; rsync, which runs between the scripts, is behind it too.
take_lock() {
  exec 9<> "$lock" || fail "cannot write $lock"
  flock -w 600 9 2> /dev/null || fail_to_lock
}

# What the kernel changes whenever somebody touches a file.
stamp='%y %m %i %s %C@ %p\n'
# What of a file the launcher compares (sync/listing.h).
facts='%p %s %T@ %m %l\n'

# How many names find is given as arguments; more than these are in a file for it to read.
most_arguments=2000

# Prints what format $2 says of the files that the list $1 names, in its order, and into file $3, if there is one, what $4
# says. Each file is looked at once, so an edit that comes in between is seen by both. To be an element of a pipeline, whose
# process it takes.
look() {
  local names
  mapfile -d '' -n "$most_arguments" names < "$1"
  if ((${#names[@]} < most_arguments)); then
    look_at_few "$2" ${3:+-fprintf "$3" "$4"}
  elif has_files0_from; then
    # It prints the names as the list has them.
    exec find -files0-from "$1" -maxdepth 0 ! -type d -printf "${2/[%]p/./%p}" ${3:+-fprintf "$3" "${4/[%]p/./%p}"}
  fi
  # First those by which an edit is seen: one that comes in between is then seen by either.
  [ -z "${3-}" ] || look_at_many "$1" "$4" > "$3"
  look_at_many "$1" "$2"
  exit
}

# As look, of the files ${names[@]}. $1: the format; further words are for find.
look_at_few() {
  ((${#names[@]} > 0)) || exit
  exec find "${names[@]/#/./}" -maxdepth 0 ! -type d -printf "$@"
}

# findutils have it since 4.9.
# shellcheck disable=SC2185
has_files0_from() { find -files0-from /dev/null 2> /dev/null; }

look_at_many() {
  # shellcheck disable=SC2016
  sed -z 's,^,./,' "$1" | xargs -0 sh -c 'format=$0; exec find "$@" -maxdepth 0 ! -type d -printf "$format"' "$2"
}

# Whether what look says of list $2 in format $3 is what file $1 has. A last name that ends in an end of line never is.
are_as() {
  local names known
  mapfile -d '' -n "$most_arguments" names < "$2"
  if ((${#names[@]} == 0)); then
    [ ! -s "$1" ]
  elif ((${#names[@]} < most_arguments)); then
    mapfile -d '' -n 1 known < "$1"
    [ "$(look_at_few "$3")"$'\n' = "${known-}" ]
  else
    look "$2" "$3" | cmp -s - "$1"
  fi
} 2> /dev/null

# Nobody has touched what the last push left there.
is_untouched() { [ -s "$stamps" ] && are_as "$stamps" "$manifest" "$stamp"; }
