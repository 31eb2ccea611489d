# SPDX-License-Identifier: MIT
# What dtool-host does for sync; cli/host/host.cmake links it.
set(DTOOL_SYNC_HOST_SOURCES
  sync/copy/host/answer_copy.cpp
  sync/copy/host/copy_folder.cpp
  sync/copy/host/take_parcel.cpp
  sync/host/cipher.cpp
  sync/host/copied_files.cpp
  sync/host/copy_file.cpp
  sync/host/inside.cpp
  sync/host/kept_copy.cpp
  sync/host/look_at_source.cpp
  sync/host/other_kinds.cpp
  sync/host/mark.cpp
  sync/host/own_tree.cpp
  sync/host/package_reader.cpp
  sync/host/remove_tree.cpp
  sync/host/stored_tree.cpp
  sync/host/tree_folder.cpp
  sync/push/host/answer_tree.cpp
  sync/push/host/place_tree.cpp
  sync/push/host/placing.cpp
  sync/push/host/tree_change.cpp
  sync/relay/host/package_server.cpp
  sync/relay/host/passed_on.cpp)
