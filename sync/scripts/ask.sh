# shellcheck shell=bash disable=SC2154
# Tells what of the tree the destination has. Follows manifest.sh; defined before, too: what tells the tree's own folder
# (root_boot, root_device, root_inode, root_type) and its first file (first, first_identity), and the push and this host
# (push; empty where there is one host). Where nothing changed since the last push, this is all that is done.

# The destination is the very folder that is sent: on this machine, or seen from another one over a network's file
# system, where inode numbers and times are the same. Local file systems of two machines may be copies of one image.
is_the_tree_itself() {
  local ids boot
  ids=$(stat -c '%d %i' .)
  [ "${ids#* }" = "$root_inode" ] || return 1
  read -r boot < /proc/sys/kernel/random/boot_id
  if [ "$boot" = "$root_boot" ]; then
    [ "${ids% *}" = "$root_device" ]
    return
  fi
  case $root_type in
    ef53 | 58465342 | 9123683e | 1021994 | 794c7630 | 2fc12fc1 | f2f52010 | 52654973 | 858458f6) return 1 ;;
  esac
  [ "$(stat -c '%i %s %.9Z' -- "./$first" 2> /dev/null)" = "$first_identity" ]
}

# Another host of the same push has this very folder in hand. Two that replace an old mark at once both send, which is
# slower and does no harm.
is_in_other_hands() {
  local holder
  [ -n "$push" ] || return 1
  ln -s "$push" "$mark" 2> /dev/null && return 1
  holder=$(readlink "$mark")
  [ "$holder" != "$push" ] || return 1
  [ "${holder% *}" != "${push% *}" ] || return 0
  ln -sfn "$push" "$mark" 2> /dev/null
  return 1
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

tell_what_is_there() {
  local known='' seen='' newest=''
  { read -r known && read -r seen; } 2> /dev/null < "$whole"
  [ -z "$seen" ] || [ "$(stamps)" = "$seen" ] || known=
  read -r newest <&9
  [ "$newest" = "$tree" ] || printf '%s\n' "$tree" > "$lock" || fail_to_write
  if [ -n "$known" ] && [ "$known" = "$tree" ]; then
    answer state whole
  elif is_in_other_hands; then
    answer state shared
  elif [ -n "$known" ]; then
    answer basis "$known"
    answer state known
  elif is_empty; then
    answer state empty
  else
    answer state unknown
  fi
}

if ! cd -P "$destination" 2> /dev/null; then
  umask "$own_umask"
  said=$(mkdir -p "$destination" 2>&1) || fail "cannot make the folder $destination: ${said##*: }"
  umask 077
  cd -P "$destination" || fail "cannot enter $destination"
fi
if is_the_tree_itself; then
  answer state same_folder
  exit 0
fi
[ -w . ] || fail "cannot write into $destination" "name another folder, or let the user there write into this one"
find_trees
answer lock "$lock"
tell_what_is_there
for program in tar find zstd gzip; do
  ! command -v $program > /dev/null || answer has $program
done
