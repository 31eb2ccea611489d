// SPDX-License-Identifier: MIT
// Mirrors are tried in turn, round after round: trying the next one is better than pausing.
#include "trainer/data/download.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "killfiles/channel/sha256.h"
#include "killfiles/channel/wire.h"
#include "trainer/data/idx.h"
#include "trainer/report/written_file.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

namespace {

/// The data of libcurl's callbacks.
struct Transfer {
  const CurlRequest& request;
  const CurlObserver& observer;
  std::int64_t begun_with = 0;
  std::int64_t here = 0;
  host::Descriptor file{};
  int write_error = 0;
  bool is_wanted = true;
  std::exception_ptr problem{};  ///< the observer's exception; must not pass through libcurl
};

std::size_t write_bytes(char* bytes, std::size_t /*one*/, std::size_t count, void* data) {
  Transfer& transfer = *static_cast<Transfer*>(data);
  if (!transfer.file.is_open()) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    transfer.file = host::Descriptor(open(transfer.request.into.c_str(), kFlags, 0666));
  }
  if (!transfer.file.is_open() || !write_all(transfer.file.get(), {bytes, count})) {
    transfer.write_error = errno;
    return 0;
  }
  transfer.here += static_cast<std::int64_t>(count);
  return count;
}

int observe_transfer(void* data, curl_off_t length, curl_off_t, curl_off_t, curl_off_t) {
  Transfer& transfer = *static_cast<Transfer*>(data);
  std::optional<std::int64_t> total;
  if (length > 0) total = transfer.begun_with + length;
  try {
    transfer.is_wanted = transfer.observer(transfer.here, total);
  } catch (...) {
    transfer.problem = std::current_exception();
    return 1;
  }
  return transfer.is_wanted ? 0 : 1;
}

template <class Value>
void set(CURL* handle, CURLoption option, Value value) {
  if (curl_easy_setopt(handle, option, value) != CURLE_OK) {
    throw std::runtime_error("libcurl lacks an option that a download needs");
  }
}

/// As the curl program does it.
void set_certificates(CURL* handle) {
  for (const char* variable : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* file = std::getenv(variable);
    if (file == nullptr || *file == '\0') continue;
    set(handle, CURLOPT_CAINFO, file);
    break;
  }
  const char* folder = std::getenv("SSL_CERT_DIR");
  if (folder != nullptr && *folder != '\0') set(handle, CURLOPT_CAPATH, folder);
}

void set_options(CURL* handle, Transfer& transfer, char* error) {
  const auto stall = static_cast<long>(transfer.request.stall.count());
  set(handle, CURLOPT_URL, transfer.request.url.c_str());
  set(handle, CURLOPT_USERAGENT, "dtool-trainer");
  set(handle, CURLOPT_FAILONERROR, 1L);
  set(handle, CURLOPT_FOLLOWLOCATION, 1L);
  set(handle, CURLOPT_MAXREDIRS, 10L);
#if LIBCURL_VERSION_NUM >= 0x075500
  set(handle, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
  set(handle, CURLOPT_REDIR_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  set(handle, CURLOPT_CONNECTTIMEOUT, stall);
  set(handle, CURLOPT_LOW_SPEED_LIMIT, 1024L);
  set(handle, CURLOPT_LOW_SPEED_TIME, stall);
  set(handle, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(transfer.begun_with));
  set(handle, CURLOPT_BUFFERSIZE, 128L << 10);
  set(handle, CURLOPT_WRITEFUNCTION, write_bytes);
  set(handle, CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  set(handle, CURLOPT_NOPROGRESS, 0L);
  set(handle, CURLOPT_XFERINFOFUNCTION, observe_transfer);
  set(handle, CURLOPT_XFERINFODATA, static_cast<void*>(&transfer));
  set(handle, CURLOPT_ERRORBUFFER, error);
  set_certificates(handle);
}

}  // namespace

CurlResult run_curl(const CurlRequest& request, const CurlObserver& observer) {
  const std::unique_ptr<CURL, void (*)(CURL*)> handle(curl_easy_init(), curl_easy_cleanup);
  if (handle == nullptr) throw std::runtime_error("cannot start libcurl");
  Transfer transfer{.request = request, .observer = observer};
  std::error_code is_missing;
  const auto size = std::filesystem::file_size(request.into, is_missing);
  if (!is_missing) transfer.begun_with = transfer.here = static_cast<std::int64_t>(size);
  char error[CURL_ERROR_SIZE] = "";
  set_options(handle.get(), transfer, error);

  const CURLcode code = curl_easy_perform(handle.get());
  if (transfer.problem) std::rethrow_exception(transfer.problem);
  CurlResult result;
  result.code = transfer.is_wanted ? static_cast<int>(code) : -1;
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  result.http_status = static_cast<int>(status);
  if (code == CURLE_OK) return result;
  result.error = transfer.write_error != 0 ? std::strerror(transfer.write_error)
                 : *error != '\0'          ? error
                                           : curl_easy_strerror(code);
  return result;
}

namespace {

namespace fs = std::filesystem;

constexpr int kRounds = 5;
constexpr std::int64_t kWorthARound = 1 << 16;  // growth in a round that makes it no failure

std::int64_t size_of(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : static_cast<std::int64_t>(size);
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

void download(const WantedFile& file, const Mirrors& mirrors, const fs::path& folder,
              TransferProgress& progress) {
  Download(file, mirrors, folder, progress).run();
}

namespace {

using Buffer = std::vector<char>;

/// Calls `take` with each piece of the file's bytes.
void each_of_bytes(const fs::path& file, Buffer& buffer,
                   const std::function<void(std::size_t)>& take) {
  const host::Descriptor descriptor(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  ssize_t size = descriptor.is_open() ? 0 : -1;
  while (descriptor.is_open() &&
         (size = read(descriptor.get(), buffer.data(), buffer.size())) > 0) {
    take(static_cast<std::size_t>(size));
  }
  if (size == 0) return;
  throw std::runtime_error(fmt::format("cannot read {}: {}", file.string(), std::strerror(errno)));
}

/// The same for what they unpack to.
void each_of_content(const fs::path& file, Buffer& buffer,
                     const std::function<void(std::size_t)>& take) {
  PackedFile stream(file);
  while (const auto size = stream.read(buffer.data(), buffer.size())) take(size);
}

}  // namespace

std::string sha256_of(const fs::path& file, Counted counted) {
  host::Sha256 sum;
  Buffer buffer(1 << 20);
  const auto each = counted == Counted::bytes ? each_of_bytes : each_of_content;
  each(file, buffer, [&](std::size_t size) { sum.add({buffer.data(), size}); });
  return host::to_hex(sum.finish());
}

}  // namespace dtool::trainer
