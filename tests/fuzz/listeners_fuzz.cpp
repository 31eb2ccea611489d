// What listens on hosts (the relay of a push, the trial of a listener), as it is there with Perl
// and with Python, and what strangers and machines that have gone wrong say to it: who is not of
// the run is told nothing, and nobody keeps it from the others.
#include <gtest/gtest.h>

#include <memory>

#include "cli/scripts.h"
#include "ssh/scripts.h"
#include "sync/scripts.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/program.h"
#include "tests/fuzz/stranger.h"
#include "tests/unit/temporary_folder.h"

namespace dtool {
namespace {

using namespace std::string_literals;
using std::chrono::seconds;

const std::string kToken = "0123456789abcdef0123456789abcdef";
const std::string kZeros(32, '0');

const std::vector<std::string> kTokens = {" ",
                                          "  ",
                                          "\n",
                                          "\r\n",
                                          "\0"s,
                                          "0",
                                          "1",
                                          "-1",
                                          "07",
                                          "99999999999999999999",
                                          "999999",
                                          "\t",
                                          "running",
                                          "failed",
                                          "gone",
                                          "ended",
                                          "$(touch canary)",
                                          "`touch canary`",
                                          "a[$(touch canary)]",
                                          "a[`touch canary`]",
                                          "\xff"s,
                                          "\xc2\x9b",
                                          "\x1b[2J",
                                          "%s%n",
                                          "@ARGV",
                                          "${\\ system 'touch canary'}",
                                          "__import__('os').system('touch canary')",
                                          kZeros,
                                          std::string(4096, 'x')};

std::uint16_t free_port() {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(made, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(made, reinterpret_cast<sockaddr*>(&address), &size);
  close(made);
  return ntohs(address.sin_port);
}

/// The parameter is what runs it: perl or python3.
class ListenersFuzz : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!fuzz::Program::is_installed(GetParam())) GTEST_SKIP() << GetParam() << " is not installed";
  }

  bool is_perl() const { return GetParam() == "perl"; }

  /// The file with this, behind what all of them begin with.
  std::string program(std::string_view perl, std::string_view python) {
    std::string text(is_perl() ? ssh::scripts::kListen_perl : ssh::scripts::kListen_python);
    folder_.write("program", text.append(is_perl() ? perl : python));
    return "./program";
  }

  /// Says it in two pieces or in one, and returns what comes until it is hung up on.
  std::string say(std::uint16_t port, const std::string& bytes) {
    const fuzz::Stranger stranger(port);
    EXPECT_TRUE(stranger.is_there());
    const std::size_t cut = random_() % 4 == 0 ? random_() % (bytes.size() + 1) : bytes.size();
    stranger.say(std::string_view(bytes).substr(0, cut));
    if (cut != bytes.size()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 3));
      stranger.say(std::string_view(bytes).substr(cut));
    }
    // What has said its line stays, for the answer.
    if (!bytes.ends_with('\n')) stranger.say_no_more();
    const auto heard = stranger.hear_all();
    EXPECT_TRUE(heard) << "neither answered nor hung up on: " << bytes;
    return heard.value_or("");
  }

  /// Nothing of what was said was run as a command, and nothing complained.
  void expect_clean(fuzz::Program& program, int exit_code) {
    EXPECT_TRUE(program.runs());
    EXPECT_EQ(program.end(), exit_code);
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "canary"));
    EXPECT_EQ(folder_.read("errors"), "");
  }

  tests::TemporaryFolder folder_;
  std::mt19937 random_{fuzz::seed()};
};

TEST_P(ListenersFuzz, TheRelayHandsItsPackageToNobodyElse) {
  std::string package;
  for (int i = 0; i < 100'000; ++i) package += static_cast<char>(random_());
  folder_.write("package", package);
  const std::string file =
      program(tree_sync::scripts::kServe_perl, tree_sync::scripts::kServe_python);
  fuzz::Mutator lines(
      {kToken + "\n", kToken, kToken + "\r\n", "GET / HTTP/1.0\r\n\r\n", kZeros + "\n"}, kTokens);
  int refused = 0;
  const int rounds = fuzz::rounds(300);
  std::unique_ptr<fuzz::Program> server;
  std::uint16_t port = 0;
  for (int i = 0; i < rounds; ++i) {
    if (i % 300 == 0) {  // so many hosts and no more it serves until the push is over
      if (server) expect_clean(*server, 0);
      server = std::make_unique<fuzz::Program>(
          std::vector<std::string>{GetParam(), file, "package"}, folder_.path());
      server->say(kToken + "\n");
      const auto said = server->hear(seconds(30));
      ASSERT_EQ(said.size(), 1U) << server->runs() << folder_.read("errors");
      port = static_cast<std::uint16_t>(std::stoi(said[0]));
      EXPECT_EQ(say(port, kZeros + "\n"), "");
    }
    const std::string line = lines.next();
    const bool knows_secret = line.starts_with(kToken + "\n");
    if (!knows_secret) {
      ++refused;
      EXPECT_EQ(say(port, line), "") << line;
    }
    if (!knows_secret && i % 50 != 0) continue;
    const fuzz::Stranger host(port);
    host.say(kToken + "\n");
    const auto heard = host.hear_all(package.size());
    EXPECT_TRUE(heard == package) << i;  // not shown: it is long
  }
  EXPECT_GT(refused, 100);
  expect_clean(*server, 0);
}

TEST_P(ListenersFuzz, TheTrialOfAListenerTellsItsWordToNobodyElse) {
  const std::string file = program(cli::scripts::kAnswer_perl, cli::scripts::kAnswer_python);
  const std::uint16_t port = free_port();
  fuzz::Program server({GetParam(), file, std::to_string(port), "127.0.0.1"}, folder_.path());
  server.say(kToken + " " + kZeros + "\n");
  ASSERT_EQ(server.hear(seconds(30)), std::vector<std::string>{"listens"})
      << folder_.read("errors");
  fuzz::Mutator lines({kToken + "\n", kToken, kToken + "\r\n", kToken + " " + kZeros + "\n"},
                      kTokens);
  int refused = 0;
  for (int i = 0; i < fuzz::rounds(300); ++i) {
    const std::string line = lines.next();
    const bool knows_word = line == kToken + "\n";
    refused += knows_word ? 0 : 1;
    const std::string heard = say(port, line);
    // What follows the word may have come when it was answered.
    if (knows_word || !line.starts_with(kToken + "\n") || heard.empty()) {
      EXPECT_EQ(heard, knows_word ? kZeros + "\n" : "") << line;
    }
    if (i % 50 == 0) {
      EXPECT_EQ(say(port, kToken + "\n"), kZeros + "\n");
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_TRUE(server.runs());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "canary"));
  EXPECT_EQ(folder_.read("errors"), "");
}

INSTANTIATE_TEST_SUITE_P(With, ListenersFuzz, testing::Values("perl", "python3"),
                         [](const auto& tool) { return tool.param; });

}  // namespace
}  // namespace dtool
