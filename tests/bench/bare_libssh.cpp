// SPDX-License-Identifier: MIT
// The least that libssh needs to run commands on many hosts: one thread, one poll loop, nothing
// else. Each host runs `true`, the floor of tests/bench/fanout, or with --replay FOLDER one after
// the other what FOLDER/ADDRESS has as 1.line, 1.input and 1.exit, 2.line and so on
// (tests/bench/launch), and waits for no other. With --again N further times over the same
// sessions, of which the first had `true` alone, as in tests/bench/warm; the seconds of each are on
// standard output. usage: bare_libssh [--again N] [--replay FOLDER] PRIVATE_KEY KNOWN_HOSTS USER
// ADDRESS[:PORT]...

#include <libssh/libssh.h>
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

enum class Step { connect, authenticate, open, execute, send, wait, done, failed };

struct Command {
  std::string line;
  std::string input;
  int exit_code = 0;  ///< every other one is a failure
};

struct Host {
  std::string name;
  ssh_session session = nullptr;
  ssh_channel channel = nullptr;
  Step step = Step::connect;
  std::vector<Command> commands = {{"true", ""}};
  std::size_t next = 0;  ///< the command that runs, or is to run
  std::size_t sent = 0;  ///< of its input
  bool stays = false;    ///< connected when it is over, to be used again
};

Step after(int result, Step now, Step next) {
  if (result == SSH_AGAIN) return now;
  return result == SSH_OK ? next : Step::failed;
}

Step connect(Host& host) {
  int result = ssh_connect(host.session);
  if (result != SSH_OK) return after(result, Step::connect, Step::failed);
  bool known = ssh_session_is_known_server(host.session) == SSH_KNOWN_HOSTS_OK;
  return known ? Step::authenticate : Step::failed;
}

Step authenticate(Host& host, ssh_key key) {
  int result = ssh_userauth_publickey(host.session, nullptr, key);
  if (result == SSH_AUTH_AGAIN) return Step::authenticate;
  if (result != SSH_AUTH_SUCCESS) return Step::failed;
  host.channel = ssh_channel_new(host.session);
  return Step::open;
}

Step send(Host& host) {
  const std::string& input = host.commands[host.next].input;
  while (host.sent < input.size()) {
    const int written = ssh_channel_write(host.channel, input.data() + host.sent,
                                          static_cast<std::uint32_t>(input.size() - host.sent));
    if (written == 0 || written == SSH_AGAIN) return Step::send;
    if (written < 0) return Step::failed;
    host.sent += static_cast<std::size_t>(written);
  }
  return after(ssh_channel_send_eof(host.channel), Step::send, Step::wait);
}

/// To the next command, if there is one.
Step go_on(Host& host) {
  if (++host.next == host.commands.size()) return Step::done;
  ssh_channel_free(host.channel);
  host.channel = ssh_channel_new(host.session);
  host.sent = 0;
  return Step::open;
}

Step wait_for_exit(Host& host) {
  char buffer[65536];
  int read = 0;
  do {
    read = ssh_channel_read_nonblocking(host.channel, buffer, sizeof buffer, 0);
  } while (read > 0);
  if (read == SSH_AGAIN) return Step::wait;
  while (ssh_channel_read_nonblocking(host.channel, buffer, sizeof buffer, 1) > 0) continue;
  if (!ssh_channel_is_eof(host.channel)) return read < 0 ? Step::failed : Step::wait;
  int status = ssh_channel_get_exit_status(host.channel);
  if (status < 0) return Step::wait;
  if (status == host.commands[host.next].exit_code) return go_on(host);
  std::fprintf(stderr, "%s: its command %zu ended with %d\n", host.name.c_str(), host.next + 1,
               status);
  return Step::failed;
}

Step advance(Host& host, ssh_key key) {
  switch (host.step) {
    case Step::connect:
      return connect(host);
    case Step::authenticate:
      return authenticate(host, key);
    case Step::open:
      return after(ssh_channel_open_session(host.channel), Step::open, Step::execute);
    case Step::execute:
      return after(ssh_channel_request_exec(host.channel, host.commands[host.next].line.c_str()),
                   Step::execute, Step::send);
    case Step::send:
      return send(host);
    case Step::wait:
      return wait_for_exit(host);
    default:
      return host.step;
  }
}

bool is_over(const Host& host) {
  return host.step == Step::done || host.step == Step::failed;
}

/// Takes steps until the host waits for the network or is over.
void advance_far(Host& host, ssh_key key) {
  Step before;
  do {
    before = host.step;
    host.step = advance(host, key);
  } while (host.step != before && !is_over(host));
  if (!is_over(host)) return;
  if (host.step == Step::failed) {
    std::fprintf(stderr, "%s: %s\n", host.name.c_str(), ssh_get_error(host.session));
  }
  if (!host.stays) ssh_disconnect(host.session);
}

/// Until all hosts are over.
void loop(std::vector<Host>& hosts, ssh_key key) {
  std::vector<pollfd> waiting;
  std::vector<Host*> whose;
  for (Host& host : hosts) advance_far(host, key);
  while (true) {
    waiting.clear();
    whose.clear();
    for (Host& host : hosts) {
      if (is_over(host)) continue;
      // While it connects, libssh tells no flags and the socket is first writable.
      bool write = (ssh_get_poll_flags(host.session) & SSH_WRITE_PENDING) != 0;
      waiting.push_back(
          {ssh_get_fd(host.session), static_cast<short>(write ? POLLIN | POLLOUT : POLLIN), 0});
      whose.push_back(&host);
    }
    if (waiting.empty()) return;
    poll(waiting.data(), waiting.size(), 20);
    for (size_t i = 0; i < waiting.size(); ++i) advance_far(*whose[i], key);
  }
}

/// Once more over the sessions that there are.
void loop_again(std::vector<Host>& hosts, ssh_key key) {
  const auto began = std::chrono::steady_clock::now();
  for (Host& host : hosts) {
    if (host.step != Step::done) continue;
    ssh_channel_free(host.channel);
    host.channel = ssh_channel_new(host.session);
    host.next = host.sent = 0;
    host.step = Step::open;
  }
  loop(hosts, key);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("%.4f\n", took.count());
}

Host make_host(const char* known_hosts, const char* user, std::string address) {
  unsigned port = 22;
  if (size_t colon = address.find(':'); colon != std::string::npos) {
    port = static_cast<unsigned>(std::stoul(address.substr(colon + 1)));
    address.resize(colon);
  }
  Host host{address, ssh_new()};
  int off = 0;
  ssh_options_set(host.session, SSH_OPTIONS_HOST, address.c_str());
  ssh_options_set(host.session, SSH_OPTIONS_PORT, &port);
  ssh_options_set(host.session, SSH_OPTIONS_USER, user);
  ssh_options_set(host.session, SSH_OPTIONS_KNOWNHOSTS, known_hosts);
  ssh_options_set(host.session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
  ssh_options_set(host.session, SSH_OPTIONS_PROCESS_CONFIG, &off);
  ssh_set_blocking(host.session, 0);
  return host;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Command> read_commands(const std::filesystem::path& folder) {
  std::vector<Command> commands;
  for (int i = 1; std::filesystem::exists(folder / (std::to_string(i) + ".line")); ++i) {
    const auto part = [&](const char* name) {
      return read_file(folder / (std::to_string(i) + name));
    };
    commands.push_back({part(".line"), part(".input"), std::stoi(part(".exit"))});
  }
  return commands;
}

/// False where there are no commands for a host.
bool replay(std::vector<Host>& hosts, const std::string& folder) {
  for (Host& host : hosts) {
    host.commands = read_commands(folder + "/" + host.name);
    if (host.commands.empty())
      std::fprintf(stderr, "no commands in %s/%s\n", folder.c_str(), host.name.c_str());
    if (host.commands.empty()) return false;
  }
  return true;
}

constexpr const char* kUsage =
    "usage: bare_libssh [--again N] [--replay FOLDER] PRIVATE_KEY KNOWN_HOSTS USER "
    "ADDRESS[:PORT]...\n";

}  // namespace

int main(int argc, char** argv) {
  int again = 0;
  std::string replayed;
  for (; argc > 2 && argv[1][0] == '-'; argv += 2, argc -= 2) {
    const std::string_view flag = argv[1];
    if (flag == "--again") again = std::atoi(argv[2]);
    if (flag == "--replay") replayed = argv[2];
  }
  if (argc < 5) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  ssh_key key = nullptr;
  if (ssh_pki_import_privkey_file(argv[1], nullptr, nullptr, nullptr, &key) != SSH_OK) {
    std::fprintf(stderr, "cannot read the key %s\n", argv[1]);
    return 2;
  }
  std::vector<Host> hosts;
  for (int i = 4; i < argc; ++i) hosts.push_back(make_host(argv[2], argv[3], argv[i]));
  for (Host& host : hosts) host.stays = again > 0;
  if (again > 0) {
    loop(hosts, key);
    // Until the servers are through with what comes after a log-in.
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  if (!replayed.empty() && !replay(hosts, replayed)) return 2;
  if (again == 0) loop(hosts, key);
  for (int i = 0; i < again; ++i) loop_again(hosts, key);

  int failed = 0;
  for (Host& host : hosts) {
    failed += host.step == Step::failed;
    if (host.stays) ssh_disconnect(host.session);
    ssh_free(host.session);  // and its channel with it
  }
  ssh_key_free(key);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
