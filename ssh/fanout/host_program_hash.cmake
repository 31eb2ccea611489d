# Writes a header with the hash of a program: `cmake -DPROGRAM=… -DMACHINE=… -DHEADER=… -P` this file.
file(SHA256 ${PROGRAM} hash)
file(WRITE ${HEADER} "// Made by the build: which dtool-host is inside dtool.\n#pragma once\n\n#include <string_view>\n\n\
namespace dtool::ssh {\n\ninline constexpr std::string_view kHostProgramMachine = \"${MACHINE}\";\n\
inline constexpr std::string_view kHostProgramSha256 = \"${hash}\";\n\n}  // namespace dtool::ssh\n")
