# SPDX-License-Identifier: MIT
# Read by cpack for each kind of package: what is in it, and where it lies.
if(CPACK_GENERATOR STREQUAL TGZ)
  set(CPACK_COMPONENTS_ALL portable)
  set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
  set(CPACK_ARCHIVE_PORTABLE_FILE_NAME ${CPACK_PACKAGE_FILE_NAME})
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
else()
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_COMPONENTS_ALL dtool)
  # The program that needs the fewest packages, whose names differ between the systems with rpm.
  if(CPACK_GENERATOR STREQUAL RPM AND CPACK_DTOOL_PORTABLE)
    set(CPACK_COMPONENTS_ALL portable)
  endif()
  if(CPACK_GENERATOR STREQUAL RPM)
    set(RPM_EXECUTABLE rpm)  # cpack 3.25 asks an empty name whether it knows Suggests, and leaves them out
  endif()
  if(CPACK_DTOOL_TRAINER)
    list(APPEND CPACK_COMPONENTS_ALL trainer)
  endif()
endif()
