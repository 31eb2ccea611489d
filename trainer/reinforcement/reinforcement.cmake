# SPDX-License-Identifier: MIT
# What learns from experience, whatever the environment: for the workloads that include it.
include_guard()
target_sources(dtool_trainer PRIVATE
  trainer/reinforcement/environments.cpp
  trainer/reinforcement/gru_gates.cpp
  trainer/reinforcement/policy_settings.cpp
  trainer/reinforcement/ppo_settings.cpp)
target_sources(dtool_trainer_torch PRIVATE
  trainer/reinforcement/actions.cpp
  trainer/reinforcement/ddppo.cpp
  trainer/reinforcement/encoded_policy.cpp
  trainer/reinforcement/kept_samplers.cpp
  trainer/reinforcement/learner.cpp
  trainer/reinforcement/masked_gru.cpp
  trainer/reinforcement/observation_encoder.cpp
  trainer/reinforcement/ppo_loss.cpp
  trainer/reinforcement/rollout.cpp
  trainer/reinforcement/validation.cpp
  trainer/reinforcement/view_embedding.cpp)

# Those of a policy. -ffast-math has exp and tanh taken for whole registers.
set_source_files_properties(trainer/reinforcement/view_embedding.cpp PROPERTIES COMPILE_OPTIONS "-O3")
set_source_files_properties(trainer/reinforcement/gru_gates.cpp PROPERTIES COMPILE_OPTIONS "-O3;-ffast-math")
