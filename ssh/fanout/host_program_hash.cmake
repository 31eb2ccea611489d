# SPDX-License-Identifier: MIT
# Writes the source with the hashes of programs: `cmake -DSOURCE=FILE -DPROGRAMS=MACHINE=FILE,MACHINE=FILE -P` this file.
string(REPLACE "," ";" programs "${PROGRAMS}")
set(lines "")
foreach(program ${programs})
  string(REGEX MATCH "^([^=]*)=(.*)$" match ${program})
  set(machine ${CMAKE_MATCH_1})
  file(SHA256 ${CMAKE_MATCH_2} hash)
  string(APPEND lines "    {\"${machine}\", \"${hash}\"},\n")
endforeach()
file(WRITE ${SOURCE} "// Made by the build: which programs for hosts are inside dtool.
#include \"ssh/fanout/host_program.h\"

namespace dtool::ssh {
namespace {

constexpr HostProgramName kNames[] = {
${lines}};

}  // namespace

std::span<const HostProgramName> host_program_names() {
  return kNames;
}

}  // namespace dtool::ssh
")
