# SPDX-License-Identifier: MIT
"""A peer of tests/bench/ppo: AllenAct with the same environment, network and batch, through a task and a sampler of our own.

usage: ppo_allenact.py TASK SEED THREADS SAMPLER_PROCESSES STEPS    prints a JSON object when it is done

WORLD_SIZE has the number of learning processes, each with so many processes of environments. As a module it is the experiment that
AllenAct loads, with the task in DTOOL_PPO_TASK. AllenAct logs means of the episodes that ended since its last line.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import gym
import numpy
import torch
from allenact.algorithms.onpolicy_sync.losses.ppo import PPO
from allenact.algorithms.onpolicy_sync.policy import ActorCriticModel
from allenact.base_abstractions.distributions import CategoricalDistr
from allenact.base_abstractions.experiment_config import ExperimentConfig, MachineParams
from allenact.base_abstractions.misc import ActorCriticOutput, RLStepResult
from allenact.base_abstractions.sensor import Sensor, SensorSuite
from allenact.base_abstractions.task import Task, TaskSampler
from allenact.utils.experiment_utils import Builder, LinearDecay, PipelineStage, TrainingPipeline

import ppo_cpu
import ppo_peer
from ppo_tasks import TASKS, make_environment

NAME = os.environ.get("DTOOL_PPO_TASK", "cartpole")
STEPS = int(os.environ.get("DTOOL_PPO_STEPS", "100000"))
WORLD = int(os.environ.get("WORLD_SIZE", "1"))


class Observation(Sensor):
    def get_observation(self, env, task, *_, **__):
        return task.seen


def sensors():
    space = make_environment(NAME).observation_space
    return [Observation(uuid="seen", observation_space=gym.spaces.Box(-numpy.inf, numpy.inf, space.shape, numpy.float32))]


class GymnasiumTask(Task):
    def __init__(self, env, seen, **others):
        super().__init__(env=env, task_info={}, max_steps=10 ** 9, **others)
        self.seen, self.over = seen, False

    @property
    def action_space(self):
        return gym.spaces.Discrete(int(self.env.action_space.n))

    @classmethod
    def class_action_names(cls, **_):
        return tuple(map(str, range(int(make_environment(NAME).action_space.n))))

    def render(self, mode="rgb", *_, **__):
        raise NotImplementedError

    def reached_terminal_state(self):
        return self.over

    def _step(self, action):
        self.seen, reward, terminated, truncated, info = self.env.step(action)
        self.over = terminated or truncated
        return RLStepResult(observation=self.get_observations(), reward=float(reward), done=self.is_done(), info=info)


class Sampler(TaskSampler):
    def __init__(self, seed, **_):
        torch.set_num_threads(1)
        self.env, self.sensors, self.last = make_environment(NAME), SensorSuite(sensors()), None
        self.seed = seed

    length = property(lambda self: float("inf"))
    total_unique = property(lambda self: None)
    last_sampled_task = property(lambda self: self.last)
    all_observation_spaces_equal = property(lambda self: True)

    def next_task(self, force_advance_scene=False):
        seen, _ = self.env.reset(seed=self.seed)
        self.seed = None
        self.last = GymnasiumTask(self.env, seen, sensors=self.sensors)
        return self.last

    def close(self):
        self.env.close()

    def reset(self):
        pass

    def set_seed(self, seed):
        self.seed = seed


class Model(ActorCriticModel):
    def __init__(self, action_space, observation_space):
        super().__init__(action_space=action_space, observation_space=observation_space)
        torch.set_num_threads(int(os.environ.get("DTOOL_PPO_THREADS", "1")))
        kind = TASKS[NAME]["network"]
        self.pixels = kind.endswith("half_nature")
        shape = observation_space["seen"].shape
        self.trunk, width = ppo_peer.trunk(kind, shape)
        self.trunk_of_critic = ppo_peer.trunk(kind, shape)[0] if kind == "mlp" else None
        self.actor = ppo_peer.initialised(torch.nn.Linear(width, action_space.n), 0.01)
        self.critic = ppo_peer.initialised(torch.nn.Linear(width, 1), 1.0)

    def _recurrent_memory_specification(self):
        return None

    def forward(self, observations, memory, prev_actions, masks):
        seen = observations["seen"]
        steps, samplers = seen.shape[:2]
        seen = seen.flatten(0, 1)
        if self.pixels:
            seen = seen.permute(0, 3, 1, 2).float().div(255)
        seen = seen.float()
        features = self.trunk(seen)
        logits, values = self.actor(features), self.critic(self.trunk_of_critic(seen) if self.trunk_of_critic else features)
        return ActorCriticOutput(CategoricalDistr(logits=logits.view(steps, samplers, -1)), values.view(steps, samplers, 1), {}), None


class PpoExperimentConfig(ExperimentConfig):
    @classmethod
    def tag(cls):
        return "ppo"

    @classmethod
    def machine_params(cls, mode="train", **_):
        train = mode == "train"
        return MachineParams(nprocesses=[TASKS[NAME]["environments"] // WORLD] * WORLD if train else 0,
                             devices=[torch.device("cpu")] * WORLD if train else [])

    @classmethod
    def training_pipeline(cls, **_):
        task = TASKS[NAME]
        return TrainingPipeline(
            named_losses={"ppo": PPO(task["clip"], 0.5, task["entropy"])},
            pipeline_stages=[PipelineStage(loss_names=["ppo"], max_stage_steps=STEPS)],
            optimizer_builder=Builder(torch.optim.Adam, {"lr": task["learning_rate"], "eps": 1e-5}),
            lr_scheduler_builder=Builder(torch.optim.lr_scheduler.LambdaLR, {"lr_lambda": LinearDecay(steps=STEPS)}),
            num_mini_batch=task["mini_batches"], update_repeats=task["passes"], max_grad_norm=0.5, num_steps=task["rollout"],
            gamma=task["gamma"], use_gae=True, gae_lambda=task["gae_lambda"],
            advance_scene_rollout_period=None,
            save_interval=None, metric_accumulate_interval=2000)

    @classmethod
    def create_model(cls, **_):
        actions = gym.spaces.Discrete(len(GymnasiumTask.class_action_names()))
        return Model(actions, SensorSuite(sensors()).observation_spaces)

    @classmethod
    def make_sampler_fn(cls, **given):
        return Sampler(**given)

    def train_task_sampler_args(self, process_ind, total_processes, devices=None, seeds=None, deterministic_cudnn=False):
        return {"seed": seeds[process_ind] if seeds else process_ind}


def main():
    name, seed, threads, samplers, steps = sys.argv[1:]
    around = os.environ | {"DTOOL_PPO_TASK": name, "DTOOL_PPO_STEPS": steps, "DTOOL_PPO_THREADS": threads, "PYTHONPATH": sys.path[0],
                           "SDL_AUDIODRIVER": "dummy"}
    with tempfile.TemporaryDirectory() as output:
        command = [pathlib.Path(sys.executable).with_name("allenact"), "ppo_allenact", "-b", ".", "-o", output, "-s", seed, "-m", samplers]
        process = subprocess.Popen(command, cwd=sys.path[0], env=around, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   start_new_session=True)
        points = []
        for line in process.stdout:
            if found := re.search(r"TRAIN: (\d+) rollout steps.* reward ([-\d.e+]+)", line):
                points.append((int(found[1]), time.monotonic(), float(found[2]), ppo_cpu.of_session(process.pid)))
        if process.wait() != 0 or len(points) < 2:
            sys.exit(f"allenact ended with exit code {process.returncode} and {len(points)} lines of metrics")
    first, last = points[len(points) // 10], points[-1]
    reached = next((point for point in points if point[2] >= TASKS[name]["threshold"]), None)
    print(json.dumps({"rate": (last[0] - first[0]) / (last[1] - first[1]), "per_cpu_second": (last[0] - first[0]) / (last[3] - first[3]),
                      "reached": reached and (reached[0], reached[1] - points[0][1]), "last_return": last[2]}), flush=True)


if __name__ == "__main__":
    main()
