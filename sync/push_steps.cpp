// SPDX-License-Identifier: MIT
#include "sync/push_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <utility>

#include "ssh/host/messages/tree.h"
#include "ssh/machine/random_hex.h"
#include "ssh/machine/read_file.h"
#include "sync/host/tree_folder.h"

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

namespace {

host::TreeRequest request_for(const RemoteTree& tree) {
  host::TreeRequest request;
  request.folder = tree.folder;
  request.tree = tree.fingerprint;
  request.refuses_foreign = tree.foreign == ForeignFiles::look;
  request.own = tree.own;
  request.patience_ms = std::chrono::milliseconds(tree.patience).count();
  return request;
}

ssh::Command with_package(host::TreeRequest request, const Package& package) {
  request.has_package = true;
  request.is_compressed = package.compression == Compression::zstd;
  request.basis = package.basis;
  ssh::Command command = ssh::ask_host(request);
  const bool is_from_host = request.relay && request.relay->parent;
  if (!is_from_host) command.input_from = package.content;
  return command;
}

}  // namespace

ssh::Command ask_command(const host::TreeRoot& root, const RemoteTree& tree, const InPush& push,
                         const Package* guess) {
  host::TreeRequest request = request_for(tree);
  request.root = root;
  request.push = push.name;
  request.host = static_cast<std::int64_t>(push.host);
  return guess == nullptr ? ssh::ask_host(request) : with_package(std::move(request), *guess);
}

ssh::Command unpack_command(const Package& package, const RemoteTree& tree,
                            const std::optional<host::RelayPart>& relay) {
  host::TreeRequest request = request_for(tree);
  request.is_asked = true;
  request.relay = relay;
  return with_package(std::move(request), package);
}

std::string_view last_frame(std::string_view out) {
  constexpr std::size_t kHead = 6;
  for (;;) {
    const std::size_t size = kHead + host::read_number_bytes(out.substr(0, 4));
    if (out.size() <= size) return out;
    out.remove_prefix(size);
  }
}

std::optional<host::TreeReply> read_tree_reply(ssh::HostResult& result) {
  result.out = last_frame(result.out);
  return reply_in<host::TreeReply>(result);
}

ssh::Command leave_command(const RemoteTree& tree) {
  return ssh::ask_host(host::PruneRequest{tree.folder, tree.fingerprint, "", false, {}});
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

void refuse_changed(ssh::HostResult& result, const Tree& tree) {
  const std::vector<std::string> changed = find_changed(tree);
  if (changed.empty()) return;
  result.exit_code = 1;
  result.error =
      fmt::format("{}{} changed while the files were sent", changed.front(),
                  changed.size() > 1 ? fmt::format(" and {} other files", changed.size() - 1) : "");
  result.hint =
      "the same command sends the files as they are now; a file that is written all the time is "
      "left out by --exclude";
}

void set_unproven(ssh::HostResult& result, const std::string& folder) {
  result.exit_code = 1;
  result.error = fmt::format(
      "{} may be this very folder, and this cannot be found out: no file can be made here", folder);
  result.hint = "let the user here write into the folder, or give another --code_path";
}

ssh::Command prepare_command(std::shared_ptr<const ssh::SharedBytes> names, Compression compression,
                             const RemoteTree& tree) {
  host::PrepareRequest request{tree.folder, tree.fingerprint, tree.foreign == ForeignFiles::look,
                               compression == Compression::zstd};
  request.patience_ms = std::chrono::milliseconds(tree.patience).count();
  ssh::Command command = ssh::ask_host(request);
  command.input_from = std::move(names);
  return command;
}

ssh::Command prune_command(const RemoteTree& tree) {
  return ssh::ask_host(
      host::PruneRequest{tree.folder, tree.fingerprint, tree.digest, true, tree.own});
}

ssh::Command freeze_command(std::shared_ptr<const ssh::SharedBytes> names, Compression compression,
                            const RemoteTree& tree) {
  host::FreezeRequest request{tree.folder, tree.digest, tree.own.value_or(host::OwnTree()),
                              compression == Compression::zstd};
  request.patience_ms = std::chrono::milliseconds(tree.patience).count();
  ssh::Command command = ssh::ask_host(request);
  command.input_from = std::move(names);
  return command;
}

}  // namespace dtool::tree_sync
