#include "sync/push_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>

#include "ssh/machine/read_file.h"
#include "ssh/quote.h"
#include "ssh/script.h"
#include "ssh/scripts.h"
#include "sync/push.h"
#include "sync/scripts.h"

namespace dtool::tree_sync {
namespace {

/// What all scripts start with.
std::string preamble(const Place& place) {
  std::string text(ssh::answer_function());
  text += fmt::format("destination={}\ntree={}\n", ssh::quote_path(place.folder),
                      ssh::quote(place.fingerprint));
  return text.append(scripts::kManifest);
}

/// What those go on with that change something. `lock` is what the question found, if that was a
/// step of its own.
std::string for_changes(const Place& place, const std::string& lock) {
  std::string text =
      fmt::format("digest={}\nknown_lock={}\nforeign={}\n", ssh::quote(place.digest),
                  ssh::quote(lock), place.foreign == ForeignFiles::look ? "look" : "leave");
  return text.append(scripts::kChanges);
}

/// By what ask.sh knows the tree's own folder.
std::string identity(const Tree& tree) {
  struct stat root {};
  struct statfs file_system {};
  struct stat first {};
  ::stat(tree.root.c_str(), &root);
  ::statfs(tree.root.c_str(), &file_system);
  ::lstat((tree.root / tree.files.front()).c_str(), &first);
  return fmt::format(
      "root_boot={}\nroot_device={}\nroot_inode={}\nroot_type={:x}\nfirst={}\n"
      "first_identity='{} {} {}.{:09}'\n",
      ssh::quote(ssh::boot_id()), root.st_dev, root.st_ino,
      static_cast<std::uint32_t>(file_system.f_type), ssh::quote(tree.files.front()), first.st_ino,
      first.st_size, first.st_ctim.tv_sec, first.st_ctim.tv_nsec);
}

void set_no_answer(ssh::HostResult& result) {
  result.exit_code = 1;
  result.error = "the script's answer did not come: " + result.err;
}

/// What package.sh is told of a package.
std::string contents(const Package& package, const Place& place) {
  const auto decompressor = [&package] {
    switch (package.compression) {
      case Compression::none:
        break;
      case Compression::zstd:
        return "'zstd -dc'";
      case Compression::gzip:
        return "'gzip -dc'";
    }
    return "";
  };
  return fmt::format("patience={}\nnames_change={}\ndecompress={}\nkey={}\n",
                     place.patience.count(), package.changes_names ? "yes" : "no", decompressor(),
                     ssh::quote(package.key));
}

/// What a host does with a sealed package beside unpacking it.
std::string passing_on(const Package& package, const RelayPart& part) {
  std::string text = fmt::format("secret={}\nparent_address=\n", ssh::quote(part.secret));
  if (!part.secret.empty()) {
    const auto program = [](std::string_view listen, std::string_view serve) {
      return ssh::quote(std::string(listen).append(serve));
    };
    text += fmt::format("serve_with_perl={}\nserve_with_python={}\n",
                        program(ssh::scripts::kListen_perl, scripts::kServe_perl),
                        program(ssh::scripts::kListen_python, scripts::kServe_python));
  }
  if (part.parent) {
    text += fmt::format("parent_address={}\nparent_port={}\nparent_secret={}\n",
                        ssh::quote(part.parent->address), part.parent->port,
                        ssh::quote(part.parent->secret));
    const Sum& sum = package.sum->value();
    text += fmt::format("package_size={}\npackage_digest={}\n", sum.bytes, sum.sha256);
  }
  return text.append(scripts::kPass_on);
}

ssh::Command with_names(std::string_view script, Names& names, const Asked& host,
                        const Place& place) {
  std::string text = preamble(place) + for_changes(place, host.lock);
  text += fmt::format("decompress={}\n", host.has_gzip ? "'gzip -dc'" : "cat");
  return ssh::bash(text.append(scripts::kNames).append(script), names.stream(host));
}

}  // namespace

const std::shared_ptr<const ssh::ProgramOutput>& Names::stream(const Asked& host) {
  auto& stream = streams_[host.has_gzip];
  if (stream != nullptr) return stream;
  ssh::ProgramOutput made;
  made.arguments = {"cat"};
  if (host.has_gzip) made.arguments = {"gzip", "-c", "-1"};
  for (const std::string& file : tree_.files) made.input.append(file).push_back('\0');
  return stream = std::make_shared<const ssh::ProgramOutput>(std::move(made));
}

ssh::Command ask_command(const Tree& tree, const Place& place, const std::string& push,
                         const Package* guess) {
  std::string text = preamble(place) + identity(tree);
  text += fmt::format("push={}\nguess=\n", ssh::quote(push));
  if (guess == nullptr) return ssh::bash(text.append(scripts::kAsk));
  constexpr std::size_t kFew = 2000;  // most_arguments of manifest.sh: bash can hold their stamps
  const bool leads_from_a_tree = !guess->basis.empty();
  text += fmt::format("guess={}\n{}others_are_untouched={}\n",
                      leads_from_a_tree ? guess->basis : "nothing", contents(*guess, place),
                      leads_from_a_tree && tree.files.size() < kFew ? "yes" : "no");
  text += for_changes(place, "");
  return ssh::bash(text.append(scripts::kPackage).append(scripts::kAsk), guess->stream);
}

std::optional<Asked> read_asked(ssh::HostResult& result) {
  using State = Asked::State;
  static const std::map<std::string, State> kStates = {{"same_folder", State::same_folder},
                                                       {"whole", State::whole},
                                                       {"known", State::known},
                                                       {"guessed", State::guessed},
                                                       {"empty", State::empty},
                                                       {"unknown", State::unknown},
                                                       {"shared", State::shared}};
  const auto answers = answers_of(result);
  if (!answers) return std::nullopt;
  const auto state = kStates.find(ssh::find_answer(*answers, "state").value_or(""));
  if (state == kStates.end()) {
    set_no_answer(result);
    return std::nullopt;
  }
  const auto has = [&answers](const char* program) {
    const auto [begin, end] = answers->equal_range("has");
    return std::any_of(begin, end, [&](const auto& each) { return each.second == program; });
  };
  Asked asked;
  asked.state = state->second;
  asked.basis = ssh::find_answer(*answers, "basis").value_or("");
  asked.has_gzip = has("gzip") && can_compress(Compression::gzip);
  asked.has_openssl = has("openssl");
  asked.holder = ssh::find_number<std::size_t>(*answers, "holder");
  asked.can_serve = has("perl") || has("python3");
  asked.lock = ssh::find_answer(*answers, "lock").value_or("");
  if (!has("tar") || !has("find")) return asked;
  if (has("zstd") && can_compress(Compression::zstd)) {
    asked.compression = Compression::zstd;
  } else if (has("gzip") && can_compress(Compression::gzip)) {
    asked.compression = Compression::gzip;
  }
  return asked;
}

ssh::Command unpack_command(const Package& package, const Asked& host, const Place& place,
                            const RelayPart& part) {
  std::string text = preamble(place) + for_changes(place, host.lock);
  text += contents(package, place) + "others_are_untouched=no\n";
  if (!package.key.empty()) text += passing_on(package, part);
  text.append(scripts::kPackage).append(scripts::kUnpack);
  return part.parent ? ssh::bash(text) : ssh::bash(text, package.stream);
}

ssh::Command leave_command(const Place& place) {
  return ssh::bash(preamble(place) + "enter_destination\nrm -f -- \"$marks\"*\n");
}

void set_foreign(ssh::HostResult& result, const std::string& folder, std::size_t count,
                 const std::vector<std::string>& first) {
  result.exit_code = 1;
  result.error = fmt::format("{} in {} {} not from dtool and {} from the code tree: {}{}",
                             count == 1 ? "a file" : fmt::format("{} files", count), folder,
                             count == 1 ? "is" : "are", count == 1 ? "differs" : "differ",
                             fmt::join(first, ", "), count > first.size() ? ", …" : "");
  result.hint = "--force overwrites; to keep them, move them away or give another --code_path";
}

std::optional<Unpacked> read_unpacked(ssh::HostResult& result) {
  // The package could not be made here; whether rsync can read the tree it tells itself.
  if (result.failure == ssh::Failure::local_program) return Unpacked{false, 0, result.error};
  if (result.failure != ssh::Failure::none) return std::nullopt;
  const auto answers = ssh::read_answers(result.out);
  if (ssh::find_answer(answers, "error")) {
    answers_of(result);
    return std::nullopt;
  }
  if (const auto count = ssh::find_number<std::size_t>(answers, "foreign")) {
    const auto folder = ssh::find_answer(answers, "foreign_folder").value_or("the folder");
    set_foreign(result, folder, *count, ssh::every_answer(answers, "foreign_file"));
    return std::nullopt;
  }
  const auto removed = ssh::find_number<std::size_t>(answers, "removed");
  const bool is_whole = result.exit_code == 0 && removed && ssh::find_answer(answers, "unpacked");
  return Unpacked{is_whole, removed.value_or(0), ssh::find_answer(answers, "broken").value_or("")};
}

ssh::Command prepare_command(Names& names, const Asked& host, const Place& place) {
  return with_names(scripts::kPrepare, names, host, place);
}

std::optional<Prepared> read_prepared(ssh::HostResult& result) {
  const auto answers = answers_of(result);
  if (!answers) return std::nullopt;
  if (const auto foreign = ssh::find_answer(*answers, "foreign")) return Prepared{"", *foreign};
  const auto lock = ssh::find_answer(*answers, "lock");
  if (lock && ssh::find_answer(*answers, "prepared")) return Prepared{*lock};
  set_no_answer(result);
  return std::nullopt;
}

ssh::Command prune_command(Names& names, const Asked& host, const Place& place) {
  return with_names(scripts::kPrune, names, host, place);
}

std::optional<std::size_t> read_pruned(ssh::HostResult& result) {
  const auto answers = answers_of(result);
  if (!answers) return std::nullopt;
  const auto removed = ssh::find_number<std::size_t>(*answers, "removed");
  if (!removed) set_no_answer(result);
  return removed;
}

}  // namespace dtool::tree_sync
