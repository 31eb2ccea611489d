// Spoilt lines of known_hosts: whatever libssh takes to be about a host is among the lines that are
// kept for it.
#include <gtest/gtest.h>
#include <libssh/libssh.h>

#include "ssh/known_hosts.h"
#include "tests/fuzz/mutate.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::ssh {
namespace {

bool is_about(const std::string& host, const std::string& line) {
  ssh_knownhosts_entry* entry = nullptr;
  if (ssh_known_hosts_parse_line(host.c_str(), line.c_str(), &entry) != SSH_OK) return false;
  SSH_KNOWNHOSTS_ENTRY_FREE(entry);
  return true;
}

TEST(KnownHostsFuzz, NoLineIsLeftOutThatLibsshWouldTake) {
  const std::string key =
      " ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEMtKFlkSfqGob2CtTT+En6Xj7zSm5J/DR4iKmHvX5da";
  fuzz::Mutator mutator(
      {"gpu7" + key, "login,gpu7,10.0.0.7" + key, "[gpu7]:2222,[10.0.0.7]:22" + key,
       "gpu?,!gpu8" + key, "@cert-authority *.cluster,gpu7" + key,
       "|1|AfkFk8Qoc4EeiN+DMk6zh8MJKAY=|42bTzW2Z/NRIaTRQ91/KeYsFUqs=" + key,
       "|1|K9TtxCyXjEGEbeZSxyI7/QPbepU=|rpf82sBUml4fC2an630se3A9dAo=" + key},
      {"gpu7", "GPU7", "[gpu7]:22", "[gpu7]:2222", ",", "*", "!", " ", "\t", "|1|", "=", "]:", "#",
       "\r"});
  tests::TemporaryFolder folder;
  int taken = 0;
  for (int i = 0; i < fuzz::rounds(4000); ++i) {
    std::string line = mutator.next();
    line = line.substr(0, line.find_first_of(std::string("\n\0", 2)));
    KnownHostsFile file(folder.write("known_hosts", line + "\n"));
    for (const auto& [host, port] : {std::pair("gpu7", 22), std::pair("[gpu7]:2222", 2222)}) {
      if (!is_about(host, line)) continue;
      ++taken;
      EXPECT_EQ(file.lines_about("gpu7", static_cast<std::uint16_t>(port)), line + "\n") << host;
    }
  }
  EXPECT_GT(taken, 200);  // else the lines are spoilt beyond use
}

}  // namespace
}  // namespace dtool::ssh
