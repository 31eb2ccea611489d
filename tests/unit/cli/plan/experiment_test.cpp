// SPDX-License-Identifier: MIT
// An experiment and the settings from the command line become one TOML text.
#include "cli/plan/experiment.h"

#include <gtest/gtest.h>

#include <toml++/toml.h>

#include "cli/action.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

constexpr const char* kText = R"(workload = "classifier"
seed = 1
[train]
epochs = 5
rate = 0.1
[[stages]]
steps = 10
)";

class ExperimentTest : public testing::Test {
 protected:
  toml::table merged(const std::string& kwargs, int machines = 1) {
    return toml::parse(read_experiment(file, kwargs, machines).toml);
  }

  std::string fault(const std::string& kwargs, int machines = 1) {
    return fault_of_file(file, kwargs, machines);
  }

  static std::string fault_of_file(const std::string& name, const std::string& kwargs,
                                   int machines = 1) {
    try {
      read_experiment(name, kwargs, machines);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }

  const tests::TemporaryFolder folder;
  const std::string file = folder.write("mine.toml", kText).string();
};

TEST_F(ExperimentTest, IsNamedAfterItsFile) {
  const ExperimentText experiment = read_experiment(file, "", 1);
  EXPECT_EQ(experiment.name, "mine");
  EXPECT_FALSE(experiment.is_shipped);
  EXPECT_TRUE(read_experiment("digits", "", 1).is_shipped) << "wherever the program was built";
  EXPECT_EQ(toml::parse(experiment.toml), toml::parse(kText));
}

TEST_F(ExperimentTest, TablesAreMergedKeyByKey) {
  const auto table = merged(R"({"train":{"epochs":3,"clip":1.5},"seed":7})");
  EXPECT_EQ(table["train"]["epochs"].value<int>(), 3);
  EXPECT_EQ(table["train"]["rate"].value<double>(), 0.1);
  EXPECT_EQ(table["train"]["clip"].value<double>(), 1.5);
  EXPECT_EQ(table["seed"].value<int>(), 7);
  EXPECT_EQ(table["workload"].value<std::string>(), "classifier");
}

TEST_F(ExperimentTest, NewTablesAreMadeAndArraysReplaced) {
  const auto table = merged(R"({"data":{"a":{"b":[1,2]}},"stages":[{"steps":1},{"steps":2}]})");
  EXPECT_EQ(table["data"]["a"]["b"][1].value<int>(), 2);
  EXPECT_EQ(table["stages"].as_array()->size(), 2U);
  EXPECT_EQ(table["stages"][1]["steps"].value<int>(), 2);
}

TEST_F(ExperimentTest, ValuesKeepTheirType) {
  const auto table = merged(R"({"a":true,"b":2,"c":2.0,"d":"2","e":-9223372036854775808})");
  EXPECT_TRUE(table["a"].is_boolean());
  EXPECT_TRUE(table["b"].is_integer());
  EXPECT_TRUE(table["c"].is_floating_point());
  EXPECT_TRUE(table["d"].is_string());
  EXPECT_EQ(table["e"].value<std::int64_t>(), INT64_MIN);
}

TEST_F(ExperimentTest, KeysAndStringsOfAnyCharactersArrive) {
  const auto table = merged(R"({"a b.c\"":"x\"'\n\t\\\u0001\u007f ü","":{"#":""}})");
  EXPECT_EQ(table["a b.c\""].value<std::string>(), "x\"'\n\t\\\x01\x7f ü");
  EXPECT_EQ(table[""]["#"].value<std::string>(), "");
  EXPECT_EQ(merged(R"({"a":"\n\nx\r\n"})")["a"].value<std::string>(), "\n\nx\r\n");
}

TEST_F(ExperimentTest, AKeyThatCannotBeWrittenIsNamed) {
  const auto refusal = [](const std::string& source, const std::string& key,
                          const std::string& what = "a control character") {
    return source + ": the key '" + key + "' has " + what +
           "\nhint: a key is one line of printable characters without apostrophes";
  };
  EXPECT_EQ(fault(R"({"trai\n":{"epochs":3}})"), refusal("--config_kwargs", "trai\\x0a"));
  EXPECT_EQ(fault(R"({"train":{"a\u007f":3}})"), refusal("--config_kwargs", "train.a\\x7f"));
  EXPECT_EQ(fault(R"({"a":[{"\tb":{}}]})"), refusal("--config_kwargs", "a.\\x09b"));
  const std::string other = folder.write("other.toml", "[[a]]\n\"b\\n\" = 1\n").string();
  EXPECT_EQ(fault_of_file(other, ""), refusal(other, "b\\x0a"));
  // Found by libFuzzer.
  EXPECT_EQ(fault(R"({"trai'":{"epmch[s":3}})"),
            refusal("--config_kwargs", "trai'", "an apostrophe"));
  const std::string quoted = folder.write("quoted.toml", "\"'a'\" = 1\n").string();
  EXPECT_EQ(fault_of_file(quoted, ""), refusal(quoted, "'a'", "an apostrophe"));
}

TEST_F(ExperimentTest, ATableIsNotReplacedByAValue) {
  EXPECT_EQ(fault(R"({"train":3})"), "--config_kwargs: train is a table in the experiment, not 3");
}

TEST_F(ExperimentTest, AKeyWithDotsThatMeansATableIsNamed) {
  EXPECT_EQ(
      fault(R"({"train.epochs":3})"),
      "--config_kwargs: there is no key 'train.epochs'\nhint: a setting of the table train is "
      "written as {\"train\":{\"epochs\":3}}");
  EXPECT_EQ(merged(R"({"mine.own":3})")["mine.own"].value<int>(), 3);
}

TEST_F(ExperimentTest, WhatTomlCannotHoldIsNamed) {
  EXPECT_EQ(fault(R"({"train":{"rate":null}})"),
            "--config_kwargs: train.rate is null, which TOML cannot hold");
  EXPECT_EQ(fault(R"({"seed":18446744073709551615})"),
            "--config_kwargs: seed is 18446744073709551615, and TOML's integers end at "
            "9223372036854775807");
}

TEST_F(ExperimentTest, JsonErrorsAreToldWithTheirPlace) {
  for (const std::string kwargs : {"{", "{\"a\":}", "{'a':1}", "{\"a\":1,}", "a", "{} x", "\xff"}) {
    const std::string message = fault(kwargs);
    EXPECT_TRUE(message.starts_with("--config_kwargs: ")) << message;
    EXPECT_NE(message.find("line 1, column"), std::string::npos) << message;
    EXPECT_EQ(message.find("json.exception"), std::string::npos) << message;
    EXPECT_NE(message.find("\nhint: "), std::string::npos) << message;
  }
  for (const std::string kwargs : {"3", "[]", "\"x\"", "null"}) {
    EXPECT_TRUE(fault(kwargs).starts_with("--config_kwargs wants a JSON object, not " + kwargs));
  }
}

TEST_F(ExperimentTest, NumbersBeyondAnyDoubleAreRefused) {
  const std::string message = fault(R"({"train":{"rate":1e400}})");
  EXPECT_TRUE(message.starts_with("--config_kwargs: number overflow")) << message;
  EXPECT_EQ(message.find("json.exception"), std::string::npos) << message;
}

TEST_F(ExperimentTest, JsonNestedBeyondReasonIsRefused) {
  const std::string deep = std::string(50'000, '[') + std::string(50'000, ']');
  EXPECT_TRUE(fault("{\"a\":" + deep + "}").starts_with("--config_kwargs: "));
}

TEST_F(ExperimentTest, TomlErrorsAreToldWithFileAndLine) {
  const std::string broken = folder.write("broken.toml", "a = 1\nb = \n").string();
  EXPECT_TRUE(fault_of_file(broken, "").starts_with(broken + ":2:"));
}

TEST_F(ExperimentTest, TheNumberOfMachinesMustAgree) {
  EXPECT_EQ(fault(R"({"distributed_nodes":3})", 3), "");
  const std::string message = fault(R"({"distributed_nodes":3})", 2);
  EXPECT_TRUE(message.starts_with(
      "distributed_nodes is 3 in --config_kwargs, but the run has 2 machines\nhint: "))
      << message;
  EXPECT_TRUE(fault(R"({"distributed_nodes":"3"})", 3)
                  .starts_with("--config_kwargs: distributed_nodes wants a whole number"));
  const std::string fixed = folder.write("fixed.toml", "distributed_nodes = 2\n").string();
  EXPECT_EQ(fault_of_file(fixed, "", 2), "");
  EXPECT_TRUE(
      fault_of_file(fixed, "", 1)
          .starts_with("distributed_nodes is 2 in " + fixed + ", but the run has 1 machine\n"));
  EXPECT_EQ(fault_of_file(fixed, R"({"distributed_nodes":1})", 1), "");
}

TEST_F(ExperimentTest, OneThatIsNowhereIsNamed) {
  const std::string message = fault_of_file("no-such-thing", "");
  EXPECT_TRUE(message.starts_with("there is no experiment no-such-thing: ")) << message;
}

TEST_F(ExperimentTest, AFolderIsNoExperiment) {
  EXPECT_TRUE(fault_of_file(folder.path().string(), "").starts_with("there is no experiment "));
}

TEST_F(ExperimentTest, WithoutOneOnlyTheNumberOfMachinesMayBeGiven) {
  check_config_kwargs("", 2);
  check_config_kwargs(R"({"distributed_nodes":2})", 2);
  EXPECT_THROW(check_config_kwargs(R"({"distributed_nodes":1})", 2), UsageError);
  EXPECT_THROW(check_config_kwargs(R"({"train":{}})", 2), UsageError);
}

TEST(ResumedExperiment, TakesNewSettingsButNotThoseThatACheckpointDependsOn) {
  const std::string earlier =
      "workload = \"classifier\"\ndistributed_nodes = 2\n[data]\nsource = \"digits\"\n"
      "[train]\nepochs = 5\n";
  const auto resumed = [&](const std::string& kwargs) {
    return toml::parse(resumed_experiment("mine", earlier, kwargs, 3).toml);
  };
  const auto fault = [&](const std::string& kwargs) -> std::string {
    try {
      resumed(kwargs);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  const auto table = resumed(R"({"train":{"epochs":7},"data":{"source":"digits"}})");
  EXPECT_EQ(table["train"]["epochs"].value<int>(), 7);
  EXPECT_EQ(table["distributed_nodes"].value<int>(), 3) << "the machines of this run";
  EXPECT_FALSE(toml::parse(resumed_experiment("mine", "workload = 1\n", "", 3).toml)
                   .contains("distributed_nodes"));
  EXPECT_TRUE(
      fault(R"({"data":{"source":"mnist"}})").starts_with("--config_kwargs changes data.source,"));
  EXPECT_TRUE(
      fault(R"({"model":{"hidden":[3]}})").starts_with("--config_kwargs changes model.hidden,"));
  EXPECT_TRUE(
      fault(R"({"workload":"regression"})").starts_with("--config_kwargs changes workload,"));
  EXPECT_NE(fault(R"({"distributed_nodes":2})"), "");
}

}  // namespace
}  // namespace dtool::cli
