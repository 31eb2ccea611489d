// SPDX-License-Identifier: MIT
// The table [model] of a policy, and the layers that it means.
#include "trainer/reinforcement/policy_settings.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/trainer/experiment_text.h"
#include "tests/unit/temporary_folder.h"
#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;

namespace {

PolicySettings policy_in(const std::string& table) {
  const dtool::tests::TemporaryFolder folder;
  TomlReader reader(folder.write("policy_settings_test.toml", "[model]\n" + table));
  PolicySettings settings = read_policy(reader);
  reader.refuse_unknown_keys();
  return settings;
}

std::string fault_in(const std::string& table) {
  try {
    policy_in(table);
  } catch (const UsageError& mistake) {
    return line_and_fault(mistake);
  }
  return "none";
}

Observed picture_of(std::int64_t channels, std::int64_t rows, std::int64_t columns) {
  return {"image", {channels, rows, columns}, ObservedKind::pixels, 0};
}

}  // namespace

TEST(PolicySettings, AreReadFromTheTable) {
  const PolicySettings standard = policy_in("");
  EXPECT_EQ(standard.encoder, "nature");
  EXPECT_EQ(standard.layers, (std::vector<std::int64_t>{64, 64}));
  EXPECT_EQ(standard.activation.kind, LayerKind::tanh);
  EXPECT_EQ(standard.memory, PolicyMemory::none);
  EXPECT_FALSE(standard.separate_critic);
  EXPECT_FALSE(standard.normalise_observations);

  const PolicySettings given = policy_in(
      "encoder = 'impala'\nlayers = [32]\nactivation = 'relu'\nmemory = 'lstm'\nhidden = 7\n"
      "normalise_observations = true");
  EXPECT_EQ(given.encoder, "impala");
  EXPECT_EQ(layers_of_numbers(given).size(), 2U);
  EXPECT_EQ(given.activation.kind, LayerKind::relu);
  EXPECT_EQ(given.memory, PolicyMemory::lstm);
  EXPECT_EQ(given.hidden, 7);
  EXPECT_TRUE(given.normalise_observations);
  EXPECT_TRUE(policy_in("separate_critic = true").separate_critic);
}

TEST(PolicySettings, MistakesAreNamed) {
  EXPECT_EQ(fault_in("encoder = 'natur'"),
            ":2: model.encoder is one of nature, nature_half, impala, resnet18, resnet18_half, "
            "small, not 'natur'");
  EXPECT_EQ(fault_in("memory = 'gru'\nseparate_critic = true"),
            ":3: a critic of its own goes with model.memory = \"none\" only");
  EXPECT_EQ(fault_in("encoder_layers = ['conv 8 3', 'batch_norm']"),
            ":2: layer 'batch_norm' is not for policies, which act as they learn");
  EXPECT_EQ(fault_in("encoder_layers = ['conf 8 3']"),
            ":2: layer 'conf 8 3': no layer is called 'conf'");
  EXPECT_EQ(fault_in("encoder_layers = ['relu']\nencoder = 'nature'"),
            ":3: model.encoder does not go together with model.encoder_layers");
}

TEST(PolicySettings, TheLayersOfAPictureFitIt) {
  PolicySettings settings;
  EXPECT_EQ(shapes_along(layers_of_picture(settings, picture_of(4, 84, 84)), {4, 84, 84})[6],
            (Shape{64, 7, 7}));
  EXPECT_NO_THROW(layers_of_picture(settings, picture_of(4, 36, 36)));
  EXPECT_THROW(layers_of_picture(settings, picture_of(4, 36, 35)), UsageError);
  settings.encoder = "small";
  EXPECT_EQ(shapes_along(layers_of_picture(settings, picture_of(3, 7, 7)), {3, 7, 7}).back(),
            (Shape{64, 1, 1}));
  settings.encoder = "resnet18_half";
  EXPECT_EQ(layers_of_picture(settings, picture_of(3, 128, 128)).front().kind,
            LayerKind::average_pool);
  EXPECT_EQ(layers_of_picture(settings, picture_of(3, 64, 64)).front().kind,
            LayerKind::convolution);
  settings.encoder_layers = policy_in("encoder_layers = ['conv 8 3', 'relu']").encoder_layers;
  EXPECT_EQ(layers_of_picture(settings, picture_of(3, 7, 7)).size(), 2U);
  settings.encoder_layers = {parse_layer("conv 8 9")};
  try {
    layers_of_picture(settings, picture_of(3, 7, 7));
    FAIL() << "it fits";
  } catch (const UsageError& mistake) {
    EXPECT_TRUE(std::string(mistake.what())
                    .starts_with("model.encoder_layers: the observation image: layer 'conv 8 9'"))
        << mistake.what();
  }
}

TEST(PolicySettings, TheirCostIsCounted) {
  EnvironmentSpec spec;
  spec.observations = {{"place", {4}, ObservedKind::numbers, 0}};
  spec.actions.choices = {2};
  PolicySettings settings;
  const std::int64_t torso = 4 * 64 + 64 + 64 * 64 + 64;
  EXPECT_EQ(multiply_adds(settings, spec), torso + 64 * 3);
  settings.separate_critic = true;
  EXPECT_EQ(multiply_adds(settings, spec), 2 * torso + 64 * 3);
  settings.separate_critic = false;
  settings.memory = PolicyMemory::gru;
  settings.hidden = 10;
  EXPECT_EQ(multiply_adds(settings, spec), torso + 3 * 10 * (64 + 10) + 10 * 3);
  spec.observations.push_back(picture_of(4, 84, 84));
  EXPECT_EQ(multiply_adds(settings, spec), 0);
}
