// SPDX-License-Identifier: MIT
// There are few keys and numbers, so a JSON library would cost more compile time than it saves
// code.
#include "trainer/report/metrics.h"

#include <fmt/format.h>

#include <cmath>

namespace dtool::trainer {
namespace {

std::string quoted(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      json += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      json += c;
    }
  }
  return json + '"';
}

struct ToJson {
  std::string operator()(const std::string& text) const { return quoted(text); }
  std::string operator()(double number) const {
    return std::isfinite(number) ? fmt::format("{}", number) : "null";
  }
  std::string operator()(auto number) const { return fmt::format("{}", number); }
};

}  // namespace

std::string to_json(const MetricsLine& line) {
  std::string json = "{";
  for (const auto& [key, value] : line) {
    json +=
        fmt::format("{}\"{}\": {}", json.size() > 1 ? ", " : "", key, std::visit(ToJson{}, value));
  }
  return json + "}";
}

MetricsFile::MetricsFile(const std::filesystem::path& file) : file_(file, HalfLine::cut) {}

void MetricsFile::append(const MetricsLine& line) {
  file_.append(to_json(line) + "\n");
}

}  // namespace dtool::trainer
