// SPDX-License-Identifier: MIT
#include "trainer/data/curl.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>

namespace dtool::trainer {
namespace {

/// The data of libcurl's callbacks.
struct Transfer {
  const CurlRequest& request;
  const CurlObserver& observer;
  std::int64_t begun_with = 0;
  std::int64_t here = 0;
  int file = -1;
  int write_error = 0;
  bool is_wanted = true;
  std::exception_ptr problem{};  ///< the observer's exception; must not pass through libcurl

  ~Transfer() {
    if (file >= 0) close(file);
  }
};

std::size_t write_bytes(char* bytes, std::size_t /*one*/, std::size_t count, void* data) {
  Transfer& transfer = *static_cast<Transfer*>(data);
  if (transfer.file < 0) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    transfer.file = open(transfer.request.into.c_str(), kFlags, 0666);
  }
  for (std::size_t done = 0; done < count;) {
    const auto part = transfer.file < 0 ? -1 : write(transfer.file, bytes + done, count - done);
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) {
      transfer.write_error = errno;
      return 0;
    }
    done += static_cast<std::size_t>(part);
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

}  // namespace dtool::trainer
