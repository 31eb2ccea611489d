// SPDX-License-Identifier: MIT
// Lists of hosts with ranges and operators, read here and by ClusterShell: as sets they must be the
// same wherever both accept them.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "ssh/host.h"
#include "ssh/quote.h"
#include "tests/unit/syntax.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

// Each pattern is a line of the answer, then a line with its hosts: `refused` if there are none.
constexpr const char* kAskClusterShell = R"(
import random, sys
from ClusterShell.NodeSet import NodeSet, RESOLVER_NOGROUP

def ask(pattern):
    print(pattern)
    try:
        print('=', *sorted(NodeSet(pattern, resolver=RESOLVER_NOGROUP)))
    except Exception:
        print('refused')

pick = random.Random(43)
of = pick.choice

def number():
    return of(['0', '1', '2', '3', '5', '8', '9', '10', '11', '12', '99', '100', '00', '01', '02', '08', '09', '010', '011'])

def range_():
    low, high = number(), number()
    if pick.random() < 0.7 and int(low) > int(high):
        low, high = high, low
    text = of([low, low + '-' + high, low + '-' + high, low + '-' + high, ' ' + low + ' - ' + high])
    return text + of(['', '', '', '', '/1', '/2', '/3', '/10', '/0', '/'])

def bracket():
    return '[' + ','.join(range_() for _ in range(of([1, 1, 2, 3]))) + of([']'] * 30 + ['', ']]'])

def name():
    parts = [of(['n', 'gpu', 'a-', 'x.y', 'r1c', '10.0.', 'n1', '7'])]
    for _ in range(of([0, 1, 1, 2])):
        parts.append(of([bracket, bracket, number])())
        parts.append(of(['', '', 'b', '-ib', '.lab', '5', 'c2']))
    return ''.join(parts)

def patterns():
    text = name()
    seen = [text]
    for _ in range(of([0, 1, 1, 2, 3, 4])):
        seen.append(of([name, name, lambda: of(seen)])())
        text += of(['', '', ' ']) + of(',!&^') + of(['', '', ' ']) + seen[-1]
    return text + of([''] * 40 + [',', '!', '&', ' '])

for line in sys.stdin.read().splitlines():
    ask(line)
for _ in range(int(sys.argv[1])):
    ask(patterns())
)";

struct Judged {
  std::string pattern;
  std::string answer;
};

std::vector<Judged> ask_clustershell(const std::string& patterns, int random) {
  const tests::TemporaryFolder folder;
  folder.write("ask.py", kAskClusterShell);
  folder.write("patterns", patterns);
  std::istringstream lines(tests::output_of("cd " + quote(folder.path().string()) +
                                            " && /usr/bin/python3 -I ask.py " +
                                            std::to_string(random) + " <patterns"));
  std::vector<Judged> all;
  for (Judged each; std::getline(lines, each.pattern) && std::getline(lines, each.answer);)
    all.push_back(each);
  return all;
}

bool has_clustershell() {
  return tests::output_of("/usr/bin/python3 -I -c 'import ClusterShell'").empty();
}

std::string sorted_set(const std::string& patterns) {
  try {
    std::vector<std::string> names;
    for (const Host& each : parse_set(patterns, nullptr)) names.push_back(to_string(each));
    std::ranges::sort(names);
    std::string text = "=";
    for (const std::string& each : names) text += " " + each;
    return text;
  } catch (const std::invalid_argument&) {
    return "refused";
  }
}

TEST(HostPatternPeer, KindsOfPatternsAreTheSameSet) {
  if (!has_clustershell()) GTEST_SKIP() << "python3-clustershell is not installed";
  const std::string patterns =
      "login\n"
      "gpu7\n"
      "gpu007\n"
      "gpu[3]\n"
      "gpu[1-8]\n"
      "gpu[01-12]\n"
      "gpu[098-102]\n"
      "gpu[1,3,5-6]\n"
      "gpu[5-6,1]\n"
      "gpu[1-4,3-6]\n"
      "gpu[ 1 - 3 , 7 ]\n"
      "gpu[0-14/2]\n"
      "gpu[1-10/3,20]\n"
      "gpu[001-009/4]\n"
      "gpu[3-3/7]\n"
      "gpu[4-9]-ib0\n"
      "rack[1-2]node[01-03]\n"
      "r[1-2]c[0-4/2]n[8-11]\n"
      "10.0.[0-1].[1-4]\n"
      "n1[01-03]\n"
      "n[1-3]0\n"
      "n[1,01,001]\n"
      "a,b,c\n"
      "a , b ,c\n"
      "b,a,b\n"
      "gpu[1-8]!gpu3\n"
      "gpu[1-8]!gpu[2-3]!gpu8\n"
      "gpu[1-8]!login\n"
      "gpu[1-8]&gpu[5-12]\n"
      "gpu[1-4]&login\n"
      "gpu[1-4]^gpu[3-6]\n"
      "gpu[1-4]^gpu[1-4]\n"
      "gpu[1-4] ! gpu2 , gpu9\n"
      "a!a,b\n"
      "a,b!a\n"
      "a,b&b,c\n"
      "a^b,b\n"
      "a,b^b!a,c\n"
      "gpu[1-6]!gpu[2-4]&gpu[4-8]^gpu1,login\n";
  const std::vector<Judged> judged = ask_clustershell(patterns, 0);
  EXPECT_EQ(judged.size(), static_cast<std::size_t>(std::ranges::count(patterns, '\n')));
  for (const Judged& each : judged) {
    EXPECT_NE(each.answer, "refused") << each.pattern;
    EXPECT_EQ(sorted_set(each.pattern), each.answer) << each.pattern;
  }
}

TEST(HostPatternPeer, TenThousandRandomPatternsAreTheSameSetWhereBothAcceptThem) {
  if (!has_clustershell()) GTEST_SKIP() << "python3-clustershell is not installed";
  const std::vector<Judged> judged = ask_clustershell("", 10'000);
  EXPECT_EQ(judged.size(), 10'000U);
  int both = 0;
  for (const Judged& each : judged) {
    const std::string own = sorted_set(each.pattern);
    if (own == "refused" || each.answer == "refused") continue;
    ++both;
    ASSERT_EQ(own, each.answer) << each.pattern;
  }
  EXPECT_GT(both, 2500);
}

}  // namespace
}  // namespace dtool::ssh
