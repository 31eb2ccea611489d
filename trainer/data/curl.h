// One transfer by libcurl, which brings what a download needs and we should not write: proxies and
// their variables, certificates, redirects and every protocol.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace dtool::trainer {

struct CurlRequest {
  std::string url;
  std::filesystem::path into;  ///< what is there already is taken as the content's beginning
  std::chrono::seconds stall;  ///< under 1 KB/s for so long ends it
};

struct CurlResult {
  int code = 0;  ///< https://curl.se/libcurl/c/libcurl-errors.html; -1: the observer ended it
  int http_status = 0;  ///< of the last answer; 0 without one
  std::string error;    ///< libcurl's own sentence; empty if nothing failed
};

/// Called now and then with the bytes that the file has, and is to have where the server says so;
/// false ends the transfer.
using CurlObserver = std::function<bool(std::int64_t here, std::optional<std::int64_t> total)>;

/// Transfers until the end or the first failure. The file is made when its first byte comes.
CurlResult run_curl(const CurlRequest& request, const CurlObserver& observer);

}  // namespace dtool::trainer
