// SPDX-License-Identifier: MIT
// Words through real shells: what goes in comes out.
#include "ssh/quote.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/fault.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

// What `shell -c line` writes to its standard output.
std::string output_of(const std::string& shell, const std::string& line) {
  std::array<int, 2> ends;
  if (pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execlp(shell.c_str(), shell.c_str(), "-c", line.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  std::string output;
  std::array<char, 4096> buffer;
  for (ssize_t count; (count = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    output.append(buffer.data(), static_cast<std::size_t>(count));
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return output;
}

std::vector<std::string> installed_shells() {
  std::vector<std::string> shells;
  for (const char* shell : {"sh", "bash", "dash", "zsh", "ksh", "mksh"}) {
    if (output_of(shell, "echo yes") == "yes\n") shells.push_back(shell);
  }
  return shells;
}

// Each word on its own, ended by a NUL, as the shell's own printf got it.
void expect_words_arrive(const std::vector<std::string>& words) {
  std::string expected;
  for (const std::string& word : words) expected += word + '\0';
  std::vector<std::string> command = {"printf", "%s\\0"};
  command.insert(command.end(), words.begin(), words.end());
  for (const std::string& shell : installed_shells()) {
    EXPECT_EQ(output_of(shell, quote_all(command)), expected) << "in " << shell;
  }
}

TEST(Quote, TheShellsOfEveryDebianAreTried) {
  const std::vector<std::string> shells = installed_shells();
  for (const char* shell : {"sh", "bash", "dash"}) {
    EXPECT_NE(std::ranges::find(shells, shell), shells.end()) << shell;
  }
}

TEST(Quote, LeavesHarmlessWordsAsTheyAre) {
  for (const std::string word :
       {"nvidia-smi", "/usr/bin/env", "a_b.c", "me@gpu01:22", "-n", "--epochs=3", "a,b", "1+1"}) {
    EXPECT_EQ(quote(word), word);
  }
}

TEST(Quote, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(quote(""), "''");
  EXPECT_EQ(quote("two words"), "'two words'");
  EXPECT_EQ(quote("it's"), "'it'\\''s'");
  EXPECT_EQ(quote("~/x"), "'~/x'");
  EXPECT_EQ(quote("A=b"), "'A=b'");
  EXPECT_EQ(quote("if"), "'if'");
}

TEST(Quote, RefusesANulByteWhichNoArgumentHolds) {
  using namespace std::string_literals;
  EXPECT_EQ(tests::fault_of([] { quote("ab\0c"s); }),
            "a NUL byte cannot be passed to a command: 'ab'");
}

TEST(Quote, EveryByteArrivesUnchangedInEveryShell) {
  std::vector<std::string> words;
  std::string all;
  for (int byte = 1; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    all += one;
    words.insert(words.end(), {one, one + one, "a" + one + "b", one + "'", "\\" + one});
  }
  words.push_back(all);
  expect_words_arrive(words);
}

TEST(Quote, AwkwardWordsArriveUnchangedInEveryShell) {
  expect_words_arrive({"",
                       " ",
                       "-n",
                       "--",
                       "-",
                       "$HOME",
                       "${HOME}",
                       "$(id)",
                       "`id`",
                       "a\nb",
                       "\n",
                       "\r\n",
                       "it's",
                       "''",
                       "\"",
                       "\\",
                       "\\\\",
                       "\\'",
                       "!!",
                       "!x",
                       "#",
                       "a #b",
                       "~",
                       "~root",
                       "*",
                       "?",
                       "[a-z]",
                       "{a,b}",
                       "{1..3}",
                       "a;b",
                       "a&b",
                       "a|b",
                       "a>b",
                       "<",
                       "(",
                       ")",
                       "%1",
                       "=ls",
                       "A=b",
                       "^a^b",
                       "if",
                       "for",
                       "time",
                       "\xff\xfe",
                       "\xc3\xa4\xe2\x82\xac",
                       "--config_kwargs={\"train\":{\"epochs\":3}}"});
}

TEST(Quote, RandomWordsArriveUnchangedInEveryShell) {
  std::mt19937 random(20240607);
  std::vector<std::string> words;
  for (int i = 0; i < 200; ++i) {
    std::string word;
    for (unsigned length = random() % 20; length > 0; --length) {
      word += static_cast<char>(random() % 2 == 0 ? " '\"\\$`\n!-~=*{#"[random() % 14]
                                                  : 1 + random() % 255);
    }
    words.push_back(word);
  }
  expect_words_arrive(words);
}

TEST(Quote, AWordThatShellsReserveRunsTheProgramOfThatName) {
  const tests::TemporaryFolder folder;
  for (const std::string name : {"if", "while", "A=b", "~x", "function"}) {
    const std::filesystem::path file = folder.write(name, "#!/bin/sh\necho \"ran $1\"\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    for (const std::string& shell : installed_shells()) {
      const std::string line = "PATH=" + quote(folder.path().string()) + ":$PATH; export PATH; ";
      EXPECT_EQ(output_of(shell, line + quote_all({name, "a b"})), "ran a b\n") << shell << name;
    }
  }
}

TEST(QuotePath, LetsTheRemoteShellExpandALeadingHome) {
  const tests::TemporaryVariable home("HOME", "/home/a b's");
  for (const std::string& shell : installed_shells()) {
    const auto arrives = [&](const std::string& path) {
      return output_of(shell, "printf %s " + quote_path(path));
    };
    EXPECT_EQ(arrives("~"), "/home/a b's") << shell;
    EXPECT_EQ(arrives("~/"), "/home/a b's/") << shell;
    EXPECT_EQ(arrives("~/x y/$z"), "/home/a b's/x y/$z") << shell;
    EXPECT_EQ(arrives("~root/x"), "~root/x") << shell;
    EXPECT_EQ(arrives("/a/~/b"), "/a/~/b") << shell;
  }
}

}  // namespace
}  // namespace dtool::ssh
