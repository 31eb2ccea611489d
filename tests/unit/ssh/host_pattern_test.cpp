// SPDX-License-Identifier: MIT
// Patterns unfolded and folded.
#include "ssh/host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <stdexcept>

#include "tests/unit/fault.h"

namespace dtool::ssh {
namespace {

using tests::fault_of;
using Words = std::vector<std::string>;

std::string joined(const std::string& patterns) {
  return fmt::format("{}", fmt::join(expand(patterns), " "));
}

std::string pattern_fault(const std::string& patterns) {
  return fault_of([&] { expand(patterns); });
}

TEST(Expand, TakesListsInOrder) {
  EXPECT_EQ(joined("b,a,c"), "b a c");
  EXPECT_EQ(joined(" b , a\n"), "b a");
  EXPECT_EQ(joined("ann@gpu01:22,[fe80::1]:22"), "ann@gpu01:22 [fe80::1]:22");
}

TEST(Expand, UnfoldsRanges) {
  EXPECT_EQ(joined("a[1-2,5]b"), "a1b a2b a5b");
  EXPECT_EQ(joined("a[1-2, 5]b"), "a1b a2b a5b");
  EXPECT_EQ(joined("10.0.0.[1-4]"), "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4");
  EXPECT_EQ(joined("n[7]"), "n7");
  EXPECT_EQ(joined("me@n[1-2]:22,x"), "me@n1:22 me@n2:22 x");
  EXPECT_EQ(joined("@rack[1-2]"), "@rack1 @rack2");
}

TEST(Expand, TakesEveryNthNumberOfARange) {
  EXPECT_EQ(joined("n[0-5/2]"), "n0 n2 n4");
  EXPECT_EQ(joined("n[01-10/3, 7 - 8 / 1]b"), "n01b n04b n07b n10b n7b n8b");
  EXPECT_EQ(joined("n[999999999999999990-999999999999999999/900000000000000000]"),
            "n999999999999999990");
  EXPECT_EQ(expand("n[0-999999999999999999/100000000000000000]").size(), 10U);
  EXPECT_EQ(pattern_fault("n[0-8/0]"),
            "host pattern 'n[0-8/0]': '0-8/0' has a step of 0\nhint: [0-14/2] names every second "
            "number");
  EXPECT_NE(pattern_fault("n[5/2]").find("'5/2' has a step and no range"), std::string::npos);
  for (const std::string range : {"1-2/", "1-2/x", "1-2/-1", "1-2/1/1", "/2"}) {
    EXPECT_NE(pattern_fault("n[" + range + "]").find("'" + range + "' is neither a number"),
              std::string::npos)
        << range;
  }
}

TEST(Expand, RefusesNumbersThatGrowBehindADigit) {
  EXPECT_EQ(pattern_fault("n1[8-11]"),
            "host pattern 'n1[8-11]': the numbers behind a digit grow by a digit, which pdsh and "
            "ClusterShell read differently\nhint: put whole numbers into the brackets, as in "
            "'n[19,110]'");
  EXPECT_NE(pattern_fault("n1[9,10]"), "");
  EXPECT_NE(pattern_fault("n1[98-100]"), "");
  EXPECT_EQ(joined("n1[08-11]"), "n108 n109 n110 n111");
  EXPECT_EQ(joined("n1[8-9]"), "n18 n19");
  EXPECT_EQ(joined("n[8-10]"), "n8 n9 n10");
}

TEST(Expand, KeepsTheWidthOfZerosInFront) {
  EXPECT_EQ(joined("gpu[08-11]"), "gpu08 gpu09 gpu10 gpu11");
  EXPECT_EQ(joined("gpu[098-101]"), "gpu098 gpu099 gpu100 gpu101");
  EXPECT_NE(pattern_fault("gpu[09-010]"), "");
}

TEST(Expand, MultipliesSeveralBrackets) {
  EXPECT_EQ(joined("r[1-2]n[01-02]"), "r1n01 r1n02 r2n01 r2n02");
}

TEST(Expand, LeavesBracketsOfIpv6AddressesAlone) {
  EXPECT_EQ(joined("[fe80::1],ann@[::1]:22"), "[fe80::1] ann@[::1]:22");
}

TEST(Expand, RefusesEmptyListsAndElements) {
  EXPECT_EQ(pattern_fault(""), "the list of hosts is empty");
  EXPECT_EQ(pattern_fault("  "), "the list of hosts is empty");
  for (const std::string list : {",", "a,", ",a", "a,,b", "a, ,b"}) {
    EXPECT_EQ(pattern_fault(list), "the list of hosts '" + list + "' has an empty element");
  }
}

TEST(Expand, RefusesBracketsWithoutPartner) {
  const std::string open = ": '[' has no partner\nhint: ']' closes it, as in 'gpu[1-8]'";
  EXPECT_EQ(pattern_fault("a,n[1-"), "host pattern 'n[1-'" + open);
  EXPECT_EQ(pattern_fault("n[1-2"), "host pattern 'n[1-2'" + open);
  EXPECT_EQ(pattern_fault("n[1-2,m"), "host pattern 'n[1-2,m'" + open);
  EXPECT_EQ(pattern_fault("n]"), "host pattern 'n]': ']' has no partner");
  EXPECT_EQ(pattern_fault("n[1]]"), "host pattern 'n[1]]': ']' has no partner");
  EXPECT_EQ(pattern_fault("n[[1]]"), "host pattern 'n[[1]]': '[' stands inside '['");
  EXPECT_EQ(pattern_fault("[fe80::1"), "host pattern '[fe80::1'" + open);
}

TEST(Expand, RefusesRangesThatAreNone) {
  EXPECT_EQ(pattern_fault("n[5-1]"), "host pattern 'n[5-1]': the range '5-1' runs backwards");
  EXPECT_EQ(pattern_fault("n[]"), "host pattern 'n[]': a range in brackets is empty");
  EXPECT_EQ(pattern_fault("n[1,]"), "host pattern 'n[1,]': a range in brackets is empty");
  for (const std::string range : {"1-", "-1", "a-b", "1-2-3", "-", "0x1", "1.5", "+1"}) {
    EXPECT_NE(pattern_fault("n[" + range + "]").find("is neither a number nor a range"),
              std::string::npos)
        << range;
  }
  EXPECT_EQ(pattern_fault("n[1-08]"),
            "host pattern 'n[1-08]': the ends of '1-08' are padded to different widths");
}

TEST(Expand, RefusesMoreHostsThanAnybodyHasWithoutMakingThem) {
  const std::string sentence = ": it names more than 100000 hosts";
  for (const std::string pattern :
       {"n[1-1000000]", "n[0-999999999999999999]", "n[1-1000]m[1-1000]",
        "n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]"
        "n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]",
        "n[1-60000,1-60000]"}) {
    EXPECT_EQ(pattern_fault(pattern), "host pattern '" + pattern + "'" + sentence);
  }
  EXPECT_EQ(pattern_fault("n[1-60000],m[1-60000]"), "host pattern 'm[1-60000]'" + sentence);
  EXPECT_NE(pattern_fault("n[1-99999999999999999999]").find("has more than 18 digits"),
            std::string::npos);
  EXPECT_EQ(expand("n[1-100000]").size(), kMostHosts);
  EXPECT_EQ(pattern_fault("x,n[1-100000]"), "host pattern 'n[1-100000]'" + sentence);
}

TEST(ParseHosts, ReadsEachWordAsAHost) {
  const std::vector<Host> hosts = parse_hosts("ann@gpu[1-2]:22,local", nullptr);
  ASSERT_EQ(hosts.size(), 3u);
  EXPECT_EQ(to_string(hosts[1]), "ann@gpu2:22");
  EXPECT_TRUE(hosts[2].is_local);
  EXPECT_NE(fault_of([] { parse_hosts("gpu[1-2]:0", nullptr); }).find("port '0'"),
            std::string::npos);
  EXPECT_NE(fault_of([] { parse_hosts("gpu01,user@", nullptr); }).find("'user@'"),
            std::string::npos);
}

TEST(ParseHosts, RefusesAHostNamedTwice) {
  EXPECT_EQ(fault_of([] { parse_hosts("gpu[1-3],gpu2", nullptr); }), "host 'gpu2' is named twice");
  EXPECT_EQ(fault_of([] { parse_hosts("local,local", nullptr); }), "host 'local' is named twice");
}

std::string lookup(std::string_view group) {
  const std::map<std::string, std::string, std::less<>> groups = {
      {"rack1", "gpu[1-2]"}, {"rack2", "gpu[3-4]"}, {"all", "@rack[1-2],login"},
      {"self", "a,@self"},   {"ping", "@pong"},     {"pong", "x,@ping"},
      {"bad", "n[1-"},       {"empty", ""}};
  const auto found = groups.find(group);
  if (found == groups.end())
    throw std::invalid_argument(fmt::format("there is no group '@{}'", group));
  return found->second;
}

std::string group_fault(const std::string& list) {
  return fault_of([&] { parse_hosts(list, lookup); });
}

TEST(ParseHosts, LooksGroupsUpEvenInGroups) {
  Words names;
  for (const Host& host : parse_hosts("first,@all", lookup)) names.push_back(to_string(host));
  EXPECT_EQ(names, Words({"first", "gpu1", "gpu2", "gpu3", "gpu4", "login"}));
}

TEST(ParseHosts, RefusesGroupsThatAreNotThereOrHoldThemselves) {
  EXPECT_EQ(group_fault("@rack3"), "there is no group '@rack3'");
  EXPECT_EQ(group_fault("a,@"), "the group name after '@' is empty");
  EXPECT_EQ(group_fault("@self"), "in group '@self': group '@self' holds itself");
  EXPECT_EQ(group_fault("@ping"), "in group '@ping': in group '@pong': group '@ping' holds itself");
  EXPECT_EQ(fault_of([] { parse_hosts("@x", nullptr); }), "there is no group '@x'");
}

TEST(ParseHosts, NamesTheGroupInWhichAFaultStands) {
  EXPECT_EQ(group_fault("@bad"),
            "in group '@bad': host pattern 'n[1-': '[' has no partner\nhint: ']' closes it, as in "
            "'gpu[1-8]'");
  EXPECT_EQ(group_fault("@empty"), "in group '@empty': the list of hosts is empty");
}

TEST(ParseHosts, TakesAGroupNamedTwiceForHostsNamedTwice) {
  EXPECT_EQ(group_fault("@rack1,@all"), "host 'gpu1' is named twice");
}

std::string names_of_all(const std::vector<Host>& hosts) {
  std::string names;
  for (const Host& each : hosts) names += (names.empty() ? "" : " ") + to_string(each);
  return names;
}

std::string algebra(const std::string& list) {
  return names_of_all(parse_hosts(list, lookup));
}

TEST(ParseHosts, CombinesFromLeftToRightInTheOrderOfTheHosts) {
  EXPECT_EQ(algebra("gpu[1-4]!gpu3"), "gpu1 gpu2 gpu4");
  EXPECT_EQ(algebra("gpu[4,1-3] & gpu[1-3]"), "gpu1 gpu2 gpu3");
  EXPECT_EQ(algebra("gpu[1-3]^gpu[4,3]"), "gpu1 gpu2 gpu4");
  EXPECT_EQ(algebra("a!a,b"), "b");
  EXPECT_EQ(algebra("a,b!a"), "b");
  EXPECT_EQ(algebra("a,b&b,c"), "b c");
  EXPECT_EQ(algebra("@all!@rack1"), "gpu3 gpu4 login");
  EXPECT_EQ(algebra("ann@gpu[1-2]:22!ann@gpu1:22"), "ann@gpu2:22");
  EXPECT_EQ(algebra("gpu[1-2],gpu2!gpu2"), "gpu1");  // named twice, and then left out
}

TEST(ParseHosts, AHostNamedTwiceOrNoneStaysAFault) {
  EXPECT_EQ(group_fault("gpu[1-3],gpu2!gpu1"), "host 'gpu2' is named twice");
  EXPECT_EQ(group_fault("gpu1!gpu1"), "the list of hosts 'gpu1!gpu1' leaves no host");
  for (const std::string list : {"a!", "!a", "a!!b", "a,!b", "a&^b"}) {
    EXPECT_EQ(group_fault(list), "the list of hosts '" + list + "' has an empty element");
  }
}

TEST(ParseHosts, RefusesANameThatIsOneHostOrTwo) {
  EXPECT_EQ(group_fault("ann@gpu[1-2]!gpu1"),
            "'ann@gpu1' before '!gpu1' and 'gpu1' in it may be one host or two\n"
            "hint: name its user and port on both sides, or on none");
  EXPECT_NE(group_fault("gpu[1-2]&gpu2:22"), "");
  EXPECT_NE(group_fault("gpu[1-2]^@rack2,ann@gpu3!gpu3"), "");
  EXPECT_EQ(algebra("gpu1:22,gpu1:23!gpu1:22"), "gpu1:23");
}

TEST(ParseHosts, ReadsAGroupOnceHoweverOftenItIsNamed) {
  int looked_up = 0;
  const GroupLookup count = [&](std::string_view) {
    ++looked_up;
    return std::string("gpu[1-4]");
  };
  EXPECT_EQ(names_of_all(parse_hosts("@a!gpu2&@a", count)), "gpu1 gpu3 gpu4");
  EXPECT_EQ(looked_up, 1);
  const GroupLookup deep = [](std::string_view name) {
    const int depth = std::stoi(std::string(name));
    return depth == 0 ? "a!a" : fmt::format("@{0},@{0}", depth - 1);
  };
  EXPECT_TRUE(parse_set("@60", deep).empty());
}

TEST(ParseSet, TakesAHostOnceAndMayBeEmpty) {
  EXPECT_EQ(names_of_all(parse_set("gpu[1-3],gpu2,a,@rack1", lookup)), "gpu1 gpu2 gpu3 a");
  EXPECT_TRUE(parse_set("a&b", lookup).empty());
}

TEST(ParseSet, TakesEveryHostOfAllGroupsOnce) {
  const GroupLookup all = [](std::string_view name) {
    return name == "*" ? std::string("@rack1,@all") : lookup(name);
  };
  EXPECT_EQ(names_of_all(parse_hosts("@*!gpu3", all)), "gpu1 gpu2 gpu4 login");
}

TEST(Fold, WritesRanges) {
  EXPECT_EQ(fold({"gpu01", "gpu02", "gpu03", "gpu07", "login"}), "gpu[01-03,07],login");
  EXPECT_EQ(fold({"gpu9", "gpu10", "gpu11"}), "gpu[9-11]");
  EXPECT_EQ(fold({"gpu09", "gpu10"}), "gpu[09-10]");
  EXPECT_EQ(fold({"10.0.0.1", "10.0.0.2"}), "10.0.0.[1-2]");
  EXPECT_EQ(fold({"gpu1.lab2.org", "gpu2.lab2.org"}), "gpu[1-2].lab2.org");
  EXPECT_EQ(fold({"n1", "n3"}), "n[1,3]");
}

TEST(Fold, PutsTheBracketWhereItTakesInMostNames) {
  EXPECT_EQ(fold({"gpu01:22", "gpu02:22"}), "gpu[01-02]:22");
  EXPECT_EQ(fold({"10.0.0.1:2201", "10.0.0.1:2202"}), "10.0.0.1:[2201-2202]");
}

TEST(Fold, KeepsTheOrderOfFirstAppearance) {
  EXPECT_EQ(fold({"z2", "a1", "z1", "login", "a2"}), "z[1-2],a[1-2],login");
}

TEST(Fold, LeavesSingleNamesAndAddressesInBracketsAlone) {
  EXPECT_EQ(fold({}), "");
  EXPECT_EQ(fold({"gpu01"}), "gpu01");
  EXPECT_EQ(fold({"gpu", "gpu1"}), "gpu,gpu1");
  EXPECT_EQ(fold({"[fe80::1]:22", "[fe80::2]:22"}), "[fe80::1]:22,[fe80::2]:22");
  EXPECT_EQ(fold({"n1", "n01"}), "n[1,01]");
  EXPECT_EQ(fold({"n1", "n1"}), "n1");
}

std::string random_name(std::mt19937& random) {
  static const std::vector<std::string> kParts = {"gpu", "n", "-",  ".",   "a",     "1",     "2",
                                                  "3",   "9", "10", "01",  "09",    "001",   "99",
                                                  "100", "0", "00", ":22", ":2201", "login", "x"};
  std::string name;
  for (unsigned parts = 1 + random() % 4; parts > 0; --parts)
    name += kParts[random() % kParts.size()];
  return name;
}

TEST(Fold, IsUndoneByExpandWhateverTheNames) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    Words names;
    for (unsigned count = 1 + random() % 30; count > 0; --count)
      names.push_back(random_name(random));
    const Words back = expand(fold(names));
    const std::set<std::string> distinct(names.begin(), names.end());
    EXPECT_EQ(std::set<std::string>(back.begin(), back.end()), distinct) << fold(names);
    EXPECT_EQ(back.size(), distinct.size()) << fold(names);
  }
}

TEST(Fold, KeepsAThousandHostsShort) {
  EXPECT_EQ(fold(expand("gpu[0001-1000]")), "gpu[0001-1000]");
  EXPECT_EQ(fold(expand("r[1-2]n[01-03]")), "r1n[01-03],r2n[01-03]");
}

TEST(Expand, SurvivesAnyText) {
  std::mt19937 random(11);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (unsigned length = random() % 12; length > 0; --length) {
      text += "[]-,019n:@/!&^ \x80"[random() % 16];
    }
    try {
      parse_set(text, nullptr);
    } catch (const std::invalid_argument&) {
    }
    try {
      for (const std::string& word : expand(text)) {
        const std::size_t open = word.find('[');
        if (open != std::string::npos) {
          EXPECT_NE(word.find(':', open), std::string::npos) << text;
        }
      }
    } catch (const std::invalid_argument&) {  // a refusal is an answer; a crash is not
    }
  }
}

}  // namespace
}  // namespace dtool::ssh
