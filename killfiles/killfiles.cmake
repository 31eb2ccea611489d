# SPDX-License-Identifier: MIT
# What was started where.
add_library(dtool_killfiles STATIC
  killfiles/host_identity.cpp
  killfiles/killfile_folder.cpp
  killfiles/killfile_text.cpp
  killfiles/nearest.cpp
  killfiles/printable.cpp
  killfiles/run.cpp
  killfiles/strict_toml.cpp
  killfiles/version.cpp
  killfiles/whole_file.cpp)
dtool_join_sources(dtool_killfiles 12)
set_source_files_properties(killfiles/version.cpp PROPERTIES COMPILE_DEFINITIONS DTOOL_VERSION="${PROJECT_VERSION}")
target_link_libraries(dtool_killfiles PUBLIC dtool_warnings fmt::fmt PRIVATE PkgConfig::tomlplusplus)

# What dtool-host and dtool-trainer share: no library but the kernel's and C++'s. Small, as dtool-host is.
set(DTOOL_CHANNEL_SOURCES
  killfiles/channel/channel.cpp
  killfiles/channel/door.cpp
  killfiles/channel/sha256.cpp
  killfiles/channel/wire.cpp)
add_library(dtool_channel STATIC ${DTOOL_CHANNEL_SOURCES})
dtool_join_sources(dtool_channel 12)
target_link_libraries(dtool_channel PUBLIC dtool_warnings)
target_compile_options(dtool_channel PRIVATE -Os -ffunction-sections -fdata-sections)
set_source_files_properties(killfiles/channel/sha256.cpp PROPERTIES COMPILE_OPTIONS -O2)
