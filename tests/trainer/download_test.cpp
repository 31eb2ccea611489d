// SPDX-License-Identifier: MIT
// Downloads from servers that fail in every way, and what is asked of them.
#include "trainer/data/download.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "tests/trainer/own_folder.h"
#include "tests/trainer/scripted_server.h"
#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* kXyz = "3608bca1e44ea6c4d268eb6db02260269892c0b42b86bbf1e77a6fa16c3c9282";

class DownloadFolder : public OwnFolder {
 protected:
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  std::string read(const std::string& name) const {
    std::ifstream stream(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  /// The mistake of a download and its hint; what it told is in `told_`.
  std::string fetch(const std::vector<std::string>& urls, const WantedFile& file = {"a", kAbc}) {
    TransferProgress progress("here: ");
    testing::internal::CaptureStdout();
    std::string mistake;
    try {
      download(file, {.urls = urls, .stall = 5s, .pause = 1ms}, folder_, progress);
    } catch (const UsageError& problem) {
      mistake = std::string(problem.what()) + " | " + problem.hint;
    }
    told_ = testing::internal::GetCapturedStdout();
    return mistake;
  }

  CurlResult ask(const std::string& url, const CurlObserver& observer) const {
    return run_curl({url, folder_ / "a", 5s}, observer);
  }

  std::string told_;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST_F(DownloadFolder, AFailingMirrorIsToldOfAndFollowedByTheNext) {
  ScriptedServer first({http_answer(404, "<html>")});
  ScriptedServer second({http_answer(200, "abc")});
  EXPECT_EQ(fetch({first.url(), second.url()}), "");
  EXPECT_EQ(read("a"), "abc");
  EXPECT_FALSE(fs::exists(folder_ / "a.part"));
  EXPECT_TRUE(has(told_, "here: " + first.url() + "/a: HTTP 404\n")) << told_;
  EXPECT_TRUE(has(told_, "here: a: 3 bytes from " + second.url() + "/a in 0.")) << told_;
  EXPECT_EQ(first.requests().size(), 1u) << "it was asked again";
  const auto asked = second.requests().at(0);
  EXPECT_TRUE(asked.starts_with("GET /a HTTP/1.1\r\n")) << asked;
  EXPECT_TRUE(has(asked, "User-Agent: dtool-trainer\r\n")) << asked;
  EXPECT_FALSE(has(asked, "Range:")) << asked;
}

TEST_F(DownloadFolder, AServerThatIsNotThereIsNamedWithItsOwnReason) {
  const std::string mistake = fetch({"http://127.0.0.1:1"});
  EXPECT_TRUE(has(told_, "http://127.0.0.1:1/a: ")) << told_;
  EXPECT_FALSE(has(told_ + mistake, "sends more")) << told_ << mistake;
}

TEST_F(DownloadFolder, OfANameOnlyWhatStandsForItselfIsNotEncoded) {
  for (const auto& [name, path] :
       {std::pair("AZaz09-._~", "AZaz09-._~"), std::pair("@[`{:%?", "%40%5B%60%7B%3A%25%3F")}) {
    ScriptedServer server({http_answer(200, "abc")});
    EXPECT_EQ(fetch({server.url()}, {name, kAbc}), "");
    const auto asked = server.requests().at(0);
    EXPECT_TRUE(asked.starts_with(std::string("GET /") + path + " HTTP/1.1\r\n")) << asked;
    EXPECT_EQ(read(name), "abc");
  }
}

TEST_F(DownloadFolder, GoesOnWhereTheFormerOneEnded) {
  write("a.part", "a");
  ScriptedServer server({http_rest(1, 3, "bc")});
  EXPECT_EQ(fetch({server.url()}), "");
  EXPECT_EQ(read("a"), "abc");
  EXPECT_TRUE(has(server.requests().at(0), "Range: bytes=1-\r\n")) << server.requests().at(0);
}

TEST_F(DownloadFolder, BeginsAnewWhereGoingOnFailsOrGivesAnotherFile) {
  for (const auto& answer :
       {http_answer(416, ""), http_rest(1, 3, "bX"), http_answer(200, "abc")}) {
    write("a.part", "x");
    ScriptedServer server({answer, http_answer(200, "abc")});
    EXPECT_EQ(fetch({server.url()}), "") << answer;
    EXPECT_EQ(read("a"), "abc") << answer;
    ASSERT_EQ(server.requests().size(), 2u) << answer;
    EXPECT_FALSE(has(server.requests().at(1), "Range:")) << answer;
    fs::remove(folder_ / "a");
  }
  write("a.part", "x");
  ScriptedServer server({http_answer(416, "")});
  EXPECT_TRUE(fetch({server.url()}).starts_with("cannot download a: ")) << "it has no other way";
  EXPECT_EQ(server.requests().size(), 2u);
  ScriptedServer other({http_answer(416, "")});
  EXPECT_NE(fetch({other.url()}), "");
  EXPECT_EQ(other.requests().size(), 1u) << "it was the beginning";
}

TEST_F(DownloadFolder, AnotherFileIsLeftAtEachMirrorAndAllAreNamed) {
  ScriptedServer first({http_answer(200, "xyz")});
  ScriptedServer second({http_answer(403, "")});
  EXPECT_EQ(fetch({first.url(), second.url() + "/"}),
            "cannot download a: " + first.url() + "/a: another file: its sha256 is " + kXyz +
                ", not " + kAbc + "; " + second.url() +
                "/a: HTTP 403 | name another mirror in data.mirrors, or put the file into '" +
                folder_.string() + "'");
  EXPECT_FALSE(fs::exists(folder_ / "a.part"));
  EXPECT_FALSE(fs::exists(folder_ / "a"));
  EXPECT_EQ(first.requests().size() + second.requests().size(), 2u);
}

TEST_F(DownloadFolder, DamagedContentIsNotTheFile) {
  ScriptedServer server({http_answer(200, "\x1f\x8b\x08no gzip after all, however it begins")});
  const auto mistake = fetch({server.url()}, {"a", kAbc, Counted::content});
  EXPECT_TRUE(has(mistake, "/a: a damaged file: ")) << mistake;
}

TEST_F(DownloadFolder, AMirrorThatSendsTooMuchIsLeft) {
  ScriptedServer server({http_answer(200, "abc")});
  EXPECT_EQ(fetch({server.url()}, {"a", kAbc, Counted::bytes, 3}), "");
  fs::remove(folder_ / "a");
  const auto mistake = fetch({server.url()}, {"a", kAbc, Counted::bytes, 2});
  EXPECT_TRUE(has(mistake, "/a: sends more than 2 bytes")) << mistake;
  EXPECT_TRUE(has(fetch({server.url()}, {"a", kAbc, Counted::bytes, 1}), "more than 1 bytes"));
  EXPECT_FALSE(fs::exists(folder_ / "a.part"));
}

TEST_F(DownloadFolder, FiveRoundsAreTriedAndEachReasonIsToldOnce) {
  ScriptedServer fifth({"", "", "", "", http_answer(200, "abc")});
  EXPECT_EQ(fetch({fifth.url()}), "");
  EXPECT_EQ(fifth.requests().size(), 5u);
  EXPECT_EQ(std::count(told_.begin(), told_.end(), '\n'), 2) << told_;
  fs::remove(folder_ / "a");
  ScriptedServer never({"", http_answer(503, "")});
  EXPECT_TRUE(has(fetch({never.url()}), "/a: HTTP 503 | "));
  EXPECT_EQ(never.requests().size(), 5u);
}

TEST_F(DownloadFolder, ARoundInWhichTheFileGrowsIsNoFailure) {
  constexpr std::size_t kPart = 65536;  // just enough
  const std::string part(kPart, 'b');
  const auto answers = [&](std::size_t size) {
    std::vector<std::string> list;
    for (std::size_t i = 0; i < 7; ++i) {
      list.push_back(http_rest(i * size, 8 * kPart, part.substr(0, size)));
    }
    list.push_back(http_rest(7 * size, 8 * kPart, std::string(8 * kPart - 7 * size, 'b')));
    return list;
  };
  write("whole", std::string(8 * kPart, 'b'));
  const WantedFile file{"a", sha256_of(folder_ / "whole", Counted::bytes)};
  ScriptedServer server(answers(kPart));
  EXPECT_EQ(fetch({server.url()}, file), "");
  EXPECT_EQ(server.requests().size(), 8u);
  EXPECT_EQ(read("a"), read("whole"));
  fs::remove(folder_ / "a");
  ScriptedServer slow(answers(kPart - 1));
  EXPECT_NE(fetch({slow.url()}, file), "");
  EXPECT_EQ(slow.requests().size(), 5u);
  fs::remove(folder_ / "a.part");
  ScriptedServer once({http_rest(0, 8 * kPart, part), ""});
  EXPECT_NE(fetch({once.url()}, file), "");
  EXPECT_EQ(once.requests().size(), 1u + 5u);
}

TEST_F(DownloadFolder, AFileThatCannotBeWrittenEndsItAtOnce) {
  fs::create_directory(folder_ / "a.part");
  ScriptedServer first({http_answer(200, "abc")});
  ScriptedServer second({http_answer(200, "abc")});
  const auto mistake = fetch({first.url(), second.url()});
  EXPECT_TRUE(
      mistake.starts_with("cannot write " + (folder_ / "a.part").string() + ": Is a directory; "))
      << mistake;
  EXPECT_TRUE(mistake.ends_with(" are free there | make room, or give another data.path"));
  EXPECT_TRUE(second.requests().empty());
}

TEST_F(DownloadFolder, PausesAreJitteredAndDouble) {
  for (const int round : {1, 2, 3, 4}) {
    const auto middle = 1000ms * (1 << (round - 1));
    std::vector<std::chrono::milliseconds> drawn;
    for (int i = 0; i < 1000; ++i) drawn.push_back(pause_before(round, 1000ms));
    const auto [least, most] = std::ranges::minmax(drawn);
    EXPECT_TRUE(least >= middle / 2 && least < middle * 6 / 10) << round;
    EXPECT_TRUE(most <= middle * 3 / 2 && most > middle * 14 / 10) << round;
  }
}

TEST_F(DownloadFolder, ARedirectionIsFollowedToTheWebOnlyAndNotForEver) {
  const auto observe = [](auto, auto) { return true; };
  ScriptedServer there({http_answer(200, "abc")});
  ScriptedServer server({http_answer(302, "", "Location: " + there.url() + "/b\r\n")});
  const auto sent = ask(server.url() + "/a", observe);
  EXPECT_EQ(sent.code, 0);
  EXPECT_EQ(sent.http_status, 200);
  EXPECT_EQ(read("a"), "abc");
  fs::remove(folder_ / "a");
  write("secret", "abc");
  ScriptedServer sly(
      {http_answer(302, "", "Location: file://" + (folder_ / "secret").string() + "\r\n")});
  EXPECT_EQ(ask(sly.url() + "/a", observe).code, 1) << "no such protocol";
  ScriptedServer round({http_answer(302, "", "Location: /a\r\n")});
  EXPECT_EQ(ask(round.url() + "/a", observe).code, 47) << "too many";
  EXPECT_EQ(round.requests().size(), 11u);
  EXPECT_FALSE(fs::exists(folder_ / "a"));
}

TEST_F(DownloadFolder, TheObserverIsToldTheWholeSizeOnlyWhereTheServerTellsIt) {
  std::optional<std::int64_t> whole;
  const auto observe = [&](auto, std::optional<std::int64_t> total) {
    if (total) whole = total;
    return true;
  };
  ScriptedServer silent({"HTTP/1.1 200 x\r\nConnection: close\r\n\r\nabc"});
  EXPECT_EQ(ask(silent.url() + "/a", observe).code, 0);
  EXPECT_FALSE(whole);
  ScriptedServer server({http_rest(3, 5, "de")});
  EXPECT_EQ(ask(server.url() + "/a", observe).code, 0);
  EXPECT_EQ(whole, 5) << "with what is here";
  EXPECT_EQ(read("a"), "abcde");
  ScriptedServer last({http_rest(5, 6, "f")});
  EXPECT_EQ(ask(last.url() + "/a", observe).code, 0);
  EXPECT_EQ(whole, 6) << "a single byte";
}

TEST_F(DownloadFolder, CertificatesAreThoseThatTheEnvironmentNames) {
  using dtool::tests::TemporaryVariable;
  ScriptedServer server({"no TLS"});
  const auto error = [&] {
    return ask(server.url("https") + "/a", [](auto, auto) { return true; }).error;
  };
  const TemporaryVariable empty("CURL_CA_BUNDLE", "");
  const TemporaryVariable second("SSL_CERT_FILE", "/no/second");
  EXPECT_TRUE(has(error(), "/no/second")) << error();
  const TemporaryVariable first("CURL_CA_BUNDLE", "/no/first");
  EXPECT_TRUE(has(error(), "/no/first")) << error();
}
