#include "ssh/host_key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <stdexcept>

#include "ssh/connector.h"
#include "ssh/file_stamp.h"
#include "ssh/host_error.h"
#include "ssh/program_choice.h"
#include "ssh/program_scan.h"

namespace dtool::ssh {
namespace {

HostKeyState state_of(ssh_session session) {
  switch (ssh_session_is_known_server(session)) {
    case SSH_KNOWN_HOSTS_OK:
      return HostKeyState::known;
    case SSH_KNOWN_HOSTS_CHANGED:
    case SSH_KNOWN_HOSTS_OTHER:  // another type is on record: not what was agreed to either
      return HostKeyState::changed;
    default:
      return HostKeyState::unknown;
  }
}

/// The key the server presented, as HostKey's fields say.
void describe_key(ssh_session session, HostKey& report) {
  ssh_key key = nullptr;
  if (ssh_get_server_publickey(session, &key) != SSH_OK) return;
  const KeyHandle owned(key);
  report.type = ssh_key_type_to_char(ssh_key_type(key));
  if (report.type == "ecdsa")
    report.type = fmt::format("ecdsa-sha2-{}", ssh_pki_key_ecdsa_name(key));
  unsigned char* hash = nullptr;
  std::size_t size = 0;
  if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &size) == SSH_OK) {
    const StringHandle text(ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size));
    report.fingerprint = text.get();
    ssh_clean_pubkey_hash(&hash);
  }
  char* line = nullptr;
  if (ssh_session_export_known_hosts_entry(session, &line) == SSH_OK) {
    const StringHandle text(line);
    report.line = text.get();
  }
}

HostError changed_key(const Endpoint& endpoint, const HostKey& presented) {
  const std::string name = endpoint.port == 22
                               ? endpoint.key_name
                               : fmt::format("'[{}]:{}'", endpoint.key_name, endpoint.port);
  return {Failure::host_key_changed,
          fmt::format("the host key {} {} is not the one in {}", presented.type,
                      presented.fingerprint, endpoint.known_hosts.string()),
          fmt::format("someone may be listening in; if you know that the host was set up anew: "
                      "ssh-keygen -R {} -f {}",
                      name, endpoint.known_hosts.string())};
}

/// By what two versions of the known_hosts files can be told apart. Empty where one was written so
/// lately that the next write could bear the same time.
std::string known_hosts_stamp(const Endpoint& endpoint) {
  constexpr time_t kCoarsestClock = 2;
  std::string stamp;
  for (const std::filesystem::path& file : {endpoint.known_hosts, endpoint.global_known_hosts}) {
    const struct stat status = status_of(file);
    const bool is_young = ::time(nullptr) - status.st_ctim.tv_sec < kCoarsestClock;
    if (is_young && S_ISREG(status.st_mode)) return {};
    stamp += stamp_of(status) + " ";
  }
  return stamp;
}

/// Whether only ssh reaches the host.
bool needs_ssh(const Connector& connector, const Host& host, Program program) {
  if (program != Program::automatic) return program == Program::ssh;
  return !resolve_way(connector.config(), host).needs_program.empty();
}

asio::awaitable<void> scan(Connector& connector, Masters& masters, Program program,
                           std::vector<HostKey>& reports, std::size_t& next) {
  while (next < reports.size()) {
    HostKey& report = reports[next++];
    if (report.host.is_local) {
      report.state = HostKeyState::known;
      continue;
    }
    try {
      if (needs_ssh(connector, report.host, program)) {
        co_await scan_over_program(masters, report);
        continue;
      }
      const std::unique_ptr<Session> session = co_await connector.greet(report.host);
      report.known_hosts = session->endpoint().known_hosts;
      report.state = state_of(session->handle());
      describe_key(session->handle(), report);
      if (report.state == HostKeyState::changed) throw changed_key(session->endpoint(), report);
    } catch (const HostError& error) {
      report.error = error.what();
      report.hint = error.hint();
    }
  }
}

/// Makes the folder 0700 and the file 0600 where they are missing, and appends.
void append(const std::filesystem::path& file, const std::string& lines) {
  const auto fail = [&file] {
    return std::runtime_error(
        fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
  };
  ::mkdir(file.parent_path().c_str(), 0700);
  const OwnedFd fd(::open(file.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) throw fail();
  // A last line without its end would swallow the first new one.
  std::string text = lines;
  char last = '\n';
  const off_t size = ::lseek(fd.get(), 0, SEEK_END);
  if (size > 0 && ::pread(fd.get(), &last, 1, size - 1) == 1 && last != '\n')
    text.insert(0, 1, '\n');
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw fail();
}

}  // namespace

void Session::require_known_host() const {
  const HostKeyState state = state_of(handle_.get());
  if (state == HostKeyState::known) return;
  if (state == HostKeyState::unknown) {
    throw HostError(
        Failure::host_key_unknown,
        fmt::format("the host key is not in {}", endpoint_.known_hosts.string()),
        fmt::format("look at it and accept it with: dtool trust --runs_on {}", kHostsInHint));
  }
  HostKey presented;
  describe_key(handle_.get(), presented);
  throw changed_key(endpoint_, presented);
}

std::string Session::host_key() const {
  HostKey presented;
  describe_key(handle_.get(), presented);
  return presented.fingerprint.empty() ? "" : presented.type + " " + presented.fingerprint;
}

bool Session::is_still_known(KnownHosts& known_hosts) {
  const std::string stamp = known_hosts_stamp(endpoint_);
  if (!stamp.empty() && stamp == known_hosts_stamp_) return true;
  known_hosts_stamp_.clear();
  hold_excerpts(known_hosts);
  const bool is_known = state_of(handle_.get()) == HostKeyState::known;
  let_excerpts_go();
  if (is_known) known_hosts_stamp_ = stamp;
  return is_known;
}

std::vector<HostKey> scan_host_keys(const std::vector<Host>& hosts, const ConnectOptions& options) {
  std::vector<HostKey> reports(hosts.size());
  for (std::size_t i = 0; i < hosts.size(); ++i) reports[i].host = hosts[i];
  Reactor reactor;
  Connector connector(reactor, options);
  Masters masters(reactor, options);
  std::size_t next = 0;
  std::size_t running = std::min(options.width, reports.size());
  std::exception_ptr failure;
  for (std::size_t i = running; i > 0; --i) {
    asio::co_spawn(reactor.context(), scan(connector, masters, options.program, reports, next),
                   [&](std::exception_ptr error) {
                     if (error) failure = error;
                     if (--running == 0) reactor.context().stop();
                   });
  }
  if (running > 0) reactor.context().run();
  reactor.wind_up();
  if (failure) std::rethrow_exception(failure);
  return reports;
}

void add_to_known_hosts(const std::vector<HostKey>& keys) {
  std::map<std::filesystem::path, std::string> lines;
  for (const HostKey& key : keys) {
    std::string& text = lines[key.known_hosts];
    text += key.line;
    if (!text.ends_with('\n')) text += '\n';
  }
  for (const auto& [file, text] : lines) append(file, text);
}

}  // namespace dtool::ssh
