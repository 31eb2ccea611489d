// SPDX-License-Identifier: MIT
// Incoming numbers wait in a separate tensor until the outgoing ones have been sent.
#include "trainer/comm/library_transport.h"

#include <ATen/ATen.h>

#include "trainer/comm/combine.h"

namespace dtool::trainer {

void LibraryTransport::perform(const Plan& plan, float* tensor) {
  for (const Round& each : plan) exchange(tensor, each);
}

void LibraryTransport::exchange(float* tensor, const Round& round) {
  std::vector<at::Tensor> outgoing;
  std::vector<at::Tensor> incoming;
  c10::intrusive_ptr<c10d::Work> sending;
  c10::intrusive_ptr<c10d::Work> receiving;
  if (round.receive_from != kNobody && round.receive.size() > 0) {
    incoming = {at::empty({round.receive.size()}, at::kFloat)};
    receiving = group_.process_group->recv(incoming, round.receive_from, 0);
  }
  if (round.send_to != kNobody && round.send.size() > 0) {
    outgoing = {at::from_blob(tensor + round.send.begin, {round.send.size()}, at::kFloat)};
    sending = group_.process_group->send(outgoing, round.send_to, 0);
  }
  if (sending) sending->wait();
  if (!receiving) return;
  receiving->wait();
  combine(tensor + round.receive.begin, incoming[0].data_ptr<float>(),
          static_cast<std::size_t>(round.receive.size()), round.combine);
}

}  // namespace dtool::trainer
