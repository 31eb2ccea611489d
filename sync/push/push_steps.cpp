// SPDX-License-Identifier: MIT
#include "sync/push/push_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <utility>

#include "ssh/host/tree/tree_folder.h"
#include "ssh/machine/random_hex.h"
#include "ssh/machine/read_file.h"
#include "ssh/wire/push.h"

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

ssh::Command ask_command(const host::TreeRoot& root, const RemoteTree& tree, const InPush& push,
                         const Guess* guess) {
  host::TreeRequest request;
  request.folder = tree.folder;
  request.tree = tree.fingerprint;
  request.refuses_foreign = tree.refuses_foreign;
  request.own = tree.own;
  request.root = root;
  request.push = push.name;
  request.host = static_cast<std::int64_t>(push.host);
  request.aside = push.aside;
  if (guess == nullptr) return ssh::ask_host(request);
  request.has_package = true;
  request.is_compressed = guess->package.compression == Compression::zstd;
  request.basis = guess->basis;
  ssh::Command command = ssh::ask_host(request);
  command.input_from = guess->package.content;
  return command;
}

ssh::Command place_command(const RemoteTree& tree, const std::string& basis,
                           const host::CopyPlace& parcels) {
  return ssh::ask_host(host::PlaceRequest{tree.folder, tree.fingerprint, basis,
                                          tree.refuses_foreign, tree.own, parcels});
}

void set_foreign(ssh::HostResult& result, const std::string& folder, std::size_t count,
                 const std::vector<std::string>& first) {
  result.exit_code = 1;
  result.error = fmt::format("{} in {} {} not as dtool sent {} and {} from the code tree: {}{}",
                             count == 1 ? "a file" : fmt::format("{} files", count), folder,
                             count == 1 ? "is" : "are", count == 1 ? "it" : "them",
                             count == 1 ? "differs" : "differ", fmt::join(first, ", "),
                             count > first.size() ? ", …" : "");
  result.hint =
      "--force overwrites; to keep them, move them away (dtool copy --from brings them here) or "
      "give another --code_path";
}

void set_unproven(ssh::HostResult& result, const std::string& folder) {
  result.exit_code = 1;
  result.error = fmt::format(
      "{} may be this very folder, and this cannot be found out: no file can be made here", folder);
  result.hint = "let the user here write into the folder, or give another --code_path";
}

ssh::Command freeze_command(std::shared_ptr<const ssh::SharedBytes> names, Compression compression,
                            const RemoteTree& tree, const std::string& digest) {
  const host::FreezeRequest request{tree.folder, digest, tree.own.value_or(host::OwnTree()),
                                    compression == Compression::zstd};
  ssh::Command command = ssh::ask_host(request);
  command.input_from = std::move(names);
  return command;
}

}  // namespace dtool::tree_sync
