# shellcheck shell=bash disable=SC2030,SC2031,SC2034,SC2154
# How what dtool put there goes, and how it is noted that the tree is whole. Follows manifest.sh. Defined before, too: digest (of
# the whole tree) and known_lock (that ask.sh found; empty where that follows).
work=
staging=

find_trees() {
  name_files "${known_lock%.lock}"
  take_lock
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

remove_marks() { ! compgen -G "$marks*" > /dev/null || rm -f -- "$marks"*; }

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

# The marker that all of the tree is there is written last, and only if that is so.
settle() {
  local sum=''
  look "$manifest" "$facts" "$stamps" "$stamp" 2> /dev/null | sha256sum | read -r sum _
  [ "$sum" = "$digest" ] && printf '%s\n' "$tree" > "$whole"
}
