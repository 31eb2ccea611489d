// SPDX-License-Identifier: MIT
#include "ssh/host/identity.h"

#include <unistd.h>

#include <array>

#include "killfiles/channel/sha256.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"

namespace dtool::host {
namespace {

constexpr std::size_t kLongest = 64;

/// systemd's machine-id(5) asks not to tell it to others as it is, so this is a hash of it.
std::string machine_id() {
  const std::string id = read_line("/etc/machine-id");
  const bool is_one =
      id.size() == 32 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_one ? to_hex(sha256("dtool " + id)).substr(0, 32) : "-";
}

std::string host_name() {
  std::string name = read_line("/proc/sys/kernel/hostname");
  for (char& each : name) {
    const bool is_plain = (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
                          (each >= '0' && each <= '9') || each == '.' || each == '_' || each == '-';
    if (!is_plain) each = '_';
  }
  return name.empty() ? "-" : name.substr(0, kLongest);
}

std::string process_namespace() {
  std::array<char, 64> link{};
  const ssize_t size = ::readlink("/proc/self/ns/pid", link.data(), link.size());
  std::string digits;
  for (ssize_t i = 0; i < size; ++i) {
    const char each = link.at(static_cast<std::size_t>(i));
    if (each >= '0' && each <= '9') digits += each;
  }
  return digits.empty() ? "-" : digits;
}

}  // namespace

std::string identify_host() {
  const std::string boot = boot_id();
  return machine_id() + " " + host_name() + " " + (boot.empty() ? "-" : boot) + " " +
         process_namespace();
}

}  // namespace dtool::host
