# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Ends what this connection to the host has started before; OpenSSH passes signals on for every user but root. Each
# command is a session (in the kernel's sense) whose leader is a child of the connection's own sshd; its processes may
# have made process groups of their own, as timeout(1) does.
# Numbers by the kernel: pid.

# Sets parent and session of process $1.
look_at() {
  local stat=''
  # All of it: a process of anybody's may have a name with a line end.
  { read -rd '' stat < "/proc/$1/stat"; } 2> /dev/null
  [[ ${stat##*) } =~ ^[A-Za-z]\ ([0-9]+)\ [0-9]+\ ([0-9]+)\  ]] || return
  parent=${BASH_REMATCH[1]} session=${BASH_REMATCH[2]}
}

# Sets members to the processes of the sessions in `leaders`.
find_members() {
  members=()
  for folder in /proc/[0-9]*; do
    look_at "${folder#/proc/}" && [ -n "${leaders[session]-}" ] && members+=("${folder#/proc/}")
  done
}

look_at $$ && own=$session && look_at "$own" && server=$parent || exit
# Not the children of a process that other log-ins share.
case $(< "/proc/$server/comm") in sshd* | dropbear*) ;; *) exit ;; esac
leaders=()
for folder in /proc/[0-9]*; do
  pid=${folder#/proc/}
  look_at "$pid" && [ "$parent $session" = "$server $pid" ] && [ "$pid" != "$own" ] && leaders[pid]=$pid
done

find_members
[ ${#members[@]} = 0 ] || kill -TERM "${members[@]}" 2> /dev/null
for ((tries = 0; tries < 10; tries++)); do
  find_members
  [ ${#members[@]} != 0 ] || exit
  sleep 0.1
done
kill -KILL "${members[@]}" 2> /dev/null
