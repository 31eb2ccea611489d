# SPDX-License-Identifier: MIT
# Sourced by the tests of containers: images made here in a moment, of this machine's own busybox.
# shellcheck shell=bash

# An image at $1 that has a shell and its tools in /bin, a note of its own, and empty folders.
make_image() {
  local tool
  mkdir -p "$1"/{bin,dev,etc,home,lib,lib64,opt,proc,root,sys,tmp,usr,var}
  : >"$1/etc/passwd"
  : >"$1/etc/group"
  : >"$1/etc/hosts"
  : >"$1/etc/resolv.conf"
  echo 'the image' >"$1/etc/whose"
  cp /bin/busybox "$1/bin/"
  for tool in sh cat ls env setsid sleep pwd touch true id tr head tee mkfifo rm; do ln -s busybox "$1/bin/$tool"; done
  chown -R --reference "$(dirname "$1")" "$1"
}

# Puts a program of this machine's, with its libraries, into image $1 too: $2, its path.
add_program() {
  local file
  for file in "$2" $(ldd "$2" | grep -o '/[^ ]*'); do
    mkdir -p "$1${file%/*}"
    cp -L "$file" "$1$file"
  done
}
