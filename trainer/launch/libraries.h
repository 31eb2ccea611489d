// SPDX-License-Identifier: MIT
// The shared libraries of a program on this machine.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::trainer {

/// The libraries, and versions of libraries (`GLIBC_2.38`), that the program needs and this machine
/// lacks; the program itself if it cannot be started. The loader is asked, as ldd(1) does; the
/// program does not run. Throws std::system_error.
std::vector<std::string> missing_libraries(const std::filesystem::path& program);

/// The same from the loader's words.
std::vector<std::string> missing_in_trace(std::string_view trace);

}  // namespace dtool::trainer
