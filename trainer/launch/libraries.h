// The shared libraries of a program on this machine.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dtool::trainer {

/// The libraries, and versions of libraries (`GLIBC_2.38`), that the program needs and this machine
/// lacks. The loader is asked, as ldd(1) does; the program does not run. Throws std::system_error.
std::vector<std::string> missing_libraries(const std::filesystem::path& program);

}  // namespace dtool::trainer
