// SPDX-License-Identifier: MIT
#include "trainer/settings/endpoint.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

Endpoint parse_endpoint(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return UsageError(fmt::format("'{}' is not IP:PORT: {}", text, why),
                      "write it as 10.0.0.1:29500, node1:29500 or [fd00::1]:29500");
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) throw wrong("the port is missing");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    throw wrong("an IPv6 address needs brackets");
  }
  if (host.empty()) throw wrong("the address is empty");
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) {
    throw wrong("the port must be a number from 1 to 65535");
  }
  return {std::string(host), port};
}

std::string to_string(const Endpoint& endpoint) {
  const bool brackets = endpoint.host.find(':') != std::string::npos;
  return brackets ? fmt::format("[{}]:{}", endpoint.host, endpoint.port)
                  : fmt::format("{}:{}", endpoint.host, endpoint.port);
}

}  // namespace dtool::trainer
