# shellcheck shell=bash disable=SC2154
# Makes the destination ready for rsync. Follows manifest.sh; defined before, too: what tells the tree's own folder
# (root_boot, root_device, root_inode, root_type) and its first file (first, first_identity), and the whole tree (tree).
# Names that come now are in the manifest before rsync starts, so that whatever it leaves behind is known as dtool's.
command -v rsync > /dev/null || fail "rsync is not installed" "apt-get install rsync"

# The destination is the very folder that is sent: on this machine, or seen from another one over a network's file
# system, where inode numbers and times are the same. Local file systems of two machines may be copies of one image.
is_the_tree_itself() {
  [ "$(stat -c %i .)" = "$root_inode" ] || return 1
  if [ "$(< /proc/sys/kernel/random/boot_id)" = "$root_boot" ]; then
    [ "$(stat -c %d .)" = "$root_device" ]
    return
  fi
  case $root_type in
    ef53 | 58465342 | 9123683e | 1021994 | 794c7630 | 2fc12fc1 | f2f52010 | 52654973 | 858458f6) return 1 ;;
  esac
  [ "$(stat -c '%i %s %.9Z' -- "./$first" 2> /dev/null)" = "$first_identity" ]
}

umask "$own_umask"
said=$(mkdir -p "$destination" 2>&1) || fail "cannot make the folder $destination: ${said##*: }"
umask 077
cd -P "$destination" || fail "cannot enter $destination"
if is_the_tree_itself; then
  answer folder same
  exit 0
fi
[ -w . ] || fail "cannot write into $destination" "name another folder, or let the user there write into this one"
find_manifest
printf '%s\n' "$tree" > "$lock" || fail_to_write
answer lock "$lock"
if cmp -s "$work/old" "$work/new"; then
  answer prune no
  exit 0
fi

# What stands there already became nobody's by being named: it is dtool's once rsync has been over it.
declare -A in_the_way=()
only_in "$work/new" "$work/old" "$work/added"
while IFS= read -r -d '' name; do
  if [[ -d $name && ! -L $name ]]; then
    in_the_way[/$name]=yes
  elif [[ ! -e $name && ! -L $name ]]; then
    printf '%s\0' "$name"
  fi
done < "$work/added" > "$work/coming" || fail_to_write
sort -zmu "$work/old" "$work/coming" > "$work/both" || fail_to_write
prune=yes
cmp -s "$work/both" "$work/new" && prune=no
save_manifest "$work/both"

# rsync replaces a folder by a file only where the folder is empty.
if [ ${#in_the_way[@]} != 0 ]; then
  only_in "$work/old" "$work/new" "$work/stale"
  while IFS= read -r -d '' name; do
    folder=$name
    while [[ $folder == */* ]]; do
      folder=${folder%/*}
      [ -z "${in_the_way[/$folder]-}" ] || printf '%s\0' "$name"
    done
  done < "$work/stale" | sort -zu > "$work/blockers"
  remove < "$work/blockers"
fi
answer prune "$prune"
