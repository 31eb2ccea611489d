# SPDX-License-Identifier: MIT
# What was started where.
add_library(dtool_killfiles STATIC
  killfiles/host_identity.cpp
  killfiles/killfile_folder.cpp
  killfiles/killfile_text.cpp
  killfiles/nearest.cpp
  killfiles/run.cpp
  killfiles/strict_toml.cpp
  killfiles/version.cpp
  killfiles/whole_file.cpp)
dtool_join_sources(dtool_killfiles 12)
set_source_files_properties(killfiles/version.cpp PROPERTIES COMPILE_DEFINITIONS DTOOL_VERSION="${PROJECT_VERSION}")
target_link_libraries(dtool_killfiles PUBLIC dtool_warnings fmt::fmt PRIVATE PkgConfig::tomlplusplus)
