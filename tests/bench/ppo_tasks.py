# SPDX-License-Identifier: MIT
"""The tasks of tests/bench/ppo, as the peers see them: environment, network, batch. As a program it prints the environment's own rate.

usage: ppo_tasks.py TASK ENVIRONMENTS SECONDS    steps/s with random actions: one environment, SyncVectorEnv, AsyncVectorEnv
"""
import json
import sys
import time

import gymnasium

TASKS = {
    # The batch and the rates are those of rl-baselines3-zoo for PPO on CartPole-v1, whose agent has a return of 500.
    "cartpole": {
        "make": "CartPole-v1", "network": "mlp", "threshold": 475.0, "steps": 100_000, "environments": 8, "rollout": 32,
        "mini_batches": 1, "passes": 20, "learning_rate": 1e-3, "gamma": 0.98, "gae_lambda": 0.8, "entropy": 0.0, "clip": 0.2,
    },
    # rl-starter-files trains MiniGrid's DoorKey with 16 environments, rollouts of 128, batches of 256 and 4 passes.
    "doorkey": {
        "make": "MiniGrid-DoorKey-6x6-v0", "network": "codes", "threshold": 0.95, "steps": 400_000, "environments": 16, "rollout": 128,
        "mini_batches": 8, "passes": 4, "learning_rate": 1e-3, "gamma": 0.99, "gae_lambda": 0.95, "entropy": 0.01, "clip": 0.2,
    },
    "doorkey_pixels": {
        "make": "MiniGrid-DoorKey-6x6-v0", "network": "half_nature", "threshold": 0.95, "steps": 400_000, "environments": 16,
        "rollout": 128, "mini_batches": 8, "passes": 4, "learning_rate": 1e-3, "gamma": 0.99, "gae_lambda": 0.95, "entropy": 0.01,
        "clip": 0.2,
    },
    "vizdoom_basic": {
        "make": "VizdoomBasic-v1", "network": "pooled_half_nature", "threshold": 80.0, "reward_scale": 0.01, "steps": 100_000,
        "environments": 8, "rollout": 128, "mini_batches": 4, "passes": 4, "learning_rate": 5e-4, "gamma": 0.99,
        "gae_lambda": 0.95, "entropy": 0.01, "clip": 0.2,
    },
}


def make_environment(name):
    """One environment of a task, with an observation that is one array."""
    make = TASKS[name]["make"]
    if name == "cartpole":
        return gymnasium.make(make)
    if name.startswith("doorkey"):
        from minigrid import wrappers
        environment = gymnasium.make(make)
        if name == "doorkey_pixels":
            environment = wrappers.RGBImgPartialObsWrapper(environment)
        return wrappers.ImgObsWrapper(environment)
    import vizdoom.gymnasium_wrapper  # registers the environment
    from gymnasium.wrappers import TransformObservation, TransformReward
    environment = gymnasium.make(make, frame_skip=4, screen_resolution="RES_160X120", screen_format="GRAY8")
    environment = TransformObservation(environment, lambda parts: parts["screen"], environment.observation_space["screen"])
    return TransformReward(environment, lambda reward: reward * TASKS[name]["reward_scale"])


def bare_rate(name, seconds):
    environment = make_environment(name)
    environment.action_space.seed(1)
    environment.reset(seed=1)
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for _ in range(100):
            _, _, terminated, truncated, _ = environment.step(environment.action_space.sample())
            if terminated or truncated:
                environment.reset()
        steps += 100
    return steps / (time.perf_counter() - begin)


def vector_rate(kind, name, count, seconds):
    environments = kind([lambda: make_environment(name)] * count)
    environments.action_space.seed(1)
    environments.reset(seed=1)
    actions = [environments.action_space.sample() for _ in range(100)]
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for each in actions:
            environments.step(each)
        steps += 100 * count
    rate = steps / (time.perf_counter() - begin)
    environments.close()
    return rate


def main():
    name, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    print(json.dumps({
        "one": bare_rate(name, seconds),
        "SyncVectorEnv": vector_rate(gymnasium.vector.SyncVectorEnv, name, count, seconds),
        "AsyncVectorEnv": vector_rate(gymnasium.vector.AsyncVectorEnv, name, count, seconds),
    }), flush=True)


if __name__ == "__main__":
    main()
