// SPDX-License-Identifier: MIT
#include "ssh/program/masters.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <exception>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "killfiles/printable.h"
#include "ssh/host_error.h"
#include "ssh/machine/encodings.h"
#include "ssh/machine/files.h"
#include "ssh/machine/process.h"
#include "ssh/program/askpass.h"
#include "ssh/program/kept_masters.h"
#include "ssh/quote.h"

namespace dtool::ssh {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(100);
/// `ssh -G` only asks programs that the configuration names.
constexpr auto kLongestLook = std::chrono::seconds(30);
/// A master that is to end with this process ends by itself if this process cannot tell it.
constexpr auto kUnlessTold = std::chrono::seconds(60);
constexpr std::size_t kLongestWords = 65'536;

HostError interrupted() {
  return {Failure::not_started, "interrupted before it was let in"};
}

std::chrono::milliseconds pause_before(int next) {
  static std::minstd_rand random{std::random_device{}()};
  std::uniform_real_distribution<double> spread(0.5, 1.5);
  return std::chrono::milliseconds(
      static_cast<int>(100.0 * (1 << std::min(next - 2, 5)) * spread(random)));
}

std::string own_fd(int fd) {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), fd);
}

std::string first_words(const OwnedFd& file) {
  std::string words(kLongestWords, '\0');
  const ssize_t count = ::pread(file.get(), words.data(), words.size(), 0);
  words.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  return words;
}

}  // namespace

Masters::Masters(Reactor& reactor, const ConnectOptions& options)
    : reactor_(reactor), options_(options), asker_(reactor, options.ask) {}

Masters::~Masters() {
  if (!is_left_ || options_.keep.count() == 0) end_all();
}

void Masters::interrupt() {
  is_interrupted_ = true;
  asker_.stop();
}

const KeptFolder& Masters::folder() {
  if (folder_) return *folder_;
  try {
    folder_ = KeptFolder::open(KeptFolder::Make::yes);
  } catch (const std::runtime_error& fault) {
    throw HostError(Failure::local_program, fault.what());
  }
  return *folder_;
}

/// In memory: ssh reads it through this process, and so does the ssh of each jump host.
const std::string& Masters::config_file() {
  if (config_) return config_file_;
  config_ = memory_file(program_config(options_));
  if (!config_) throw HostError(Failure::local_program, "no memory for the configuration of ssh");
  config_file_ = own_fd(config_.get());
  return config_file_;
}

/// A socket's address holds 107 characters, and ssh adds 17 while it makes one. Where the folder's
/// own path is too long, the way goes through this process.
std::string Masters::way_to(const std::string& name) {
  constexpr std::size_t kLongest = 88;
  const std::string path = (folder().path() / name).string();
  const bool is_plain = path.find_first_of("%$~\" \\") == path.npos;
  return path.size() <= kLongest && is_plain ? path
                                             : fmt::format("{}/{}", own_fd(folder().fd()), name);
}

std::vector<std::string> Masters::words(const Host& host, const std::vector<std::string>& extra) {
  return program_arguments(config_file(), options_, host, extra);
}

Deadline Masters::connect_deadline(
    const std::optional<std::chrono::milliseconds>& configured) const {
  const auto timeout = configured.value_or(options_.connect_timeout);
  return after(options_.forced_connect_timeout.value_or(timeout));
}

/// Runs ssh to its end, or to the opening's deadline, which does not pass while the user is asked.
asio::awaitable<Masters::Ended> Masters::finish(std::vector<std::string> words,
                                                std::vector<std::string> environment,
                                                const Opening& opening) {
  const OwnedFd out = memory_file("");
  const OwnedFd err = memory_file("");
  if (!out || !err) throw HostError(Failure::local_program, "no memory for the words of ssh");
  Process::Program program;
  program.arguments = std::move(words);
  program.environment = std::move(environment);
  program.terminal = Process::Terminal::none;
  Process::Descriptors descriptors;
  descriptors.out = out.get();
  descriptors.err = err.get();
  Process process(reactor_, program, descriptors);
  bool is_late = false;
  for (bool has_ended = false; !has_ended && !is_late && !is_interrupted_;) {
    const Deadline soon = after(kBetweenLooks);
    has_ended = co_await process.ends_before(soon);
    is_late = !has_ended && !opening.is_asking && Clock::now() >= opening.deadline;
  }
  if (!process.exit_code()) {
    process.tell_to_end();
    const Deadline soon = after(kBetweenLooks);
    const bool has_ended = co_await process.ends_before(soon);
    if (!has_ended) process.end(kBetweenLooks);
  }
  if (is_interrupted_) throw interrupted();
  if (is_late) {
    throw HostError(Failure::connect_timed_out, "ssh did not connect in time",
                    "--connect_timeout sets how long dtool waits");
  }
  const int exit_code = process.exit_code().value_or(-1);
  co_return Ended{exit_code, first_words(out), first_words(err)};
}

/// ssh's settings for that host, and `key`: everything they depend on, to decide what may be
/// shared.
asio::awaitable<ProgramSettings> Masters::ask_settings(Host host, Opening& opening,
                                                       std::string& key) {
  const std::vector<std::string> extra = {"-G"};
  opening.deadline = after(kLongestLook);
  const std::vector<std::string> all = words(host, extra);
  const std::vector<std::string> environment = {"DTOOL_RUN_ID="};
  const Ended ended = co_await finish(all, environment, opening);
  ProgramSettings settings = read_program_settings(ended.out);
  if (ended.exit_code != 0 || settings.address.empty()) {
    const std::string why = killfiles::printable_words(ended.err, 500);
    throw HostError(Failure::unreachable, "ssh cannot read its configuration: " + why);
  }
  static const std::string boot = boot_id();
  std::error_code ignored;
  static const std::string network =
      std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
  key = fmt::format("{}\n{}\n{}\n{}\n", boot, network, home_folder().string(), ended.out);
  if (const char* agent = std::getenv("SSH_AUTH_SOCK")) key += fmt::format("{}\n", agent);
  for (const std::filesystem::path& file : settings.files)
    key += fmt::format("{} {}\n", file.string(), stamp_of(status_of(file)));
  co_return settings;
}

/// Runs ssh and answers what it asks.
asio::awaitable<Masters::Ended> Masters::run_and_answer(std::vector<std::string> words,
                                                        Opening& opening) {
  const std::string name = "ask-" + random_hex(16);
  const OwnedFd listener = folder().listen(name);
  if (!listener)
    throw HostError(Failure::local_program,
                    fmt::format("cannot make a socket in {}: {}", folder().path().string(),
                                std::strerror(errno)));
  bool is_over = false;
  TaskGroup answering(reactor_);
  answering.spawn(asker_.serve(listener, opening, is_over));
  Ended ended;
  std::exception_ptr failure;
  try {
    std::vector<std::string> environment = askpass_environment(name);
    ended = co_await finish(std::move(words), std::move(environment), opening);
  } catch (...) {  // whatever it is, the answering must end first
    failure = std::current_exception();
  }
  is_over = true;
  if (opening.door != nullptr) opening.door->wake();
  folder().remove(name);
  try {
    co_await answering.join();
  } catch (const HostError&) {
    if (!failure) failure = std::current_exception();
  }
  if (failure) std::rethrow_exception(failure);
  co_return ended;
}

/// Opens a master at that name; ssh goes to the background once the host has let it in.
asio::awaitable<void> Masters::open(Host host, std::string name, Opening& opening,
                                    ProgramSettings settings) {
  const std::string socket = way_to(name);
  const auto kept = options_.keep.count() > 0 ? options_.keep : kUnlessTold;
  const std::vector<std::string> extra = {
      "-M", "-S", socket, "-o", fmt::format("ControlPersist={}", kept.count()), "-f", "-N"};
  const std::vector<std::string> all = words(host, extra);
  const Deadline first = opening.deadline;
  const auto timeout = first - Clock::now();
  for (int attempt = 1;; ++attempt) {
    if (is_interrupted_) throw interrupted();
    opening.refused.reset();
    opening.was_left = false;
    opening.deadline = Clock::now() + timeout;
    folder().remove(name);  // left by a dead master: no process holds the lock
    opened_.push_back({name, -1});
    const Ended ended = co_await run_and_answer(all, opening);
    if (ended.exit_code == 0) break;
    std::erase_if(opened_, [&name](const Opened& each) { return each.name == name; });
    const bool is_again = is_dropped_greeting(ended.err) && opening.answers == 0;
    if ((is_again || opening.was_left) && attempt < options_.tries) {
      const auto pause = pause_before(attempt + 1);
      co_await reactor_.sleep(pause);
      continue;
    }
    remove_master_files(folder(), name);
    if (opening.refused) {
      throw HostError(Failure::not_authenticated,
                      fmt::format("the host asks: {} and there is no terminal to ask you at",
                                  killfiles::printable_start(*opening.refused, 200)),
                      "run dtool in a terminal, or load your key into an agent with ssh-add");
    }
    throw program_failure(ended.err, settings, opening.answers);
  }
}

asio::awaitable<std::unique_ptr<Connection>> Masters::connect(Host host, Endpoint endpoint) {
  if (is_interrupted_) throw interrupted();
  Opening opening;
  opening.host = host;
  std::string key;
  const ProgramSettings settings = co_await ask_settings(host, opening, key);
  opening.user = settings.user;
  opening.address = settings.address;
  if (!settings.control_path.empty()) {
    const std::optional<pid_t> users = co_await find_master(reactor_, settings.control_path);
    if (users) {
      last_socket_ = settings.control_path;
      Master master{settings.control_path, MasterIsShared::yes};
      co_return make_master_connection(reactor_, std::move(master), OwnedFd());
    }
  }
  if (options_.keep.count() == 0) key += random_hex(16);
  std::string name;
  OwnedFd lock = take_master_slot(folder(), key, name);
  if (!lock) {
    throw HostError(Failure::local_program, "too many connections to this host are in use");
  }
  const std::string socket = way_to(name);
  std::optional<pid_t> pid = co_await find_master(reactor_, socket);
  if (!pid) {
    opening.deadline = connect_deadline(endpoint.connect_timeout);
    describe_master(lock, host, settings);
    co_await open(host, name, opening, settings);
    pid = co_await find_master(reactor_, socket);
    if (!pid) throw HostError(Failure::connection_lost, "ssh ended as soon as it was let in");
    for (Opened& each : opened_) {
      if (each.name == name) each.pid = *pid;
    }
  }
  last_socket_ = socket;
  Master master{socket, MasterIsShared::no};
  co_return make_master_connection(reactor_, std::move(master), std::move(lock));
}

std::string Masters::terminal_line(const Host& host, const std::string& line) const {
  std::vector<std::string> all = program_arguments(
      config_file_, options_, host,
      {"-S", last_socket_, "-tt", "-o", "ProxyCommand=false", "-o", "LogLevel=ERROR"});
  all.push_back(line);
  std::string text = "exec";
  for (const std::string& word : all) text += " " + quote(word);
  return text;
}

std::vector<std::string> Masters::forward_words(const Host& host, const std::string& address,
                                                std::uint16_t port) const {
  const bool is_ipv6 = address.find(':') != address.npos;
  const std::string place = fmt::format(fmt::runtime(is_ipv6 ? "[{}]:{}" : "{}:{}"), address, port);
  return program_arguments(
      config_file_, options_, host,
      {"-S", last_socket_, "-W", place, "-o", "ProxyCommand=false", "-o", "LogLevel=ERROR"});
}

asio::awaitable<Masters::Presented> Masters::ask_for_key(Host host) {
  Presented presented;
  Opening opening;
  opening.host = host;
  std::string key;
  const ProgramSettings settings = co_await ask_settings(host, opening, key);
  presented.known_hosts = settings.known_hosts;
  const std::vector<std::string> nobody = {"-o", "ControlPath=none", "-o",
                                           "PreferredAuthentications=none", "-T"};
  std::vector<std::string> all = words(host, nobody);
  all.emplace_back("true");
  const std::vector<std::string> environment = {"DTOOL_RUN_ID=", "SSH_ASKPASS_REQUIRE=never"};
  opening.deadline = connect_deadline(std::nullopt);
  Ended ended = co_await finish(all, environment, opening);
  const HostError failure = program_failure(ended.err, settings, 0);
  const bool is_known = ended.exit_code == 0 || failure.failure() == Failure::not_authenticated;
  if (is_known) co_return presented;
  presented.failure = failure;
  if (failure.failure() != Failure::host_key_unknown) co_return presented;
  // The key as ssh would write it down, into a file of this process's own.
  const OwnedFd file = memory_file("");
  all = words(host, nobody);
  const std::vector<std::string> ours = {"-o", "StrictHostKeyChecking=accept-new",
                                         "-o", "HashKnownHosts=no",
                                         "-o", "KnownHostsCommand=none",
                                         "-o", "GlobalKnownHostsFile=/dev/null",
                                         "-o", "CheckHostIP=no",
                                         "-o", "UserKnownHostsFile=" + own_fd(file.get())};
  all.insert(all.begin() + 1, ours.begin(), ours.end());
  all.emplace_back("true");
  opening.deadline = connect_deadline(std::nullopt);
  ended = co_await finish(all, environment, opening);
  presented.line = read_file(own_fd(file.get()));
  co_return presented;
}

/// All are told first, and then waited for together.
void Masters::end_all() {
  constexpr auto kGrace = std::chrono::milliseconds(700);
  std::vector<OwnedFd> conversations;
  for (const Opened& each : opened_)
    conversations.push_back(tell_to_end(way_to(each.name), MasterEnds::at_once));
  const Deadline latest = after(kGrace);
  for (std::size_t i = 0; i < opened_.size(); ++i) {
    bool has_ended = !conversations[i];
    while (!has_ended && Clock::now() < latest) {
      pollfd readable{conversations[i].get(), POLLIN, 0};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(latest - Clock::now()).count();
      if (::poll(&readable, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) <= 0) continue;
      char bytes[256];
      const ssize_t count = ::recv(conversations[i].get(), bytes, sizeof bytes, MSG_DONTWAIT);
      has_ended = count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
    }
    if (!has_ended && opened_[i].pid > 0) ::kill(opened_[i].pid, SIGTERM);
    remove_master_files(folder(), opened_[i].name);
  }
  opened_.clear();
}

}  // namespace dtool::ssh
