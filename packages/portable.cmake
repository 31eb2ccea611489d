# SPDX-License-Identifier: MIT
# The archives that the portable dtool (packages.cmake) is linked with in place of shared libraries. The libraries of the
# sources ask the program that they are linked into which of both it wants, so the same objects serve both programs.
set(DTOOL_IS_PORTABLE $<BOOL:$<TARGET_PROPERTY:DTOOL_PORTABLE>>)
set(DTOOL_PORTABLE_LACKS "")
if(DTOOL_SANITIZE)
  list(APPEND DTOOL_PORTABLE_LACKS "a build without a sanitizer")
endif()
foreach(library ssh crypto z zstd)
  find_library(DTOOL_ARCHIVE_${library} lib${library}.a)
  mark_as_advanced(DTOOL_ARCHIVE_${library})
  if(NOT DTOOL_ARCHIVE_${library})
    list(APPEND DTOOL_PORTABLE_LACKS lib${library}.a)
  endif()
endforeach()
