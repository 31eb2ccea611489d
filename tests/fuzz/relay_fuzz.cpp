// SPDX-License-Identifier: MIT
// Spoilt words of hosts that pass a package on, and of what else speaks to the launcher: a host is
// told to have the package from an address and a port and nothing else, none waits for ever, and a
// ControlMaster's packets are packets or refused.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "cli/console.h"
#include "cli/logs/log_output.h"
#include "cli/plot/plot_sources.h"
#include "killfiles/killfile.h"
#include "ssh/program/master_protocol.h"
#include "ssh/remote.h"
#include "ssh/screen_job.h"
#include "ssh/session/exchange.h"
#include "ssh/wire/push.h"
#include "ssh/wire/run.h"
#include "ssh/wire/tree.h"
#include "sync/push/push.h"
#include "sync/relaying.h"
#include "sync/rsync.h"
#include "tests/fuzz/mutate.h"

namespace dtool {
namespace {

using namespace std::string_literals;

const std::vector<std::string> kRelayTokens = {
    "\n",  "\r", "\0"s,   " ",        "-1",       "$(id)",    "`id`",
    ";id", "'",  "\"",    "\x1b[2J",  "\xc2\x9b", "\xff"s,    "\xff\xff\xff",
    "/",   "::", "%eth0", "10.0.0.7", "\1",       "\0\0\0\0"s};

std::string news(bool listens, const std::string& address, std::uint16_t port,
                 std::uint64_t bytes) {
  return host::to_frame(host::TreeNews{listens, address, port, bytes});
}

tree_sync::Relaying::Next end_somehow(tree_sync::Relaying& relaying, std::size_t host,
                                      std::mt19937& random) {
  const std::string missed = random() % 2 == 0 ? "h2 broke off" : "";
  return relaying.ended(host, missed, random() % 2 == 0);
}

TEST(RelayFuzz, AHostIsToldAnAddressAndAPortAndNoneWaitsForEver) {
  fuzz::Mutator mutator({news(true, "10.0.0.7", 22001, 0), news(false, "", 0, 1000),
                         news(true, "fe80::1%eth0", 31999, 0) + news(false, "", 0, 50),
                         news(true, "", 0, 0), host::to_frame(host::TreeReply{})},
                        kRelayTokens);
  constexpr std::size_t kHosts = 7;
  std::mt19937 random(fuzz::seed());
  std::size_t parents = 0;
  for (int i = 0; i < fuzz::rounds(400); ++i) {
    tree_sync::Package package;
    package.sum = std::make_shared<std::optional<tree_sync::Sum>>();
    if (random() % 4 != 0) *package.sum = tree_sync::Sum{50'000'000, std::string(64, 'a')};
    tree_sync::Schedule schedule;
    tree_sync::PackageServers servers;
    tree_sync::Relaying relaying(package, schedule, servers, 0);
    std::vector<bool> has_part(kHosts, false);
    for (int step = 0; step < 60; ++step) {
      const std::size_t host = random() % kHosts;
      if (!has_part[host]) {
        const auto part = relaying.part_for(host);
        if (!part) continue;
        has_part[host] = true;
        EXPECT_EQ(part->secret.text.size(), 32U);
        if (!part->parent) continue;
        ++parents;
        EXPECT_GT(part->parent->port, 0);
        EXPECT_NE(part->parent->secret.text, part->secret.text);
        EXPECT_FALSE(part->parent->address.empty());
        EXPECT_EQ(part->parent->address.find_first_not_of(
                      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.:%-_"),
                  std::string::npos)
            << part->parent->address;
        continue;
      }
      const std::string text = mutator.next();
      if (random() % 3 != 0) {
        const std::size_t cut = random() % (text.size() + 1);
        for (const auto& said : {text.substr(0, cut), text.substr(cut)}) {
          const auto told = relaying.heard(host, said);
          EXPECT_TRUE(!told || told->fraction() <= 1);
        }
      } else if (end_somehow(relaying, host, random) == tree_sync::Relaying::Next::asks_again) {
        has_part[host] = false;
      } else {
        has_part[host] = true;
      }
    }
    // A host that has been failed too often has it from the launcher, whatever the others said.
    for (std::size_t host = 0; host < kHosts; ++host) {
      for (int tries = 0; has_part[host] && tries < 10; ++tries) {
        if (relaying.ended(host, "so") == tree_sync::Relaying::Next::is_over) break;
        const auto part = relaying.part_for(host);
        if (!part) break;  // another one has begun and may serve
        EXPECT_TRUE(tries < 6 || !part->parent);
      }
    }
  }
  EXPECT_GT(parents, 50U);
}

TEST(RelayFuzz, WhatAHostSaysOfItsEndIsReadOrRefused) {
  fuzz::Mutator mutator({host::to_frame(host::StartReply{"no screen", "", ""}),
                         host::to_frame(host::StartReply{"", "1 2 boot", "7"}),
                         host::to_frame(host::LookReply{31, "", {}}), "Welcome\n"},
                        kRelayTokens);
  int starts = 0;
  fuzz::feed(mutator, 3'000, [&](const std::string& text) {
    ssh::HostResult result;
    result.exit_code = 0;
    result.out = text;
    // Whatever is no start says why.
    ssh::HostResult looked = result;
    if (!ssh::reply_to_start(result)) {
      EXPECT_NE(result.error, "") << result.out;
    } else {
      ++starts;
    }
    if (!ssh::reply_in<host::LookReply>(looked)) {
      EXPECT_NE(looked.error, "") << result.out;
    }
  });
  EXPECT_GT(starts, 50);
}

/// Keeps what it is told.
class Kept : public cli::LogStream {
 public:
  std::string text;

 private:
  void on_bytes(std::string_view bytes) override { text += bytes; }
  void on_break(Break what) override { text += '0' + static_cast<char>(what); }
};

TEST(RelayFuzz, ALogIsTheSameWhereverItIsCut) {
  const std::string begin = host::to_frame(host::LogBegin{7, false});
  const std::string rotated = host::to_frame(host::LogBreak{true});
  fuzz::Mutator mutator(
      {begin + host::to_frame(host::LogBytes{"one\ntwo\n"}) + rotated +
           host::to_frame(host::LogBytes{"three"}),
       host::to_frame(host::LogBegin{7, true}) + host::to_frame(host::LogEnd{"exited", 3})},
      {begin, rotated, "\n", "\0"s, "7", "\xff\xff"s});
  std::mt19937 random(fuzz::seed());
  int begun = 0;
  for (int i = 0; i < fuzz::rounds(3'000); ++i) {
    const std::string text = mutator.next();
    Kept whole;
    whole.add(text);
    Kept cut;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = 1 + random() % 9;
      cut.add(std::string_view(text).substr(at, size));
      at += size;
    }
    EXPECT_EQ(whole.text, cut.text) << text;
    EXPECT_EQ(whole.offset(), cut.offset()) << text;
    EXPECT_EQ(whole.last(), cut.last()) << text;
    begun += whole.has_begun() ? 1 : 0;

    const std::string marked = "hello\ndtool-command-begins\n" + text;
    ssh::LoginOutput login;
    std::string commands;
    for (std::size_t at = 0; at < marked.size();) {
      const std::size_t size = 1 + random() % 9;
      commands += login.commands_part(std::string_view(marked).substr(at, size));
      at += size;
    }
    EXPECT_EQ(commands, text);
  }
  EXPECT_GT(begun, 100);
}

TEST(RelayFuzz, WhatIsShownOfAHostsTextSteersNoTerminal) {
  fuzz::Mutator mutator({"\x1b[31mred\x1b[0m and \xc3\xa9\xe2\x82\xac\n", "50 %\r100 %\n",
                         "\x1b]0;title\a\x1bP1$r\x1b\\",
                         "\xe2\x80\xae"
                         "elgnis\n"},
                        {"\x1b[",     "\x1b]",        "\x1b",         "m",
                         "\xc2\x9b",  "\xc2\x9d",     "\x9b"s,        "\xc2"s,
                         "\xe2\x80"s, "\xe2\x80\xae", "\xe2\x81\xa6", "\r",
                         "\n",        "\t",           "\b",           "\x7f",
                         "\0"s,       "\xf0\x9f"s,    "\xed\xa0\x80", "31;1",
                         "\xff"s});
  for (int i = 0; i < fuzz::rounds(3'000); ++i) {
    const std::string text = mutator.next();
    for (const auto kept : {cli::Allowed::nothing, cli::Allowed::lines, cli::Allowed::colored_lines,
                            cli::Allowed::bare_lines}) {
      const std::string shown = killfiles::printable(text, kept);
      // A colour gets its end, each time.
      if (kept != cli::Allowed::colored_lines) {
        EXPECT_EQ(killfiles::printable(shown, kept), shown);
      }
      for (std::size_t at = 0; at < shown.size(); ++at) {
        const auto byte = static_cast<unsigned char>(shown[at]);
        const auto next = at + 1 < shown.size() ? static_cast<unsigned char>(shown[at + 1]) : '\0';
        const bool is_end = (byte == '\n' || byte == '\t') && kept != cli::Allowed::nothing;
        const bool is_color =
            byte == 0x1b && kept == cli::Allowed::colored_lines && next == '[' &&
            shown[std::min(shown.find_first_not_of("0123456789;:", at + 2), shown.size() - 1)] ==
                'm';
        EXPECT_TRUE((byte >= ' ' && byte != 0x7f) || is_end || is_color) << text;
        EXPECT_FALSE(byte == 0xc2 && next >= 0x80 && next <= 0x9f) << text;
      }
      for (const char* turn : {"\xe2\x80\xae", "\xe2\x81\xa6"})
        EXPECT_EQ(shown.find(turn), std::string::npos) << text;
    }
  }
}

TEST(RelayFuzz, AMastersPacketsAreTakenWholeOrRefused) {
  namespace mux = ssh::master_protocol;
  fuzz::Mutator mutator(
      {mux::hello() + mux::request(mux::MuxKind::alive_check),
       "\0\0\0\x0c\x80\0\0\x04\0\0\0\x02\0\0\0\xff\0\0\0\x0f\x80\0\0\x03\0\0\0\0\0\0\0\x03no!"s,
       "\0\0\0\x0c\x80\0\0\x05\0\0\0\0\0\0\x10\0"s, mux::new_session("true")},
      {"\0\0\0\0"s, "\xff\xff\xff\xff"s, "\0\0\0\x04"s, "\0\0\0\x08"s, "\0\1\0\0"s, "\0\1\0\1"s,
       "\x80\0\0\x03"s, "\x80\0\0\x02"s, "\0"s});
  const auto take = [](const std::string& text, std::size_t step) {
    std::string taken;
    std::string bytes;
    try {
      for (std::size_t at = 0; at < text.size(); at += step) {
        bytes += text.substr(at, step);
        while (const auto packet = mux::take_packet(bytes)) {
          taken += std::to_string(static_cast<std::uint32_t>(packet->kind)) + " " +
                   std::to_string(packet->first) + " " + std::to_string(packet->second) + " " +
                   packet->text + "\n";
        }
      }
    } catch (const std::invalid_argument&) {
      taken += "refused";
    }
    return taken;
  };
  int refused = 0;
  for (int i = 0; i < fuzz::rounds(3'000); ++i) {
    const std::string text = mutator.next();
    const std::string whole = take(text, text.size() + 1);
    EXPECT_EQ(whole, take(text, 1));
    EXPECT_EQ(whole, take(text, 5));
    refused += whole.ends_with("refused") ? 1 : 0;
  }
  EXPECT_GT(refused, 100);
}

TEST(RelayFuzz, MetricsAndWhatRsyncSaysAreReadOrLeftOut) {
  fuzz::Mutator mutator(
      {"{\"event\": \"start\", \"step\": 3}\n{\"event\": \"step\", \"step\": 4, \"loss\": 0.5}\n",
       "{\"event\": \"epoch\", \"epoch\": 1, \"step\": 8, \"loss\": 1e300, \"time_s\": 4}\n",
       "Number of regular files transferred: 1,234\nTotal transferred file size: 5,678 bytes\n",
       "  1,234,567  45%  1.23MB/s  0:00:01 (xfr#3, to-chk=5/9)\r"},
      {"{",          "}",
       "[",          "]",
       "\"",         ":",
       ",",          "null",
       "1e999",      "-1e999",
       "nan",        "99999999999999999999",
       "\"step\"",   "\"event\"",
       "\n",         "\r",
       "\\u0000",    "\0"s,
       "\xff"s,      "%",
       "to-chk=0/0", "[[[[[[[[[[[[[[[["});
  std::size_t curves = 0;
  for (int i = 0; i < fuzz::rounds(1'500); ++i) {
    const std::string text = mutator.next();
    const cli::Metrics metrics = cli::read_metrics(text);
    curves += metrics.curves.size();
    for (const cli::Curve& each : metrics.curves) {
      EXPECT_EQ(each.steps.size(), each.values.size()) << text;
      EXPECT_TRUE(each.seconds.empty() || each.seconds.size() == each.steps.size()) << text;
    }
    tree_sync::read_sent(text);
    tree_sync::complaint(text);
    tree_sync::ProgressReader whole;
    const auto progress = whole.add(text);
    EXPECT_GE(progress.fraction, 0) << text;
    EXPECT_LE(progress.fraction, 1) << text;
  }
  EXPECT_GT(curves, 100U);
}

}  // namespace
}  // namespace dtool
