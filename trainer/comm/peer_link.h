// The link to one other rank: numbers go through shared memory where both are on one machine, and
// else through a TCP connection. With shared memory the connection stays, to wake a rank that
// sleeps and to tell that a rank is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/comm/combine.h"
#include "trainer/comm/float_ring.h"
#include "trainer/comm/shared_memory.h"
#include "trainer/comm/tcp_socket.h"

namespace dtool::trainer {

/// What a link's shared memory holds. Of each pair the lower rank is side 0.
struct SharedLink {
  std::uint64_t token;                   ///< by which the other side knows it has the right memory
  std::atomic<std::uint32_t> sleeps[2];  ///< by side: wants to be woken
  FloatRing rings[2];                    ///< by the side that writes
};

class PeerLink {
 public:
  /// Over TCP.
  explicit PeerLink(TcpSocket socket);
  /// Over `memory`, which holds a SharedLink.
  PeerLink(TcpSocket socket, SharedMemory memory, int side);

  /// Sends as many of the numbers as can go now; returns how many went. Throws std::runtime_error
  /// when the peer is gone.
  std::size_t try_send(const float* numbers, std::size_t count);

  /// Combines as many numbers as are there, up to `count`, into those at `into`; returns how many.
  /// Throws std::runtime_error when the peer is gone and left none.
  std::size_t try_receive(float* into, std::size_t count, Combine how);

  bool shares_memory() const { return memory_.has_value(); }

  enum class Awaited { room, numbers };
  /// Before sleeping in poll: asks to be woken; returns false when there is no need to sleep.
  bool prepare_sleep(Awaited awaited);
  /// After it: `events` are what poll returned.
  void finish_sleep(short events);
  int descriptor() const { return socket_.descriptor(); }
  short poll_events(Awaited awaited) const;

 private:
  SharedLink& shared() const { return *reinterpret_cast<SharedLink*>(memory_->data()); }
  void wake_peer();
  std::size_t send_by_tcp(const float* numbers, std::size_t count);
  std::size_t receive_by_tcp(float* into, std::size_t count, Combine how);
  void refill();

  TcpSocket socket_;
  std::optional<SharedMemory> memory_;
  int side_ = 0;
  bool is_closed_ = false;      ///< by the peer
  std::size_t bytes_gone_ = 0;  ///< TCP: of a number that went in part
  std::vector<float> came_;     ///< TCP: what has come; begins at a whole number
  std::size_t came_begin_ = 0;  ///< TCP: the first number not taken
  std::size_t came_bytes_ = 0;  ///< TCP: from there on
};

}  // namespace dtool::trainer
