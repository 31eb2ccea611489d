// SPDX-License-Identifier: MIT
#include "sync/push/tree_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "ssh/host/tree/tree_folder.h"
#include "sync/kept_listings.h"
#include "sync/open_folder.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

fs::path folder_for_listing() {
  std::string path = (fs::temp_directory_path() / "dtool-XXXXXX").native();
  if (::mkdtemp(path.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "cannot make a folder in " + path);
  return path;
}

}  // namespace

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

TreeList::OwnFolder::OwnFolder() : path(folder_for_listing()) {}

TreeList::OwnFolder::~OwnFolder() {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

TreeList::TreeList(const Tree& tree, const Listing& listing) : listing_(listing) {
  const auto here = std::make_shared<const OpenFolder>(folder_.path);
  const fs::path path = folder_.path / host::kListing;
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
  for (const host::EntryRun& run : reply.lacks) {
    const std::size_t size = listing_.entries.size();
    if (run.first >= size || run.count > size - run.first)
      throw host::BadMessage("its answer is about other files");
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
