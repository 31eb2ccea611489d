# The code tree to every host, outputs back.
dtool_embed(${PROJECT_BINARY_DIR}/generated/sync/scripts.h dtool::tree_sync::scripts
  ${PROJECT_SOURCE_DIR}/sync/relay/scripts/pass_on.sh
  ${PROJECT_SOURCE_DIR}/sync/relay/scripts/serve_perl.pl
  ${PROJECT_SOURCE_DIR}/sync/relay/scripts/serve_python.py
  ${PROJECT_SOURCE_DIR}/sync/scripts/ask.sh
  ${PROJECT_SOURCE_DIR}/sync/scripts/changes.sh
  ${PROJECT_SOURCE_DIR}/sync/scripts/look.sh
  ${PROJECT_SOURCE_DIR}/sync/scripts/manifest.sh
  ${PROJECT_SOURCE_DIR}/sync/scripts/names.sh
  ${PROJECT_SOURCE_DIR}/sync/scripts/package.sh
  ${PROJECT_SOURCE_DIR}/sync/scripts/prepare.sh
  ${PROJECT_SOURCE_DIR}/sync/scripts/prune.sh
  ${PROJECT_SOURCE_DIR}/sync/scripts/unpack.sh)
add_library(dtool_sync STATIC
  sync/contents.cpp
  sync/exclude.cpp
  sync/git_files.cpp
  sync/kept_files.cpp
  sync/kept_listings.cpp
  sync/listing.cpp
  sync/package.cpp
  sync/pull.cpp
  sync/push.cpp
  sync/push_steps.cpp
  sync/relay/relay_tree.cpp
  sync/relay/relaying.cpp
  sync/rsync.cpp
  sync/tree.cpp)
target_link_libraries(dtool_sync PUBLIC dtool_warnings dtool_ssh fmt::fmt)
