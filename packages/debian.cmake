# SPDX-License-Identifier: MIT
# Run by cpack before it packs: what Debian's policy wants of a package's folder of documents.
if(NOT CPACK_GENERATOR STREQUAL DEB)
  return()
endif()
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(share ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share)
  set(documents ${share}/doc/${package})
  file(READ ${CPACK_DTOOL_SOURCE_DIR}/LICENSE license)
  file(READ ${CPACK_DTOOL_SOURCE_DIR}/packages/${package}.copyright parts)
  file(WRITE ${documents}/copyright "${license}\n${parts}")
  set(version ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
  file(WRITE ${documents}/changelog.Debian "${package} (${version}) unstable; urgency=medium

  * Made by dtool's own build. changelog.gz has what changed.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  configure_file(${CPACK_DTOOL_SOURCE_DIR}/CHANGELOG.md ${documents}/changelog COPYONLY)
  configure_file(${CPACK_DTOOL_SOURCE_DIR}/packages/${package}.lintian ${share}/lintian/overrides/${package} COPYONLY)
  file(GLOB pages ${share}/man/man1/*.1)
  execute_process(COMMAND gzip -9nf ${pages} ${documents}/changelog ${documents}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB_RECURSE texts ${share}/doc/* ${share}/lintian/* ${share}/man/*)
  file(CHMOD ${texts} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endforeach()
