// SPDX-License-Identifier: MIT
// `dtool trust`.
#include "ssh/fanout/fleet.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

#include "ssh/host_error.h"
#include "ssh/keys/libssh.h"
#include "ssh/machine/files.h"
#include "ssh/machine/reactor.h"
#include "ssh/program/program_choice.h"

namespace dtool::ssh {
namespace {

std::string fingerprint_of(const std::string& type, const std::string& key) {
  ssh_key read = nullptr;
  const ssh_keytypes_e kind = ssh_key_type_from_name(type.c_str());
  if (ssh_pki_import_pubkey_base64(key.c_str(), kind, &read) != SSH_OK) return {};
  const KeyHandle owned(read);
  unsigned char* hash = nullptr;
  std::size_t size = 0;
  if (ssh_get_publickey_hash(read, SSH_PUBLICKEY_HASH_SHA256, &hash, &size) != SSH_OK) return {};
  const StringHandle text(ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size));
  ssh_clean_pubkey_hash(&hash);
  return text.get();
}

/// The key that a host shows to the user's `ssh` program: fills in the report's state and key, or
/// throws HostError with why the host could not be asked.
asio::awaitable<void> scan_over_program(Masters& masters, HostKey& report) {
  const Host host = report.host;
  const Masters::Presented presented = co_await masters.ask_for_key(host);
  report.known_hosts = presented.known_hosts;
  if (!presented.failure) {
    report.state = HostKeyState::known;
    co_return;
  }
  const Failure failure = presented.failure->failure();
  if (failure == Failure::host_key_changed) report.state = HostKeyState::changed;
  if (failure != Failure::host_key_unknown) throw *presented.failure;
  std::istringstream words(presented.line);
  std::string names, key;
  words >> names >> report.type >> key;
  report.fingerprint = fingerprint_of(report.type, key);
  // A key that cannot be shown cannot be confirmed by the user.
  if (report.fingerprint.empty()) throw *presented.failure;
  report.line = presented.line;
  report.state = HostKeyState::unknown;
}

asio::awaitable<void> scan(Dialer& dialer, std::vector<HostKey>& reports, std::size_t& next) {
  Connector& connector = dialer.connector();
  while (next < reports.size()) {
    HostKey& report = reports[next++];
    if (report.host.is_local) {
      report.state = HostKeyState::known;
      continue;
    }
    try {
      const Endpoint endpoint = resolve_way(connector.config(), report.host);
      const auto authority = find_authority(connector.config(), connector.known_hosts(), endpoint);
      if (dialer.needs_ssh(endpoint, authority)) {
        co_await scan_over_program(dialer.masters(), report);
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
    } catch (const std::exception& error) {  // a setting that cannot be read, a shortage here
      report.error = error.what();
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

std::vector<HostKey> scan_host_keys(const std::vector<Host>& hosts, const ConnectOptions& options) {
  std::vector<HostKey> reports(hosts.size());
  for (std::size_t i = 0; i < hosts.size(); ++i) reports[i].host = hosts[i];
  Reactor reactor;
  Dialer dialer(reactor, options);
  std::size_t next = 0;
  std::size_t running = std::min(options.width, reports.size());
  std::exception_ptr failure;
  for (std::size_t i = running; i > 0; --i) {
    asio::co_spawn(reactor.context(), scan(dialer, reports, next), [&](std::exception_ptr error) {
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
