# SPDX-License-Identifier: MIT
"""A peer of tests/bench/ppo: proximal policy optimisation in one file, written anew by the description of CleanRL's ppo.py and
ppo_atari_multigpu.py (docs.cleanrl.dev, "The 37 implementation details of PPO").

usage: ppo_cleanrl.py TASK SEED THREADS sync|async STEPS    RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT for several processes

As there: orthogonal weights, Adam with an epsilon of 1e-5, a learning rate that falls to 0, one tensor for each quantity of a
rollout, advantages normalised for each mini-batch, a clipped value loss, gradients clipped at 0.5. A time limit counts as an end.
Rank 0 prints a JSON object when it is done.
"""
import os
import sys

import gymnasium
import numpy
import torch
import torch.distributed as dist
from torch.distributions.categorical import Categorical

import ppo_peer
from ppo_tasks import TASKS, make_environment


class Agent(torch.nn.Module):
    def __init__(self, task, environments):
        super().__init__()
        self.pixels = TASKS[task]["network"].endswith("half_nature")
        kind, shape = TASKS[task]["network"], environments.single_observation_space.shape
        self.trunk, width = ppo_peer.trunk(kind, shape)
        self.trunk_of_critic = ppo_peer.trunk(kind, shape)[0] if kind == "mlp" else None
        self.actor = ppo_peer.initialised(torch.nn.Linear(width, environments.single_action_space.n), 0.01)
        self.critic = ppo_peer.initialised(torch.nn.Linear(width, 1), 1.0)

    def look(self, observations):
        if self.pixels:
            observations = observations.permute(0, 3, 1, 2).float().div(255)
        observations = observations.float()
        features = self.trunk(observations)
        of_critic = self.trunk_of_critic(observations) if self.trunk_of_critic else features
        return Categorical(logits=self.actor(features)), self.critic(of_critic).flatten()


def average_gradients(agent, world):
    flat = torch.cat([each.grad.flatten() for each in agent.parameters()])
    dist.all_reduce(flat)
    offset = 0
    for each in agent.parameters():
        each.grad.copy_((flat[offset:offset + each.numel()] / world).view_as(each.grad))
        offset += each.numel()


class Rollout:
    def __init__(self, steps, count, observations):
        self.observations = torch.zeros((steps, count, *observations.shape[1:]), dtype=observations.dtype)
        self.actions, self.rewards, self.ended, self.values, self.log_probabilities = (torch.zeros((steps, count)) for _ in range(5))


def collect(agent, environments, rollout, observations, ended, progress):
    with torch.no_grad():
        for step in range(len(rollout.rewards)):
            rollout.observations[step], rollout.ended[step] = observations, ended
            policy, rollout.values[step] = agent.look(observations)
            action = policy.sample()
            rollout.actions[step], rollout.log_probabilities[step] = action, policy.log_prob(action)
            seen, reward, terminated, truncated, _ = environments.step(action.numpy())
            over = numpy.logical_or(terminated, truncated)
            progress.step(reward, over)
            observations, ended = torch.from_numpy(seen), torch.from_numpy(over).float()
            rollout.rewards[step] = torch.from_numpy(reward)
    return observations, ended


def advantages_of(agent, rollout, observations, ended, task):
    with torch.no_grad():
        next_value = agent.look(observations)[1]
        result, last = torch.zeros_like(rollout.rewards), 0
        for step in reversed(range(len(result))):
            keep = 1 - (ended if step + 1 == len(result) else rollout.ended[step + 1])
            value = next_value if step + 1 == len(result) else rollout.values[step + 1]
            delta = rollout.rewards[step] + task["gamma"] * value * keep - rollout.values[step]
            result[step] = last = delta + task["gamma"] * task["gae_lambda"] * keep * last
    return result


def loss_of(agent, batch, task):
    observations, actions, old_log, old_values, advantages, returns = batch
    policy, values = agent.look(observations)
    ratio = (policy.log_prob(actions) - old_log).exp()
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    policy_loss = torch.max(-advantages * ratio, -advantages * ratio.clamp(1 - task["clip"], 1 + task["clip"])).mean()
    clipped = old_values + (values - old_values).clamp(-task["clip"], task["clip"])
    value_loss = 0.5 * torch.max((values - returns) ** 2, (clipped - returns) ** 2).mean()
    return policy_loss + 0.5 * value_loss - task["entropy"] * policy.entropy().mean()


def main():
    name, seed, threads, kind, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
    task, world, rank = TASKS[name], int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    if world > 1:
        dist.init_process_group("gloo")
    count = task["environments"] // world  # the batch of all processes together is a task's
    vector = {"sync": gymnasium.vector.SyncVectorEnv, "async": gymnasium.vector.AsyncVectorEnv}[kind]
    environments = vector([lambda: make_environment(name)] * count, autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)
    agent = Agent(name, environments)
    torch.manual_seed(seed * 1000 + rank)
    optimizer = torch.optim.Adam(agent.parameters(), lr=task["learning_rate"], eps=1e-5)
    observations = torch.from_numpy(environments.reset(seed=seed * 1000 + rank * count)[0])
    ended = torch.zeros(count)
    rollout = Rollout(task["rollout"], count, observations)
    progress = ppo_peer.Progress(count, world, task)
    size = task["rollout"] * count
    updates = steps // (size * world)
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = (1 - update / updates) * task["learning_rate"]
        observations, ended = collect(agent, environments, rollout, observations, ended, progress)
        advantages = advantages_of(agent, rollout, observations, ended, task)
        batch = [each.flatten(0, 1) for each in (rollout.observations, rollout.actions, rollout.log_probabilities, rollout.values,
                                                 advantages, advantages + rollout.values)]
        for _ in range(task["passes"]):
            for part in torch.randperm(size).chunk(task["mini_batches"]):
                loss = loss_of(agent, [each[part] for each in batch], task)
                optimizer.zero_grad()
                loss.backward()
                if world > 1:
                    average_gradients(agent, world)
                torch.nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        progress.rollout_done()
    environments.close()
    if rank == 0:
        progress.tell()


main()
