// SPDX-License-Identifier: MIT
// The table of flags, and one function per kind of value.
#include "trainer/settings/command_line.h"

#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <system_error>
#include <vector>

#include "ssh/wire/words.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

Endpoint parse_endpoint(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return UsageError(fmt::format("'{}' is not IP:PORT: {}", text, why),
                      "write it as 10.0.0.1:29500, node1:29500 or [fd00::1]:29500");
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) throw wrong("the port is missing");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    throw wrong("an IPv6 address needs brackets");
  }
  if (host.empty()) throw wrong("the address is empty");
  const auto port = host::parse_number<std::uint16_t>(digits).value_or(0);
  if (port == 0) throw wrong("the port must be a number from 1 to 65535");
  return {std::string(host), port};
}

std::string to_string(const Endpoint& endpoint) {
  const bool brackets = endpoint.host.find(':') != std::string::npos;
  return brackets ? fmt::format("[{}]:{}", endpoint.host, endpoint.port)
                  : fmt::format("{}:{}", endpoint.host, endpoint.port);
}

namespace {

template <class Number>
Number number_of(std::string_view flag, std::string_view text, Number least, Number most) {
  const auto value = host::parse_number<Number>(text);
  if (value && *value >= least && *value <= most) return *value;
  throw UsageError(
      fmt::format("--{} must be a whole number from {} to {}, not '{}'", flag, least, most, text));
}

constexpr int kMostMachines = 1 << 20;
constexpr std::int64_t kMostEpisodes = 1'000'000'000;

/// Whose flag it is: `runs` are training and comm, which have ranks.
enum class For { all, runs, training, comm, rollout };

struct Flag {
  const char* name;
  const char* value;  ///< the value's name in --help
  const char* help;
  void (*set)(CommandLine&, const char* text);
  For use = For::runs;
};

int small_number_of(std::string_view flag, std::string_view text) {
  return number_of(flag, text, 1, 1'000'000);
}

std::uint64_t seed_of(std::string_view text) {
  return number_of<std::uint64_t>("seed", text, 0, std::numeric_limits<std::uint64_t>::max());
}

PolicyKind parse_policy(std::string_view text) {
  if (text == "shortest" || text == "oracle") return PolicyKind::shortest;
  if (text == "wander") return PolicyKind::wander;
  if (text == "doors") return PolicyKind::doors;
  if (text == "random") return PolicyKind::random;
  if (text == "checkpoint") return PolicyKind::checkpoint;
  throw UsageError(fmt::format("--policy: there is no '{}'", text),
                   "there are oracle (or shortest), doors, wander, random and checkpoint");
}

EpisodeSet parse_episode_set(std::string_view text) {
  if (text == "training") return EpisodeSet::training;
  if (text == "validation") return EpisodeSet::validation;
  throw UsageError(fmt::format("--set: '{}' is neither training nor validation", text));
}

PictureFormat parse_picture_format(std::string_view text) {
  if (text == "text") return PictureFormat::text;
  if (text == "svg") return PictureFormat::svg;
  if (text == "html") return PictureFormat::html;
  throw UsageError(fmt::format("--format: '{}' is none of text, svg and html", text));
}

const Flag kFlags[] = {
    {"machine_id", "I", "this machine's number, from 0 (default 0)",
     [](CommandLine& o, const char* v) {
       o.machine_id = number_of("machine_id", v, 0, kMostMachines);
     }},
    {"distributed_nodes", "N", "number of machines (default 1)",
     [](CommandLine& o, const char* v) {
       o.distributed_nodes = number_of("distributed_nodes", v, 1, kMostMachines);
     }},
    {"nproc_per_node", "N|auto",
     "worker processes on each machine (default auto: its GPUs, else 1)",
     [](CommandLine& o, const char* v) {
       o.nproc_per_node.reset();
       if (std::string_view(v) != "auto")
         o.nproc_per_node = number_of("nproc_per_node", v, 1, 1024);
     }},
    {"distributed_ip_and_port", "IP:PORT",
     "where rank 0 listens (default with one machine: a free port of 127.0.0.1)",
     [](CommandLine& o, const char* v) { o.listener = parse_endpoint(v); }},
    {"seed", "S", "seed of the weights and of the order of the samples (default 0)",
     [](CommandLine& o, const char* v) { o.seed = seed_of(v); }, For::training},
    {"output_dir", "DIR", "metrics.jsonl and checkpoints/ go here (default experiment_output)",
     [](CommandLine& o, const char* v) { o.output_dir = v; }, For::training},
    {"sizes", "SIZES", "bytes: 4k,1M or ranges that grow fourfold (default 1k-16M)",
     [](CommandLine& o, const char* v) { o.comm->sizes = parse_sizes(v); }, For::comm},
    {"operations", "NAMES",
     "of send_recv, isend_irecv, broadcast, reduce, all_reduce, gather, all_gather, scatter, "
     "barrier (default all)",
     [](CommandLine& o, const char* v) { o.comm->operations = parse_operations(v); }, For::comm},
    {"algorithms", "NAMES",
     "of library, links, ring, pairwise, halving_doubling, doubling (default all)",
     [](CommandLine& o, const char* v) { o.comm->ways = parse_ways(v); }, For::comm},
    {"messages", "links|library", "what carries our algorithms' messages (default links)",
     [](CommandLine& o, const char* v) { o.comm->carrier = parse_carrier(v); }, For::comm},
    {"backend", "auto|gloo|nccl", "the library's (default auto: NCCL where there are GPUs)",
     [](CommandLine& o, const char* v) { o.comm->backend = parse_backend(v); }, For::comm},
    {"repeats", "N", "timed batches a row (default 11)",
     [](CommandLine& o, const char* v) { o.comm->repeats = small_number_of("repeats", v); },
     For::comm},
    {"iterations", "N", "operations a batch (default: as many as take 10 ms)",
     [](CommandLine& o, const char* v) { o.comm->iterations = small_number_of("iterations", v); },
     For::comm},
    {"output_dir", "DIR",
     "comm.jsonl goes here, for dtool plot (default $DTOOL_OUTPUT_DIR, else no file)",
     [](CommandLine& o, const char* v) { o.comm->output_dir = v; }, For::comm},
    {"json", nullptr, "print one JSON document instead of the table",
     [](CommandLine& o, const char*) { o.comm->output = CommOptions::Output::json; }, For::comm},
    {"checkpoint", "PATH|latest|auto",
     "resume from this checkpoint, or from the newest in the output folder; auto: if there is one",
     [](CommandLine& o, const char* v) { o.checkpoint = v; }, For::training},
    {"rendezvous_timeout", "SECONDS", "how long to wait for the other machines (default 300)",
     [](CommandLine& o, const char* v) {
       o.rendezvous_timeout = std::chrono::seconds(number_of("rendezvous_timeout", v, 1, 86400));
     }},
    {"verbose", nullptr, "print settings that have their defaults, too",
     [](CommandLine& o, const char*) { o.shows_defaults = true; }, For::training},
    {"check", nullptr, "read the experiment, say what is wrong with it, and exit",
     [](CommandLine& o, const char*) { o.action = Action::check; }, For::training},
    {"policy", "NAME",
     "who chooses the actions: oracle (or shortest) knows the house; wander goes straight on and "
     "to a goal that it sees; doors goes to doors, too; random; checkpoint is a trained network "
     "(default checkpoint where --checkpoint is given, else oracle)",
     [](CommandLine& o, const char* v) { o.rollout->policy = parse_policy(v); }, For::rollout},
    {"checkpoint", "PATH|latest", "the trained network, or the newest in the output folder",
     [](CommandLine& o, const char* v) { o.checkpoint = v; }, For::rollout},
    {"output_dir", "DIR", "where the checkpoints are (default experiment_output)",
     [](CommandLine& o, const char* v) { o.output_dir = v; }, For::rollout},
    {"set", "training|validation", "whose houses (default validation)",
     [](CommandLine& o, const char* v) { o.rollout->set = parse_episode_set(v); }, For::rollout},
    {"seed", "S",
     "seed of the houses, the starts and the actions that are drawn (default: that of the "
     "experiment's [validation]; 0 for training houses)",
     [](CommandLine& o, const char* v) { o.rollout->seed = seed_of(v); }, For::rollout},
    {"episode", "N", "which episode, from 0 (default 0)",
     [](CommandLine& o, const char* v) {
       o.rollout->episode = number_of("episode", v, std::int64_t{0}, kMostEpisodes);
     },
     For::rollout},
    {"episodes", "N", "play N episodes from --episode on, and print only how many succeeded",
     [](CommandLine& o, const char* v) {
       o.rollout->episodes = number_of("episodes", v, std::int64_t{1}, kMostEpisodes);
     },
     For::rollout},
    {"output", "FILE", "write the picture here (default: the terminal)",
     [](CommandLine& o, const char* v) { o.rollout->output = v; }, For::rollout},
    {"format", "text|svg|html",
     "text, a map, or a page that plays the episode beside the map, with what the camera sees "
     "(default svg or html for a file that ends so, else text)",
     [](CommandLine& o, const char* v) { o.rollout->format = parse_picture_format(v); },
     For::rollout},
    {"watch", nullptr, "show the episode step by step in the terminal",
     [](CommandLine& o, const char*) { o.rollout->shown = RolloutOptions::Shown::step_by_step; },
     For::rollout},
    {"help", nullptr, "print this and exit",
     [](CommandLine& o, const char*) { o.action = Action::help; }, For::all},
    {"version", nullptr, "print the version and exit",
     [](CommandLine& o, const char*) { o.action = Action::version; }, For::all},
    {"self_check", nullptr, "print the version, say which libraries are missing here, and exit",
     [](CommandLine& o, const char*) { o.action = Action::self_check; }, For::training},
};

For use_of(const CommandLine& options) {
  return options.comm ? For::comm : options.rollout ? For::rollout : For::training;
}

bool is_for(const Flag& flag, const CommandLine& options) {
  const For use = use_of(options);
  return flag.use == For::all || flag.use == use || (flag.use == For::runs && use != For::rollout);
}

/// `comm `, `rollout ` or nothing: what stands before the flags.
const char* command_of(const CommandLine& options) {
  return options.comm ? "comm " : options.rollout ? "rollout " : "";
}

std::string hyphenated(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/// Reads every flag into `options` and returns the arguments that are not flags.
std::vector<std::string> read_flags(int argc, char** argv, CommandLine& options) {
  std::vector<std::string> names;
  std::vector<option> table;
  names.reserve(2 * std::size(kFlags));  // the table points into these strings
  for (int i = 0; i < static_cast<int>(std::size(kFlags)); ++i) {
    if (!is_for(kFlags[i], options)) continue;
    const int argument = kFlags[i].value == nullptr ? no_argument : required_argument;
    names.emplace_back(kFlags[i].name);
    table.push_back({names.back().c_str(), argument, nullptr, i});
    if (const auto other = hyphenated(kFlags[i].name); other != kFlags[i].name) {
      names.push_back(other);
      table.push_back({names.back().c_str(), argument, nullptr, i});
    }
  }
  table.push_back({nullptr, 0, nullptr, 0});

  opterr = 0;
  optind = 0;  // starts afresh, so that a test can parse more than once
  for (int index; (index = getopt_long(argc, argv, ":", table.data(), nullptr)) != -1;) {
    const bool is_found = index != '?' && index != ':';
    const bool is_value_apart = is_found && optarg != nullptr && optarg == argv[optind - 1];
    std::string word = argv[optind - (is_value_apart ? 2 : 1)];
    if (is_found) word = word.substr(0, word.find('='));
    // After a short flag optind may not have moved on yet; the message only needs the word itself.
    if (index == '?' && optopt >= ' ' && optopt < 127) {
      word = std::string("-") + static_cast<char>(optopt);
    }
    // getopt_long takes the beginning of a name for the name.
    if (!is_found || hyphenated(word) != "--" + hyphenated(kFlags[index].name)) {
      throw UsageError(index == ':' ? fmt::format("{} needs a value", word)
                                    : fmt::format("unknown flag {}", word),
                       fmt::format("dtool-trainer {}--help lists the flags", command_of(options)));
    }
    kFlags[index].set(options, optarg);
  }
  return {argv + optind, argv + argc};
}

void check(const CommandLine& options) {
  const int machines = options.distributed_nodes.value_or(1);
  if (options.machine_id.value_or(0) >= machines) {
    throw UsageError(fmt::format("--machine_id {} does not exist among {} machine{}",
                                 *options.machine_id, machines, machines == 1 ? "" : "s"),
                     "machines are numbered from 0; --distributed_nodes says how many there are");
  }
  if (machines > 1 && !options.listener) {
    throw UsageError(
        fmt::format("--distributed_nodes {} needs --distributed_ip_and_port", machines),
        "give every machine the same address and free port of machine 0, such as 10.0.0.1:29500");
  }
}

CommandLine parse_comm(int argc, char** argv) {
  CommandLine options;
  options.action = Action::comm;
  options.comm.emplace();
  if (const auto folder = std::getenv("DTOOL_OUTPUT_DIR")) options.comm->output_dir = folder;
  const auto rest = read_flags(argc, argv, options);
  if (options.action != Action::comm) return options;
  if (!rest.empty()) {
    throw UsageError(fmt::format("comm takes flags only, not '{}'", rest[0]),
                     "dtool-trainer comm --help lists them");
  }
  check(options);
  return options;
}

constexpr const char* kTrainingUsage =
    "usage: dtool-trainer EXPERIMENT.toml [flags]\n"
    "       dtool-trainer comm [flags]                        (see dtool-trainer comm --help)\n"
    "       dtool-trainer rollout EXPERIMENT.toml [flags]  (see dtool-trainer rollout --help)\n"
    "\n"
    "Trains the experiment on this machine's part of a run.";

constexpr const char* kCommUsage =
    "usage: dtool-trainer comm [flags]\n"
    "\n"
    "Checks and times the messages and collective operations between ranks, the library's beside\n"
    "dtool's own.";

constexpr const char* kRolloutUsage =
    "usage: dtool-trainer rollout EXPERIMENT.toml [flags]\n"
    "\n"
    "Plays one episode of an agent's experiment and shows what the agent did, or counts the\n"
    "successes of many.";

constexpr const char* kTrainingExitCodes =
    "Exit code: 0 trained; 1 a worker failed; 2 a mistake in the flags, the experiment or the "
    "data;\n"
    "130 interrupted; 143 terminated.\n";

constexpr const char* kCommExitCodes =
    "Exit code: 0 measured, and every number right; 1 numbers were wrong or a worker failed;\n"
    "2 a mistake in the flags; 130 interrupted; 143 terminated.\n";

constexpr const char* kRolloutExitCodes =
    "Exit code: 0 shown, however the episode went; 1 something failed; 2 a mistake in the flags "
    "or\n"
    "the experiment.\n";

/// The only argument that is not a flag.
std::string experiment_of(const std::vector<std::string>& rest, const CommandLine& options) {
  if (rest.empty()) {
    throw UsageError("no experiment given",
                     fmt::format("dtool-trainer {}EXPERIMENT.toml [flags]", command_of(options)));
  }
  if (rest.size() > 1) {
    throw UsageError(fmt::format("one experiment at a time: '{}' is one too many", rest[1]));
  }
  return rest[0];
}

/// Fills values that depend on several flags. Throws UsageError if flags do not go together.
void complete(RolloutOptions& options, std::optional<std::string>& checkpoint) {
  if (!options.policy) {
    options.policy = checkpoint ? PolicyKind::checkpoint : PolicyKind::shortest;
  }
  if (checkpoint && *options.policy != PolicyKind::checkpoint) {
    throw UsageError("--checkpoint is for the policy of a network",
                     "drop it, or give --policy checkpoint");
  }
  if (*options.policy == PolicyKind::checkpoint && !checkpoint) checkpoint = "latest";
  if (options.episodes &&
      (options.output || options.format || options.shown == RolloutOptions::Shown::step_by_step)) {
    throw UsageError("--episodes counts successes and shows no episode",
                     "drop --episodes, or drop --output, --format and --watch");
  }
  if (!options.format) {
    const auto end = options.output ? options.output->extension() : "";
    options.format = end == ".svg"    ? PictureFormat::svg
                     : end == ".html" ? PictureFormat::html
                                      : PictureFormat::text;
  }
  if (options.shown == RolloutOptions::Shown::at_the_end) return;
  if (options.output || *options.format != PictureFormat::text) {
    throw UsageError("--watch shows an episode in the terminal, not in a file, as svg or as html",
                     "drop --watch, or drop --output and --format");
  }
}

CommandLine parse_rollout(int argc, char** argv) {
  CommandLine options;
  options.action = Action::rollout;
  options.rollout.emplace();
  const auto rest = read_flags(argc, argv, options);
  if (options.action != Action::rollout) return options;
  options.experiment = experiment_of(rest, options);
  complete(*options.rollout, options.checkpoint);
  return options;
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv) {
  CommandLine options;
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "comm") return parse_comm(argc - 1, argv + 1);
  if (first == "rollout") return parse_rollout(argc - 1, argv + 1);
  const auto rest = read_flags(argc, argv, options);
  const bool needs_experiment = options.action == Action::train || options.action == Action::check;
  if (!needs_experiment) return options;
  options.experiment = experiment_of(rest, options);
  check(options);
  return options;
}

std::string usage_text(const CommandLine& options) {
  std::string text = options.comm ? kCommUsage : options.rollout ? kRolloutUsage : kTrainingUsage;
  text += " Each flag may be spelt with hyphens too.\n\n";
  for (const Flag& flag : kFlags) {
    if (!is_for(flag, options)) continue;
    const auto left = fmt::format("--{} {}", flag.name, flag.value == nullptr ? "" : flag.value);
    text += fmt::format("  {:<36} {}\n", left, flag.help);
  }
  if (options.rollout) return text + "\n" + kRolloutExitCodes;
  text +=
      "\n"
      "Under torchrun, srun or mpirun the process is a worker itself, unless --machine_id or\n"
      "--distributed_nodes is given and no RANK is set.\n"
      "\n";
  text += options.comm ? kCommExitCodes : kTrainingExitCodes;
  return text;
}

void refuse_rollout(const std::filesystem::path& experiment) {
  throw UsageError(
      fmt::format("{}: its workload has no episodes that rollout could show", experiment.string()),
      "give an experiment of reinforcement learning");
}

}  // namespace dtool::trainer
