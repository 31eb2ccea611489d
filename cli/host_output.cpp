// SPDX-License-Identifier: MIT
#include "cli/host_output.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "cli/failures.h"

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

void FoldedOutput::print() {
  std::vector<std::string> order;
  std::map<std::string_view, std::vector<ssh::Host>> said_by;
  for (std::size_t host = 0; host < outputs_.size(); ++host) {
    if (outputs_[host].empty()) continue;
    if (!said_by.contains(outputs_[host])) order.push_back(outputs_[host]);
    said_by[outputs_[host]].push_back(hosts_[host]);
  }
  for (const std::string& output : order) {
    const std::vector<ssh::Host>& hosts = said_by.at(output);
    const std::string rule(20, '-');
    console_.say(console_.styled(
        Style::bold, hosts.size() == 1 ? fmt::format("{}\n{}\n{}", rule, fold_hosts(hosts), rule)
                                       : fmt::format("{}\n{} ({})\n{}", rule, fold_hosts(hosts),
                                                     hosts.size(), rule)));
    const std::string whole = output.ends_with('\n') ? output : output + "\n";
    std::string text;
    for (std::size_t at = 0, end = 0; at < whole.size(); at = end) {
      end = whole.find('\n', at) + 1;
      text += console_.as_passed_on(To::out, "", std::string_view(whole).substr(at, end - at));
    }
    console_.pass_on(To::out, text);
  }
}

}  // namespace dtool::cli
