# SPDX-License-Identifier: MIT
# ObjectNav's houses and episodes.
include(trainer/reinforcement/reinforcement.cmake)
target_sources(dtool_trainer PRIVATE
  trainer/objectnav/camera.cpp
  trainer/objectnav/episode.cpp
  trainer/objectnav/house.cpp
  trainer/objectnav/html_picture.cpp
  trainer/objectnav/objectnav_settings.cpp
  trainer/objectnav/samplers.cpp
  trainer/objectnav/show_rollout.cpp
  trainer/objectnav/svg_picture.cpp
  trainer/objectnav/view.cpp)
target_sources(dtool_trainer_torch PRIVATE
  trainer/objectnav/objectnav_runner.cpp)
