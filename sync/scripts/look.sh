# shellcheck shell=bash disable=SC2154
# Looks whether a folder, or a file in it, is there to be fetched, and tells the folder from others by what lies in it
# under which inode: hosts that answer alike share a file system. Defined before: answer, folder, file.
export LC_ALL=C
said=$(cd -P "$folder" 2>&1) || {
  if [ -e "$folder" ]; then
    answer error "cannot enter $folder: ${said##*: }"
  else
    answer error "there is no folder $folder"
    answer hint "the run has not begun to write there, or it was moved or deleted since"
  fi
  exit 1
}
cd -P "$folder" || exit 1
[ -z "$file" ] || [ -f "$file" ] || { answer error "there is no file $PWD/$file"; exit 1; }
command -v rsync > /dev/null || { answer error "rsync is not installed"; answer hint "its package is called rsync on every system"; exit 1; }
answer identity "$({ ls -Aid . && ls -Ai; } | cksum)"
