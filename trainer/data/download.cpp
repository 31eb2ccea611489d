// SPDX-License-Identifier: MIT
// Mirrors are tried in turn, round after round: trying the next one is better than pausing.
#include "trainer/data/download.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "trainer/data/curl.h"
#include "trainer/data/idx.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

namespace {

namespace fs = std::filesystem;

constexpr int kRounds = 5;
constexpr std::int64_t kWorthARound = 1 << 16;  // growth in a round that makes it no failure

std::int64_t size_of(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : static_cast<std::int64_t>(size);
}

void flush(const fs::path& path, int flags) {
  const int descriptor = open(path.c_str(), flags | O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 || (fsync(descriptor) != 0 && errno != EINVAL)) {
    const int error = errno;
    if (descriptor >= 0) close(descriptor);
    throw std::system_error(error, std::generic_category(), "cannot write " + path.string());
  }
  close(descriptor);
}

struct Mirror {
  std::string url;
  std::string reason;  ///< the reason for its last failure
  bool usable = true;
};

/// One file on its way.
class Download {
 public:
  Download(const WantedFile& file, const Mirrors& mirrors, const fs::path& folder,
           TransferProgress& progress)
      : file_(file),
        stall_(mirrors.stall),
        pause_(mirrors.pause),
        folder_(folder),
        part_(folder / (file.name + ".part")),
        progress_(progress) {
    for (const auto& each : mirrors.urls)
      mirrors_.push_back({address_of(each, file.name), "", true});
  }

  void run();

 private:
  bool round();
  bool try_mirror(Mirror& mirror);
  CurlResult run_once(const Mirror& mirror);
  Verdict check(Mirror& mirror, const CurlResult& result, std::int64_t resumed_at);
  std::optional<std::string> fault() const;
  void finish(const std::string& source);
  [[noreturn]] void give_up() const;

  const WantedFile& file_;
  std::chrono::seconds stall_;
  std::chrono::milliseconds pause_;
  fs::path folder_;
  fs::path part_;
  TransferProgress& progress_;
  std::vector<Mirror> mirrors_;
  std::int64_t furthest_ = 0;  ///< the most bytes that were ever here
};

void Download::run() {
  progress_.begin(file_.name, size_of(part_));
  if (!fault()) return finish("an earlier run");
  furthest_ = size_of(part_);
  for (int failed = 0; failed < kRounds;) {
    if (failed > 0) std::this_thread::sleep_for(pause_before(failed, pause_));
    const auto before = furthest_;
    if (round()) return;
    if (std::none_of(mirrors_.begin(), mirrors_.end(), [](const Mirror& m) { return m.usable; })) {
      break;
    }
    failed = furthest_ - before >= kWorthARound ? 0 : failed + 1;
  }
  give_up();
}

bool Download::round() {
  for (Mirror& each : mirrors_) {
    if (each.usable && try_mirror(each)) return true;
  }
  return false;
}

/// True when the file is here. Goes on where the file here ends; when that is what went wrong, once
/// more from the start.
bool Download::try_mirror(Mirror& mirror) {
  const std::string before = mirror.reason;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto resumed_at = size_of(part_);
    const CurlResult result = run_once(mirror);
    const Verdict verdict = check(mirror, result, resumed_at);
    furthest_ = std::max(furthest_, size_of(part_));
    if (verdict == Verdict::sent) {
      finish(mirror.url);
      return true;
    }
    if (verdict == Verdict::from_the_start) {
      fs::remove(part_);
      if (resumed_at > 0) continue;
    }
    mirror.usable = verdict == Verdict::try_again;
    if (mirror.reason != before) progress_.say(fmt::format("{}: {}", mirror.url, mirror.reason));
    return false;
  }
  return false;
}

CurlResult Download::run_once(const Mirror& mirror) {
  bool too_much = false;
  const auto observe = [&](std::int64_t here, std::optional<std::int64_t> total) {
    too_much = file_.most_bytes > 0 && here > file_.most_bytes;
    if (here > 0) progress_.update(here, total);
    return !too_much;
  };
  CurlResult result = run_curl({mirror.url, part_, stall_}, observe);
  if (too_much) result.error = fmt::format("sends more than {} bytes", file_.most_bytes);
  return result;
}

/// Judges an attempt, leaving the reason of a failure in `mirror`.
Verdict Download::check(Mirror& mirror, const CurlResult& result, std::int64_t resumed_at) {
  Verdict verdict = judge_attempt(result.code, result.http_status);
  mirror.reason = result.error;
  if (result.code == CURLE_HTTP_RETURNED_ERROR) {
    mirror.reason = fmt::format("HTTP {}", result.http_status);
  }
  if (result.code == -1) fs::remove(part_);
  if (verdict == Verdict::cannot_write) {
    throw UsageError(
        fmt::format("cannot write {}: {}; {} are free there", part_.string(), mirror.reason,
                    human_bytes(static_cast<std::int64_t>(fs::space(folder_).available))),
        "make room, or give another data.path");
  }
  if (verdict != Verdict::sent) return verdict;
  const auto wrong = fault();
  if (!wrong) return Verdict::sent;
  mirror.reason = *wrong;
  if (resumed_at > 0) return Verdict::from_the_start;
  fs::remove(part_);
  return Verdict::next_mirror;
}

/// The fault of the file as it is here.
std::optional<std::string> Download::fault() const {
  try {
    const auto sum = sha256_of(part_, file_.counted);
    if (sum == file_.sha256) return std::nullopt;
    return fmt::format("another file: its sha256 is {}, not {}", sum, file_.sha256);
  } catch (const std::runtime_error& problem) {
    return fmt::format("a damaged file: {}", problem.what());
  }
}

void Download::finish(const std::string& source) {
  const auto size = size_of(part_);
  name_when_whole(part_, folder_ / file_.name);
  progress_.finish(size, source);
}

void Download::give_up() const {
  std::vector<std::string> reasons;
  for (const Mirror& each : mirrors_)
    reasons.push_back(fmt::format("{}: {}", each.url, each.reason));
  throw UsageError(fmt::format("cannot download {}: {}", file_.name, fmt::join(reasons, "; ")),
                   fmt::format("name another mirror in data.mirrors, or put the file into '{}'",
                               folder_.string()));
}

/// Kept as it is in a path, in an address as %XX otherwise.
bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~/").find(c) != std::string_view::npos;
}

}  // namespace

Verdict judge_attempt(int code, int http_status) {
  switch (code) {
    case CURLE_OK:
      return Verdict::sent;
    case CURLE_HTTP_RETURNED_ERROR:
      // the server's file is shorter than the part that is here
      if (http_status == 416) return Verdict::from_the_start;
      if (http_status == 408 || http_status == 425 || http_status == 429 || http_status >= 500) {
        return Verdict::try_again;
      }
      return Verdict::next_mirror;
    case CURLE_RANGE_ERROR:
    case CURLE_BAD_DOWNLOAD_RESUME:
      return Verdict::from_the_start;
    case CURLE_WRITE_ERROR:
      return Verdict::cannot_write;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_FTP_ACCEPT_TIMEOUT:
    case CURLE_HTTP2:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2_STREAM:
    case CURLE_HTTP3:
    case CURLE_QUIC_CONNECT_ERROR:
      return Verdict::try_again;
    default:
      return Verdict::next_mirror;
  }
}

std::chrono::milliseconds pause_before(int round, std::chrono::milliseconds first) {
  static std::mt19937 random{std::random_device{}()};
  const auto middle = first.count() << (round - 1);
  return std::chrono::milliseconds(
      std::uniform_int_distribution<std::int64_t>(middle / 2, middle * 3 / 2)(random));
}

std::string address_of(const std::string& mirror, const std::string& name) {
  std::string address = mirror;
  if (!address.ends_with('/')) address += '/';
  for (const char c : name) {
    if (is_plain(c)) {
      address += c;
    } else {
      address += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return address;
}

void name_when_whole(const fs::path& from, const fs::path& to) {
  flush(from, 0);
  fs::rename(from, to);
  flush(to.parent_path().empty() ? "." : to.parent_path(), O_DIRECTORY);
}

void download(const WantedFile& file, const Mirrors& mirrors, const fs::path& folder,
              TransferProgress& progress) {
  Download(file, mirrors, folder, progress).run();
}

// libcrypto's SHA-256, which uses the processor's SHA instructions if there are any.

namespace {

using Buffer = std::vector<unsigned char>;
using Digest = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& why) {
  throw std::runtime_error(fmt::format("cannot read {}: {}", file.string(), why));
}

void require(int success) {
  if (success != 1) throw std::runtime_error("libcrypto cannot compute SHA-256");
}

/// Calls `take` with each piece of the file's bytes.
void each_of_bytes(const std::filesystem::path& file, Buffer& buffer,
                   const std::function<void(std::size_t)>& take) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(file.c_str(), "rbe"),
                                                               std::fclose);
  if (!stream) fail(file, std::strerror(errno));
  std::setvbuf(stream.get(), nullptr, _IONBF, 0);
  while (const auto size = std::fread(buffer.data(), 1, buffer.size(), stream.get())) take(size);
  if (std::ferror(stream.get()) != 0) fail(file, std::strerror(errno));
}

/// The same for what they unpack to.
void each_of_content(const std::filesystem::path& file, Buffer& buffer,
                     const std::function<void(std::size_t)>& take) {
  PackedFile stream(file);
  while (const auto size = stream.read(buffer.data(), buffer.size())) take(size);
}

}  // namespace

std::string sha256_of(const std::filesystem::path& file, Counted counted) {
  const Digest digest(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  require(EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr));
  Buffer buffer(1 << 20);
  const auto each = counted == Counted::bytes ? each_of_bytes : each_of_content;
  each(file, buffer,
       [&](std::size_t size) { require(EVP_DigestUpdate(digest.get(), buffer.data(), size)); });
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned count = 0;
  require(EVP_DigestFinal_ex(digest.get(), bytes, &count));
  std::string text;
  for (unsigned i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

// The bar and the lines have the same content.

namespace {

constexpr auto kBetweenLines = std::chrono::seconds(5);
constexpr int kBarWidth = 20;

}  // namespace

std::string human_bytes(std::int64_t bytes) {
  constexpr const char* units[] = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  auto value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= 999.95 && unit < 3) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, units[unit]);
}

std::string transfer_text(const TransferState& state, TransferBar bar) {
  std::string text = state.name;
  if (state.total && *state.total > 0) {
    const double part =
        std::clamp(static_cast<double>(state.done) / static_cast<double>(*state.total), 0., 1.);
    if (bar == TransferBar::yes) {
      const auto full = static_cast<int>(part * kBarWidth);
      text += fmt::format("  [{}{}]", std::string(full, '#'), std::string(kBarWidth - full, ' '));
    }
    text += fmt::format("  {:.0f} % of {}", part * 100, human_bytes(*state.total));
  } else {
    text += "  " + human_bytes(state.done);
  }
  const double seconds = state.passed.count();
  const double rate =
      seconds > 0 ? static_cast<double>(state.done - state.begun_with) / seconds : 0;
  return text + fmt::format("  {}/s", human_bytes(static_cast<std::int64_t>(std::max(rate, 0.))));
}

void TransferProgress::begin(const std::string& name, std::int64_t done) {
  name_ = name;
  begun_with_ = done;
  begin_ = shown_ = Clock::now();
}

void TransferProgress::update(std::int64_t done, std::optional<std::int64_t> total) {
  const auto now = Clock::now();
  const TransferState state{name_, begun_with_, done, total, now - begin_};
  console_.draw([&](int columns) {
    return (prefix_ + transfer_text(state, TransferBar::yes))
        .substr(0, static_cast<std::size_t>(columns));
  });
  if (console_.has_bar() || now - shown_ < kBetweenLines) return;
  shown_ = now;
  say(transfer_text(state, TransferBar::no));
}

void TransferProgress::finish(std::int64_t size, const std::string& source) {
  say(fmt::format("{}: {} from {} in {:.1f} s", name_, human_bytes(size), source,
                  std::chrono::duration<double>(Clock::now() - begin_).count()));
}

void TransferProgress::say(const std::string& text) {
  console_.line(prefix_ + text);
}

}  // namespace dtool::trainer
