# SPDX-License-Identifier: MIT
# Writes a header with the hashes of programs: `cmake -DHEADER=FILE -DPROGRAMS=MACHINE=FILE,MACHINE=FILE -P` this file.
string(REPLACE "," ";" programs "${PROGRAMS}")
set(lines "")
foreach(program ${programs})
  string(REGEX MATCH "^([^=]*)=(.*)$" match ${program})
  set(machine ${CMAKE_MATCH_1})
  file(SHA256 ${CMAKE_MATCH_2} hash)
  string(APPEND lines "    HostProgramName{\"${machine}\", \"${hash}\"},\n")
endforeach()
file(WRITE ${HEADER} "// Made by the build: which programs for hosts are inside dtool.\n#pragma once\n\n#include <array>\n\n\
#include \"ssh/fanout/host_program.h\"\n\nnamespace dtool::ssh {\n\ninline constexpr std::array kHostProgramNames = {\n${lines}};\n\n}  // namespace dtool::ssh\n")
