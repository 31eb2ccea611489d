# SPDX-License-Identifier: MIT
# The code tree to every host, outputs back.
add_library(dtool_sync STATIC
  sync/contents.cpp
  sync/copy/copy_list.cpp
  sync/copy/copying.cpp
  sync/copy/parcel_run.cpp
  sync/copy/parcels.cpp
  sync/git_files.cpp
  sync/listing.cpp
  sync/look.cpp
  sync/open_folder.cpp
  sync/package_writer.cpp
  sync/pull.cpp
  sync/push/push.cpp
  sync/push/push_steps.cpp
  sync/relaying.cpp
  sync/restored_tree.cpp
  sync/rsync.cpp
  sync/schedule.cpp
  sync/staging.cpp
  sync/tree.cpp)
dtool_join_sources(dtool_sync 12)
target_link_libraries(dtool_sync PUBLIC dtool_warnings dtool_ssh fmt::fmt)
