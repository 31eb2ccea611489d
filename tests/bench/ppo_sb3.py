# SPDX-License-Identifier: MIT
"""A peer of tests/bench/ppo: PPO of stable-baselines3 with the same environment, network and batch.

usage: ppo_sb3.py TASK SEED THREADS sync|async STEPS    prints a JSON object when it is done
"""
import sys

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

import ppo_peer
from ppo_tasks import TASKS, make_environment


class Trunk(BaseFeaturesExtractor):
    def __init__(self, space, kind):
        channels_first = kind.endswith("half_nature")  # stable-baselines3 turns pictures
        shape = (*space.shape[1:], space.shape[0]) if channels_first else space.shape
        network, width = ppo_peer.trunk(kind, shape)
        super().__init__(space, width)
        self.network = network

    def forward(self, observations):
        return self.network(observations)


class Watch(BaseCallback):
    def __init__(self, progress):
        super().__init__()
        self.progress = progress

    def _on_step(self):
        self.progress.step(self.locals["rewards"], self.locals["dones"].astype(bool))
        return True

    def _on_rollout_start(self):  # the update before it is done
        if self.progress.steps:
            self.progress.rollout_done()

    def _on_training_end(self):
        self.progress.rollout_done()


def main():
    name, seed, threads, kind, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
    task = TASKS[name]
    torch.set_num_threads(threads)
    environments = {"sync": DummyVecEnv, "async": SubprocVecEnv}[kind]([lambda: make_environment(name)] * task["environments"])
    falling, kind = name == "cartpole", task["network"]
    of_picture = kind.endswith("half_nature")
    shared = {"net_arch": [], "features_extractor_class": Trunk, "features_extractor_kwargs": {"kind": kind},
              "normalize_images": of_picture}
    model = PPO(
        "CnnPolicy" if of_picture else "MlpPolicy", environments, n_steps=task["rollout"],
        batch_size=task["rollout"] * task["environments"] // task["mini_batches"], n_epochs=task["passes"], gamma=task["gamma"],
        gae_lambda=task["gae_lambda"], ent_coef=task["entropy"], seed=seed, device="cpu",
        learning_rate=lambda left: left * task["learning_rate"], clip_range=(lambda left: left * task["clip"]) if falling else task["clip"],
        policy_kwargs=shared if kind != "mlp" else None)  # the default is two networks of 64 and 64 with tanh
    progress = ppo_peer.Progress(task["environments"], 1, task)
    model.learn(steps, callback=Watch(progress))
    environments.close()
    progress.tell()


if __name__ == "__main__":
    main()
