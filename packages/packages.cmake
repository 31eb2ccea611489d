# SPDX-License-Identifier: MIT
# The packages: targets `tarball`, `wheel`, `trainer_wheel`, `deb` and `rpm`. docs/building.md says what they hold. cpack reads for_each.cmake.
set(portable dtool-portable)
if(DTOOL_PORTABLE_LACKS)
  list(JOIN DTOOL_PORTABLE_LACKS ", " lacks)
  message(STATUS "the tarball is left out: its dtool needs ${lacks}")
  set(portable "")
else()
  add_executable(dtool-portable EXCLUDE_FROM_ALL cli/shell/main.cpp packages/fmt.cpp packages/glibc.cpp packages/gssapi.cpp
    packages/tomlplusplus.cpp)
  target_link_libraries(dtool-portable PRIVATE dtool_cli PkgConfig::tomlplusplus)
  # fmt and toml++ are in the program, so the shared ones are not needed.
  target_link_options(dtool-portable PRIVATE -static-libstdc++ -static-libgcc -s -Wl,--as-needed -Wl,--gc-sections)
  set_target_properties(dtool-portable PROPERTIES DTOOL_PORTABLE ON OUTPUT_NAME dtool
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/portable)

  install(TARGETS dtool-portable RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT portable EXCLUDE_FROM_ALL)
  dtool_install_extras(portable EXCLUDE_FROM_ALL)
  set(documents ${CMAKE_INSTALL_DATADIR}/doc/dtool)
  install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${documents} COMPONENT portable EXCLUDE_FROM_ALL)
  # The licenses of the libraries that are in the program.
  foreach(library libssh libssl zlib1g libzstd libfmt libtomlplusplus libcli11 nlohmann-json3 libstdc++-* libc6)
    file(GLOB license /usr/share/doc/${library}-dev/copyright)
    foreach(file IN LISTS license)
      get_filename_component(name ${file} DIRECTORY)
      get_filename_component(name ${name} NAME)
      file(REAL_PATH ${file} file)
      install(FILES ${file} DESTINATION ${documents}/licenses RENAME ${name} COMPONENT portable EXCLUDE_FROM_ALL)
    endforeach()
  endforeach()
endif()

set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME dtool)
set(CPACK_PACKAGE_VENDOR "the dtool authors")
set(CPACK_PACKAGE_CONTACT "the dtool authors <dtool@localhost>" CACHE STRING "who made the packages, and an address")
set(CPACK_PACKAGE_FILE_NAME dtool-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
  WORLD_EXECUTE)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/packages/for_each.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packages/debian.cmake)
set(CPACK_DTOOL_SOURCE_DIR ${PROJECT_SOURCE_DIR})
set(CPACK_DTOOL_TRAINER ${DTOOL_TRAINER})
set(CPACK_DTOOL_PORTABLE ${portable})

set(dtool_summary "run one training job on many machines over SSH")
set(dtool_description "It sets machines up, runs a command on all of them, starts one training run
across them, and ends that run with nothing left behind. It needs an SSH
server on each machine, and no daemon of its own.")
set(trainer_summary "train neural networks on many machines, for dtool")
set(trainer_description "The command \"dtool run EXPERIMENT\" starts this program on each machine. It
trains with LibTorch, data parallel over all machines, and writes checkpoints
and metrics.")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DTOOL_PACKAGE_NAME dtool)
set(CPACK_DEBIAN_DTOOL_PACKAGE_SECTION net)
set(CPACK_DEBIAN_DTOOL_DESCRIPTION "${dtool_summary}\n${dtool_description}")
set(CPACK_DEBIAN_DTOOL_PACKAGE_RECOMMENDS "openssh-client, rsync, screen | tmux")
set(CPACK_DEBIAN_DTOOL_PACKAGE_SUGGESTS "dtool-trainer, gnuplot-nox | gnuplot")
set(CPACK_DEBIAN_TRAINER_PACKAGE_NAME dtool-trainer)
set(CPACK_DEBIAN_TRAINER_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TRAINER_DESCRIPTION "${trainer_summary}\n${trainer_description}")
set(CPACK_DEBIAN_TRAINER_PACKAGE_SUGGESTS dtool)

set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
foreach(component DTOOL PORTABLE)
  set(CPACK_RPM_${component}_PACKAGE_NAME dtool)
  set(CPACK_RPM_${component}_PACKAGE_SUMMARY "${dtool_summary}")
  set(CPACK_RPM_${component}_PACKAGE_DESCRIPTION "${dtool_description}")
  set(CPACK_RPM_${component}_PACKAGE_SUGGESTS "openssh-clients, rsync, screen")
endforeach()
set(CPACK_RPM_TRAINER_PACKAGE_NAME dtool-trainer)
set(CPACK_RPM_TRAINER_PACKAGE_SUMMARY "${trainer_summary}")
set(CPACK_RPM_TRAINER_PACKAGE_DESCRIPTION "${trainer_description}")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/share/man /usr/share/man/man1)  # the system's own folders
include(CPack)

# They lie in the folder `packages` of the build.
function(dtool_package target generator)
  add_custom_target(${target} COMMAND ${CMAKE_CPACK_COMMAND} -G ${generator} -B ${PROJECT_BINARY_DIR}/packages
    DEPENDS ${ARGN} VERBATIM USES_TERMINAL)
endfunction()
set(trainer "")
if(DTOOL_TRAINER)
  set(trainer dtool-trainer)
endif()
if(portable)
  dtool_package(tarball TGZ dtool-portable man_pages)
  add_custom_target(wheel COMMAND ${CMAKE_COMMAND} -E env CMAKE=${CMAKE_COMMAND} OBJDUMP=${CMAKE_OBJDUMP}
    ${PROJECT_SOURCE_DIR}/packages/make_wheel ${PROJECT_BINARY_DIR} ${PROJECT_VERSION} ${CMAKE_SYSTEM_PROCESSOR} ${dtool_summary}
    DEPENDS dtool-portable man_pages VERBATIM USES_TERMINAL)
  dtool_package(rpm RPM dtool-portable man_pages ${trainer})
else()
  dtool_package(rpm RPM dtool man_pages ${trainer})
endif()
dtool_package(deb DEB dtool man_pages ${trainer})

# Only a PyTorch of pip's is where such a wheel finds it: in the environment, with its libraries in torch/lib.
if(DTOOL_TRAINER)
  get_filename_component(pytorch ${TORCH_INCLUDE_DIR} DIRECTORY)
  if(EXISTS ${pytorch}/version.py AND EXISTS ${pytorch}/lib)
    add_custom_target(trainer_wheel COMMAND ${CMAKE_COMMAND} -E env CMAKE=${CMAKE_COMMAND} OBJDUMP=${CMAKE_OBJDUMP}
      ${PROJECT_SOURCE_DIR}/packages/make_trainer_wheel ${PROJECT_BINARY_DIR} ${PROJECT_VERSION} ${CMAKE_SYSTEM_PROCESSOR}
      ${trainer_summary} ${pytorch} DEPENDS dtool-trainer VERBATIM USES_TERMINAL)
  else()
    message(STATUS "the trainer's wheel is left out: LibTorch in ${pytorch} is not that of a PyTorch from pip")
  endif()
endif()
