// SPDX-License-Identifier: MIT
// The variables of --export and --env_file.
#include "cli/plan/plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/action.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

std::string fault(const std::string& text) {
  try {
    parse_export(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(ParseExport, TakesTheValueAsItIs) {
  EXPECT_EQ(parse_export("A=b"), (Variable{"A", "b"}));
  EXPECT_EQ(parse_export("_a1="), (Variable{"_a1", ""}));
  EXPECT_EQ(parse_export("A=b=c 'd'\n"), (Variable{"A", "b=c 'd'\n"}));
}

TEST(ParseExport, AValueLeftOutIsThatOfThisProcess) {
  const tests::TemporaryVariable variable("DTOOLTEST_X", "a b");
  EXPECT_EQ(parse_export("DTOOLTEST_X").second, "a b");
  ::unsetenv("DTOOLTEST_Y");
  EXPECT_TRUE(fault("DTOOLTEST_Y").starts_with("--export: DTOOLTEST_Y is not set here\nhint: "));
}

TEST(ParseExport, WhatNoVariableIsCalledIsRefused) {
  for (const std::string text : {"", "=x", "1A=x", "A-B=x", "A B=x", "ü=x", "A.B"}) {
    EXPECT_NE(fault(text).find("is not the name of a variable"), std::string::npos) << text;
  }
}

TEST(ParseExport, DtoolsOwnVariablesAreRefused) {
  for (const std::string text :
       {"DTOOL_RUN_ID=x", "DTOOL_SEED", "DTOOL_=1", "RANK=7", "MASTER_PORT=1"}) {
    EXPECT_NE(fault(text).find("is dtool's own to set"), std::string::npos) << text;
  }
  EXPECT_EQ(fault("DTOOL_MNIST_DIR=/data"), "");
}

using Variables = std::vector<Variable>;
using Words = std::vector<std::string>;

TEST(EnvFile, LinesAreNamesAndValues) {
  EXPECT_EQ(
      parse_env_file("# a remark\n\n A=b \nB=\nC = 'd e '\r\nD=\"x # 'y'\"\n\tE=$F=\\n#g", "f"),
      (Variables{{"A", "b"}, {"B", ""}, {"C", "d e "}, {"D", "x # 'y'"}, {"E", "$F=\\n#g"}}));
  EXPECT_EQ(parse_env_file("export A=b\n", "f"), (Variables{{"A", "b"}}));
  EXPECT_EQ(parse_env_file("", "f"), Variables());
}

TEST(EnvFile, ABadLineIsNamedWithoutItsValue) {
  const auto wrong = [](std::string_view text) -> std::string {
    try {
      parse_env_file(text, "f");
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(wrong("A=b\nsecret"), "f:2: the line is no NAME=VALUE");
  EXPECT_EQ(wrong("1A=secret"), "f:1: there is no variable name before the =");
  EXPECT_EQ(wrong("set A=secret"), "f:1: there is no variable name before the =");
  EXPECT_EQ(wrong("\n\nDTOOL_SEED=1"), "f:3: DTOOL_SEED is dtool's own to set");
  EXPECT_EQ(wrong("A='secret"), "f:1: the value of A begins with a quote and does not end with it");
  EXPECT_EQ(wrong("A=\""), "f:1: the value of A begins with a quote and does not end with it");
  EXPECT_EQ(wrong(std::string_view("A=b\0c", 5)), "f:1: the value of A holds a NUL character");
}

TEST(WithoutValues, ACommandLineKeepsTheNames) {
  EXPECT_EQ(
      without_values(Words{"dtool", "run", "--export", "A=secret", "--export=B=c=d", "--export",
                           "C", "--extra_tag", "x=y", "--", "p", "--export", "D=e"}),
      (Words{"dtool", "run", "--export", "A=…", "--export=B=…", "--export", "C", "--extra_tag",
             "x=y", "--", "p", "--export", "D=e"}));
}

std::string gpus_fault(const std::string& list) {
  try {
    parse_gpus(list);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(ParseGpus, TakesNumbersAndUuids) {
  EXPECT_EQ(parse_gpus("0,2"), (Variable{"CUDA_VISIBLE_DEVICES", "0,2"}));
  EXPECT_EQ(parse_gpus("GPU-8f0a-11,GPU-3").second, "GPU-8f0a-11,GPU-3");
  EXPECT_EQ(parse_gpus("MIG-GPU-8f0a/7/0").second, "MIG-GPU-8f0a/7/0");
}

TEST(ParseGpus, RefusesWhatNamesNoGpu) {
  for (const char* list : {"", ",", "0,", "0,,1", "-1", "1024", "0 1", "all", "GPU-", "GPU-$(id)"})
    EXPECT_NE(gpus_fault(list).find("names no GPU"), std::string::npos) << list;
  EXPECT_EQ(gpus_fault("0,1,00"), "--gpus names 00 twice");
}

TEST(ParseGpus, RefusesMixedKinds) {
  for (const char* list : {"0,GPU-8f", "GPU-8f,0", "GPU-8f,MIG-1", "1,MIG-1"})
    EXPECT_NE(gpus_fault(list).find("is not of the kind of"), std::string::npos) << list;
}

TEST(FindVariable, TakesTheLast) {
  const std::vector<Variable> variables = {{"A", "1"}, {"B", "2"}, {"A", "3"}};
  EXPECT_EQ(find_variable(variables, "A"), "3");
  EXPECT_EQ(find_variable(variables, "C"), std::nullopt);
}

}  // namespace
}  // namespace dtool::cli
