// SPDX-License-Identifier: MIT
// What hosts answer on modules, environments and containers becomes a sentence and a hint.
#include "cli/ready/check_hosts.h"

#include <gtest/gtest.h>

namespace dtool::cli {
namespace {

using ssh::Answers;

/// `WHAT: ERROR (HINT)` of the one lack.
std::string lack_of(const Answers& answers) {
  const std::vector<Lack> lacks = environment_lacks(answers, "");
  if (lacks.size() != 1) return std::to_string(lacks.size()) + " lacks";
  return lacks[0].what + ": " + lacks[0].error + " (" + lacks[0].hint + ")";
}

std::string hint_at(const std::string& module, const std::string& known) {
  return environment_lacks(
             {{"bad_modules", "x"}, {"missing_module", module}, {"known_modules", known}}, "")
      .at(0)
      .hint;
}

TEST(EnvironmentLacks, NothingIsLackingWhereNothingIsSaid) {
  EXPECT_TRUE(environment_lacks({{"checked", "yes"}, {"gpus", "8"}}, "").empty());
}

TEST(EnvironmentLacks, AContainerThatALoginHostCannotEnterIsNoLack) {
  for (const auto& [answer, why] : {std::pair("no_engine=ch-run", "ch-run is not there"),
                                    std::pair("no_image=torch", "there is no image torch"),
                                    std::pair("container=it is broken", "it is broken")}) {
    const std::string text = answer;
    const std::size_t equals = text.find('=');
    const Answers answers = {{"unseen_" + text.substr(0, equals), text.substr(equals + 1)}};
    EXPECT_EQ(unseen_container(answers), why);
    EXPECT_TRUE(environment_lacks(answers, "").empty());
  }
  EXPECT_EQ(unseen_container({{"bad_no_engine", "ch-run"}}), "");
}

TEST(EnvironmentLacks, WhatIsInTheCodeFolderComesWithTheCode) {
  Needs needs;
  needs.environment_comes_later = true;
  needs.environment.container = Container{ContainerRuntime::charliecloud, "x", {}};
  for (const std::string answer : {"bad_no_file", "bad_no_image"}) {
    const std::vector<Lack> lacks = environment_lacks({{answer, "/root/code/x"}}, "", needs);
    ASSERT_EQ(lacks.size(), 1U);
    EXPECT_EQ(lacks[0].hint, "it is in the current folder, which dtool run sends");
  }
}

TEST(EnvironmentLacks, ARelativePathIsSaidToBeginAtTheCodeFolder) {
  Needs needs;
  for (const auto& [path, hint] :
       {std::pair("venv",
                  "venv begins at the code folder there; ~/venv would begin at the home folder"),
        std::pair(
            "~/venv",
            "a script that makes it runs on each host with dtool config --config_script FILE")}) {
    needs.environment.activate = path;
    const std::vector<Lack> lacks =
        environment_lacks({{"bad_no_file", "there is no file /x"}}, "", needs);
    ASSERT_EQ(lacks.size(), 1U);
    EXPECT_EQ(lacks[0].hint, hint);
  }
}

TEST(EnvironmentLacks, AModuleThatIsMissingIsAnsweredWithThoseThatComeNear) {
  EXPECT_EQ(hint_at("cuda/13", "cuda/11.8 cuda/12.2 gcc"), "there is cuda/11.8, cuda/12.2");
  EXPECT_EQ(hint_at("pyton/3.11", "gcc python/3.11"), "did you mean python/3.11?");
  EXPECT_EQ(hint_at("cuda/13", "gcc"), "module avail, on the host, lists what there is");
  EXPECT_EQ(hint_at("cuda/13", ""), "module avail, on the host, lists what there is");
  EXPECT_EQ(hint_at("broken", "broken gcc"), "");
}

TEST(EnvironmentLacks, OfManySiblingsEightAreNamed) {
  EXPECT_EQ(hint_at("a/0", "a/1 a/2 a/3 a/4 a/5 a/6 a/7 a/8 a/9"),
            "there is a/1, a/2, a/3, a/4, a/5, a/6, a/7, a/8");
}

TEST(EnvironmentLacks, AnEngineComesWithItsPackageWhereDebianHasOne) {
  EXPECT_NE(lack_of({{"bad_no_engine", "ch-run"}})
                .find("container: --container: ch-run is not there (on Debian: dtool command "
                      "--command 'sudo apt-get install -y charliecloud-runtime'"),
            std::string::npos);
  EXPECT_NE(lack_of({{"bad_no_engine", "apptainer"}}).find("Debian has no package of it"),
            std::string::npos);
}

TEST(EnvironmentLacks, APathOfAnImageIsNoNameToPull) {
  EXPECT_EQ(lack_of({{"bad_no_image", "/a/b.sif"}}).find("podman pull"), std::string::npos);
  EXPECT_NE(lack_of({{"bad_no_image", "a/b:1"}}).find("podman pull a/b:1"), std::string::npos);
}

TEST(EnvironmentLacks, EachBindThatIsMissingIsALack) {
  EXPECT_EQ(environment_lacks({{"no_bind", "/a"}, {"no_bind", "/b"}}, "").size(), 2U);
}

}  // namespace
}  // namespace dtool::cli
