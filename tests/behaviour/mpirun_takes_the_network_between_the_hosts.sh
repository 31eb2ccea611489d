#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mpirun, orted and MPI itself use the network that leads from the first host to the others, where each host has another one, too,
# with the same address on all, as container engines make them; the user's own settings go before.
source "$(dirname "$0")/harness.sh"
needs_isolation
needs_program mpirun
lab 3
let_h1_reach_the_others
: >something_to_send
for host in h1 h2 h3; do
  fault sudo $host ip link add docker0 type veth peer name container0
  fault sudo $host ip addr add 172.17.0.1/16 dev docker0
  fault sudo $host ip link set docker0 up
  fault sudo $host ip link set container0 up
done
network=$(fault exec h1 ip -o -4 route show dev eth0 scope link | awk '{ print $1 }')
# shellcheck disable=SC2016
tell='echo "oob $OMPI_MCA_oob_tcp_if_include btl $OMPI_MCA_btl_tcp_if_include uri $OMPI_MCA_orte_hnp_uri"'
mpi=(run --launcher mpi --runs_on "h[1-3]" --follow)
expect_exit 0 timeout 100 "$DTOOL" "${mpi[@]}" -- bash -c "$tell"
expect_equal 3 "$(grep -c "oob $network btl $network uri [^,]*;tcp://$(sed -n 1p "$DTOOL_LAB_FOLDER/hosts"):[0-9]*\$" "$out")"
expect_exit 0 timeout 100 "$DTOOL" "${mpi[@]}" --export OMPI_MCA_oob_tcp_if_include=eth0 --export OMPI_MCA_btl_tcp_if_exclude=docker0,lo -- bash -c "$tell"
expect_equal 3 "$(grep -c 'oob eth0 btl  uri' "$out")"

# This machine as the first one, which knows the other by its SSH configuration alone: rank 0 listens where that one reaches it.
own=$(ip -o route get "$(sed -n 2p "$DTOOL_LAB_FOLDER/hosts")" | sed -n 's/.* src \([^ ]*\).*/\1/p')
# shellcheck disable=SC2016
expect_exit 0 timeout 100 "$DTOOL" run --launcher mpi --runs_on 'local,h2' --follow -- bash -c 'echo "rank 0 at $MASTER_ADDR"'
expect_equal 2 "$(grep -cF "rank 0 at $own" "$out")"
