# SPDX-License-Identifier: MIT
# What learns from samples.
target_sources(dtool_trainer PRIVATE
  trainer/supervised/supervised_settings.cpp)
target_sources(dtool_trainer_torch PRIVATE
  trainer/supervised/objective.cpp
  trainer/supervised/supervised.cpp)
