#include "sync/relay/relaying.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <system_error>
#include <utility>

#include "ssh/machine/random_hex.h"
#include "ssh/script.h"

namespace dtool::tree_sync {
namespace {

/// What all hosts together are sent so little of is not worth a tree of hosts, each of which takes
/// a moment to begin.
constexpr std::uint64_t kLittle = 4'000'000;

bool is_of_address(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '.' || letter == ':' ||
         letter == '%' || letter == '-' || letter == '_';
}

}  // namespace

std::optional<RelayPart> Relaying::part_for(std::size_t host) {
  constexpr std::size_t kSecret = 16;  // bytes
  const auto& sum = *package_.sum;
  if (sum && sum->bytes * hosts_ <= kLittle) return RelayPart{};
  if (sum && !std::exchange(is_sum_seen_, true)) {
    for (const auto& [other, member] : members_)
      if (member.bytes >= sum->bytes) tree_.got_all(other);
  }
  const auto source = tree_.source_for(host, std::chrono::steady_clock::now(),
                                       sum ? RelayTree::Sum::known : RelayTree::Sum::unknown);
  if (source.from == RelayTree::From::nobody_yet) return std::nullopt;
  Member& member = members_[host] = Member{};
  member.secret = ssh::random_hex(kSecret);
  RelayPart part{member.secret};
  if (source.from == RelayTree::From::host) {
    member.has_parent = true;
    const Member& parent = members_.at(source.host);
    part.parent = RelayPart::Parent{parent.address, parent.port, parent.secret};
  }
  return part;
}

void Relaying::has(std::size_t host, std::uint64_t bytes) {
  Member& member = members_.at(host);
  if (bytes <= member.bytes) return;
  member.bytes = bytes;
  tree_.got_more(host, std::chrono::steady_clock::now());
  const auto& sum = *package_.sum;
  if (sum && bytes >= sum->bytes) tree_.got_all(host);
}

void Relaying::sent(std::size_t host, std::uint64_t bytes) {
  if (members_.contains(host)) has(host, bytes);
}

/// `ADDRESS PORT`, or nothing where the host serves nobody. It can say what it likes.
void Relaying::take_address(std::size_t host, const std::string& text) {
  const std::size_t blank = text.find(' ');
  const std::string address = text.substr(0, blank);
  const bool is_word =
      !address.empty() && std::all_of(address.begin(), address.end(), is_of_address);
  const auto port =
      blank == text.npos ? std::nullopt : ssh::read_port(std::string_view(text).substr(blank + 1));
  if (!is_word || !port) return tree_.serves_nobody(host);
  Member& member = members_.at(host);
  member.address = address;
  member.port = *port;
  tree_.serves(host);
}

void Relaying::cannot_serve(std::size_t host) {
  tree_.serves_nobody(host);
}

std::optional<ssh::Transferred> Relaying::heard(std::size_t host, std::string_view output) {
  const auto found = members_.find(host);
  if (found == members_.end()) return std::nullopt;
  std::string& unread = found->second.unread;
  unread += output;
  const std::size_t end = unread.rfind('\n');
  if (end == unread.npos) return std::nullopt;
  const auto answers = ssh::read_answers(std::string_view(unread).substr(0, end));
  unread.erase(0, end + 1);
  if (const auto listens = ssh::find_answer(answers, "listens")) take_address(host, *listens);
  if (answers.contains("unpacked")) tree_.serves_nobody(host);  // further ones: it is about to end
  std::optional<std::uint64_t> most;
  for (const std::string& bytes : ssh::every_answer(answers, "received"))
    most = std::max(most, ssh::read_number<std::uint64_t>(bytes));
  if (!most) return std::nullopt;
  has(host, *most);
  const auto& sum = *package_.sum;
  return ssh::Transferred{*most, sum ? std::optional(sum->bytes) : std::nullopt};
}

Relaying::Next Relaying::ended(std::size_t host, std::string_view output) {
  if (!members_.contains(host)) return Next::is_over;
  const auto now = std::chrono::steady_clock::now();
  const auto answers = ssh::read_answers(output);
  const auto reason = ssh::find_answer(answers, "missed");
  if (!reason || !members_.at(host).has_parent) {  // from the launcher nobody can miss it
    tree_.ended(host, RelayTree::End::over, now);
    return Next::is_over;
  }
  missed_.push_back({host, *reason});
  const bool is_spoilt = answers.contains("spoilt");
  tree_.ended(host, is_spoilt ? RelayTree::End::spoilt : RelayTree::End::missed, now);
  return Next::asks_again;
}

}  // namespace dtool::tree_sync
