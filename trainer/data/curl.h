// SPDX-License-Identifier: MIT
// One transfer by libcurl. The library handles proxies and their variables, certificates, redirects
// and all protocols.
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
  std::filesystem::path into;  ///< existing content counts as the beginning of the file
  std::chrono::seconds stall;  ///< less than 1 KB/s for this long ends the transfer
};

struct CurlResult {
  int code = 0;  ///< https://curl.se/libcurl/c/libcurl-errors.html; -1: the observer ended it
  int http_status = 0;  ///< the HTTP status of the last answer; 0 without one
  std::string error;    ///< libcurl's own sentence; empty if nothing failed
};

/// Called now and then with the number of bytes in the file, and the final number if the server
/// tells it. Returning false ends the transfer.
using CurlObserver = std::function<bool(std::int64_t here, std::optional<std::int64_t> total)>;

/// Transfers until the end or the first failure. The file is created when its first byte arrives.
CurlResult run_curl(const CurlRequest& request, const CurlObserver& observer);

}  // namespace dtool::trainer
