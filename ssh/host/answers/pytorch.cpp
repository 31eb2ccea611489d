// SPDX-License-Identifier: MIT
#include "ssh/host/answers/pytorch.h"

#include <algorithm>
#include <chrono>

#include "ssh/host/child.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

constexpr std::chrono::seconds kForPython{60};

/// `sh -c` this with the program as its argument: the environment's Python may be in a container.
constexpr const char* kPython =
    "python=python3; command -v python3 > /dev/null || python=python; exec \"$python\" -c \"$1\"";

/// Prints the folder of the package on a line of its own, a zero byte and its version.py. A package
/// is found without being imported; the current folder is not looked at.
constexpr const char* kFind =
    "import os, sys\n"
    "sys.path = [each for each in sys.path if each]\n"
    "from importlib.util import find_spec\n"
    "spec = find_spec('torch')\n"
    "for folder in (spec and spec.submodule_search_locations or [])[:1]:\n"
    "    sys.stdout.buffer.write(b'\\n' + os.fsencode(os.path.abspath(folder)) + b'\\0')\n"
    "    with open(os.path.join(folder, 'version.py'), 'rb') as file:\n"
    "        sys.stdout.buffer.write(file.read(65536))\n";

bool is_of_version(char sign) {
  return (sign >= '0' && sign <= '9') || (sign >= 'a' && sign <= 'z') ||
         (sign >= 'A' && sign <= 'Z') || std::string_view(".+-_").find(sign) != std::string::npos;
}

}  // namespace

std::string pytorch_version(std::string_view version_py) {
  constexpr std::string_view kName = "__version__ = ";
  constexpr std::size_t kLongest = 64;
  while (!version_py.empty()) {
    std::string_view line = cut_line(version_py);
    if (!line.starts_with(kName)) continue;
    line.remove_prefix(kName.size());
    const bool is_quoted = line.size() > 2 && line.size() <= kLongest + 2 &&
                           (line.front() == '\'' || line.front() == '"') &&
                           line.back() == line.front();
    if (!is_quoted) return {};
    line = line.substr(1, line.size() - 2);
    return std::ranges::all_of(line, is_of_version) ? std::string(line) : "";
  }
  return {};
}

bool can_be_searched(std::string_view folder) {
  return folder.starts_with('/') && std::ranges::none_of(folder, [](unsigned char sign) {
           return sign < ' ' || sign == 0x7f || sign == ':' || sign == ';' || sign == '$';
         });
}

PyTorch find_pytorch(const CommandPrefix& inside) {
  CommandPrefix words = inside;
  words.insert(words.end(), {"sh", "-c", kPython, "sh", kFind});
  const std::string said = run_program(words, kForPython).out;
  const std::size_t end = said.find('\0');
  if (end == said.npos) return {};
  const std::size_t begin = said.rfind('\n', end) + 1;  // what a .pth file prints comes before
  return {said.substr(begin, end - begin), pytorch_version(std::string_view(said).substr(end + 1))};
}

}  // namespace dtool::host
