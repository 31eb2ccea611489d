# SPDX-License-Identifier: MIT
"""What PPO's parts must give, in double precision, from the papers' formulas and PyTorch's own modules.

reinforcement_reference.py PART FOLDER reads FOLDER/NAME.npy and writes FOLDER/NAME.out (float64, row by row);
tests/trainer/reference.h compares. Parts: advantages, scaled_rewards, gru, loss, actor_critic, exported, policy:ENCODER:MEMORY:ACTIONS[:PRECISION].
"""
import pathlib
import sys

import numpy
import torch
from torch import nn

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


def scaled_rewards():
    """Of rollouts that end at `ends`: each divided by the deviation of all discounted returns up to its end."""
    rewards, keep, gamma = read("rewards"), read("keep"), float(read("gamma"))
    returns, scaled, begin = numpy.zeros_like(rewards), [], 0
    for t in range(len(rewards)):
        for i in range(rewards.shape[1]):  # the sum over the episode
            since = t
            while since > 0 and keep[since, i] != 0:
                since -= 1
            returns[t, i] = sum(gamma ** (t - s) * rewards[s, i] for s in range(since, t + 1))
    for end in read("ends").astype(int):
        scaled.append(rewards[begin:end] / numpy.sqrt(returns[:end].var() + 1e-8))
        begin = end
    write("scaled", numpy.concatenate(scaled).clip(-10, 10))


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


def work_out_loss(policy, actions, values, is_clipped):
    """arXiv 1707.06347, equations 7 and 9, and AllenAct's clipped value loss; means over the steps."""
    old_log_probs, old_values, advantage, returns = (
        torch.from_numpy(read(name)) for name in ("log_probs", "old_values", "advantages", "returns"))
    ratio = torch.exp(policy.log_prob(actions) - old_log_probs)
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


def choice_by(logits):
    return torch.distributions.Categorical(logits=logits)


def taken():
    return torch.from_numpy(read("actions")).long()


def loss():
    for name, is_clipped in (("clipped", True), ("unclipped", False)):
        logits, values = tensor("logits"), tensor("values")
        result, sums = work_out_loss(choice_by(logits), taken(), values, is_clipped)
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
    result, _ = work_out_loss(choice_by(logits), taken(), values, is_clipped=True)
    result.backward()
    write("new_logits", logits)
    write("new_values", values)
    write("new_memory", memories[-1])
    write_gradients(parameters)


def exported():
    """The policy of numbers from a run's trained_model.pt, which has all that it takes."""
    saved = {name: each.double() for name, each in torch.load(folder / "trained_model.pt", weights_only=True).items()}
    off = torch.from_numpy(read("numbers")) - saved["numbers.mean"]
    seen = (off / torch.sqrt(saved["numbers.variance"] + 1e-8)).clamp(-10, 10)
    for layer in "numbers.fc1", "numbers.fc2":
        seen = torch.tanh(nn.functional.linear(seen, saved[layer + ".weight"], saved[layer + ".bias"]))
    both = nn.functional.linear(seen, saved["head.weight"], saved["head.bias"])
    write("logits", both[:, :-1])
    write("values", both[:, -1])


def nature(channels):
    """As CleanRL's and stable-baselines3's for Atari, with half of their widths."""
    return nn.Sequential(nn.Conv2d(channels, 16, 8, stride=4), nn.ReLU(), nn.Conv2d(16, 32, 4, stride=2), nn.ReLU(),
                         nn.Conv2d(32, 32, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(256), nn.ReLU())


def small(channels):
    """As that of MiniGrid's starter files."""
    return nn.Sequential(nn.Conv2d(channels, 16, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 2), nn.ReLU(),
                         nn.Conv2d(32, 64, 2), nn.ReLU(), nn.Flatten())


class ImpalaBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, inputs):
        return inputs + self.second(torch.relu(self.first(torch.relu(inputs))))


def impala(channels):
    layers = []
    for width in (16, 32, 32):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.MaxPool2d(3, stride=2, padding=1), ImpalaBlock(width),
                   ImpalaBlock(width)]
        channels = width
    return nn.Sequential(*layers, nn.ReLU(), nn.Flatten(), nn.LazyLinear(256), nn.ReLU())


class ResidualBlock(nn.Module):
    """torchvision's BasicBlock with group norm."""
    def __init__(self, before, width, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(before, width, 3, stride=stride, padding=1), nn.GroupNorm(16, width), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(16, width))
        self.downsample = nn.Sequential()
        if stride > 1:
            self.downsample = nn.Sequential(nn.Conv2d(before, width, 1, stride=stride), nn.GroupNorm(16, width))

    def forward(self, inputs):
        return torch.relu(self.body(inputs) + self.downsample(inputs))


def resnet18(channels):
    """As habitat-baselines' for DD-PPO, 32 wide."""
    layers = [nn.Conv2d(channels, 32, 7, stride=2, padding=3), nn.GroupNorm(16, 32), nn.ReLU(),
              nn.MaxPool2d(3, stride=2, padding=1)]
    before = 32
    for width, stride in ((32, 1), (64, 2), (128, 2), (256, 2)):
        layers += [ResidualBlock(before, width, stride), ResidualBlock(width, width, 1)]
        before = width
    return nn.Sequential(*layers, nn.Conv2d(256, 128, 3, padding=1), nn.GroupNorm(1, 128), nn.ReLU(), nn.Flatten(),
                         nn.LazyLinear(512), nn.ReLU())


ENCODERS = {"nature_half": nature, "impala": impala, "resnet18_half": resnet18, "small": small}


class Reference(nn.Module):
    """Numbers through two layers of 64 and a picture through an encoder, then a memory and the heads. Single precision is that of a
    network whose encoders are under autocast."""
    def __init__(self, encoder, memory, hidden, outputs, numbers, pictures):
        super().__init__()
        self.numbers = nn.Sequential(nn.Linear(numbers.shape[-1], 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.encoder = ENCODERS[encoder](pictures.shape[2])
        self.memory = {"gru": nn.GRU, "lstm": nn.LSTM, "none": None}[memory]
        width = self.see(numbers, pictures).shape[-1]
        if self.memory:
            self.memory = self.memory(width, hidden)
            width = hidden
        self.head = nn.Linear(width, outputs + 1)

    def see(self, numbers, pictures):
        with torch.autocast("cpu", torch.bfloat16, enabled=numbers.dtype == torch.float32):
            seen = self.encoder(pictures.flatten(0, 1)).unflatten(0, pictures.shape[:2])
            return torch.cat([self.numbers(numbers), seen], dim=-1).to(numbers.dtype)

    def forward(self, numbers, pictures, memory, keep):
        seen = self.see(numbers, pictures)
        if self.memory:
            outputs = []
            for t in range(len(seen)):
                memory = memory * keep[t, :, None]
                if isinstance(self.memory, nn.LSTM):
                    state = tuple(each.unsqueeze(0).contiguous() for each in memory.chunk(2, dim=-1))
                    output, (h, c) = self.memory(seen[t:t + 1], state)
                    memory = torch.cat([h[0], c[0]], dim=-1)
                else:
                    output, h = self.memory(seen[t:t + 1], memory.unsqueeze(0))
                    memory = h[0]
                outputs.append(output[0])
            seen = torch.stack(outputs)
        return self.head(seen), memory


def policy(encoder, memory, actions, precision="float64"):
    """Forward, loss, gradients and one step of Adam of a network of PyTorch's modules, whose parameters are ours."""
    torch.set_default_dtype(torch.float64 if precision == "float64" else torch.float32)
    numbers, pictures, state, keep, chosen = (
        torch.from_numpy(read(name)).to(torch.get_default_dtype()) for name in ("numbers", "pictures", "memory", "keep", "actions"))
    outputs, hidden, learning_rate, epsilon = read("sizes")
    network = Reference(encoder, memory, int(hidden), int(outputs), numbers, pictures / 255)
    names = (folder / "names").read_text().split()
    ours = {name: read(name) for name in names}
    transposed = [name for name in names if name.endswith(("input_weight", "recurrent_weight"))]
    theirs = [each for _, each in network.named_parameters()]
    deviations = [nn.Parameter(torch.tensor(ours["head.log_deviations"]))] if actions == "box" else []
    parameters = dict(zip(names, theirs + deviations, strict=True))
    with torch.no_grad():
        for name, each in parameters.items():
            each.copy_(torch.from_numpy(ours[name].T if name in transposed else ours[name]))
    both, after = network(numbers, pictures / 255, state, keep)
    logits, values = both[..., :-1], both[..., -1]
    if actions == "box":
        normal = torch.distributions.Normal(logits, deviations[0].exp())
        result, _ = work_out_loss(torch.distributions.Independent(normal, 1), chosen, values, is_clipped=True)
    else:
        result, _ = work_out_loss(choice_by(logits), chosen.long()[..., 0], values, is_clipped=True)
    optimizer = torch.optim.Adam(parameters.values(), lr=learning_rate, eps=epsilon)
    result.backward()
    optimizer.step()
    write("new_logits", logits)
    write("new_values", values)
    write("new_memory", after)
    write("loss", result)
    for name, each in parameters.items():
        write(f"{name}.gradient", each.grad.T if name in transposed else each.grad)
        write(f"{name}.updated", each.T if name in transposed else each)


folder = pathlib.Path(sys.argv[2])
part, *arguments = sys.argv[1].split(":")
{"advantages": advantages, "scaled_rewards": scaled_rewards, "gru": gru, "loss": loss, "actor_critic": actor_critic, "exported": exported,
 "policy": policy}[part](*arguments)
