// SPDX-License-Identifier: MIT
// Supports LibTorch 1.13, where a backend is a process group, and 2.x, where a process group has
// one backend per kind of device.
#include "trainer/ranks/process_group.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#ifdef DTOOL_TRAINER_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif

#include "ssh/wire/words.h"
#include "trainer/launch/network.h"
#include "trainer/ranks/gpu.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

using std::chrono::milliseconds;

using gpu::CommunicationBackend;

#ifdef DTOOL_TRAINER_GLOO
// gloo keeps its ports open although no more connections are expected. A socket filter that lets
// nothing through closes them: it needs no privileges and leaves the library's descriptor alone.
// Shutting the listener down would make the library's event loop spin.

int option(int descriptor, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(descriptor, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

bool listens_for_tcp(int descriptor) {
  const int domain = option(descriptor, SO_DOMAIN);
  return option(descriptor, SO_ACCEPTCONN) == 1 && (domain == AF_INET || domain == AF_INET6);
}

/// The descriptors of this process's sockets that listen for TCP connections.
std::set<int> listening_sockets() {
  std::set<int> found;
  std::error_code problem;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd", problem)) {
    const std::string name = each.path().filename();
    const auto descriptor = host::parse_number<int>(name);
    if (descriptor && listens_for_tcp(*descriptor)) found.insert(*descriptor);
  }
  return found;
}

/// From here on the kernel drops new connections to the listening socket; existing connections
/// stay.
void take_no_more(int listening_socket) {
  sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{1, &nothing};
  setsockopt(listening_socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

/// Devices, and their listening sockets. One group's are made at a time, so that new sockets are
/// known to be theirs.
struct GlooDevices {
  std::vector<std::shared_ptr<::gloo::transport::Device>> devices;
  std::set<int> listeners;
};

// Later versions listen once a device, for as long as it lives. Debian 12's listens once for each
// pair of ranks until they are connected: there is nothing to close, and what another rank of this
// process opens meanwhile is not this group's.
#if __has_include(<gloo/transport/tcp/listener.h>)
inline constexpr bool kDevicesListen = true;
#else
inline constexpr bool kDevicesListen = false;
#endif

GlooDevices make_gloo_devices(const Meeting& meeting) {
  using Gloo = c10d::ProcessGroupGloo;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  GlooDevices made;
  const auto before = listening_sockets();
  for (const auto& each : wanted_interfaces())
    made.devices.push_back(Gloo::createDeviceForInterface(each));
  if (made.devices.empty()) {
    const auto address = reachable_address(meeting.me(), meeting.members);
    made.devices.push_back(Gloo::createDeviceForHostname(address));
  }
  if (!kDevicesListen) return made;
  for (const int each : listening_sockets()) {
    if (!before.contains(each)) made.listeners.insert(each);
  }
  return made;
}

/// gloo keeps listening when every rank is connected to every other, and takes any connection for a
/// rank. (Later versions can connect ranks when they first speak to each other.)
void close_listeners(const std::set<int>& listeners) {
  if (process_environment("TORCH_GLOO_LAZY_INIT").value_or("0") != "0") return;
  for (const int each : listeners) take_no_more(each);
}

c10::intrusive_ptr<CommunicationBackend> connect_gloo(const Meeting& meeting,
                                                      milliseconds timeout) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  const GlooDevices made = make_gloo_devices(meeting);
  options->devices = made.devices;
  const auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(meeting.store, meeting.place.rank,
                                                                 meeting.place.world_size, options);
  close_listeners(made.listeners);
  return group;
}

#else
c10::intrusive_ptr<CommunicationBackend> connect_gloo(const Meeting&, milliseconds) {
  throw UsageError("this program is built without gloo, so its ranks need a GPU each",
                   "build it with a LibTorch that has gloo, such as Debian's or pip's");
}
#endif

#if TORCH_VERSION_MAJOR >= 2
/// A template, so that a version's compiler passes over what only other versions have.
template <class ProcessGroup>
c10::intrusive_ptr<ProcessGroup> as_process_group(
    const Meeting& meeting, at::DeviceType device, typename ProcessGroup::BackendType type,
    const c10::intrusive_ptr<CommunicationBackend>& made) {
  using Store = c10::intrusive_ptr<c10d::Store>;
  const Place& place = meeting.place;
  c10::intrusive_ptr<ProcessGroup> group;
  // 2.6 dropped the options from the constructor.
  if constexpr (std::is_constructible_v<ProcessGroup, const Store&, int, int>) {
    group = c10::make_intrusive<ProcessGroup>(meeting.store, place.rank, place.world_size);
    group->setDefaultBackend(type);
  } else {
    auto options = c10::make_intrusive<typename ProcessGroup::Options>("undefined");
    group = c10::make_intrusive<ProcessGroup>(meeting.store, place.rank, place.world_size, options);
  }
  // From 2.4 on setBackend gives the backend the group's bound device, which is none so far.
  if constexpr (requires { group->getBoundDeviceId(); }) {
    group->setBoundDeviceId(made->getBoundDeviceId());
  }
  group->setBackend(device, type, made);
  return group;
}
#endif

c10::intrusive_ptr<c10d::ProcessGroup> make_process_group(const Meeting& meeting, Backend backend,
                                                          milliseconds timeout) {
  const bool on_gpus = backend == Backend::nccl;
  const auto made = on_gpus ? gpu::connect_nccl(meeting, timeout) : connect_gloo(meeting, timeout);
#if TORCH_VERSION_MAJOR >= 2
  using c10d::ProcessGroup;
  return as_process_group<ProcessGroup>(
      meeting, on_gpus ? at::kCUDA : at::kCPU,
      on_gpus ? ProcessGroup::BackendType::NCCL : ProcessGroup::BackendType::GLOO, made);
#else
  return made;
#endif
}

}  // namespace

Backend choose_backend(Backend wanted) {
  const bool there = gpu::count() > 0;
  if (wanted == Backend::nccl && !there) {
    throw UsageError("distributed.backend is nccl, but this program or machine has no CUDA",
                     "use \"gloo\" or \"auto\"");
  }
  return wanted == Backend::gloo || !there ? Backend::gloo : Backend::nccl;
}

at::Device choose_device(Backend backend, int local_rank) {
  if (backend == Backend::gloo) return at::kCPU;
  const int gpus = gpu::count();
  // srun can show each of its tasks a GPU of its own (--gpus-per-task), which is then number 0.
  if (gpus == 1 && process_environment("SLURM_LOCALID")) local_rank = 0;
  if (local_rank >= gpus) {
    throw UsageError(
        fmt::format("local rank {} has no GPU: this process sees {}", local_rank, gpus),
        "--nproc_per_node must not exceed the number of GPUs");
  }
  gpu::use(local_rank);
  return {at::kCUDA, static_cast<c10::DeviceIndex>(local_rank)};
}

Group make_group(const Meeting& meeting, Backend backend, milliseconds timeout) {
  Group group{meeting.place.rank,
              meeting.place.world_size,
              meeting.place.local_world_size,
              choose_device(backend, meeting.place.local_rank),
              {},
              meeting.members,
              nullptr,
              meeting.store};
  if (group.size > 1) {
    collectively([&] { group.process_group = make_process_group(meeting, backend, timeout); });
  }
  return group;
}

std::vector<double> sum_over_ranks(const Group& group, const std::vector<double>& values) {
  if (group.size == 1) return values;
  at::Tensor tensor = at::tensor(values, at::kDouble).to(group.device);
  std::vector<at::Tensor> tensors = {tensor};
  collectively([&] { group.process_group->allreduce(tensors)->wait(); });
  tensor = tensor.cpu();
  return {tensor.data_ptr<double>(), tensor.data_ptr<double>() + tensor.numel()};
}

void wait_for_all_ranks(const Group& group) {
#if TORCH_VERSION_MAJOR >= 2
  // ProcessGroup::barrier() makes a tensor that all ranks of one process share, and frees it twice.
  group.process_group->getBackend(group.device.type())->barrier()->wait();
#else
  group.process_group->barrier()->wait();
#endif
}

void broadcast(const Group& group, at::Tensor tensor) {
  if (group.size == 1) return;
  std::vector<at::Tensor> tensors = {std::move(tensor)};
  collectively([&] { group.process_group->broadcast(tensors)->wait(); });
}

std::string broadcast_text(const Group& group, const std::string& text) {
  if (group.size == 1) return text;
  const auto on_device = at::TensorOptions().device(group.device);
  at::Tensor size =
      at::full({1}, static_cast<std::int64_t>(text.size()), on_device.dtype(at::kLong));
  broadcast(group, size);
  std::string content;
  if (group.rank == 0) {
    content = text;
  } else {
    content.resize(static_cast<std::size_t>(size.item<std::int64_t>()));
  }
  constexpr std::size_t kPart = 16 << 20;  // a checkpoint's header may be of 100 MB
  for (std::size_t begin = 0; begin < content.size(); begin += kPart) {
    const auto part = static_cast<std::int64_t>(std::min(kPart, content.size() - begin));
    const at::Tensor there = at::from_blob(content.data() + begin, {part}, at::kByte);
    const at::Tensor moved = there.to(group.device);
    broadcast(group, moved);
    there.copy_(moved);
  }
  return content;
}

/// The last one to come opens the door for all.
void wait_for_all_ranks(const Meeting& meeting, const std::string& what) {
  if (meeting.place.world_size == 1) return;
  collectively([&] {
    if (meeting.store->add(what + "/ranks", 1) == meeting.place.world_size)
      put(*meeting.store, what + "/ready", "yes");
    meeting.store->wait({what + "/ready"}, kForAsLongAsItTakes);
  });
}

void wait_for_rank_0(const Group& group, const std::string& what) {
  if (group.size == 1) return;
  const std::string key = what + "/rank 0 is ready";
  collectively([&] {
    if (group.rank == 0) put(*group.store, key, "yes");
    if (group.rank != 0) group.store->wait({key}, kForAsLongAsItTakes);
  });
}

}  // namespace dtool::trainer
