# shellcheck shell=bash disable=SC2034,SC2154
# Readies a host for a set-up script. Defined before: answer, identify, find_lacks (programs.sh), folder (the run's), public_key (a
# line, or empty).
boot=$(< /proc/sys/kernel/random/boot_id)
for process in "$HOME"/.dtool/runs/config_*/machine*/process; do
  read -r pid start at 2> /dev/null < "$process" || continue
  [ "$at" = "$boot" ] || continue
  stat=$(cat "/proc/$pid/stat" 2> /dev/null)
  read -ra fields <<< "${stat##*) }"
  [ "${fields[19]-}" = "$start" ] && answer running "${process%/process}"
done
wants_rsync=no wants_session=yes tries_all=no
find_lacks
if [ -n "$public_key" ]; then
  [ -d "$HOME/.ssh" ] || mkdir -m 700 "$HOME/.ssh"
  keys=$HOME/.ssh/authorized_keys
  [ -e "$keys" ] || (umask 077; : > "$keys")
  if grep -qxF -- "$public_key" "$keys"; then
    answer key present
  else
    [ ! -s "$keys" ] || [ -z "$(tail -c 1 "$keys")" ] || echo >> "$keys"
    printf '%s\n' "$public_key" >> "$keys" && answer key added
  fi
fi
[ -z "$folder" ] || (umask 077; mkdir -p "$folder")
identify
answer host "$identity"
answer ready yes
