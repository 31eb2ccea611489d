# SPDX-License-Identifier: MIT
# Environments that others wrote, in processes of their own. dtool_env.py travels inside the program, so that it is wherever that is.
include(trainer/reinforcement/reinforcement.cmake)
dtool_embed(${PROJECT_BINARY_DIR}/generated/trainer/environments/dtool_env.h dtool::trainer::environments KEEP_COMMENTS
  ${PROJECT_SOURCE_DIR}/trainer/environments/dtool_env.py)
target_sources(dtool_trainer PRIVATE
  trainer/environments/environment_settings.cpp
  trainer/environments/environment_worker.cpp
  trainer/environments/process_environments.cpp
  trainer/environments/protocol.cpp)
target_sources(dtool_trainer_torch PRIVATE
  trainer/environments/ppo_runner.cpp)
install(FILES trainer/environments/dtool_env.py DESTINATION ${CMAKE_INSTALL_DATADIR}/dtool COMPONENT trainer)
