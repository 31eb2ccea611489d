# SPDX-License-Identifier: MIT
# ObjectNav, with what it is learned by
target_sources(dtool_trainer PRIVATE
  trainer/objectnav/episode.cpp
  trainer/objectnav/house.cpp
  trainer/objectnav/objectnav_settings.cpp
  trainer/objectnav/paths.cpp
  trainer/objectnav/samplers.cpp
  trainer/objectnav/show_rollout.cpp
  trainer/objectnav/svg_picture.cpp
  trainer/objectnav/trace.cpp
  trainer/objectnav/view.cpp
  trainer/reinforcement/environments.cpp
  trainer/reinforcement/gru_gates.cpp
  trainer/reinforcement/mini_batches.cpp
  trainer/reinforcement/pipeline.cpp
  trainer/reinforcement/sum_rows.cpp)
target_sources(dtool_trainer_torch PRIVATE
  trainer/objectnav/agent/actor_critic.cpp
  trainer/objectnav/agent/ddppo.cpp
  trainer/objectnav/agent/kept_samplers.cpp
  trainer/objectnav/agent/learner.cpp
  trainer/objectnav/agent/objectnav_runner.cpp
  trainer/objectnav/agent/rollout.cpp
  trainer/objectnav/agent/validation.cpp
  trainer/objectnav/agent/view_embedding.cpp
  trainer/reinforcement/masked_gru.cpp
  trainer/reinforcement/policy.cpp
  trainer/reinforcement/ppo_loss.cpp
  trainer/reinforcement/stragglers.cpp)

# Those of a policy. -ffast-math has exp and tanh taken for whole registers.
set_source_files_properties(trainer/reinforcement/sum_rows.cpp PROPERTIES COMPILE_OPTIONS "-O3")
set_source_files_properties(trainer/reinforcement/gru_gates.cpp PROPERTIES COMPILE_OPTIONS "-O3;-ffast-math")
