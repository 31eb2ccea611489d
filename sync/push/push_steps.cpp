// SPDX-License-Identifier: MIT
#include "sync/push/push_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "ssh/host/tree/tree_folder.h"
#include "ssh/machine/encodings.h"
#include "ssh/wire/push.h"
#include "sync/listing.h"
#include "sync/open_folder.h"

namespace dtool::tree_sync {

host::TreeRoot root_of(const Tree& tree) {
  struct stat root {};
  struct statfs file_system {};
  struct stat first {};
  ::stat(tree.root.c_str(), &root);
  ::statfs(tree.root.c_str(), &file_system);
  ::lstat((tree.root / tree.files.front()).c_str(), &first);
  return {ssh::boot_id(),
          root.st_dev,
          root.st_ino,
          static_cast<std::uint32_t>(file_system.f_type),
          tree.files.front(),
          host::identity_of(first),
          ""};
}

/// Numbers of no host: this machine in its mark, and whoever only looks for one.
constexpr std::int64_t kLauncher = -2;
constexpr std::int64_t kNobody = -1;

std::optional<host::TreeRoot> Root::marked() {
  host::TreeRoot root = root_;
  if (!mark_) {
    name_ = ssh::random_hex(8);
    mark_.emplace(folder_, name_, kLauncher);
    mark_->take();
  }
  root.mark = name_;
  const bool is_there = host::Mark(folder_, name_, kNobody).holder().has_value();
  return is_there ? std::optional(root) : std::nullopt;
}

Root::~Root() {
  if (mark_) mark_->let_go();
}

ssh::Command ask_command(host::TreeRequest request, const Guess* guess) {
  if (guess == nullptr) return ssh::ask_host(request);
  request.has_package = true;
  request.is_compressed = guess->package.compression == Compression::zstd;
  request.basis = guess->basis;
  ssh::Command command = ssh::ask_host(request);
  command.input_from = guess->package.content;
  return command;
}

void set_foreign(ssh::HostResult& result, const std::string& folder, std::size_t count,
                 const std::vector<std::string>& first) {
  result.fail(
      fmt::format("{} in {} {} not as dtool sent {} and {} from the code tree: {}{}",
                  count == 1 ? "a file" : fmt::format("{} files", count), folder,
                  count == 1 ? "is" : "are", count == 1 ? "it" : "them",
                  count == 1 ? "differs" : "differ", fmt::join(first, ", "),
                  count > first.size() ? ", …" : ""),
      "--force overwrites; to keep them, move them away (dtool copy --from brings them here) or "
      "give another --code_path");
}

void set_unproven(ssh::HostResult& result, const std::string& folder) {
  result.fail(
      fmt::format("{} may be this very folder, and this cannot be found out: no file can be made "
                  "here",
                  folder),
      "let the user here write into the folder, or give another --code_path");
}

namespace {

/// So much goes along with a question, and is all that is wasted for a host of which the guess is
/// wrong.
constexpr std::uint64_t kSmall = 32'000;
/// The largest guess for a folder from which nothing is known to have been sent; that happens once.
/// Not all of it is wasted, since a host that does not need it ends the command.
constexpr std::uint64_t kFirst = 8'000'000;

}  // namespace

Guess::Guess(const Tree& tree, const Listing& now, const std::vector<Entry>& before) {
  const Delta delta = find_delta(before, now.entries);
  files = list_entries(tree, delta.changed);
  Parcel parcel;
  for (std::size_t i = 0; i < files.entries.size(); ++i) {
    parcel.ranges.push_back({i, 0, files.entries[i].size});
    parcel.bytes += files.entries[i].size;
  }
  const std::vector<std::string> removed(delta.removed.begin(), delta.removed.end());
  package = pack_parcel(files, parcel, sums, Compression::zstd, Seal::no, removed);
  package.files = static_cast<std::size_t>(
      std::ranges::count_if(delta.changed, [](const Entry& each) { return !each.is_folder(); }));
}

std::unique_ptr<Guess> make_guess(const Tree& tree, const Listing& now) {
  const auto basis = last_kept(tree.root);
  if (basis == now.fingerprint) return nullptr;
  const auto before = basis ? kept_listing(*basis) : Listing{};
  if (!before) return nullptr;
  auto guess = std::make_unique<Guess>(tree, now, before->entries);
  if (guess->package.expected > (basis ? kSmall : kFirst)) return nullptr;
  guess->basis = basis.value_or("");
  return guess;
}

namespace fs = std::filesystem;

CopyList list_entries(const Tree& tree, const std::vector<Entry>& entries) {
  CopyList list;
  const auto root = std::make_shared<const OpenFolder>(tree.root);
  auto next = tree.files.begin();
  for (const Entry& entry : entries) {
    Origin origin{root, std::string(entry.name), {}};
    if (!entry.is_folder()) next = std::lower_bound(next, tree.files.end(), entry.name);
    const auto place = static_cast<std::size_t>(next - tree.files.begin());
    if (!entry.is_folder() && place < tree.looks.size()) origin.look = tree.looks[place];
    list.entries.push_back(described(entry));
    list.entries.back().sha256 = entry.content;
    list.origins.push_back(std::move(origin));
  }
  return list;
}

TreeList::TreeList(const Tree& tree, const Listing& listing) : listing_(listing) {
  const auto here = std::make_shared<const OpenFolder>(folder_.path());
  const fs::path path = folder_.path() / host::kListing;
  std::ofstream file(path, std::ios::binary);
  file << *listing.text;
  file.close();
  struct stat status {};
  const ssh::OwnedFd opened = here->open_file(host::kListing);
  if (!file || ::fstat(opened.get(), &status) != 0)
    throw std::runtime_error("cannot write " + path.native());
  const Look look = look_of(status);
  files_.entries.push_back({host::kListing, look.mode & host::kPermissions, look.seconds,
                            look.nanoseconds, "", look.size, ""});
  files_.origins.push_back({here, host::kListing, look});
  CopyList files = list_entries(tree, listing.entries);
  std::ranges::move(files.entries, std::back_inserter(files_.entries));
  std::ranges::move(files.origins, std::back_inserter(files_.origins));
}

TreeList::Known TreeList::known(const host::TreeReply& reply) const {
  Known known{{{0, 0}}, ""};
  if (reply.has_begun) return known;
  std::optional<Listing> before;
  if (reply.is_empty) before.emplace();
  if (!reply.basis.empty()) before = kept_listing(reply.basis);
  if (!before) return known;
  const Delta delta = find_delta(before->entries, listing_.entries);
  auto changed = delta.changed.begin();
  for (std::size_t i = 0; i < listing_.entries.size() && changed != delta.changed.end(); ++i) {
    const Entry& entry = listing_.entries[i];
    if (entry.name != changed->name) continue;
    if (!entry.is_folder()) known.lacking.emplace_back(i + 1, 0);
    ++changed;
  }
  // An edit that keeps size and time is seen by nothing but the content.
  if (!delta.hides_edits) known.basis = reply.basis;
  return known;
}

std::vector<std::pair<std::size_t, std::uint64_t>> TreeList::lacking(
    const host::PlaceReply& reply) const {
  if (reply.lacks_listing) return {{0, 0}};
  std::map<std::size_t, std::uint64_t> lacking;
  std::uint64_t end = 0;  // millions of runs that overlap would take days
  for (const host::EntryRun& run : reply.lacks) {
    const std::size_t size = listing_.entries.size();
    if (run.first < end || run.first >= size || run.count > size - run.first)
      throw host::BadMessage("its answer is about other files");
    end = run.first + run.count;
    for (std::uint64_t place = run.first; place < run.first + run.count; ++place)
      if (!listing_.entries[place].is_folder()) lacking.emplace(place + 1, 0);
  }
  for (const host::CopyPart& part : reply.parts) {
    const auto found = lacking.find(static_cast<std::size_t>(part.entry) + 1);
    if (found != lacking.end())
      found->second = std::min(part.bytes, files_.entries[found->first].size);
  }
  return {lacking.begin(), lacking.end()};
}

}  // namespace dtool::tree_sync
