// Spoilt answers of hosts: whatever a host says is read as what it may be or not at all, and ends
// nothing but that host's part.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/status_script.h"
#include "ssh/script.h"
#include "sync/push_steps.h"
#include "sync/rsync.h"
#include "tests/fuzz/mutate.h"

namespace dtool {
namespace {

std::string answers(const std::vector<std::pair<std::string, std::string>>& lines) {
  std::string text;
  for (const auto& [name, value] : lines)
    text.append("dtool-answer ").append(name).append("=").append(value).append("\n");
  return text;
}

const std::vector<std::string> kTokens = {"dtool-answer ",
                                          "=",
                                          "\n",
                                          "\r",
                                          "\0",
                                          " ",
                                          "-1",
                                          "0",
                                          "99999999999999999999",
                                          "1e9",
                                          "nan",
                                          "0x10",
                                          "\x1b[2J",
                                          "\xc2\x9b",
                                          "\xff",
                                          "../",
                                          "$(id)",
                                          "a[$(id)]",
                                          "yes",
                                          "{",
                                          "\"",
                                          "state="};

ssh::HostResult result_of(const std::string& out) {
  ssh::HostResult result;
  result.exit_code = 0;
  result.out = out;
  return result;
}

TEST(AnswersFuzz, StepsOfAPushAreReadOrRefused) {
  fuzz::Mutator mutator(
      {answers({{"lock", "/root/.dtool/trees/%root%here.lock"},
                {"has", "tar"},
                {"has", "find"},
                {"has", "zstd"},
                {"basis", std::string(64, 'a')},
                {"state", "known"}}),
       answers({{"holder", "3"}, {"state", "shared"}}),
       answers({{"foreign", "12"}, {"foreign_folder", "~/here"}, {"foreign_file", "a"}}),
       answers({{"lock", "/l"}, {"prepared", "yes"}}),
       answers({{"unpacked", "yes"}, {"removed", "3"}}),
       answers({{"error", "cannot write"}, {"hint", "free some space"}})},
      kTokens);
  int asked = 0;
  int prepared = 0;
  int unpacked = 0;
  for (int i = 0; i < fuzz::rounds(4000); ++i) {
    const std::string text = mutator.next();
    const auto read = [&text](auto reader) {
      ssh::HostResult result = result_of(text);
      const auto value = reader(result);
      // What is not understood is a failure of the host that says why.
      EXPECT_TRUE(value || !result.error.empty()) << text;
      return value;
    };
    if (const auto value = read(tree_sync::read_asked)) {
      ++asked;
      // It is put into no command as it is, and names a file only if it is a fingerprint.
      EXPECT_EQ(value->basis.find('\n'), value->basis.npos) << text;
    }
    if (read(tree_sync::read_prepared)) ++prepared;
    if (read(tree_sync::read_unpacked)) ++unpacked;
  }
  EXPECT_GT(asked, 100);
  EXPECT_GT(prepared, 100);
  EXPECT_GT(unpacked, 100);
}

TEST(AnswersFuzz, RsyncsDifferencesAreCountedWhereverTheyAreCut) {
  fuzz::Mutator mutator({"<fc.T...... a\n<f+++++++++ b c\ncL+++++++++ d\n.f..t...... e\n"},
                        {"<fc.T...... ", "\n", "<", "+", " ", "c", "\\#033"});
  std::size_t found = 0;
  for (int i = 0; i < fuzz::rounds(4000); ++i) {
    const std::string text = mutator.next();
    tree_sync::Differences whole;
    whole.add(text);
    tree_sync::Differences cut;
    for (const char each : text) cut.add(std::string_view(&each, 1));
    EXPECT_EQ(whole.count(), cut.count()) << text;
    EXPECT_EQ(whole.first(), cut.first()) << text;
    EXPECT_LE(whole.first().size(), 10U);
    found += whole.count();
  }
  EXPECT_GT(found, 1000U);
}

TEST(AnswersFuzz, AStatusIsOneAnyoneCanPrint) {
  cli::AskedMachine asked;
  asked.run_id = "run_1";
  asked.machine.host = "h1";
  fuzz::Mutator mutator(
      {answers({{"part", "0"},
                {"folder", "yes"},
                {"pid", "12"},
                {"up_s", "100"},
                {"attempt", "1"},
                {"supervision", "ok"},
                {"last_line", "x"},
                {"processes", "3"},
                {"cpu_percent", "120"},
                {"gpu", "0, 1, 2, 3"},
                {"memory_bytes", "9"},
                {"looked", "yes"}}),
       answers({{"part", "0"},
                {"folder", "yes"},
                {"exit_code", "3"},
                {"ended_s_ago", "5"},
                {"cause", "rank 0"},
                {"metrics", R"({"event": "step", "epoch": 1, "step": 2, "loss": 0.5})"},
                {"looked", "yes"}})},
      kTokens);
  int known = 0;
  for (int i = 0; i < fuzz::rounds(4000); ++i) {
    const std::string text = mutator.next();
    const auto statuses = cli::read_statuses({asked}, result_of(text));
    ASSERT_EQ(statuses.size(), 1U) << text;
    const std::string json = cli::to_json(statuses[0]).dump();
    EXPECT_FALSE(json.empty());
    EXPECT_FALSE(cli::state_text(statuses[0]).empty());
    if (statuses[0].state != cli::MachineState::unreachable) ++known;
  }
  EXPECT_GT(known, 100);
}

}  // namespace
}  // namespace dtool
