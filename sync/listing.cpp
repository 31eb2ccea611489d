// SPDX-License-Identifier: MIT
#include "sync/listing.h"

#include <fmt/compile.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <utility>

#include "ssh/machine/encodings.h"
#include "ssh/machine/files.h"
#include "ssh/wire/tree.h"
#include "sync/contents.h"
#include "sync/open_folder.h"

namespace dtool::tree_sync {

namespace {

void add_with_end(std::string& text, std::string_view word) {
  text += word;
  text += '\0';
}

/// As `find` prints them: its fractions have ten digits.
void add_file(std::string& text, const std::string& name, std::string_view content,
              const Look& look, const OpenFolder& root) {
  add_with_end(text, name);
  text.append(content).append(" ");
  fmt::format_to(std::back_inserter(text), FMT_COMPILE("{} {}.{:09}0 {:o} "), look.size,
                 look.seconds, look.nanoseconds, look.mode & host::kPermissions);
  if (S_ISLNK(look.mode)) text += root.target_of(name).value_or("");
  text += '\0';
}

/// One that has gone since the tree was read is not in the listing: its files will be missed.
void add_folder(std::string& text, std::string_view folder, const OpenFolder& root) {
  const auto status = root.look_at(std::string(folder.substr(0, folder.size() - 1)));
  if (!status) return;
  add_with_end(text, folder);
  add_with_end(text, fmt::format(" {:o}", status->st_mode & host::kPermissions));
}

std::vector<Entry> entries_in(std::string_view text) {
  std::vector<Entry> entries;
  entries.reserve(static_cast<std::size_t>(std::ranges::count(text, '\0')) / 2);
  for (;;) {
    const std::size_t name = text.find('\0');
    const std::size_t facts = name == text.npos ? name : text.find('\0', name + 1);
    if (facts == text.npos) return entries;
    const std::string_view word = text.substr(name + 1, facts - name - 1);
    const std::size_t content = std::min(word.find(' '), word.size());
    entries.push_back({text.substr(0, name), word.substr(std::min(content + 1, word.size())),
                       word.substr(0, content)});
    text.remove_prefix(facts + 1);
  }
}

std::string digest_of(const std::vector<Entry>& entries) {
  ssh::Sha256 sha;
  std::string line;
  for (const Entry& entry : entries) {
    if (entry.is_folder()) continue;
    line.assign("./").append(entry.name).append(" ").append(entry.facts).append("\n");
    sha.add(line);
  }
  return sha.hex();
}

}  // namespace

std::uint64_t Entry::size() const {
  std::uint64_t size = 0;
  if (!is_folder()) std::from_chars(facts.data(), facts.data() + facts.size(), size);
  return size;
}

host::CopyEntry described(const Entry& entry) {
  host::CopyEntry described;
  described.name = entry.name;
  const char* at = entry.facts.data();
  const char* const end = at + entry.facts.size();
  const auto read = [&at, end](auto& number, int base) {
    at = std::from_chars(at, end, number, base).ptr;
    if (at != end) ++at;
  };
  if (!entry.is_folder()) {
    read(described.size, 10);
    read(described.seconds, 10);
    read(described.nanoseconds, 10);
    described.nanoseconds /= 10;  // find's fractions have a digit more
  }
  read(described.mode, 8);
  if (!entry.is_folder()) described.target.assign(at, end);
  return described;
}

Listing list_tree(const Tree& tree, const std::vector<std::string>& contents) {
  const OpenFolder root(tree.root);
  std::string text;
  std::string_view predecessor;
  for (std::size_t i = 0; i < tree.files.size(); ++i) {
    const std::string_view name = tree.files[i];
    for (auto slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
      const std::string_view folder = name.substr(0, slash + 1);
      if (!predecessor.starts_with(folder)) add_folder(text, folder, root);
    }
    add_file(text, tree.files[i], i < contents.size() ? contents[i] : "",
             i < tree.looks.size() ? tree.looks[i] : Look{}, root);
    predecessor = name;
  }
  return make_listing(std::move(text));
}

Listing make_listing(std::string text) {
  Listing listing;
  listing.text = std::make_unique<const std::string>(std::move(text));
  listing.entries = entries_in(*listing.text);
  ssh::Sha256 sha;
  sha.add(*listing.text);
  listing.fingerprint = sha.hex();
  listing.digest = digest_of(listing.entries);
  return listing;
}

Delta find_delta(const std::vector<Entry>& before, const std::vector<Entry>& now) {
  Delta delta;
  const auto remove = [&delta](const Entry& entry) {
    if (!entry.is_folder()) delta.removed.push_back(entry.name);
  };
  auto old = before.begin();
  for (const Entry& entry : now) {
    for (; old != before.end() && old->name < entry.name; ++old) remove(*old);
    const bool is_known = old != before.end() && old->name == entry.name;
    const bool has_same_facts = is_known && old->facts == entry.facts;
    const bool is_same = has_same_facts && old->content == entry.content;
    if (has_same_facts && !is_same) delta.hides_edits = true;
    if (is_known) ++old;
    if (is_same) continue;
    delta.changed.push_back(entry);
    delta.bytes += entry.size();
  }
  std::for_each(old, before.end(), remove);
  return delta;
}

namespace {

namespace fs = std::filesystem;

bool is_fingerprint(const std::string& name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

fs::path sent_listings() {
  return fs::path(ssh::home_folder()) / ".dtool" / "sent";
}

void keep_listing(const Listing& listing, const fs::path& root, const fs::path& folder) {
  try {
    keep_file(folder, listing.fingerprint, root.native() + '\0', *listing.text);
  } catch (const fs::filesystem_error&) {
  }
}

std::optional<Listing> kept_listing(const std::string& fingerprint, const fs::path& folder) {
  // It comes from a host, and is to be a name in the folder.
  if (!is_fingerprint(fingerprint)) return std::nullopt;
  std::ifstream file(folder / fingerprint, std::ios::binary);
  std::string root;
  std::getline(file, root, '\0');
  Listing listing = make_listing({std::istreambuf_iterator<char>(file), {}});
  if (listing.fingerprint != fingerprint) return std::nullopt;
  return listing;
}

std::optional<std::string> last_kept(const fs::path& root, const fs::path& folder) {
  for (const fs::path& path : newest_first(folder)) {
    std::ifstream file(path, std::ios::binary);
    std::string kept_root;
    std::getline(file, kept_root, '\0');
    if (kept_root == root.native() && is_fingerprint(path.filename())) return path.filename();
  }
  return std::nullopt;
}

}  // namespace dtool::tree_sync
