// SPDX-License-Identifier: MIT
// What a log-in offers, from files of keys and certificates.
#include "ssh/keys/identity.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "ssh/quote.h"
#include "tests/unit/ssh/ssh_server.h"
#include "tests/unit/syntax.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

using Path = std::filesystem::path;

class Identities : public testing::Test {
 protected:
  /// A new key in the file NAME; returns its public part.
  std::string make_key(const std::string& name, const char* passphrase = nullptr) {
    const KeyHandle key = tests::new_key();
    if (::ssh_pki_export_privkey_file(key.get(), passphrase, nullptr, nullptr, at(name).c_str()) !=
        SSH_OK) {
      throw std::runtime_error("libssh writes no key");
    }
    return public_text(key.get());
  }

  static bool has_ssh_keygen() {
    return tests::output_of("command -v ssh-keygen >/dev/null").empty();
  }

  /// NAME-cert.pub by an authority of its own.
  void certify(const std::string& name) {
    std::filesystem::permissions(at(name), std::filesystem::perms::owner_read);
    const std::string public_file = at(name + ".pub").string();
    std::filesystem::remove(at("authority"));
    EXPECT_EQ(
        tests::output_of("ssh-keygen -q -t ed25519 -N '' -f " + quote(at("authority").string()) +
                         " && ssh-keygen -y -f " + quote(at(name).string()) + " > " +
                         quote(public_file) + " && ssh-keygen -q -I x -n ann -s " +
                         quote(at("authority").string()) + " " + quote(public_file)),
        "");
  }

  Path at(const std::string& name) const { return folder_.path() / name; }

  /// `FILE: PROBLEM` of each, without a problem where it is a key.
  std::vector<std::string> told(const std::vector<Path>& files,
                                const std::vector<Path>& certificates = {}) {
    std::vector<std::string> told;
    for (const Credential& each : cache_.credentials(files, certificates)) {
      EXPECT_EQ(each.identity->key == nullptr, !each.identity->problem.empty()) << each.file;
      told.push_back(each.file.filename().string() + ": " + each.identity->problem);
    }
    return told;
  }

  using Texts = std::vector<std::string>;
  tests::TemporaryFolder folder_;
  IdentityCache cache_;
};

TEST_F(Identities, AFileThatHoldsNoKeySaysWhy) {
  make_key("good");
  make_key("locked", "secret");
  folder_.write("noise", "no key\n");
  EXPECT_EQ(told({at("good"), at("locked"), at("noise"), at("none")}),
            (Texts{"good: ", "locked: encrypted; add it to the agent with ssh-add",
                   "noise: not a private key that can be read", "none: not there"}));
}

TEST_F(Identities, AFileIsReadOnce) {
  const std::string text = make_key("key");
  EXPECT_EQ(public_text(cache_.load(at("key")).key.get()), text);
  make_key("key");
  EXPECT_EQ(public_text(cache_.load(at("key")).key.get()), text);
}

TEST_F(Identities, ThePublicPartsAreFoundInEveryFileOfAKey) {
  const std::string plain = make_key("plain");
  const std::string locked = make_key("locked", "secret");
  folder_.write("one.pub", "ssh-ed25519 AAAAone ann@home\n");
  folder_.write("two-cert.pub", "ssh-ed25519-cert AAAAtwo\n");
  folder_.write("half.pub", "ssh-ed25519\n");
  folder_.write("card", "ssh-ed25519 " + plain + " on a card\n");
  using Keys = std::set<std::string>;
  EXPECT_EQ(public_keys({at("plain")}), Keys{plain});
  EXPECT_EQ(public_keys({at("locked")}), Keys{locked});
  EXPECT_EQ(public_keys({at("one"), at("two")}), (Keys{"AAAAone", "AAAAtwo"}));
  EXPECT_EQ(public_keys({at("card")}), Keys{plain});
  EXPECT_EQ(public_keys({at("half"), at("none")}), Keys{});
}

TEST_F(Identities, ACertificateIsOfferedAfterItsKeyOrFirstIfItIsNamed) {
  make_key("a");
  make_key("b");
  if (!has_ssh_keygen()) GTEST_SKIP() << "ssh-keygen is not installed";
  certify("a");
  EXPECT_EQ(told({at("a"), at("b")}), (Texts{"a: ", "a-cert.pub: ", "b: "}));
  EXPECT_EQ(told({at("b"), at("a")}, {at("a-cert.pub")}), (Texts{"a-cert.pub: ", "b: ", "a: "}));
  std::string type, text;
  std::ifstream(at("a-cert.pub")) >> type >> text;
  const auto named = cache_.credentials({at("b"), at("a")}, {at("a-cert.pub")});
  EXPECT_EQ(public_text(named.front().identity->key.get()), text);
  std::filesystem::rename(at("a-cert.pub"), at("gone"));
  EXPECT_EQ(told({at("a")}), (Texts{"a: ", "a-cert.pub: "})) << "it is read once";
}

TEST_F(Identities, ACertificateThatCannotBeUsedSaysWhy) {
  make_key("a");
  make_key("b");
  make_key("locked", "secret");
  folder_.write("noise", "no certificate\n");
  folder_.write("b-cert.pub", "no certificate\n");
  EXPECT_EQ(told({at("b")}), (Texts{"b: ", "b-cert.pub: not a certificate that can be read"}));
  EXPECT_EQ(told({at("b")}, {at("noise"), at("none")}),
            (Texts{"noise: not a certificate that can be read", "none: not there", "b: "}));
  if (!has_ssh_keygen()) GTEST_SKIP() << "ssh-keygen is not installed";
  certify("a");
  EXPECT_EQ(told({at("locked"), at("b")}, {at("a-cert.pub")}).front(),
            "a-cert.pub: its private key is in none of the files");
}

TEST_F(Identities, AKeyThatIsEncryptedHasNoCertificateOfItsOwn) {
  make_key("locked", "secret");
  folder_.write("locked-cert.pub", "no certificate\n");
  EXPECT_EQ(told({at("locked")}), (Texts{"locked: encrypted; add it to the agent with ssh-add"}));
}

}  // namespace
}  // namespace dtool::ssh
