// SPDX-License-Identifier: MIT
#include "trainer/launch/greeting.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <system_error>
#include <thread>

#include "trainer/launch/network.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// How long the other side may take for a line: it may be a machine that is held up.
constexpr auto kAnswerPatience = std::chrono::seconds(20);
/// A crowded door disconnects some callers; they try again for this long.
constexpr auto kCrowdPatience = std::chrono::seconds(3);

const std::string kFirstWord = fmt::format("dtool-trainer {}", kGreetingVersion);

bool is_hex(std::string_view text, std::size_t size) {
  return text.size() == size && text.find_first_not_of("0123456789abcdef") == text.npos;
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char each) { return each >= ' ' && each <= '~'; });
}

constexpr std::size_t kNonce = 32;
constexpr std::size_t kProof = 64;

}  // namespace

std::string Greeting::proof(std::string_view line, std::string_view words) const {
  return token_->prove({kFirstWord, line, door_, callers_, hosts_, words});
}

/// `NAME PROOF WORDS`: the words, if the proof is right.
std::optional<std::string> Greeting::checked(std::string_view line, std::string_view name) const {
  const std::size_t begin = name.size() + 1 + kProof;
  if (line.size() <= begin || !line.starts_with(name) || line[name.size()] != ' ' ||
      line[begin] != ' ' || !is_printable(line)) {
    return std::nullopt;
  }
  const auto words = line.substr(begin + 1);
  if (!is_same_proof(line.substr(name.size() + 1, kProof), proof(name, words))) {
    return std::nullopt;
  }
  return std::string(words);
}

std::string Greeting::begin() {
  callers_ = random_nonce();
  return fmt::format("{} {} {} {}", kFirstWord, door_, callers_, proof("greeting", ""));
}

std::optional<std::string> Greeting::answer(std::string_view line) {
  const std::string expected = fmt::format("{} {} ", kFirstWord, door_);
  if (!line.starts_with(expected) || !is_printable(line)) return std::nullopt;
  const auto words = split_words(line.substr(expected.size()), 2);
  if (!words || !is_hex(words->at(0), kNonce) || !is_hex(words->at(1), kProof)) return std::nullopt;
  callers_ = words->at(0);
  hosts_.clear();
  if (!is_same_proof(words->at(1), proof("greeting", ""))) return std::nullopt;
  hosts_ = random_nonce();
  return fmt::format("known {} {}", hosts_, proof("known", ""));
}

std::optional<std::string> Greeting::reply(std::string_view line, std::string_view words) {
  const auto came = split_words(line, 3);
  if (!came || came->at(0) != "known" || !is_hex(came->at(1), kNonce)) return std::nullopt;
  hosts_ = came->at(1);
  if (!is_same_proof(came->at(2), proof("known", ""))) return std::nullopt;
  return fmt::format("here {} {}", proof("here", words), words);
}

std::optional<std::string> Greeting::hear(std::string_view line) {
  return checked(line, "here");
}

std::string Greeting::welcome(std::string_view words) const {
  return fmt::format("welcome {} {}", proof("welcome", words), words);
}

std::optional<std::string> Greeting::enter(std::string_view line) const {
  return checked(line, "welcome");
}

std::optional<std::vector<std::string>> split_words(std::string_view line, std::size_t count) {
  std::vector<std::string> words;
  for (;;) {
    const auto end = line.find(' ');
    words.emplace_back(line.substr(0, end));
    if (words.back().empty() || words.size() > count) return std::nullopt;
    if (end == line.npos) break;
    line.remove_prefix(end + 1);
  }
  if (words.size() != count) return std::nullopt;
  return words;
}

std::optional<std::int64_t> parse_whole(std::string_view text, std::int64_t least,
                                        std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    return std::nullopt;
  }
  return value;
}

namespace {

/// The result of one greeting.
enum class Heard { welcome, hung_up, nonsense };

void send_line(int descriptor, std::string line) {
  line += '\n';
  // It fits into what the kernel keeps for a connection that nothing was sent through.
  [[maybe_unused]] const auto sent = send(descriptor, line.data(), line.size(), MSG_NOSIGNAL);
}

/// Not a byte beyond the line's end: the rest is for another reader.
Heard receive_line(int descriptor, std::string& line) {
  line.clear();
  const auto deadline = Clock::now() + kAnswerPatience;
  for (char each = 0;;) {
    const auto size = recv(descriptor, &each, 1, 0);
    if (size == 1 && each == '\n') return Heard::welcome;
    if (size == 1) {
      line += each;
      if (line.size() > kLongestGreeting) return Heard::nonsense;
      continue;
    }
    if (size == 0) return Heard::hung_up;
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return Heard::hung_up;
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Heard::nonsense;
    pollfd readable{descriptor, POLLIN, 0};
    poll(&readable, 1, static_cast<int>(left));
  }
}

Heard greet(int descriptor, Greeting greeting, std::string_view words, std::string& welcome) {
  std::string line;
  send_line(descriptor, greeting.begin());
  Heard heard = receive_line(descriptor, line);
  if (heard != Heard::welcome) return heard;
  const auto reply = greeting.reply(line, words);
  if (!reply) return Heard::nonsense;
  send_line(descriptor, *reply);
  heard = receive_line(descriptor, line);
  if (heard != Heard::welcome) return heard;
  const auto entered = greeting.enter(line);
  if (!entered) return Heard::nonsense;
  welcome = *entered;
  return Heard::welcome;
}

/// So that many that were hung up on do not come back at the same moment.
milliseconds some_pause() {
  thread_local std::minstd_rand random{std::random_device{}()};
  return milliseconds(20 + random() % 100);
}

}  // namespace

Call call_at(const Endpoint& endpoint, std::string_view door, std::string_view words,
             milliseconds patience, const RunToken& token) {
  const auto deadline = Clock::now() + patience;
  std::optional<Clock::time_point> crowd_ends;
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    const int descriptor = connect_within(endpoint, std::max(left, milliseconds(0)));
    if (descriptor < 0) {
      throw std::runtime_error(fmt::format("no process listens on {}", to_string(endpoint)));
    }
    Call call{descriptor, ""};
    const Heard heard = greet(descriptor, Greeting(token, std::string(door)), words, call.welcome);
    if (heard == Heard::welcome) return call;
    close(descriptor);
    if (!crowd_ends) crowd_ends = Clock::now() + kCrowdPatience;
    if (heard == Heard::nonsense || Clock::now() >= *crowd_ends) {
      throw NotOfThisRun(fmt::format("what listens on {} is not of this run", to_string(endpoint)));
    }
    std::this_thread::sleep_for(some_pause());
  }
}

// Uses libcrypto's HMAC. dtool writes the file into the state folder of each machine
// (cli/engines).

namespace {

constexpr std::size_t kShortest = 32;
constexpr std::size_t kLongest = 256;

std::string to_hex(const unsigned char* bytes, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

UsageError wrong(const std::string& path, const std::string& why, const std::string& hint = "") {
  return UsageError(fmt::format("{}={}: {}", kTokenFileVariable, path, why), hint);
}

/// Reads a file that belongs to this user alone, or to the system.
std::string read_private_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) throw wrong(path, std::strerror(errno));
  struct stat found {};
  char text[kLongest + 2];
  const bool known = fstat(file, &found) == 0;
  const auto size = known && S_ISREG(found.st_mode) ? read(file, text, sizeof text) : -1;
  close(file);
  if (size < 0) throw wrong(path, "this is no file that can be read");
  if (found.st_uid != geteuid() && found.st_uid != 0) {
    throw wrong(path, fmt::format("it belongs to user {}", found.st_uid));
  }
  if ((found.st_mode & 077) != 0) {
    throw wrong(path, "others may read or write it", "chmod 600 " + path);
  }
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace

std::string RunToken::prove(std::initializer_list<std::string_view> words) const {
  std::string message;
  for (const auto word : words) message += fmt::format("{}:{}", word.size(), word);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest,
           &size) == nullptr) {
    throw std::runtime_error("libcrypto cannot compute HMAC-SHA256");
  }
  return to_hex(digest, size);
}

RunToken read_run_token(const Environment& environment) {
  const auto path = environment(kTokenFileVariable);
  if (!path || path->empty()) return {};
  std::string secret = read_private_file(*path);
  if (!secret.empty() && secret.back() == '\n') secret.pop_back();
  const auto is_digit = [](char each) {
    return (each >= '0' && each <= '9') || (each >= 'a' && each <= 'f');
  };
  if (secret.size() < kShortest || secret.size() > kLongest ||
      !std::all_of(secret.begin(), secret.end(), is_digit)) {
    throw wrong(*path, fmt::format("it holds no token, which is {} to {} digits from 0-9a-f",
                                   kShortest, kLongest));
  }
  return RunToken(secret);
}

const RunToken& own_run_token() {
  static const RunToken token = read_run_token(process_environment);
  return token;
}

void make_own_run_token() {
  if (std::getenv(kTokenFileVariable) != nullptr) return;
  const int file = memfd_create("dtool-token", 0);
  const std::string secret = random_nonce() + random_nonce();
  if (file < 0 || fchmod(file, 0600) != 0 ||
      write(file, secret.data(), secret.size()) != static_cast<ssize_t>(secret.size())) {
    throw std::system_error(errno, std::generic_category(), "cannot keep a token");
  }
  setenv(kTokenFileVariable, fmt::format("/proc/self/fd/{}", file).c_str(), 1);
}

bool is_same_proof(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

std::string random_nonce() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) {
    throw std::system_error(errno, std::generic_category(), "getrandom");
  }
  return to_hex(bytes, sizeof bytes);
}

}  // namespace dtool::trainer
