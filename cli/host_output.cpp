// SPDX-License-Identifier: MIT
#include "cli/host_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "cli/action.h"
#include "cli/console.h"
#include "ssh/host.h"
#include "ssh/machine/files.h"
#include "ssh/machine/run_to_end.h"
#include "ssh/quote.h"

namespace dtool::cli {

namespace {

/// A line longer than this is shown in pieces, so that a host cannot fill the memory with one.
constexpr std::size_t kLongestLine = 1 << 20;

}  // namespace

void AnswerCount::on_result(std::size_t, const ssh::HostResult&) {
  ++answered_;
  console_.progress(answered_ < hosts_.size()
                        ? fmt::format("{}: {} of {} hosts", doing_, answered_, hosts_.size())
                        : std::string());
}

void AnswerCount::on_silence(const std::vector<std::size_t>& waiting) {
  const std::string named = waiting_for(hosts_, waiting);
  if (!named.empty())
    console_.progress(fmt::format("{}: {} of {} hosts{}", doing_, answered_, hosts_.size(), named));
}

std::string waiting_for(const std::vector<ssh::Host>& hosts,
                        const std::vector<std::size_t>& waiting) {
  constexpr std::size_t kFew = 3;
  if (waiting.empty() || waiting.size() > kFew) return "";
  std::vector<ssh::Host> named;
  for (const std::size_t host : waiting) named.push_back(hosts.at(host));
  return fmt::format(", waiting for {}", fold_hosts(named));
}

void AnswerCount::on_interrupt(const std::vector<std::size_t>& running) {
  std::vector<ssh::Host> hosts;
  for (const std::size_t host : running) hosts.push_back(hosts_[host]);
  if (on_interrupt_ == ssh::OnInterrupt::leave && !hosts.empty())
    return console_.note("interrupted: the command ends on " + fold_hosts_in_short(hosts));
  console_.note(hosts.empty() ? std::string("interrupted")
                              : fmt::format("interrupted: nothing more is started; waiting for {} "
                                            "(Ctrl-C again leaves them)",
                                            fold_hosts_in_short(hosts)));
}

StreamedOutput::StreamedOutput(Console& console, const std::vector<ssh::Host>& hosts,
                               std::string doing, std::vector<std::string> prefixes)
    : AnswerCount(console, hosts, std::move(doing)),
      prefixes_(std::move(prefixes)),
      unfinished_(2 * hosts.size()) {
  if (!prefixes_.empty()) return;
  for (const ssh::Host& host : hosts) prefixes_.push_back(ssh::to_string(host));
}

std::string& StreamedOutput::unfinished(std::size_t host, ssh::Stream stream) {
  return unfinished_[2 * host + (stream == ssh::Stream::out ? 0 : 1)];
}

void StreamedOutput::on_output(std::size_t host, ssh::Stream stream, std::string_view bytes) {
  std::string& line = unfinished(host, stream);
  const std::size_t end = bytes.rfind('\n');
  if (end == bytes.npos) {
    line += bytes;
    if (line.size() < kLongestLine) return;
    print(host, stream, std::exchange(line, {}) + "\n");
    return;
  }
  line += bytes.substr(0, end + 1);
  print(host, stream, line);
  line = bytes.substr(end + 1);
}

void StreamedOutput::on_result(std::size_t host, const ssh::HostResult& result) {
  for (const ssh::Stream stream : {ssh::Stream::out, ssh::Stream::err}) {
    std::string& line = unfinished(host, stream);
    if (!line.empty()) print(host, stream, std::exchange(line, {}) + "\n");
  }
  AnswerCount::on_result(host, result);
}

void StreamedOutput::print(std::size_t host, ssh::Stream stream, std::string_view lines) {
  const To to = stream == ssh::Stream::out ? To::out : To::err;
  const std::string label = prefixes_[host] + ":";
  const std::string prefix = (to == To::out ? console_.styled(Style::blue, label)
                                            : console_.styled_error(Style::blue, label)) +
                             " ";
  std::string text;
  text.reserve(lines.size() + 64);
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n') + 1;
    text += console_.as_passed_on(to, prefix, lines.substr(0, end));
    lines.remove_prefix(end);
  }
  console_.pass_on(to, text);
}

void FoldedOutput::on_output(std::size_t host, ssh::Stream, std::string_view bytes) {
  constexpr std::size_t kMost = std::size_t{64} << 20U;
  std::string& output = outputs_[host];
  if (output.size() > kMost) return;
  output += bytes;
  if (output.size() > kMost) output += "\n… the rest is left out\n";
}

std::string FoldedOutput::Group::name() const {
  return hosts.size() == 1 ? fold_hosts(hosts)
                           : fmt::format("{} ({})", fold_hosts(hosts), hosts.size());
}

/// In the order of each one's first host. Hosts without output have a group only if there are
/// results, which say that they did not fail.
std::vector<FoldedOutput::Group> FoldedOutput::groups(
    const std::vector<ssh::HostResult>& results) const {
  std::vector<Group> all;
  std::map<std::string_view, std::size_t> places;
  for (std::size_t host = 0; host < outputs_.size(); ++host) {
    const std::string& output = outputs_[host];
    const bool is_left_out = results.empty() || results[host].failure != ssh::Failure::none;
    if (output.empty() && is_left_out) continue;
    const auto [place, is_new] = places.try_emplace(output, all.size());
    const bool is_whole = output.empty() || output.ends_with('\n');
    if (is_new) all.push_back({is_whole ? output : output + "\n", {}});
    all[place->second].hosts.push_back(hosts_[host]);
  }
  return all;
}

void FoldedOutput::print(const Group& group) {
  const std::string rule(20, '-');
  console_.say(console_.styled(Style::bold, fmt::format("{}\n{}\n{}", rule, group.name(), rule)));
  pass_on(group.output);
}

void FoldedOutput::pass_on(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0, end = 0; at < text.size(); at = end) {
    end = text.find('\n', at) + 1;
    shown += console_.as_passed_on(To::out, "", text.substr(at, end - at));
  }
  console_.pass_on(To::out, shown);
}

void FoldedOutput::print() {
  for (const Group& group : groups({})) print(group);
}

void FoldedOutput::print_differences(const std::vector<ssh::HostResult>& results) {
  const std::vector<Group> all = groups(results);
  if (all.empty()) return;
  const auto size = [](const Group& each) { return each.hosts.size(); };
  const Group& commonest = *std::ranges::max_element(all, {}, size);
  print(commonest);
  const auto path_of = [](const ssh::OwnedFd& file) {
    return fmt::format("/proc/{}/fd/{}", ::getpid(), file.get());
  };
  const ssh::OwnedFd usual = ssh::memory_file(commonest.output);
  for (const Group& group : all) {
    if (&group == &commonest) continue;
    const ssh::OwnedFd other = ssh::memory_file(group.output);
    const auto found = ssh::run_to_end({"diff", "-u", "-a", "-L", commonest.name(), "-L",
                                        group.name(), path_of(usual), path_of(other)});
    if (!found || found->exit_code > 1)
      throw std::runtime_error("diff could not compare the outputs: " + (found ? found->err : ""));
    pass_on(found->out);
  }
}

namespace {

/// A failure that several hosts share.
struct LikeFailures {
  std::string description;
  std::string hint;
  std::vector<ssh::Host> hosts;
  std::string address;  ///< the last host's, if its name stands for another
};

/// `text` with `to` wherever `from` stands as a whole word.
std::string with_name(std::string text, std::string_view from, std::string_view to) {
  const auto goes_on = [&text](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 ||
                                std::string_view("-_.").find(text[at]) != std::string_view::npos);
  };
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at)) {
    const bool is_word = !goes_on(at + from.size()) && (at == 0 || !goes_on(at - 1));
    if (is_word) text.replace(at, from.size(), to);
    at += is_word ? to.size() : from.size();
  }
  return text;
}

/// In the order in which they first appear. That each names its own host makes no two of them.
std::vector<LikeFailures> fold_failures(const std::vector<ssh::HostResult>& results) {
  std::vector<LikeFailures> failures;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (const ssh::HostResult& result : results) {
    if (result.ok()) continue;
    const std::string description =
        with_name(describe(result), result.host.name, ssh::kHostsInHint);
    const auto [place, is_new] = places.try_emplace({description, result.hint}, failures.size());
    if (is_new) failures.push_back({description, result.hint, {}, {}});
    LikeFailures& alike = failures[place->second];
    alike.hosts.push_back(result.host);
    alike.address = result.address;
  }
  return failures;
}

/// Puts a host's text below its name, so that no line of it looks like one of dtool's.
std::string indented(const std::string& text) {
  constexpr std::string_view kIndent = "      ";
  std::string shown;
  for (std::size_t at = 0; at < text.size(); ++at) {
    shown += text[at];
    if (text[at] == '\n' && !std::string_view(text).substr(at + 1).starts_with(kIndent))
      shown += kIndent;
  }
  return shown;
}

}  // namespace

std::string hint_for(std::string hint, const std::string& hosts) {
  const std::size_t at = hint.find(ssh::kHostsInHint);
  if (at != hint.npos) hint.replace(at, ssh::kHostsInHint.size(), ssh::quote(hosts));
  return hint;
}

std::string describe(const ssh::HostResult& result) {
  if (!result.error.empty()) return result.error;
  constexpr int kSignalBase = 128;
  if (result.exit_code > kSignalBase && result.exit_code < kSignalBase + 65) {
    return fmt::format("exit code {} (signal {})", result.exit_code,
                       result.exit_code - kSignalBase);
  }
  return fmt::format("exit code {}", result.exit_code);
}

std::size_t report_failures(Console& console, const std::vector<ssh::HostResult>& results,
                            std::string_view doing) {
  const std::vector<LikeFailures> failures = fold_failures(results);
  std::size_t count = 0;
  for (const LikeFailures& each : failures) count += each.hosts.size();
  if (count == 0) return 0;
  // Those that were ended for another's failure are listed, and not counted.
  const auto by_itself = static_cast<std::size_t>(std::ranges::count_if(
      results, [](const ssh::HostResult& each) { return !each.ok() && !each.was_ended; }));
  const std::string hosts_text = results.size() == 1
                                     ? ""
                                     : fmt::format("{} of {} ", by_itself == 0 ? count : by_itself,
                                                   counted(results.size(), "host"));
  console.fail(fmt::format("{}failed: {}", hosts_text, doing));
  for (const LikeFailures& each : failures) {
    const std::string hosts = fold_hosts(each.hosts);
    std::vector<std::string> names;
    for (const ssh::Host& host : each.hosts) names.push_back(host.name);
    const std::string description =
        with_name(each.description, ssh::kHostsInHint, ssh::fold(names));
    std::string text =
        fmt::format("  {}: {}", console.styled_error(Style::bold, hosts), indented(description));
    if (each.hosts.size() == 1 && !each.address.empty())
      text += fmt::format(" (address {})", each.address);
    if (!each.hint.empty()) {
      text += fmt::format("\n    {} {}", console.styled_error(Style::yellow, "hint:"),
                          hint_for(each.hint, hosts));
    }
    console.complain(text);
  }
  return count;
}

nlohmann::json to_json(const ssh::HostResult& result) {
  nlohmann::json json = {
      {"host", ssh::to_string(result.host)},
      {"exit_code", result.exit_code < 0 ? nlohmann::json() : nlohmann::json(result.exit_code)},
      {"failure", std::string(ssh::to_string(result.failure))},
      {"elapsed_s", static_cast<double>(result.elapsed.count()) / 1000.0}};
  if (!result.error.empty()) json["error"] = result.error;
  if (!result.hint.empty()) json["hint"] = hint_for(result.hint, ssh::to_string(result.host));
  return json;
}

std::string fold_hosts(const std::vector<ssh::Host>& hosts) {
  std::vector<std::string> names;
  for (const ssh::Host& host : hosts) names.push_back(ssh::to_string(host));
  return ssh::fold(names);
}

std::string fold_hosts_in_short(const std::vector<ssh::Host>& hosts) {
  constexpr std::size_t kShort = 160;
  const std::string text = fold_hosts(hosts);
  if (text.size() <= kShort) return text;
  const std::size_t comma = text.rfind(',', kShort);
  return fmt::format("{},… ({} hosts)", text.substr(0, std::min(comma, kShort)), hosts.size());
}

int exit_code_of(const std::vector<ssh::HostResult>& results, const ssh::Remote& remote) {
  if (remote.interrupted()) return kInterrupted;
  const bool all_well =
      std::all_of(results.begin(), results.end(), [](const auto& result) { return result.ok(); });
  return all_well ? kAllWell : kSomeFailed;
}

}  // namespace dtool::cli
