// SPDX-License-Identifier: MIT
// Who a host says it is: four words, in plain characters.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "killfiles/channel/sha256.h"
#include "ssh/host/process_table.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

/// Says who this host is under that name, in a process of its own.
[[noreturn]] void identify_as(const std::string& name) {
  if (::unshare(CLONE_NEWUTS) != 0 || ::sethostname(name.data(), name.size()) != 0) ::_exit(1);
  std::fputs(identify_host().c_str(), stderr);
  ::_exit(0);
}

TEST(Identity, HasTheHostsNameInPlainCharacters) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be called otherwise";
  EXPECT_EXIT(identify_as("h09_.-azAZ ;\"ü"), testing::ExitedWithCode(0),
              "^([0-9a-f]{32}|-) h09_\\.-azAZ_____ [0-9a-f-]{36} [0-9]+$");
  EXPECT_EXIT(identify_as(std::string(64, 'x')), testing::ExitedWithCode(0), " x{64} ");
}

/// Says who this host is with that machine id, in a process of its own.
[[noreturn]] void identify_with(const std::string& machine_id) {
  const tests::TemporaryFolder folder;
  const std::string file = folder.write("id", machine_id + "\n");
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount(file.c_str(), "/etc/machine-id", nullptr, MS_BIND, nullptr) != 0)
    ::_exit(1);
  std::fputs(identify_host().c_str(), stderr);
  ::_exit(0);
}

TEST(Identity, TellsTheMachinesIdByAHashAlone) {
  if (::geteuid() != 0 || !std::filesystem::exists("/etc/machine-id"))
    GTEST_SKIP() << "needs root, and a machine id";
  const std::string id = "0123456789abcdef0123456789abcdef";
  EXPECT_EXIT(identify_with(id), testing::ExitedWithCode(0),
              "^" + to_hex(sha256("dtool " + id)).substr(0, 32) + " ");
  for (const std::string& bad : {id.substr(1), id + "0", "x" + id.substr(1), std::string()})
    EXPECT_EXIT(identify_with(bad), testing::ExitedWithCode(0), "^- ") << bad;
}

TEST(Identity, EndsWithTheBootAndTheNamespaceOfItsProcesses) {
  const std::string space = std::filesystem::read_symlink("/proc/self/ns/pid");
  const std::size_t begin = space.find('[') + 1;
  const std::string words = identify_host();
  EXPECT_TRUE(words.ends_with(" " + boot_id() + " " + space.substr(begin, space.find(']') - begin)))
      << words;
}

}  // namespace
}  // namespace dtool::host
