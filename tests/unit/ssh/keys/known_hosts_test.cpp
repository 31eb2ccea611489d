// SPDX-License-Identifier: MIT
// What known_hosts files say of a key.
#include "ssh/keys/known_hosts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ssh/fanout/fleet.h"
#include "ssh/machine/encodings.h"
#include "ssh/session/host_key.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

using State = HostKeyState;

constexpr const char* kKey =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEMtKFlkSfqGob2CtTT+En6Xj7zSm5J/DR4iKmHvX5da";
constexpr const char* kOther =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEMtKFlkSfqGob2CtTT+En6Xj7zSm5J/DR4iKmHvX5db";
constexpr const char* kOfAnotherType =
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAAAA";
// `new-kind` and four bytes.
constexpr const char* kOfAnUnknownType = "new-kind AAAACG5ldy1raW5kAAAABA==";
// By `ssh-keygen -H`.
constexpr const char* kHashedGpu7 = "|1|AfkFk8Qoc4EeiN+DMk6zh8MJKAY=|42bTzW2Z/NRIaTRQ91/KeYsFUqs=";
constexpr const char* kHashedGpu7Port2222 =
    "|1|K9TtxCyXjEGEbeZSxyI7/QPbepU=|rpf82sBUml4fC2an630se3A9dAo=";
constexpr const char* kHashedGpu8 = "|1|tTjlkARLyyN1nNvb5iqbrGsewxM=|zEoCr4mtF+VcgGLR6iCIVLQENoQ=";

std::string line(const std::string& names, const std::string& key = kKey) {
  return fmt::format("{} {}\n", names, key);
}

std::string blob(const std::string& key = kKey) {
  return read_key_blob(key).value();
}

class KnownHostsTest : public testing::Test {
 protected:
  KeyVerdict verdict(const std::string& text, const std::string& name = "gpu7",
                     std::uint16_t port = 22) {
    return verdict_of({folder_.write("known_hosts", text)}, name, port);
  }

  static KeyVerdict verdict_of(std::vector<std::filesystem::path> files, const std::string& name,
                               std::uint16_t port = 22) {
    Endpoint endpoint;
    endpoint.key_name = name;
    endpoint.key_port = port;
    endpoint.known_hosts_files = std::move(files);
    KnownHosts known;
    return known.judge(endpoint, blob());
  }

  State state(const std::string& text, const std::string& name = "gpu7", std::uint16_t port = 22) {
    return verdict(text, name, port).state;
  }

  std::vector<std::string> types(const std::string& text) {
    Endpoint endpoint;
    endpoint.key_name = "gpu7";
    endpoint.known_hosts_files = {folder_.write("known_hosts", text)};
    KnownHosts known;
    return known.types_of(endpoint);
  }

  tests::TemporaryFolder folder_;
};

TEST_F(KnownHostsTest, AHostIsKnownByAnyOfItsNamesInAnyCase) {
  const std::string text = line("gpu7,10.0.0.7") + line("GPU8") + line("gpu9", kOther);
  EXPECT_EQ(state(text), State::known);
  EXPECT_EQ(state(text, "10.0.0.7"), State::known);
  EXPECT_EQ(state(text, "GPU7"), State::known);
  EXPECT_EQ(state(text, "gpu8"), State::known);
  EXPECT_EQ(state(text, "gpu"), State::unknown);
  EXPECT_EQ(state(text, "gpu9"), State::changed);
}

TEST_F(KnownHostsTest, AVerdictNamesTheLineThatDecided) {
  const KeyVerdict changed = verdict("# a comment\n\n" + line("gpu6") + line("gpu7", kOther));
  EXPECT_EQ(changed.state, State::changed);
  EXPECT_EQ(changed.file, folder_.path() / "known_hosts");
  EXPECT_EQ(changed.line, 4u);
}

TEST_F(KnownHostsTest, HashedNamesAreFound) {
  const std::string text = line(kHashedGpu8) + line(kHashedGpu7);
  EXPECT_EQ(state(text), State::known);
  EXPECT_EQ(state(text, "GPU8"), State::known);
  EXPECT_EQ(state(text, "gpu9"), State::unknown);
  EXPECT_EQ(state(line(kHashedGpu7, kOther)), State::changed);
}

TEST_F(KnownHostsTest, PatternsAndDenialsCount) {
  EXPECT_EQ(state(line("*")), State::known);
  EXPECT_EQ(state(line("GPU?")), State::known);
  EXPECT_EQ(state(line("gpu*,!gpu7")), State::unknown);
  EXPECT_EQ(state(line("!gpu7,gpu*")), State::unknown);
  EXPECT_EQ(state(line("!gpu8")), State::unknown) << "a denial alone takes nobody in";
  EXPECT_EQ(state(line("gpu*", kOther)), State::changed);
}

TEST_F(KnownHostsTest, PortsAreKeptApartAndTheMachinesOwnKeyIsGoodForAll) {
  EXPECT_EQ(state(line("[gpu7]:2222"), "gpu7", 2222), State::known);
  EXPECT_EQ(state(line(kHashedGpu7Port2222), "gpu7", 2222), State::known);
  EXPECT_EQ(state(line("[gpu7]:2222")), State::unknown);
  EXPECT_EQ(state(line("[gpu7]:22")), State::unknown) << "ssh knows no such name";
  EXPECT_EQ(state(line("gpu7"), "gpu7", 2222), State::known);
  EXPECT_EQ(state(line("gpu7", kOther), "gpu7", 2222), State::unknown);
  EXPECT_EQ(state(line("gpu7") + line("[gpu7]:2222", kOther), "gpu7", 2222), State::changed);
  EXPECT_EQ(state(line("@revoked gpu7"), "gpu7", 2222), State::revoked);
}

TEST_F(KnownHostsTest, ARevokedKeyIsRevokedWhereverElseItStands) {
  EXPECT_EQ(state(line("gpu7") + line("@revoked *")), State::revoked);
  EXPECT_EQ(state(line("@revoked gpu7") + line("gpu7")), State::revoked);
  EXPECT_EQ(state(line("@revoked\tgpu7") + line("gpu7")), State::revoked);
  EXPECT_EQ(state(line("@revoked gpu7")), State::revoked);
  EXPECT_EQ(state(line("@revoked " + std::string(kHashedGpu7)) + line("gpu7")), State::revoked);
  EXPECT_EQ(state(line("gpu7") + line("@revoked gpu8")), State::known);
  EXPECT_EQ(state(line("gpu7") + line("@revoked gpu7", kOther)), State::known);
  EXPECT_EQ(state(line("@revoked gpu7", kOther)), State::unknown);
}

TEST_F(KnownHostsTest, KeysOfAnyTypeAreKeys) {
  EXPECT_EQ(state(line("gpu7", kOfAnotherType)), State::changed);
  EXPECT_EQ(state(line("gpu7", kOfAnUnknownType)), State::changed);
  EXPECT_EQ(state(line("gpu7", kOfAnUnknownType) + line("gpu7")), State::known);
  EXPECT_EQ(state(line("gpu7", kOfAnUnknownType) + line("gpu7", kOther)), State::changed);
  EXPECT_EQ(state(line("gpu8", kOfAnUnknownType)), State::unknown);
}

TEST_F(KnownHostsTest, AnAuthorityIsToldFromAKey) {
  EXPECT_EQ(state(line("@cert-authority gpu*")), State::certified);
  EXPECT_EQ(state(line("@cert-authority gpu*") + line("gpu7")), State::known);
  EXPECT_EQ(state(line("@cert-authority gpu*") + line("gpu7", kOther)), State::changed);
  EXPECT_EQ(state(line("@cert-authority gpu8")), State::unknown);
  EXPECT_EQ(state(line("@cert-authority gpu7"), "gpu7", 2222), State::certified);
}

TEST_F(KnownHostsTest, ALineThatCannotBeReadIsADoubtAboutTheHostsThatItMayBeAbout) {
  for (const std::string key : {"", "ssh-ed25519", "ssh-ed25519 AAAA", "ssh-ed25519 =AAA",
                                "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIEMt", "1024 35 1234567"}) {
    EXPECT_EQ(state(line("gpu7", key)), State::doubtful) << key;
    EXPECT_EQ(state(line("gpu*", key)), State::doubtful) << key;
    EXPECT_EQ(state(line("gpu8", key)), State::unknown) << key;
    EXPECT_EQ(state(line("gpu7", key) + line("gpu7")), State::known) << key;
    EXPECT_EQ(state(line("gpu7", key) + line("gpu7", kOther)), State::changed) << key;
    EXPECT_EQ(state(line("@revoked gpu7", key) + line("gpu7")), State::doubtful) << key;
  }
  for (const std::string names : {"|2|some|thing", "|1|AfkFk8Qoc4E=|42bTzW2Z=", "|1|", "|"}) {
    EXPECT_EQ(state(line(names)), State::doubtful) << names;
    EXPECT_EQ(state(line(names) + line("gpu7")), State::known) << names;
  }
  EXPECT_EQ(state(line("gpu7") + line("@revoke gpu7")), State::doubtful);
  EXPECT_EQ(state(line("gpu7") + line("@revoked @revoked gpu7")), State::doubtful);
  EXPECT_EQ(state(line("gpu7") + line("@revoke gpu7", kOther)), State::known);
}

TEST_F(KnownHostsTest, LinesMayEndAndBeginAsTheyLike) {
  EXPECT_EQ(state("gpu7 " + std::string(kKey) + "\r\n"), State::known);
  EXPECT_EQ(state("gpu7\t" + std::string(kKey) + " ann@home"), State::known);
  EXPECT_EQ(state("  \tgpu7   " + std::string(kKey) + "\n"), State::known);
  EXPECT_EQ(state("#gpu7 " + std::string(kKey) + "\n"), State::unknown);
  EXPECT_EQ(state(std::string("gpu8\0gpu7 ", 10) + kKey + "\n"), State::unknown);
}

TEST_F(KnownHostsTest, AllFilesAreAsked) {
  const auto known = folder_.write("a", line("gpu7"));
  const auto revoked = folder_.write("b", line("@revoked gpu7"));
  const auto other = folder_.write("c", line("gpu7", kOther));
  const auto none = folder_.path() / "none";
  EXPECT_EQ(verdict_of({none, known}, "gpu7").state, State::known);
  EXPECT_EQ(verdict_of({known, revoked}, "gpu7").state, State::revoked);
  EXPECT_EQ(verdict_of({other, known}, "gpu7").state, State::known);
  const KeyVerdict changed = verdict_of({none, other}, "gpu7");
  EXPECT_EQ(changed.state, State::changed);
  EXPECT_EQ(changed.file, other);
  EXPECT_EQ(verdict_of({none, "/dev/null", folder_.path()}, "gpu7").state, State::unknown);
  EXPECT_EQ(verdict_of({}, "gpu7").state, State::unknown);
}

TEST_F(KnownHostsTest, AFileThatCannotBeReadIsADoubtAboutEveryone) {
  const std::filesystem::path file = "/proc/self/mem";  // by nobody, at its beginning
  const KeyVerdict verdict = verdict_of({file}, "gpu7");
  EXPECT_EQ(verdict.state, State::doubtful);
  EXPECT_EQ(verdict.line, 0u);
  EXPECT_EQ(verdict.file, file);
  EXPECT_EQ(verdict_of({file, folder_.write("known_hosts", line("gpu7"))}, "gpu7").state,
            State::known)
      << "without a marker to be seen, it is a doubt and no more";
}

TEST_F(KnownHostsTest, TheFirstOfSeveralLinesDecidesHoweverTheyNameTheHost) {
  const std::string first = line("gpu9");
  for (const std::string name : {"gpu*", "gpu7", kHashedGpu7}) {
    EXPECT_EQ(verdict(first + line(name, kOther) + line("gpu7", kOfAnotherType) +
                      line(kHashedGpu7, kOther))
                  .line,
              2u)
        << name;
  }
}

TEST_F(KnownHostsTest, ALineThatNamesAHostTwiceIsOneLine) {
  KnownHostsFile file(folder_.write("known_hosts", line("gpu7,gpu8,GPU7,gpu8")));
  EXPECT_EQ(file.lines_about("gpu7").size(), 1u);
  EXPECT_EQ(file.lines_about("gpu8").size(), 1u);
}

/// The bytes of a key of that type.
std::string bytes_of(const std::string& type, const std::string& rest = "rest") {
  return std::string("\0\0\0", 3) + static_cast<char>(type.size()) + type + rest;
}

std::string text_of(const std::string& type) {
  return type + " " + to_base64(bytes_of(type));
}

TEST_F(KnownHostsTest, ARevokedCertificateIsADoubtAboutEveryKey) {
  const std::string certificate = text_of("ssh-ed25519-cert-v01@openssh.com");
  EXPECT_EQ(state(line("gpu7") + line("@revoked *", certificate)), State::doubtful);
  EXPECT_EQ(state(line("gpu7") + line("@revoked *", text_of("ssh-ed25519-sure"))), State::known);
}

TEST_F(KnownHostsTest, AMarkerThatCannotBeReadIsADoubtWhereNoOtherLineDecides) {
  EXPECT_EQ(state(line("@revoke gpu7", kOther)), State::doubtful);
  EXPECT_EQ(state(line("@revoke gpu8", kOther)), State::unknown);
}

TEST_F(KnownHostsTest, AFileThatHasChangedIsReadAgain) {
  KnownHostsFile file(folder_.write("known_hosts", line("gpu1")));
  EXPECT_EQ(file.lines_about("gpu2").size(), 0u);
  folder_.write("known_hosts", line("gpu1") + line("gpu2"));
  EXPECT_EQ(file.lines_about("gpu2").size(), 1u);
}

TEST_F(KnownHostsTest, TheTypesOnRecordAreThoseOfTheHostsOwnKeys) {
  EXPECT_EQ(types(line("gpu7", kOfAnotherType) + line("gpu8") + line("gpu*", kOfAnotherType) +
                  line("@revoked gpu7") + line("@cert-authority gpu7") + line("|1|bad") +
                  line("gpu7", kOfAnUnknownType)),
            (std::vector<std::string>{"ecdsa-sha2-nistp256", "new-kind"}));
}

TEST_F(KnownHostsTest, ATypeWhoseKeyIsRevokedIsNotAskedFor) {
  EXPECT_EQ(types(line("gpu7", kOfAnotherType) + line("gpu7") + line("@revoked *", kOfAnotherType)),
            std::vector<std::string>{"ssh-ed25519"});
  EXPECT_EQ(key_algorithms({"ecdsa-sha2-nistp256", "ssh-rsa"}).front(), "ecdsa-sha2-nistp256");
  EXPECT_EQ(key_algorithms({"ssh-rsa"}).front(), "rsa-sha2-512");
  EXPECT_EQ(key_algorithms({"new-kind"}).front(), "ssh-ed25519");
}

TEST_F(KnownHostsTest, AKeyIsPutOnRecordUnderTheNameThatIsLookedUp) {
  Endpoint endpoint;
  endpoint.key_name = "GPU7";
  EXPECT_EQ(name_on_record(endpoint), "gpu7");
  endpoint.key_port = 2222;
  EXPECT_EQ(name_on_record(endpoint), "[gpu7]:2222");
}

TEST(KnownHostsLineTest, IsCutAtItsBlanks) {
  const auto read =
      read_known_hosts_line(" \t@revoked \tgpu7,gpu8\t ssh-ed25519  AAAA ann \r\r", 5);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->number, 5u);
  EXPECT_EQ(read->marker, KnownHostsMarker::revoked);
  EXPECT_EQ(read->names, "gpu7,gpu8");
  EXPECT_EQ(read->key, "ssh-ed25519  AAAA ann ");
  EXPECT_FALSE(read_known_hosts_line(" \r", 1));
  EXPECT_FALSE(read_known_hosts_line("  # gpu7", 1));
}

TEST(KnownHostsLineTest, AHashedNameHasASaltAndAHash) {
  const std::string salt = "AfkFk8Qoc4EeiN+DMk6zh8MJKAY=", hash = "42bTzW2Z/NRIaTRQ91/KeYsFUqs=";
  EXPECT_TRUE(read_hashed_name("|1|" + salt + "|" + hash));
  for (const std::string& name : {"|2|" + salt + "|" + hash, "|1|" + salt, "|1|" + salt + "|",
                                  "|1|" + salt + "|bad", "|1||" + hash, "|1|bad|" + hash})
    EXPECT_FALSE(read_hashed_name(name)) << name;
}

TEST(KnownHostsLineTest, NamesThatAreTooLongForSshAreNobodys) {
  for (const std::size_t size : {1022, 1023}) {
    const std::string name(size, 'x');
    EXPECT_EQ(is_about(name, name), size == 1022);
  }
  EXPECT_FALSE(is_about("gpu7," + std::string(1023, 'x'), "gpu7"));
  EXPECT_TRUE(is_about("gpu7,!" + std::string(1022, 'x'), "gpu7"));
  EXPECT_FALSE(is_about("gpu7,!" + std::string(1023, 'x'), "gpu7"));
}

TEST(KnownHostsLineTest, AKeyOfRsaMayBeNamedForItsSignatures) {
  const std::string rsa = to_base64(bytes_of("ssh-rsa"));
  for (const std::string type : {"ssh-rsa", "rsa-sha2-256", "rsa-sha2-512"})
    EXPECT_EQ(read_key_blob(type + " " + rsa), bytes_of("ssh-rsa")) << type;
  for (const std::string type : {"rsa-sha2-384", "ssh-dss", ""})
    EXPECT_EQ(read_key_blob(type + " " + rsa), std::nullopt) << type;
}

TEST(KnownHostsLineTest, AKeyHasATypeAndMore) {
  EXPECT_EQ(type_of_blob(bytes_of("a", "b")), "a");
  EXPECT_EQ(type_of_blob(bytes_of("ssh-ed25519")), "ssh-ed25519");
  EXPECT_EQ(type_of_blob(std::string("\0\0\1\1", 4) + std::string(258, 'x')),
            std::string(257, 'x'));
  for (const std::string& none :
       {std::string(), std::string(3, '\0'), std::string(4, '\0'), std::string(5, '\0'),
        bytes_of("a", ""), bytes_of("ssh-ed25519", ""), std::string("\1\0\0\1ab", 6)})
    EXPECT_EQ(type_of_blob(none), std::nullopt);
}

/// Asserts hold in the build that is tested here, as in every one that users get.
TEST(AddToKnownHostsDeathTest, TakesNoKeyThatWasNotFoundUnknown) {
  HostKey changed;
  changed.state = HostKeyState::changed;
  EXPECT_DEATH(add_to_known_hosts({changed}), "Assertion.*HostKeyState::unknown");
}

TEST(Base64, IsReadStrictly) {
  EXPECT_EQ(decode_base64("aGVsbG8="), "hello");
  EXPECT_EQ(decode_base64("aGVsbG8h"), "hello!");
  EXPECT_EQ(decode_base64("aA=="), "h");
  for (const char* text : {"", "a", "aGVsbG8", "aGVsbG9=", "aG=sbG8=", "====", "aGVs bG8", "aB=="})
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace dtool::ssh
