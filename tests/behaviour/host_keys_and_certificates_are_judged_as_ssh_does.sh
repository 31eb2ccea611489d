#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Host keys are judged as ssh judges them, and trust adds none past a doubt; a certificate lets its user in, and a useless one shuts nobody out.
source "$(dirname "$0")/harness.sh"
needs_isolation
as_root
lab 2
connects_anew

mapfile -t address < <(cat "$DTOOL_LAB_FOLDER/hosts")
known=$HOME/.ssh/known_hosts
config=$HOME/.ssh/config
key() { cut -d' ' -f1,2 "$1"; }
key1=$(key "$DTOOL_LAB_FOLDER/host1/host_key.pub")
key2=$(key "$DTOOL_LAB_FOLDER/host2/host_key.pub")
for name in other host_ca user_ca user; do ssh-keygen -q -t ed25519 -N '' -f "$work/$name"; done
other=$(key "$work/other.pub")
strange='new-kind AAAACG5ldy1raW5kAAAABA=='

known_are() { printf '%s\n' "$@" >"$known"; }
both_get_in() {
  expect_exit 0 ssh -n -o BatchMode=yes "${1:-h1}" true
  expect_exit 0 dtool command --runs_on "${1:-h1}" --command true
}
both_refuse() { # and trust adds nothing
  expect_exit 255 ssh -n -o BatchMode=yes h1 true
  dtool_refuses "$1"
}
dtool_refuses() {
  expect_exit 1 dtool command --runs_on h1 --command true
  expect_error "^  h1: $1"
  cp "$known" "$work/before"
  expect_exit 1 dtool trust --yes --runs_on h1
  expect_error "^(dtool: )?h1: $1"
  expect_equal "$(cat "$work/before")" "$(cat "$known")"
}

# Revoked, in whatever order and file.
known_are "${address[0]} $key1"
both_get_in
known_are "${address[0]} $key1" "@revoked * $key1"
both_refuse "the host key .* is marked as revoked in $known:2"
known_are "@revoked ${address[0]} $key1"
both_refuse "the host key .* is marked as revoked in $known:1"

# A type that nobody knows hides no other line, and is a key of the host's.
known_are "${address[0]} $strange" "${address[0]} $key1"
both_get_in
known_are "${address[0]} $strange" "${address[0]} $other"
both_refuse "the host key .* is not the one in $known:1"
known_are "${address[0]} $strange"
both_refuse "the host key .* is not the one in $known:1"

# A line that is cut off, about this host or about who knows whom; one that ends as on Windows is whole.
known_are "${address[0]} ${key1:0:42}"
both_refuse "$known:1 cannot be read, and may be about the host"
known_are "|1|cut $key1"
both_refuse "$known:1 cannot be read"
known_are "${address[0]} ${key1:0:42}" "${address[0]} $key1"$'\r'
both_get_in

# An authority: ssh believes its certificates, so the host is reached over ssh; the plain key is not to be added.
known_are "@cert-authority * $(key "$work/host_ca.pub")"
both_refuse "the host is known by a certificate authority only \\($known:1\\), and has shown no certificate"
ssh-keygen -q -s "$work/host_ca" -h -I h1 -n "${address[0]}" "$DTOOL_LAB_FOLDER/host1/host_key.pub"
fault restart-sshd h1 -o "HostCertificate=$DTOOL_LAB_FOLDER/host1/host_key-cert.pub" -o "TrustedUserCAKeys=$work/user_ca.pub"
both_get_in
expect_exit 0 dtool trust --yes --runs_on h1
expect_exit 1 dtool command --ssh_program libssh --runs_on h1 --command true
expect_error 'the host is known by a certificate authority only .*, which libssh cannot ask'
expect_equal 1 "$(grep -c . "$known")"
known_are "@cert-authority * $(key "$work/host_ca.pub")" "${address[0]} $key1"
both_get_in

# All files count: the second of the user's, and those for everybody.
echo "${address[0]} $key1" >"$work/one"
echo "@revoked ${address[0]} $key1" >"$work/two"
known_are "${address[0]} $strange"
files="UserKnownHostsFile=$known $work/one"
expect_exit 0 dtool command --ssh_cmd "ssh -o '$files'" --runs_on h1 --command true
expect_exit 1 dtool command --ssh_cmd "ssh -o '$files' -o 'GlobalKnownHostsFile=$work/none $work/two'" --runs_on h1 --command true
expect_error "is marked as revoked in $work/two:1"
# New keys go into the first.
rm "$known"
expect_exit 0 dtool trust --yes --ssh_cmd "ssh -o 'UserKnownHostsFile=$work/new $work/none'" --runs_on h1
expect_equal "${address[0]} $key1" "$(cat "$work/new")"
expect_no_file "$work/none"

# An alias stands for host and port.
cp "$config" "$work/config"
fault restart-sshd h2 -o Port=2200
printf 'Host blue\n  HostName %s\n  Port 2200\n  HostKeyAlias Red\n' "${address[1]}" | cat - "$work/config" >"$config"
known_are "red $key2"
both_get_in blue
known_are "[red]:2200 $key2"
expect_exit 1 dtool command --runs_on blue --command true
expect_exit 0 dtool trust --yes --runs_on blue
expect_equal "red $key2" "$(tail -n 1 "$known")"
both_get_in blue
# Two machines that share a name cannot both be right.
sed -i 's/Host blue/Host blue green/; /HostName/d; /Port 2200/d' "$config"
printf 'Host green\n  HostName %s\nHost blue\n  HostName %s\n  Port 2200\n' "${address[0]}" "${address[1]}" >>"$config"
sed -i '/^  Port 22$/d' "$config"
known_are
expect_exit 1 dtool trust --yes --runs_on blue,green
expect_error 'hosts blue and green have one name in .*, and different keys'
expect_equal '' "$(cat "$known")"
cp "$work/config" "$config"

# A connection that is kept ends with what is known of its host, in whichever file that changes.
known_are "${address[0]} $key1"
keeps_connections
globals="ssh -o 'GlobalKnownHostsFile=$work/none $work/revoked'"
expect_exit 0 dtool command --ssh_cmd "$globals" --runs_on h1 --command true
expect_exit 0 dtool command --ssh_cmd "$globals" --runs_on h1 --command true
cp "$work/two" "$work/revoked"
expect_exit 1 dtool command --ssh_cmd "$globals" --runs_on h1 --command true
expect_error "is marked as revoked in $work/revoked:1"
connects_anew
end_keepers

# An expired certificate, or one that nobody can read, does not keep its key from being tried.
sign() { ssh-keygen -q -s "$work/user_ca" -I somebody -n root -V "$1" "$2"; }
sign 20200101:20200102 "$HOME/.ssh/id_ed25519.pub"
both_get_in
echo garbage >"$HOME/.ssh/id_ed25519-cert.pub"
both_get_in
rm "$HOME/.ssh/id_ed25519-cert.pub"
# A key that the host knows by its certificate alone, beside the key or named, the first of which may be of no use.
sed -i "s,IdentityFile .*,IdentityFile $work/user," "$config"
expect_exit 1 dtool command --runs_on h1 --command true
expect_error "was not let in; tried $work/user$"
sign +1h "$work/user.pub"
both_get_in
mv "$work/user-cert.pub" "$work/good"
sign 20200101:20200102 "$work/user.pub"
mv "$work/user-cert.pub" "$work/expired"
sed -i "s,\(  *\)IdentityFile .*,&\n\1CertificateFile $work/expired\n\1CertificateFile $work/good," "$config"
both_get_in
sed -i "/CertificateFile .*good/d" "$config"
expect_exit 1 dtool command --runs_on h1 --command true
expect_error "tried $work/expired, $work/user$"
echo garbage >"$work/expired"
expect_exit 1 dtool command --runs_on h1 --command true
expect_error "tried $work/expired \\(not a certificate that can be read\\), $work/user$"
