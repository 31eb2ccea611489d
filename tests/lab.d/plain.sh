# Labs without root: one sshd a host, run by this user, on 127.x addresses and a high port; sourced by tests/lab.
# shellcheck shell=bash disable=SC2154,SC2034

reserve_plain() { fail 'labs without root are still to come'; }
