# shellcheck shell=bash disable=SC2154
# Gets a sealed package into the file $work/package, from the launcher (standard input) or from another host, and hands it to
# further hosts while it comes. Follows changes.sh, before package.sh. Defined before: key (that seals it), secret (who says it
# is handed the package; empty: nobody is), serve_with_perl and serve_with_python (programs), parent_address (empty: the launcher
# sends), parent_port, parent_secret, package_size and package_digest (of what a parent sends). Neither key nor secrets become
# arguments or variables of a program, which other users could see.
# Numbers by the launcher and the script itself: limit.

# Sets serving_at to where others find this host as the launcher reaches it; empty: they do not.
start_serving() {
  local address='' port='' command=()
  serving_at=''

  read -r _ _ address _ <<< "${SSH_CONNECTION-}"
  if [ -n "$secret" ] && [ -n "$address" ]; then
    if command -v perl > /dev/null; then
      command=(perl -e "$serve_with_perl")
    elif command -v python3 > /dev/null; then
      command=(python3 -c "$serve_with_python")
    fi
  fi
  if [ ${#command[@]} != 0 ]; then
    coproc serving { exec "${command[@]}" "$work/package" 9<&- 2> /dev/null; }
    server=${serving_PID-}
    tell_server "$secret"
    [ -z "${serving-}" ] || read -r -t 10 port <&"${serving[0]}"
  fi
  serving_at=${port:+$address $port}
}

# It may have ended by itself.
tell_server() {
  trap '' PIPE
  [ -z "${serving-}" ] || printf '%s\n' "$1" >&"${serving[1]}"
  trap - PIPE
}

# When those who are being served have all, or have gone. How the server ended is of no account; bash does not know it
# any more where that was before the wait.
stop_serving() {
  [ -n "${server-}" ] || return 0
  tell_server whole
  wait "$server" 2> /dev/null
  server=
}

# The launcher then thinks of another way.
miss() {
  answer missed "$1"
  exit 0
}

# Each takes the package's bytes into the file $4 and holds descriptor 4, its end of a pipe, until it ends.
# shellcheck disable=SC2016
take_input='exec 4>&1 && echo begun && exec cat > "$4"'
# The secret goes by standard input.
# shellcheck disable=SC2016
take_from_parent='exec 4>&1 3<> "/dev/tcp/$1/$2" && IFS= read -r secret && printf "%s\n" "$secret" >&3 && echo begun && exec head -c "$3" <&3 > "$4"'

# Waits for process $1, which was begun by one of these, and ends it where not a byte comes for too long: $2 seconds for
# the first sign of life, then $3. Sets silent to whether that was so, and begun.
await_bytes() {
  local process=$1 limit=$2 said state size last=0 seconds=0
  silent=no begun=no
  while :; do
    IFS= read -r -t 1 -u "$coming" said
    state=$?
    if [ $state = 0 ]; then
      begun=yes seconds=0 limit=$3
      answer listens "$serving_at" # not sooner: nobody is to wait for one that gets nothing
      continue
    fi
    [ $state -gt 128 ] || break
    size=$(stat -c %s "$work/package")
    [ -z "$parent_address" ] || answer received "$size"
    if [ "$size" != "$last" ]; then last=$size seconds=0; continue; fi
    ((++seconds < limit)) || { silent=$limit; kill "$process"; break; }
  done
  fetching=
  exec {coming}<&-
}

take_from_launcher() {
  exec 6<&0
  exec {coming}< <(exec bash -c "$take_input" take '' '' '' "$work/package" <&6 2> "$work/said" 9<&-)
  exec 6<&-
  fetching=$!
  await_bytes "$fetching" "$patience" "$patience"
  [ "$silent" = no ] || give_up "no byte of the package for $silent seconds"
}

fetch() {
  local from=$parent_address:$parent_port said
  exec {coming}< <(exec bash -c "$take_from_parent" fetch "$parent_address" "$parent_port" "$package_size" \
    "$work/package" <<< "$parent_secret" 2> "$work/said" 9<&-)
  fetching=$!
  await_bytes "$fetching" 3 30
  if [ "$(stat -c %s "$work/package")" = "$package_size" ]; then answer received "$package_size"; return; fi
  [ "$silent" = no ] || miss "no answer from $from for $silent s"
  [ "$begun" = no ] || miss "$from broke off"
  said=$(head -n 1 "$work/said")
  miss "no connection to $from: ${said##*: }"
}

take_package() {
  local digest_of_all
  : > "$work/package" || give_up "no file can be made in $PWD"
  start_serving
  if [ -z "$parent_address" ]; then
    take_from_launcher
    return
  fi
  fetch
  digest_of_all=$(sha256sum < "$work/package")
  [ "${digest_of_all%% *}" = "$package_digest" ] && return
  answer spoilt yes
  miss "what $parent_address:$parent_port sent is not the package"
}

unseal() {
  openssl enc -d -aes-256-ctr -pbkdf2 -iter 1 -nosalt -pass fd:8 8<<< "$key" < "$work/package"
}
