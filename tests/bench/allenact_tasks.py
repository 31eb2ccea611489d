# SPDX-License-Identifier: MIT
"""AllenAct's tasks as a Gymnasium environment: the room of its MiniGrid tutorial, by the task sampler of AllenAct's plugin."""
import sys
import types

import gym
import gym_minigrid.envs
import gymnasium
import numpy

sys.modules.setdefault("babyai", types.ModuleType("babyai"))  # the plugin imports it first, and its task sampler does not use it
from allenact.base_abstractions.sensor import Sensor
from allenact_plugins.minigrid_plugin.minigrid_tasks import MiniGridTaskSampler


class View(Sensor):
    """The codes that the agent sees; the plugin's own sensor needs babyai."""

    def get_observation(self, env, task, *_, **__):
        return env.gen_obs()["image"]


class Tasks(gymnasium.Env):
    """Any task sampler of AllenAct's: an episode is a task."""

    def __init__(self, sampler, space, actions):
        self.sampler, self.observation_space, self.action_space = sampler, space, gymnasium.spaces.Discrete(actions)

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.sampler.set_seed(seed)
        self.task = self.sampler.next_task()
        return self.task.get_observations(), {}

    def step(self, action):
        result = self.task.step(action)
        ended = self.task.reached_terminal_state()
        return result.observation, result.reward, ended, result.done and not ended, self.task.metrics() if result.done else {}


def empty_room():
    view = View("view", gym.spaces.Box(0, 10, (7, 7, 3), numpy.uint8))
    sampler = MiniGridTaskSampler(gym_minigrid.envs.EmptyRandomEnv5x5, [view], {})
    return Tasks(sampler, gymnasium.spaces.Dict(view=gymnasium.spaces.Box(0, 10, (7, 7, 3), numpy.uint8)), 3)


gymnasium.register("AllenActEmptyRoom-v0", empty_room)
