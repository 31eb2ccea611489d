// What the machines of a run tell each other, as the scripts on hosts read it: reports and
// decisions with and without faults, to the very functions that obey them. None of it is run as a
// command, makes bash complain, or is believed where it is not what it may be.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cctype>
#include <regex>
#include <set>

#include "cli/scripts.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/program.h"
#include "tests/fuzz/proof.h"
#include "tests/unit/temporary_folder.h"

namespace dtool {
namespace {

using namespace std::string_literals;

const std::vector<std::string> kTokens = {" ",
                                          "  ",
                                          "\t",
                                          "\r",
                                          "\0"s,
                                          "*",
                                          "?",
                                          "~",
                                          "0",
                                          "1",
                                          "2",
                                          "-1",
                                          "07",
                                          "08",
                                          "0x1",
                                          "2#1",
                                          "9999",
                                          "10000",
                                          "99999999999999999999",
                                          "1e9",
                                          "a",
                                          "BASHPID",
                                          "$(touch canary)",
                                          "`touch canary`",
                                          "a[$(touch canary)]",
                                          "a[`touch canary`]",
                                          "x[$(touch canary>&2)]=1",
                                          "${a[$(touch canary)]}",
                                          "$((a[$(touch canary)]))",
                                          "; touch canary",
                                          "\ntouch canary\n",
                                          "\xff"s,
                                          "\xc2\x9b",
                                          "\x1b[2J",
                                          "%s%n",
                                          "'",
                                          "\"",
                                          "\\",
                                          "run",
                                          "gather",
                                          "end",
                                          "done",
                                          "failed",
                                          "running",
                                          "ended",
                                          "stopped",
                                          "gone",
                                          "left_out",
                                          "decision ",
                                          "report ",
                                          "lost ",
                                          std::string(2001, 'x'),
                                          std::string(3000, '1')};

/// Stands where bash would begin the run's script: what it is told must be places of machines.
constexpr std::string_view kScript = R"--(
echo "$*" >> started
)--";

/// The session's functions without its loop: each event is taken and obeyed at once, and what it
/// left is looked at.
constexpr std::string_view kLoop = R"--(
record_end() { :; }
start_helper() { :; }
broken() { printf '%s: %s\n' "$1" "$last" >> broken; }
eval "really_$(declare -f take_event)"
take_event() {
  if [ "$1" = the_end ]; then finished=yes; return; fi
  last="$1 $2"
  really_take_event "$@"
  [ -z "$decision" ] || is_decision "$decision" || broken decision
  obey
  is_number "$attempt" || broken attempt
  is_number "$code" || broken code
  if [ "$place" = 0 ]; then
    for each in "${!reports[@]}"; do
      { is_place "$each" && is_report "${reports[each]}"; } || broken report
    done
    [ -z "$first_failure_at" ] || first_failure_at=$((hundredths - 60))
    [ "$phase" != gathering ] || gathering_since=$((now - 40))
    searched_at=''
    coordinate
    for each in "${members[@]}"; do is_place "$each" || broken member; done
    if [ "$phase" = over ] || ((attempt > 2)); then
      members=("${!hosts[@]}") phase=running failures=() first_failure_at='' attempt=0 decision='' obeyed=''
    fi
  fi
  ((attempt < 9000)) || attempt=0
  over='' contact=none
  [ -z "$script" ] || { wait "$script"; script=''; }
}
exec 7> /dev/null 8< lines
look_at_clock
began=$((now - 1000))  # who was never heard is waited for no longer
until [ -n "$finished" ]; do
  look_at_clock
  take_events
done
echo "$attempt $decision" > whole
)--";

class DecisionsFuzz : public testing::Test {
 protected:
  /// Has the session of that machine take all lines.
  void have_taken(const std::string& place, const std::string& lines) {
    std::string text = "place=" + place +
                       " host=h places=4 trainer='' max_restarts=2 coordinator_address=127.0.0.1 "
                       "coordinator_port=1 log=/dev/null viewer=''\n";
    text.append(cli::scripts::kWords).append(cli::scripts::kSupervise);
    if (place != "0") text.append("note_report() { :; }\n");  // its helper tells of none
    if (place == "0") text.append("hosts=(h0 h1 h2 h3)\n").append(cli::scripts::kCoordinate);
    folder_.write("session", text.append(kLoop));
    folder_.write("script", kScript);
    folder_.write("end_processes", "");
    folder_.write("lines", lines + "\n\n\nthe_end x\n");
    fuzz::Program session({"bash", "./session"}, folder_.path());
    EXPECT_EQ(session.end(), 0);
    EXPECT_NE(folder_.read("whole"), "");
    EXPECT_EQ(folder_.read("broken"), "");
    EXPECT_EQ(folder_.read("errors"), "");
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "canary"));
    for (const char each : folder_.read("started"))
      EXPECT_TRUE(each == ' ' || each == '\n' || std::isdigit(static_cast<unsigned char>(each)))
          << folder_.read("started");
  }

  tests::TemporaryFolder folder_;
};

TEST_F(DecisionsFuzz, AMachineObeysWhatIsADecisionAndNothingElse) {
  std::vector<std::string> seeds = {"decision 1 gather rank 1 failed", "decision 2 end it failed",
                                    "decision 1 done", "lost nothing listens there"};
  for (int i = 0; i < 40; ++i) seeds.push_back("decision " + std::to_string(i * 7) + " run 0 1 3");
  fuzz::Mutator mutator(seeds, kTokens);
  std::string lines;
  for (int i = 0; i < fuzz::rounds(250); ++i) lines.append(mutator.next()).append("\n");
  have_taken("1", lines);
  EXPECT_NE(folder_.read("started").find(" 1 "), std::string::npos);
}

TEST_F(DecisionsFuzz, TheCoordinatorHearsWhatIsAReportAndNothingElse) {
  fuzz::Mutator mutator(
      {"report 1 0 running 0 ", "report 2 0 failed 1 rank 3 on machine 2 (h2) failed",
       "report 3 0 ended 0 ", "report 1 1 failed 137 rank 1 was killed", "report 2 1 stopped 0 ",
       "report 3 0 stopped 0 ", "report 3 0 gone 1 alone", "report 1 0 left_out 143 ",
       "report 1 0 ended 0 ", "report 2 0 ended 0 ", "lost cannot listen on port 1: no"},
      kTokens);
  std::string lines;
  for (int i = 0; i < fuzz::rounds(250); ++i) lines.append(mutator.next()).append("\n");
  have_taken("0", lines);
  EXPECT_NE(folder_.read("started"), "");
}

/// What a script that is started with words from a decision makes of them.
TEST_F(DecisionsFuzz, NumbersOfRanksComeFromNumbersAlone) {
  // Else bash takes a line's end for a part of a character that has no end.
  std::string text = "LC_ALL=C\n";
  text.append("begin() (\n  set -- $1\n  place=1 processes_of=(1 2 3 4)\n")
      .append(cli::scripts::kNumbers_ssh)
      .append("\n)\nset -f\n")
      .append(
          "while IFS= read -r line; do begin \"$line\" 2>> said; echo $? >> codes; done < "
          "lines\n");
  folder_.write("numbers", std::string(cli::scripts::kWords).append(text));
  fuzz::Mutator mutator({"0", "1 0 1 2", "2 1 3", "17 0 1 2 3"}, kTokens);
  std::string lines;
  int count = 0;
  for (int i = 0; i < fuzz::rounds(100); ++i) {
    lines.append(mutator.next()).append("\n");
  }
  for (const char each : lines) count += each == '\n' ? 1 : 0;
  folder_.write("lines", lines);
  fuzz::Program program({"bash", "./numbers"}, folder_.path());
  EXPECT_EQ(program.end(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "canary"));
  const std::string codes = folder_.read("codes");
  EXPECT_EQ(static_cast<int>(std::count(codes.begin(), codes.end(), '\n')), count);
  EXPECT_EQ(codes.find_first_not_of("02\n"), std::string::npos);
  EXPECT_NE(codes.find('0'), std::string::npos);
  EXPECT_NE(codes.find('2'), std::string::npos);
  // All that is said is the one sentence.
  const std::string said = folder_.read("said");
  const std::string sentence = "dtool: the numbers of this process are not what they should be: ";
  for (std::size_t at = 0; at < said.size(); at = said.find('\n', at) + 1)
    EXPECT_TRUE(said.substr(at).starts_with(sentence)) << said.substr(at, 200);
}

/// Listens where report.sh believes the coordinator to be.
class FalseCoordinator {
 public:
  FalseCoordinator() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    bind(socket_, reinterpret_cast<sockaddr*>(&address), size);
    listen(socket_, 16);
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~FalseCoordinator() { close(socket_); }
  FalseCoordinator(const FalseCoordinator&) = delete;
  FalseCoordinator& operator=(const FalseCoordinator&) = delete;

  std::string port() const { return std::to_string(port_); }

  /// One who comes within a minute, or -1; its line.
  int take(std::string& line) const {
    pollfd waited{socket_, POLLIN, 0};
    if (poll(&waited, 1, 60'000) != 1) return -1;
    const int peer = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    line.clear();
    for (char each = 0; recv(peer, &each, 1, 0) == 1 && each != '\n';) line += each;
    return peer;
  }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

TEST_F(DecisionsFuzz, AMachineHandsOnWhatItsCoordinatorProvesAndNothingElse) {
  folder_.write("token", fuzz::kToken + "\n");
  folder_.write("end_processes", "");
  folder_.write("report", std::string(cli::scripts::kWords).append(cli::scripts::kReport));
  const FalseCoordinator coordinator;
  fuzz::Program report({"bash", "./report", "1", "127.0.0.1", coordinator.port(), "1"},
                       folder_.path());
  const std::string challenge(32, 'c');
  fuzz::Mutator texts(
      {"taken " + challenge + " 0 run 0 1", "taken " + challenge + " 1 gather it failed",
       "again " + challenge + " 0 run", "taken " + challenge + " 3 end it failed",
       "taken " + challenge + " 2 done"},
      kTokens);
  const std::regex shape("[0-9a-f]{64} 1 [0-9a-f]{32} ([0-9a-f]{32}) 0 running 0 [0-9]+");
  const std::regex decision(
      "(taken|again) [0-9a-f]{32} ((0|[1-9][0-9]{0,3}) (run[0-9 ]*|(gather|end) [ -~]*|done))");
  std::set<std::string> allowed;
  int handed_on = 0;
  int proven = 0;
  const auto hear = [&](std::chrono::milliseconds patience) {
    for (const std::string& line : report.hear(patience)) {
      if (line.starts_with("decision ")) {
        ++handed_on;
        EXPECT_TRUE(allowed.contains(line.substr(9))) << line;
      } else {
        EXPECT_EQ(line, "lost what answers at 127.0.0.1:" + coordinator.port() +
                            " does not prove that it is the session on machine 0");
      }
    }
  };
  for (int i = 0; i < fuzz::rounds(20); ++i) {
    report.say("0 running 0 " + std::to_string(i) + "\n");
    std::string line;
    const int peer = coordinator.take(line);
    ASSERT_GE(peer, 0);
    std::smatch words;
    ASSERT_TRUE(std::regex_match(line, words, shape)) << line;
    EXPECT_EQ(line.substr(0, 64), fuzz::mac("report " + line.substr(65)));
    // A line ends at its end for both sides, and bash leaves out what no line can have.
    std::string text = texts.next();
    text = text.substr(0, text.find('\n'));
    std::erase(text, '\0');
    const bool knows_token = i % 4 != 3;
    const std::string bound = "decision 1 " + words.str(1) + " " + text;
    std::string proof = fuzz::mac(bound);
    if (!knows_token) proof[i % 64] = proof[i % 64] == '0' ? '1' : '0';
    std::smatch parts;
    if (knows_token && std::regex_match(text, parts, decision)) {
      ++proven;
      allowed.insert(parts.str(2));
    }
    const std::string answer = proof + " " + text + "\n";
    send(peer, answer.data(), answer.size(), MSG_NOSIGNAL);
    close(peer);
    hear(std::chrono::milliseconds(0));
  }
  hear(std::chrono::milliseconds(500));
  EXPECT_GT(proven, 0);
  EXPECT_GT(handed_on, 0);
  EXPECT_TRUE(report.runs());
  EXPECT_EQ(folder_.read("errors"), "");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "canary"));
}

}  // namespace
}  // namespace dtool
