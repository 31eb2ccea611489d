# SPDX-License-Identifier: MIT
"""What PPO's parts must give, in double precision, from the papers' formulas and PyTorch's own modules.

reinforcement_reference.py PART FOLDER reads FOLDER/NAME.npy and writes FOLDER/NAME.out (float64, row by row);
tests/trainer/reference.h compares. Parts: advantages, gru, loss, actor_critic.
"""
import pathlib
import sys

import numpy
import torch

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)

# Of an observation: 62 cells in which one of 22 things is seen, a goal of 12, a previous action of 8, a head of 3.
VALUES_OF_BYTE = [22] * 62 + [12, 8, 3]
CLIP, VALUE_COEFFICIENT, ENTROPY_COEFFICIENT = 0.1, 0.5, 0.01


def read(name):
    return numpy.load(folder / f"{name}.npy")


def tensor(name):
    return torch.from_numpy(read(name)).requires_grad_(True)


def write(name, values):
    if isinstance(values, torch.Tensor):
        values = values.detach().numpy()
    numpy.ascontiguousarray(values, dtype=numpy.float64).tofile(folder / f"{name}.out")


def write_gradients(tensors):
    for name, each in tensors.items():
        write(f"{name}.gradient", each.grad)


def advantages():
    """arXiv 1506.02438, equation 16: the sum of discounted temporal differences, up to the end of the episode."""
    gamma, gae_lambda = read("discount")
    rewards, values, keep = read("rewards"), read("values"), read("keep")
    steps, samplers = read("advantages").shape
    result = numpy.zeros((steps, samplers))
    for i in range(samplers):
        for t in range(steps):
            for later in range(t, steps):
                goes_on = keep[later + 1, i] != 0
                difference = rewards[later, i] - values[later, i]
                if goes_on:
                    difference += gamma * values[later + 1, i]
                result[t, i] += (gamma * gae_lambda) ** (later - t) * difference
                if not goes_on:
                    break
    write("advantages", result)
    write("returns", result + values[:steps])


def run_cell(weights, inputs, memory, keep):
    """PyTorch's cell; its weight matrices lie the other way round."""
    cell = torch.nn.GRUCell(inputs.shape[-1], memory.shape[-1])
    weights = {"weight_ih": weights["input_weight"].T, "weight_hh": weights["recurrent_weight"].T,
               "bias_ih": weights["input_bias"], "bias_hh": weights["recurrent_bias"]}
    memories = []
    for t in range(inputs.shape[0]):
        memory = torch.where(keep[t, :, None] != 0, memory, torch.zeros_like(memory))
        memory = torch.nn.utils.stateless.functional_call(cell, weights, (inputs[t], memory))
        memories.append(memory)
    return torch.stack(memories)


def gru():
    weights = {name: tensor(name) for name in ("input_weight", "recurrent_weight", "input_bias", "recurrent_bias")}
    inputs, memory = tensor("inputs"), tensor("memory")
    result = run_cell(weights, inputs, memory, torch.from_numpy(read("keep")))
    (result * torch.from_numpy(read("direction"))).sum().backward()
    write("result", result)
    write_gradients({**weights, "inputs": inputs, "memory": memory})


def work_out_loss(logits, values, is_clipped):
    """arXiv 1707.06347, equations 7 and 9, and AllenAct's clipped value loss; means over the steps."""
    old_log_probs, old_values, advantage, returns = (
        torch.from_numpy(read(name)) for name in ("log_probs", "old_values", "advantages", "returns"))
    policy = torch.distributions.Categorical(logits=logits)
    ratio = torch.exp(policy.log_prob(torch.from_numpy(read("actions")).long()) - old_log_probs)
    surrogate = torch.where(advantage > 0, torch.minimum(ratio, torch.tensor(1 + CLIP)) * advantage,
                            torch.maximum(ratio, torch.tensor(1 - CLIP)) * advantage)
    value_errors = (values - returns) ** 2
    if is_clipped:
        near = torch.maximum(torch.minimum(values, old_values + CLIP), old_values - CLIP)
        value_errors = torch.maximum(value_errors, (near - returns) ** 2)
    entropy = policy.entropy()
    loss = -surrogate.mean() + VALUE_COEFFICIENT * 0.5 * value_errors.mean() - ENTROPY_COEFFICIENT * entropy.mean()
    outside = (ratio < 1 - CLIP) | (ratio > 1 + CLIP)
    kl = (ratio - 1) - torch.log(ratio)
    sums = torch.stack([-surrogate.sum(), 0.5 * value_errors.sum(), entropy.sum(), kl.sum(), outside.sum()])
    return loss, sums


def loss():
    for name, is_clipped in (("clipped", True), ("unclipped", False)):
        logits, values = tensor("logits"), tensor("values")
        result, sums = work_out_loss(logits, values, is_clipped)
        result.backward()
        write(f"{name}.loss", result)
        write(f"{name}.sums", sums)
        write_gradients({f"{name}.logits": logits, f"{name}.values": values})


def actor_critic():
    """The encoder as a linear layer over one-hot inputs."""
    parameters = {name: tensor(name) for name in (
        "view.weight", "gru.input_weight", "gru.recurrent_weight", "gru.input_bias", "gru.recurrent_bias",
        "head.weight", "head.bias")}
    observations = torch.from_numpy(read("observations")).long()
    one_hot = torch.cat([torch.nn.functional.one_hot(observations[..., i], values).double()
                         for i, values in enumerate(VALUES_OF_BYTE)], dim=-1)
    seen = torch.relu(one_hot @ parameters["view.weight"])
    cell = {name.removeprefix("gru."): each for name, each in parameters.items() if name.startswith("gru.")}
    memories = run_cell(cell, seen, torch.from_numpy(read("memory")), torch.from_numpy(read("keep")))
    both = memories @ parameters["head.weight"].T + parameters["head.bias"]
    logits, values = both[..., :6], both[..., 6]
    result, _ = work_out_loss(logits, values, is_clipped=True)
    result.backward()
    write("new_logits", logits)
    write("new_values", values)
    write("new_memory", memories[-1])
    write_gradients(parameters)


folder = pathlib.Path(sys.argv[2])
{"advantages": advantages, "gru": gru, "loss": loss, "actor_critic": actor_critic}[sys.argv[1]]()
