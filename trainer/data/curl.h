// One run of the curl program. curl brings what a download needs and we should not write: proxies
// and their variables, certificates, redirects, every protocol, and the user's ~/.curlrc.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dtool::trainer {

struct CurlRequest {
  std::string url;
  std::filesystem::path into;  ///< what is there already is taken as the content's beginning
  std::chrono::seconds stall;  ///< under 1 KB/s for so long ends it
};

struct CurlResult {
  int exit_code = 0;    ///< https://curl.se/docs/manpage.html#EXIT; -1: ended by us
  int http_status = 0;  ///< of the last answer; 0 without one
  std::string error;    ///< curl's own sentence, without its number
};

/// What curl has said so far.
struct CurlOutput {
  int http_status = 0;
  std::optional<std::int64_t> length;  ///< of this answer's body
  std::string error;
};

/// Called every fifth of a second with the output so far; false ends curl.
using CurlObserver = std::function<bool(const CurlOutput&)>;

/// The path of the curl program in PATH; absent when there is none.
std::optional<std::filesystem::path> find_curl(const std::optional<std::string>& path_variable);

/// The command line, program name first.
std::vector<std::string> curl_arguments(const CurlRequest& request);

/// Reads headers (of each answer in turn) and error lines.
CurlOutput parse_curl_output(const std::string& text);

/// Runs curl until it ends. It dies with this process, and keeps `inherited` open while it lives.
CurlResult run_curl(const std::filesystem::path& program, const CurlRequest& request, int inherited,
                    const CurlObserver& observer);

}  // namespace dtool::trainer
