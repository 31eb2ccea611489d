// SPDX-License-Identifier: MIT
// A worker of environments for workload = "ppo" in C++ without a library: what docs/simulators.md
// says of the protocol, in short. Its environments are corridors of five cells. An agent begins in
// one of the first three, goes left (action 0) or right (1), and sees its cell and the share of its
// time that has passed. The right end is worth 1, and every step before costs 0.1; after ten steps
// the episode is cut off.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

const int doorbell = std::atoi(std::getenv("DTOOL_ENVIRONMENT_DOORBELL"));

/// The end of its input means that the learner has gone: the worker ends.
void read_whole(char* into, std::size_t size) {
  for (ssize_t got = 0; size > 0; into += got, size -= static_cast<std::size_t>(got)) {
    if ((got = read(doorbell, into, size)) <= 0) std::exit(0);
  }
}

std::string read_line() {
  std::string line;
  for (char each = 0; each != '\n'; line += each) read_whole(&each, 1);
  return line;
}

void say(const std::string& line) {
  if (write(doorbell, line.data(), line.size()) < 0) std::exit(0);
}

/// The number behind `key`, of a list its entry `index`.
std::size_t number_in(const std::string& line, const std::string& key, int index = 0) {
  std::size_t at = line.find("\"" + key + "\":") + key.size() + 3;
  if (line[at] == '[') ++at;
  while (index-- > 0) at = line.find(',', at) + 1;
  return std::strtoull(&line[at], nullptr, 10);
}

struct Corridor {
  int cell = 0;
  int steps = 0;
};

}  // namespace

int main() {
  std::vector<Corridor> corridors(number_in(read_line(), "environments"));
  say(R"({"protocol":1,"package":"corridors 1.0","actions":{"choices":[2]},"observations":[)"
      R"({"name":"cell","kind":"codes","codes":5,"shape":[1]},)"
      R"({"name":"time","kind":"numbers","shape":[1]}]})"
      "\n");
  const std::string layout = read_line();
  void* mapped = mmap(nullptr, number_in(layout, "size"), PROT_READ | PROT_WRITE, MAP_SHARED,
                      std::atoi(std::getenv("DTOOL_ENVIRONMENT_MEMORY")), 0);
  char* memory = static_cast<char*>(mapped);
  const auto numbers = [&](const char* key, int part = 0) {
    return reinterpret_cast<float*>(memory + number_in(layout, key, part));
  };
  const auto bytes = [&](const char* key) { return memory + number_in(layout, key); };
  const auto show = [&](std::size_t i, const char* array) {
    bytes(array)[i] = static_cast<char>(corridors[i].cell);
    numbers(array, 1)[i] = static_cast<float>(corridors[i].steps) / 10;
  };
  const auto reset = [&](std::size_t i) {
    corridors[i] = {static_cast<int>(reinterpret_cast<std::uint32_t*>(bytes("seeds"))[i] % 3), 0};
  };
  const auto step = [&](std::size_t i) {
    Corridor& corridor = corridors[i];
    corridor.cell += numbers("actions")[i] == 1 ? 1 : corridor.cell > 0 ? -1 : 0;
    const bool is_there = corridor.cell == 4;
    const bool is_late = ++corridor.steps == 10 && !is_there;
    numbers("rewards")[i] = is_there ? 1.0F : -0.1F;
    bytes("endings")[i] = is_there ? 1 : is_late ? 2 : 0;
    if (is_late) show(i, "last_observations");
    if (is_there || is_late) reset(i);
  };
  for (std::uint32_t ring[3] = {1, 0, static_cast<std::uint32_t>(corridors.size())};;) {
    for (std::size_t i = ring[1]; i < ring[2]; ++i) {
      if (ring[0] == 1) reset(i);
      if (ring[0] == 2) step(i);
      show(i, "observations");
    }
    say("\n");
    read_whole(reinterpret_cast<char*>(ring), sizeof ring);
  }
}
