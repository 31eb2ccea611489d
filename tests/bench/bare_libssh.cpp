// The least that libssh needs to run `true` on many hosts: one thread, one poll loop, nothing else.
// The floor of tests/bench/fanout, and with --again N that of tests/bench/warm: N further times
// over the same sessions, with the seconds of each on standard output. usage: bare_libssh [--again
// N] PRIVATE_KEY KNOWN_HOSTS USER ADDRESS[:PORT]...

#include <libssh/libssh.h>
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

enum class Step { connect, authenticate, open, execute, wait, done, failed };

struct Host {
  std::string name;
  ssh_session session = nullptr;
  ssh_channel channel = nullptr;
  Step step = Step::connect;
  bool stays = false;  ///< connected when it is over, to be used again
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

Step wait_for_exit(Host& host) {
  char buffer[4096];
  int read = ssh_channel_read_nonblocking(host.channel, buffer, sizeof buffer, 0);
  if (read > 0 || read == SSH_AGAIN) return Step::wait;
  if (!ssh_channel_is_eof(host.channel)) return read < 0 ? Step::failed : Step::wait;
  int status = ssh_channel_get_exit_status(host.channel);
  if (status < 0) return Step::wait;
  return status == 0 ? Step::done : Step::failed;
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
      return after(ssh_channel_request_exec(host.channel, "true"), Step::execute, Step::wait);
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

}  // namespace

int main(int argc, char** argv) {
  int again = 0;
  if (argc > 2 && std::strcmp(argv[1], "--again") == 0) {
    again = std::atoi(argv[2]);
    argv += 2;
    argc -= 2;
  }
  if (argc < 5) {
    std::fprintf(stderr,
                 "usage: bare_libssh [--again N] PRIVATE_KEY KNOWN_HOSTS USER ADDRESS[:PORT]...\n");
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
  loop(hosts, key);
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
