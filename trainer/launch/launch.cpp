// SPDX-License-Identifier: MIT
// Reads the launchers' variables. Slurm:
// https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES, Open MPI:
// https://www.open-mpi.org/faq/?category=running#mpi-environmental-variables.
#include "trainer/launch/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <vector>

#include "killfiles/gpu_list.h"
#include "ssh/wire/words.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

/// Reads the whole numbers of one launcher.
struct Variables {
  const Environment& environment;

  int required(const std::string& name, int least) const {
    const auto text = environment(name);
    if (!text) throw UsageError(fmt::format("{} is not set beside the other variables", name));
    const auto value = host::parse_number<int>(*text);
    if (value && *value >= least) return *value;
    throw UsageError(fmt::format("{} is '{}', not a number from {}", name, *text, least));
  }
  int optional(const std::string& name, int least, int standard) const {
    return environment(name) ? required(name, least) : standard;
  }
};

/// MASTER_ADDR and MASTER_PORT, else the flag.
std::optional<Endpoint> listener_of(const Environment& environment, const CommandLine& options) {
  const auto address = environment("MASTER_ADDR");
  const Variables read{environment};
  if (address) {
    const int port = read.required("MASTER_PORT", 0);
    if (port > 65535) throw UsageError(fmt::format("MASTER_PORT is {}, above 65535", port));
    return Endpoint{*address, static_cast<std::uint16_t>(port)};
  }
  return options.listener;
}

Place place_of_torchrun(const Variables& read) {
  Place place;
  place.rank = read.required("RANK", 0);
  place.world_size = read.required("WORLD_SIZE", 1);
  place.local_rank = read.optional("LOCAL_RANK", 0, 0);
  place.local_world_size = read.optional("LOCAL_WORLD_SIZE", 1, 1);
  place.machine = read.optional("GROUP_RANK", 0, 0);
  return place;
}

/// The tasks of the node with that number in a list of Slurm's such as `2(x3),1`; absent if the
/// list has another form or fewer nodes.
std::optional<int> tasks_of_node(std::string_view list, int node) {
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(item.size() + 1, list.size()));
    const auto times = item.find("(x");
    const auto tasks = host::parse_number<int>(item.substr(0, times));
    const auto nodes =
        times == item.npos || !item.ends_with(')')
            ? 1
            : host::parse_number<int>(item.substr(times + 2, item.size() - times - 3));
    if (!tasks || *tasks < 1 || !nodes) return std::nullopt;
    if ((node -= *nodes) < 0) return tasks;
  }
  return std::nullopt;
}

Place place_of_slurm(const Variables& read) {
  Place place;
  place.rank = read.required("SLURM_PROCID", 0);
  place.world_size = read.environment("SLURM_STEP_NUM_TASKS")
                         ? read.required("SLURM_STEP_NUM_TASKS", 1)
                         : read.required("SLURM_NTASKS", 1);
  place.local_rank = read.optional("SLURM_LOCALID", 0, 0);
  place.machine = read.optional("SLURM_NODEID", 0, 0);
  // SLURM_NTASKS_PER_NODE is there only if somebody has asked for a number of tasks per node.
  const auto tasks = read.environment("SLURM_STEP_TASKS_PER_NODE").value_or("");
  place.local_world_size =
      tasks_of_node(tasks, place.machine)
          .value_or(read.optional("SLURM_NTASKS_PER_NODE", 1, place.local_rank + 1));
  return place;
}

Place place_of_open_mpi(const Variables& read) {
  Place place;
  place.rank = read.required("OMPI_COMM_WORLD_RANK", 0);
  place.world_size = read.required("OMPI_COMM_WORLD_SIZE", 1);
  place.local_rank = read.optional("OMPI_COMM_WORLD_LOCAL_RANK", 0, 0);
  place.local_world_size = read.optional("OMPI_COMM_WORLD_LOCAL_SIZE", 1, place.local_rank + 1);
  return place;
}

/// The body of an sbatch script has srun's variables too, but is no task: it has no step.
bool is_task_of_srun(const Environment& environment) {
  return environment("SLURM_PROCID") &&
         (environment("SLURM_STEP_ID") || !environment("SLURM_JOB_ID"));
}

/// Every task of a job comes to the same answer: the first node, and a port made from the job's
/// number.
std::optional<Endpoint> listener_of_slurm(const Environment& environment) {
  auto nodes = environment("SLURM_STEP_NODELIST");
  if (!nodes) nodes = environment("SLURM_JOB_NODELIST");
  const auto job = environment("SLURM_JOB_ID");
  if (!nodes || nodes->empty() || !job) return std::nullopt;
  const auto number = std::strtoul(job->c_str(), nullptr, 10);
  return Endpoint{first_of_node_list(*nodes), static_cast<std::uint16_t>(15000 + number % 10000)};
}

namespace fs = std::filesystem;

/// /dev/nvidia0, /dev/nvidia3, ...: a container may have any of them.
int count_devices(const fs::path& root) {
  int devices = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root / "dev", none)) {
    const std::string name = entry.path().filename();
    const bool is_gpu = name.starts_with("nvidia") && name.size() > 6 &&
                        name.find_first_not_of("0123456789", 6) == name.npos;
    if (is_gpu) ++devices;
  }
  return devices;
}

/// Empty if the driver does not tell.
std::vector<std::string> read_uuids(const fs::path& root) {
  std::vector<std::string> uuids;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root / "proc/driver/nvidia/gpus", none)) {
    std::ifstream lines(entry.path() / "information");
    for (std::string line; std::getline(lines, line);) {
      const auto at = line.find("GPU-");
      if (line.starts_with("GPU UUID") && at != line.npos) uuids.push_back(line.substr(at));
    }
  }
  return uuids;
}

}  // namespace

std::optional<Place> place_from(const Environment& environment, const CommandLine& options) {
  const Variables read{environment};
  const bool flags_place_it = options.machine_id || options.distributed_nodes;
  std::optional<Place> place;
  std::optional<Endpoint> listener = listener_of(environment, options);
  if (environment("RANK")) {
    place = place_of_torchrun(read);
  } else if (!flags_place_it && environment("OMPI_COMM_WORLD_RANK")) {
    place = place_of_open_mpi(read);
  } else if (!flags_place_it && is_task_of_srun(environment)) {
    place = place_of_slurm(read);
    if (!listener) listener = listener_of_slurm(environment);
  }
  if (!place) return std::nullopt;
  if (place->rank >= place->world_size) {
    throw UsageError(
        fmt::format("rank {} does not exist among {} ranks", place->rank, place->world_size));
  }
  if ((!listener || listener->port == 0) && place->world_size > 1) {
    throw UsageError(
        "no address for rank 0 to listen on",
        "set MASTER_ADDR and MASTER_PORT (mpirun: -x MASTER_ADDR=... -x MASTER_PORT=...) "
        "or give --distributed_ip_and_port");
  }
  place->listener = listener.value_or(Endpoint{"127.0.0.1", 0});
  return place;
}

int useful_threads(int cores, int local_world_size, std::int64_t multiply_adds_per_step) {
  // Below this, waking a second thread costs more than it saves: a 784-50-10 network (2.5 million)
  // is faster on one thread, two hidden layers of 2048 (370 million) on two.
  constexpr std::int64_t kWorthAThread = 10'000'000;
  const std::int64_t share = cores / local_world_size;
  return static_cast<int>(
      std::max<std::int64_t>(1, std::min(share, multiply_adds_per_step / kWorthAThread)));
}

std::vector<std::string> worker_variables(const Place& place, const Environment& environment,
                                          int threads) {
  std::vector<std::string> variables = {
      fmt::format("RANK={}", place.rank),
      fmt::format("WORLD_SIZE={}", place.world_size),
      fmt::format("LOCAL_RANK={}", place.local_rank),
      fmt::format("LOCAL_WORLD_SIZE={}", place.local_world_size),
      fmt::format("GROUP_RANK={}", place.machine),
      fmt::format("MASTER_ADDR={}", place.listener.host),
      fmt::format("MASTER_PORT={}", place.listener.port),
  };
  const std::pair<const char*, std::string> standards[] = {
      {"OMP_NUM_THREADS", std::to_string(threads)},
      {"OMP_WAIT_POLICY", "PASSIVE"},
      {"OPENBLAS_THREAD_TIMEOUT", "4"},  // 2^4 processor cycles, its least
      // Each step allocates what the step before gave back. Kept, and in large pages where the
      // kernel gives them, it costs no page faults (docs/benchmarks.md).
      {"GLIBC_TUNABLES",
       "glibc.malloc.hugetlb=1:glibc.malloc.trim_threshold=1073741824:"
       "glibc.malloc.mmap_threshold=33554432"},
  };
  for (const auto& [name, value] : standards) {
    if (!environment(name)) variables.push_back(fmt::format("{}={}", name, value));
  }
  return variables;
}

std::string first_of_node_list(const std::string& list) {
  const auto stop = list.find_first_of("[,");
  std::string name = list.substr(0, stop);
  if (stop == std::string::npos || list[stop] == ',') return name;
  const auto range_end = list.find_first_of("-,]", stop);
  name += list.substr(stop + 1, range_end - stop - 1);
  const auto bracket = list.find(']', stop);
  if (bracket == std::string::npos) return name;
  const auto comma = list.find(',', bracket);
  return name + list.substr(bracket + 1, comma == std::string::npos ? comma : comma - bracket - 1);
}

std::string name_missing_ranks(const std::vector<int>& ranks, int local_world_size) {
  constexpr std::size_t kNamed = 8;
  std::map<int, std::vector<int>> machines;
  for (const int rank : ranks) machines[rank / local_world_size].push_back(rank);
  std::vector<std::string> parts;
  for (const auto& [machine, its_ranks] : machines) {
    if (parts.size() == kNamed) {
      parts.push_back(fmt::format("and {} machines more", machines.size() - kNamed));
      break;
    }
    parts.push_back(fmt::format("machine {} (rank {})", machine, fmt::join(its_ranks, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  std::string text = name;
  const auto is_odd = [](char each) { return each <= ' ' || each > '~'; };
  std::replace_if(text.begin(), text.end(), is_odd, '_');
  return text.empty() ? "unnamed" : text;
}

int count_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  return CPU_COUNT(&allowed);
}

int count_gpus(const Environment& environment, const fs::path& root) {
  const int devices = count_devices(root);
  const auto visible = environment("CUDA_VISIBLE_DEVICES");
  return visible ? killfiles::count_listed({devices, read_uuids(root), {}}, *visible) : devices;
}

void check_gpus(Backend wanted, int workers, int gpus) {
  if (wanted == Backend::gloo || gpus == 0 || workers <= gpus) return;
  throw UsageError(
      fmt::format("{} processes need a GPU each, and this machine shows {}", workers, gpus),
      "lower --nproc_per_node, look at CUDA_VISIBLE_DEVICES, or set distributed.backend = "
      "\"gloo\"");
}

}  // namespace dtool::trainer
