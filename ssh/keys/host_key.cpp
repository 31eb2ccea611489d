// SPDX-License-Identifier: MIT
#include "ssh/keys/host_key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <map>
#include <stdexcept>

#include "ssh/host_error.h"
#include "ssh/machine/file_stamp.h"
#include "ssh/program/program_choice.h"
#include "ssh/program/program_scan.h"
#include "ssh/quote.h"
#include "ssh/session/connector.h"

namespace dtool::ssh {
namespace {

/// The key that the server presented; null if there is none.
KeyHandle key_of(ssh_session session) {
  ssh_key key = nullptr;
  ssh_get_server_publickey(session, &key);
  return KeyHandle(key);
}

/// The bytes of a public key; none if there is no key.
std::string blob_of(const KeyHandle& key) {
  return decode_base64(public_text(key.get())).value_or("");
}

KeyVerdict verdict_on(const Session& session, KnownHosts& known_hosts) {
  const std::string blob = blob_of(key_of(session.handle()));
  if (blob.empty()) return {HostKeyState::unreachable};
  return known_hosts.judge(session.endpoint(), blob);
}

/// The key the server presented, as HostKey's fields say.
void describe_key(const Session& session, HostKey& report) {
  const KeyHandle key = key_of(session.handle());
  const std::string text = public_text(key.get());
  if (text.empty()) return;
  report.type = type_of_blob(blob_of(key)).value_or("");
  report.line = fmt::format("{} {} {}\n", name_on_record(session.endpoint()), report.type, text);
  unsigned char* hash = nullptr;
  std::size_t size = 0;
  if (ssh_get_publickey_hash(key.get(), SSH_PUBLICKEY_HASH_SHA256, &hash, &size) == SSH_OK) {
    const StringHandle print(ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size));
    report.fingerprint = print.get();
    ssh_clean_pubkey_hash(&hash);
  }
}

constexpr std::string_view kKeepsNoKeys =
    "the SSH configuration keeps no host keys (UserKnownHostsFile /dev/null)";
/// The first value that ssh and dtool find counts.
constexpr std::string_view kHowToKeepKeys =
    "name the file that counts: UserKnownHostsFile ~/.ssh/known_hosts above that line in the SSH "
    "configuration, or in each command --ssh_cmd 'ssh -o UserKnownHostsFile=~/.ssh/known_hosts'";

bool is_no_file(const std::filesystem::path& known_hosts) {
  return known_hosts == "/dev/null";
}

/// The failure for a key with that verdict, which is not `known`.
HostError not_trusted(const Endpoint& endpoint, const HostKey& presented,
                      const KeyVerdict& verdict) {
  const std::string place = place_of(verdict);
  switch (verdict.state) {
    case HostKeyState::unknown:
      return {Failure::host_key_unknown,
              fmt::format("the host key is not in {}", endpoint.known_hosts.string()),
              hint_at_trust(endpoint.known_hosts)};
    case HostKeyState::changed:
      return {Failure::host_key_changed,
              fmt::format("the host key {} {} is not the one in {}", presented.type,
                          presented.fingerprint, place),
              fmt::format("someone may be listening in; if you know that the host was set up anew: "
                          "ssh-keygen -R {} -f {}",
                          quote(name_on_record(endpoint)), quote(verdict.file.string()))};
    case HostKeyState::revoked:
      return {Failure::host_key_revoked,
              fmt::format("the host key {} {} is marked as revoked in {}", presented.type,
                          presented.fingerprint, place),
              "the server may not be the real host; the host needs a new key"};
    case HostKeyState::certified:
      return {Failure::host_key_unproven,
              fmt::format("the host is known by a certificate authority only ({}), which libssh "
                          "cannot ask",
                          place),
              "the ssh program can: --ssh_program auto"};
    case HostKeyState::doubtful:
      return {Failure::host_key_unproven,
              fmt::format("{} cannot be read, and may be about the host", place),
              verdict.line == 0 ? "make it readable for you, or leave it out"
                                : "mend that line or take it out"};
    default:
      return {Failure::unreachable, "the server presented no host key"};
  }
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
      const Endpoint endpoint = resolve_way(connector.config(), report.host);
      const auto authority = find_authority(connector.config(), connector.known_hosts(), endpoint);
      const bool is_over_program =
          program == Program::ssh ||
          (program == Program::automatic && (authority || !endpoint.needs_program.empty()));
      if (is_over_program) {
        co_await scan_over_program(masters, report);
        // The plain key is not to be put on record beside the authority.
        if (authority && report.state == HostKeyState::unknown) {
          report.state = HostKeyState::certified;
          throw not_certified(*authority);
        }
        continue;
      }
      const std::unique_ptr<Session> session = co_await connector.greet(report.host);
      report.known_hosts = session->endpoint().known_hosts;
      describe_key(*session, report);
      const KeyVerdict verdict = verdict_on(*session, connector.known_hosts());
      report.state = verdict.state;
      const bool may_be_trusted =
          verdict.state == HostKeyState::known || verdict.state == HostKeyState::unknown;
      if (!may_be_trusted) throw not_trusted(session->endpoint(), report, verdict);
    } catch (const HostError& error) {
      report.error = error.what();
      report.hint = error.hint();
    }
  }
}

/// ssh would find the second host's key changed when the first one's was added.
void doubt_different_keys_of_one_name(std::vector<HostKey>& keys) {
  const auto name_of = [](const HostKey& key) {
    return key.known_hosts.string() + "\n" + key.line.substr(0, key.line.find(' '));
  };
  std::map<std::string, std::vector<HostKey*>> by_name;
  for (HostKey& key : keys) {
    if (key.state == HostKeyState::unknown) by_name[name_of(key)].push_back(&key);
  }
  for (const auto& [name, same_name] : by_name) {
    const HostKey& first = *same_name.front();
    const auto other = std::ranges::find_if(
        same_name, [&first](const HostKey* key) { return key->line != first.line; });
    if (other == same_name.end()) continue;
    for (HostKey* key : same_name) {
      key->state = HostKeyState::doubtful;
      key->error =
          fmt::format("hosts {} and {} have one name in {}, and different keys",
                      to_string(first.host), to_string((*other)->host), key->known_hosts.string());
      key->hint = "hosts that share an address or a HostKeyAlias must share their key";
    }
  }
}

/// Makes the folder 0700 and the file 0600 where they are missing, and appends.
void append(const std::filesystem::path& file, const std::string& lines) {
  const auto fail = [&file] {
    return std::runtime_error(
        fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
  };
  if (is_no_file(file)) {
    throw std::runtime_error(
        fmt::format("no key was added: {}\nhint: {}", kKeepsNoKeys, kHowToKeepKeys));
  }
  ::mkdir(file.parent_path().c_str(), 0700);
  const OwnedFd fd(
      ::open(file.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!fd) throw fail();
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw std::runtime_error(fmt::format("cannot write {}: it is no regular file", file.string()));
  }
  // A last line without its end would swallow the first new one.
  std::string text = lines;
  char last = '\n';
  const off_t size = ::lseek(fd.get(), 0, SEEK_END);
  if (::pread(fd.get(), &last, 1, size - 1) == 1 && last != '\n') text.insert(0, 1, '\n');
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw fail();
}

}  // namespace

std::string known_hosts_stamp(const Endpoint& endpoint, std::time_t now) {
  constexpr std::time_t kCoarsestClock = 2;
  std::string stamp;
  for (const std::filesystem::path& file : endpoint.known_hosts_files) {
    const struct stat status = status_of(file);
    const bool is_young = now - status.st_ctim.tv_sec < kCoarsestClock;
    if (is_young && S_ISREG(status.st_mode)) return {};
    stamp += stamp_of(status) + " ";
  }
  return stamp;
}

std::string hint_at_trust(const std::filesystem::path& known_hosts) {
  const std::string trust = fmt::format("dtool trust --runs_on {}", kHostsInHint);
  if (!is_no_file(known_hosts)) return fmt::format("look at it and accept it with: {}", trust);
  return fmt::format("{}: {}; then: {}", kKeepsNoKeys, kHowToKeepKeys, trust);
}

void Session::require_known_host(KnownHosts& known_hosts) const {
  const KeyVerdict verdict = verdict_on(*this, known_hosts);
  if (verdict.state == HostKeyState::known) return;
  HostKey presented;
  describe_key(*this, presented);
  throw not_trusted(endpoint_, presented, verdict);
}

std::string Session::host_key() const {
  HostKey presented;
  describe_key(*this, presented);
  return presented.fingerprint.empty() ? "" : presented.type + " " + presented.fingerprint;
}

bool Session::is_still_known(KnownHosts& known_hosts, std::time_t now) {
  const std::string stamp = known_hosts_stamp(endpoint_, now);
  if (!stamp.empty() && stamp == known_hosts_stamp_) return true;
  const bool is_known = verdict_on(*this, known_hosts).state == HostKeyState::known;
  known_hosts_stamp_ = is_known ? stamp : "";
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
  doubt_different_keys_of_one_name(reports);
  return reports;
}

void add_to_known_hosts(const std::vector<HostKey>& keys) {
  std::map<std::filesystem::path, std::vector<std::string>> lines;
  for (const HostKey& key : keys) {
    assert(key.state == HostKeyState::unknown);
    std::vector<std::string>& of_file = lines[key.known_hosts];
    if (std::ranges::find(of_file, key.line) == of_file.end()) of_file.push_back(key.line);
  }
  for (const auto& [file, of_file] : lines) append(file, fmt::format("{}", fmt::join(of_file, "")));
}

}  // namespace dtool::ssh
