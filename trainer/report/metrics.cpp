// SPDX-License-Identifier: MIT
// A JSON library writes only the texts: its numbers look different.
#include "trainer/report/metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <boost/crc.hpp>
#include <chrono>
#include <climits>
#include <cmath>
#include <nlohmann/json.hpp>

namespace dtool::trainer {

namespace {

struct ToJson {
  /// A path may have bytes that are not UTF-8, which JSON cannot have.
  std::string operator()(const std::string& text) const {
    using nlohmann::json;
    return json(text).dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
  }
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

// Six fields of three messages are encoded by hand, because the protocol buffer library would add a
// compiler to the build. Numbers are little-endian, as on all machines that LibTorch supports.

namespace {

static_assert(std::endian::native == std::endian::little);

template <class Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  return bytes + static_cast<char>(number);
}

/// https://protobuf.dev/programming-guides/encoding: a field's key is its number and how it is
/// coded.
enum class Wire { varint = 0, eight_bytes = 1, length_and_bytes = 2, four_bytes = 5 };

std::string key(std::uint64_t field, Wire wire) {
  return varint(field << 3 | static_cast<std::uint64_t>(wire));
}

std::string message_field(std::uint64_t field, std::string_view content) {
  return key(field, Wire::length_and_bytes) + varint(content.size()) + std::string(content);
}

// event.proto: Event
constexpr int kWallTime = 1;
constexpr int kStep = 2;
constexpr int kFileVersion = 3;
constexpr int kSummary = 5;
constexpr int kSessionLog = 7;

std::string event(std::int64_t step, const std::string& what) {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return key(kWallTime, Wire::eight_bytes) + bytes_of(now) + key(kStep, Wire::varint) +
         varint(static_cast<std::uint64_t>(step)) + what;
}

/// SessionLog{status: START}: makes what was told of this step and of later ones void.
std::string start_of_session() {
  constexpr int kStatus = 1;
  constexpr int kStart = 1;
  return message_field(kSessionLog, key(kStatus, Wire::varint) + varint(kStart));
}

/// Summary{value: {tag, simple_value}, ...}
std::string summary(const Scalars& scalars) {
  constexpr int kValue = 1;
  constexpr int kTag = 1;
  constexpr int kSimpleValue = 2;
  std::string values;
  for (const auto& [tag, number] : scalars) {
    values += message_field(kValue, message_field(kTag, tag) + key(kSimpleValue, Wire::four_bytes) +
                                        bytes_of(static_cast<float>(number)));
  }
  return message_field(kSummary, values);
}

/// A checksum of data that holds checksums would be weak; so TensorFlow rotates and adds.
std::uint32_t masked_crc32c(std::string_view data) {
  return std::rotr(crc32c(data), 15) + 0xa282ead8;
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

/// TensorBoard reads the files in the order of their names: by second, then by number.
std::filesystem::path new_file(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  for (int number = 0;; ++number) {
    auto file = folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", seconds.count(),
                                     host_name(), getpid(), number);
    if (!std::filesystem::exists(file)) return file;
  }
}

}  // namespace

std::uint32_t crc32c(std::string_view data) {
  boost::crc_optimal<32, 0x1edc6f41, 0xffffffff, 0xffffffff, true, true> sum;
  sum.process_bytes(data.data(), data.size());
  return sum.checksum();
}

std::string event_record(std::string_view data) {
  const std::string length = bytes_of(std::uint64_t{data.size()});
  return length + bytes_of(masked_crc32c(length)) + std::string(data) +
         bytes_of(masked_crc32c(data));
}

EventFile::EventFile(const std::filesystem::path& folder, std::int64_t first_step)
    : file_(new_file(folder), HalfLine::keep) {
  file_.append(event_record(event(0, message_field(kFileVersion, "brain.Event:2"))) +
               event_record(event(first_step, start_of_session())));
}

void EventFile::add(std::int64_t step, const Scalars& scalars) {
  file_.append(event_record(event(step, summary(scalars))));
}

}  // namespace dtool::trainer
