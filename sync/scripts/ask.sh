# shellcheck shell=bash disable=SC2030,SC2031,SC2154
# Tells what of the tree the destination has. Follows manifest.sh; defined before, too: what tells the tree's own folder
# (root_boot, root_device, root_inode, root_type) and its first file (first, first_identity), the push and this host
# (push; empty where there is one host), and guess: the tree from which a package leads that standard input has, or the
# word nothing; then this follows package.sh. Empty: there is no package. Where nothing changed since the last push, a
# single process looks at the files, and that is all; where the package fits, all that comes on top is for it.

# Makes the folder where it is missing, as the user would.
make_destination() {
  local said
  cd -P "$destination" 2> /dev/null && return
  said=$(mkdir -p "$destination" 2>&1) || fail "cannot make the folder $destination: ${said##*: }"
}

# In a folder like /tmp anybody could have made it before the user did, and could put other code there.
refuse_strangers_folder() {
  local folder=$PWD owner
  while [ -n "$folder" ]; do
    if [ -k "${folder%/*}/" ] && ! [ -O "$folder" ]; then
      owner=$(stat -c '%u %U' "$folder")
      [ "${owner%% *}" = 0 ] || fail "the folder $folder belongs to ${owner#* }, who could put other code there"
    fi
    folder=${folder%/*}
  done
}

# Sets known_as to a name for the current folder. Names are readable where that can be.
name_destination() {
  if [[ $PWD =~ ^[A-Za-z0-9._/@-]{1,150}$ ]]; then
    known_as=$trees/${PWD//\//%}
  else
    known_as=$(printf %s "$PWD" | sha256sum) || fail "cannot make a name for the manifest"
    known_as=$trees/${known_as%% *}
  fi
}

# The tree was the last one to be sent, and is there as it was then. That holds without the lock: whole is emptied before
# any file is touched.
is_there() {
  local newest='' known=''
  { read -r newest < "$lock" && read -r known < "$whole"; } 2> /dev/null
  [ "$newest" = "$tree" ] && [ "$known" = "$tree" ] && is_untouched
}

# The destination is the very folder that is sent: on this machine, or seen from another one over a network's file
# system, where inode numbers and times are the same. Local file systems of two machines may be copies of one image.
# $1 and $2: its device and inode.
is_the_tree_itself() {
  local boot
  [ "$2" = "$root_inode" ] || return 1
  read -r boot < /proc/sys/kernel/random/boot_id
  if [ "$boot" = "$root_boot" ]; then
    [ "$1" = "$root_device" ]
    return
  fi
  case $root_type in
    ef53 | 58465342 | 9123683e | 1021994 | 794c7630 | 2fc12fc1 | f2f52010 | 52654973 | 858458f6) return 1 ;;
  esac
  [ "$(stat -c '%i %s %.9Z' -- "./$first" 2> /dev/null)" = "$first_identity" ]
}

# Fails where it is there. Hosts that are reached as other users read it, too.
make_mark() {
  local state
  set -o noclobber
  umask 022
  { printf '%s\n' "${push#* }" > "$mark"; } 2> /dev/null
  state=$?
  umask 077
  set +o noclobber
  return $state
}

# The mark is another host's. Sets holder to that.
is_with_another() {
  local tries=20
  holder=
  # One that is being made is empty for a moment.
  while [ -r "$mark" ] && ! { read -r holder < "$mark"; } 2> /dev/null && ((tries-- > 0)); do sleep 0.05; done
  [ -n "$holder" ] && [ "$holder" != "${push#* }" ]
}

# Another host of the same push has this very folder in hand.
is_in_other_hands() { [ -n "$push" ] && ! make_mark && is_with_another; }

tell_holder() {
  answer holder "$holder"
  answer state shared
}

# Who has the folder in hand has the lock as long as sending takes.
leave_to_others() {
  [ -n "$push" ] && [ -e "$mark" ] && is_with_another || return 0
  tell_holder
  exit 0
}

# Nothing is there but what an interrupted push may have left.
is_empty() {
  local name
  shopt -s dotglob nullglob
  for name in *; do
    case $name in .~dtool~* | .~tmp~) ;; *) return 1 ;; esac
  done
  [ ! -s "$manifest" ]
}

# The launcher did not know whether that is here when it compressed.
can_take_guess() { [ -z "$decompress" ] || command -v "${decompress%% *}" > /dev/null; }

# So it seems; for sure it is known behind the lock.
leads_from_here() {
  local noted=''
  [ "${names_change-}" = no ] && [ -w . ] && { read -r noted < "$whole"; } 2> /dev/null && [ "$noted" = "$guess" ]
}

# Sets known to the tree that is whole and untouched there; none: empty.
find_known() {
  known=
  { read -r known < "$whole"; } 2> /dev/null
  [ -z "$known" ] || is_untouched || known=
}

tell_programs() {
  local program
  for program in tar find zstd gzip openssl perl python3; do
    ! command -v $program > /dev/null || answer has $program
  done
}

# Behind the lock, when known is found.
tell_what_is_there() {
  local newest=''
  answer lock "$lock"
  read -r newest <&9
  [ "$newest" = "$tree" ] || printf '%s\n' "$tree" > "$lock" || fail_to_write
  if [ -n "$known" ] && [ "$known" = "$tree" ]; then
    answer state whole
  elif is_in_other_hands; then
    tell_holder
  elif [ -n "$known" ] && [ "$known" = "$guess" ]; then
    answer state guessed
    put_in_place
  elif [ -n "$known" ]; then
    tell_programs
    answer basis "$known"
    answer state known
  elif is_empty && [ "$guess" = nothing ] && can_take_guess; then
    answer state guessed
    put_in_place
  else
    tell_programs
    if is_empty; then answer state empty; else answer state unknown; fi
  fi
}

make_destination
enter_destination
refuse_strangers_folder
name_destination
mark=$marks.${push% *}
read -r host < /proc/sys/kernel/hostname
for own in '' "%%$host"; do
  name_files "$known_as$own"
  if is_there; then
    answer state whole
    exit 0
  fi
done
leave_to_others

# Where that from which the package leads is there untouched, it need not be asked whose folder this is: of the tree's own the
# files that changed would be as they are now. Files that came or went are not looked at.
for own in '' "%%$host"; do
  name_files "$known_as$own"
  leads_from_here || continue
  take_lock
  find_known
  if [ "$known" = "$guess" ]; then
    tell_what_is_there
    exit 0
  fi
  exec 9<&-
done

home_device=
stat -c '%d %i' . "$trees" 2> /dev/null | { read -r device inode && read -r home_device _; }
if is_the_tree_itself "$device" "$inode"; then
  answer state same_folder
  exit 0
fi
[ -w . ] || fail "cannot write into $destination" "name another folder, or let the user there write into this one"
if [ -z "$home_device" ]; then
  mkdir -p "$trees" || fail "cannot make the folder $trees"
  home_device=$(stat -c %d "$trees")
fi
# Homes are often shared between hosts where the destination is not; then each host has files of its own.
own=
[ "$device" = "$home_device" ] || own=%%$host
name_files "$known_as$own"
leave_to_others
take_lock
find_known
tell_what_is_there
