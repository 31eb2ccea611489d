// SPDX-License-Identifier: MIT
// A worker of environments that goes wrong as its first argument says, in the step that its second
// argument names (counted from 1, of all its rings): for process_environments_test.cpp. Every
// environment observes a code below 4 and a number; its episodes are cut off after 5 steps. With a
// third argument, a file's name, only the worker that makes this file goes wrong.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

const int doorbell = std::atoi(std::getenv("DTOOL_ENVIRONMENT_DOORBELL"));

bool read_whole(char* into, std::size_t size) {
  for (ssize_t got = 0; size > 0; into += got, size -= static_cast<std::size_t>(got)) {
    if ((got = read(doorbell, into, size)) <= 0) return false;
  }
  return true;
}

std::string read_line() {
  std::string line;
  for (char each = 0; each != '\n'; line += each) {
    if (!read_whole(&each, 1)) std::exit(0);
  }
  return line;
}

void say(const std::string& line) {
  if (write(doorbell, line.data(), line.size()) < 0) std::exit(0);
}

std::size_t number_in(const std::string& line, const std::string& key, int index = 0) {
  std::size_t at = line.find("\"" + key + "\":") + key.size() + 3;
  if (line[at] == '[') ++at;
  while (index-- > 0) at = line.find(',', at) + 1;
  return std::strtoull(&line[at], nullptr, 10);
}

[[noreturn]] void hang() {
  for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  std::string fault = argc > 1 ? argv[1] : "";
  const int when = argc > 2 ? std::atoi(argv[2]) : 0;
  if (argc > 3 && open(argv[3], O_CREAT | O_EXCL | O_CLOEXEC, 0600) < 0) fault = "";
  if (fault == "ends at once") return 5;
  const std::string task = read_line();
  const std::size_t count = number_in(task, "environments");
  const bool has_score = task.find(R"("scores":[])") == task.npos;
  if (fault == "hangs at the start") hang();
  if (fault == "answers nonsense") say("what?\n");
  if (fault == "has no display") say("{\"error\":\"no display\",\"hint\":\"use xvfb-run\"}\n");
  const bool is_odd = fault == "disagrees" && number_in(task, "first") > 0;
  say(std::string(R"({"protocol":1,"actions":{"low":[-1],"high":[null]},"observations":[)") +
      R"({"name":"code","kind":"codes","shape":[1],"codes":)" + (is_odd ? "5" : "4") +
      R"(},{"name":"number","kind":"numbers","shape":[1]}]})" + "\n");
  const std::string layout = read_line();
  const std::size_t size = number_in(layout, "size");
  const int shared = std::atoi(std::getenv("DTOOL_ENVIRONMENT_MEMORY"));
  char* memory =
      static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0));
  const auto numbers = [&](const char* key, int part = 0) {
    return reinterpret_cast<float*>(memory + number_in(layout, key, part));
  };
  const auto bytes = [&](const char* key) { return memory + number_in(layout, key); };
  std::vector<int> steps(count);
  std::uint32_t ring[3] = {1, 0, static_cast<std::uint32_t>(count)};
  for (int rings = 0;; ++rings) {
    for (std::size_t i = ring[1]; i < ring[2]; ++i) {
      const auto at = static_cast<std::uint32_t>(i);
      std::memcpy(memory + 24, &at, sizeof at);
      steps[i] = ring[0] == 1 ? 0 : steps[i] + 1;
      bytes("endings")[i] = steps[i] == 5 ? 2 : 0;
      numbers("rewards")[i] = 1;
      if (has_score) numbers("scores")[i] = 2;
      bytes("last_observations")[i] = 3;
      numbers("last_observations", 1)[i] = static_cast<float>(steps[i]);
      if (steps[i] == 5) steps[i] = 0;
      bytes("observations")[i] = static_cast<char>(steps[i] % 4);
      numbers("observations", 1)[i] = static_cast<float>(steps[i]);
    }
    const std::size_t last = ring[2] - 1;
    if (rings == when) {
      if (fault == "is killed") {
        std::printf("first words\nlast\twords\n\n");
        std::fflush(stdout);
        raise(SIGKILL);
      }
      if (fault == "ends") return 0;
      if (fault == "hangs") hang();
      if (fault == "closes its doorbell") {
        close(doorbell);
        hang();
      }
      if (fault == "starts a child" && fork() == 0) hang();
      if (fault == "dies beside a child" && fork() != 0) return 3;
      if (fault == "dies beside a child") hang();
      if (fault == "gives nan") numbers("rewards")[last] = NAN;
      if (fault == "gives infinity") numbers("rewards")[last] = INFINITY;
      if (fault == "observes nan") numbers("observations", 1)[last] = NAN;
      if (fault == "observes code 4") bytes("observations")[last] = 4;
      if (fault == "ends by 7") bytes("endings")[last] = 7;
      if (fault == "scores nan") {
        bytes("endings")[last] = 1;
        numbers("scores")[last] = NAN;
      }
      if (fault == "cuts off at nan") {
        bytes("endings")[last] = 2;
        numbers("last_observations", 1)[last] = NAN;
      }
      if (fault == "writes everywhere") std::memset(memory, 0xff, size);
      if (fault == "shrinks the memory") {
        if (ftruncate(shared, 0) == 0) hang();
      }
      if (fault == "fails") say("{\"error\":\"out of \\u001b[2J fuel\",\"environment\":0}\n");
      if (fault == "rings too long") {
        for (;;) say(std::string(4096, 'x'));
      }
      if (fault == "rings twice") say("\n");
      if (fault == "fails after its answer") say("\n{\"error\":\"too late\"}\n");
      if (fault == "rings nonsense") say("\x01{]\xff\n");
      if (fault == "prints") {
        for (int i = 0; i < 1'000'000; ++i) std::printf("word\n");
        std::fflush(stdout);
      }
    }
    say("\n");
    if (!read_whole(reinterpret_cast<char*>(ring), sizeof ring)) return 0;
  }
}
