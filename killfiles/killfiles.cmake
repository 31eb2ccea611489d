# What was started where.
add_library(dtool_killfiles STATIC
  killfiles/host_identity.cpp
  killfiles/killfile_allenact.cpp
  killfiles/killfile_folder.cpp
  killfiles/killfile_text.cpp
  killfiles/nearest.cpp
  killfiles/strict_toml.cpp
  killfiles/toml_bytes.cpp
  killfiles/whole_file.cpp)
target_link_libraries(dtool_killfiles PUBLIC dtool_warnings fmt::fmt PRIVATE PkgConfig::tomlplusplus)
