// SPDX-License-Identifier: MIT
// Who a host is, compared and told.
#include "killfiles/killfile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace dtool::killfiles {
namespace {

constexpr std::string_view kUnknown = "-";

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f');
}

bool is_machine_id(std::string_view text) {
  return text.size() == 32 && std::ranges::all_of(text, is_hex);
}

bool is_name(std::string_view text) {
  constexpr std::size_t kLongest = 64;  // Linux has no longer ones
  const auto may_stand_in_it = [](char c) {
    return is_alphanumeric(c) || c == '.' || c == '-' || c == '_';
  };
  return text != kUnknown && !text.empty() && text.size() <= kLongest &&
         std::ranges::all_of(text, may_stand_in_it);
}

bool is_boot_id(std::string_view text) {
  constexpr std::string_view kForm = "00000000-0000-0000-0000-000000000000";
  return std::ranges::equal(text, kForm,
                            [](char c, char form) { return form == '-' ? c == '-' : is_hex(c); });
}

bool is_namespace(std::string_view text) {
  return !text.empty() && text.size() <= 20 && std::ranges::all_of(text, is_digit);
}

bool is_host_key(std::string_view text) {
  const std::size_t blank = std::min(text.find(' '), text.size());
  const auto may_stand_in_type = [](char c) {
    return is_alphanumeric(c) || c == '-' || c == '@' || c == '.';
  };
  const auto is_base64 = [](char c) { return is_alphanumeric(c) || c == '+' || c == '/'; };
  constexpr std::string_view kHash = " SHA256:";
  const std::string_view rest = text.substr(blank);
  return blank > 0 && blank <= 64 &&
         std::ranges::all_of(text.substr(0, blank), may_stand_in_type) && rest.starts_with(kHash) &&
         rest.size() == kHash.size() + 43 &&
         std::ranges::all_of(rest.substr(kHash.size()), is_base64);
}

/// Compares only keys of one type: a server has several keys, and the client chooses which one it
/// shows.
enum class Keys { alike, differ, cannot_be_compared };

Keys compare_keys(const std::string& one, const std::string& other) {
  const bool is_one_type = !one.empty() && !other.empty() &&
                           one.substr(0, one.find(' ')) == other.substr(0, other.find(' '));
  if (!is_one_type) return Keys::cannot_be_compared;
  return one == other ? Keys::alike : Keys::differ;
}

std::string word(const std::string& value) {
  return value.empty() ? std::string(kUnknown) : value;
}

}  // namespace

Likeness compare(const HostIdentity& recorded, const HostIdentity& found) {
  if (!recorded.is_known()) return Likeness::unknown;
  const bool have_machine_ids = !recorded.machine_id.empty() && !found.machine_id.empty();
  const bool are_named_alike = !recorded.name.empty() && recorded.name == found.name &&
                               (!have_machine_ids || recorded.machine_id == found.machine_id);
  const bool have_namespaces =
      !recorded.process_namespace.empty() && !found.process_namespace.empty();
  if (found.is_known() && recorded.boot_id == found.boot_id) {
    const bool is_same =
        have_namespaces ? recorded.process_namespace == found.process_namespace : are_named_alike;
    return is_same ? Likeness::same : Likeness::another;
  }
  const Keys keys = compare_keys(recorded.host_key, found.host_key);
  const bool is_vouched_for = have_machine_ids ? keys != Keys::differ : keys == Keys::alike;
  if (!are_named_alike || !is_vouched_for) return Likeness::another;
  if (found.is_known()) return Likeness::rebooted;
  // A boot id that cannot be read any more proves no reboot.
  const bool is_same = have_namespaces && recorded.process_namespace == found.process_namespace;
  return is_same ? Likeness::same : Likeness::another;
}

bool is_well_formed(const HostIdentity& identity) {
  return (identity.machine_id.empty() || is_machine_id(identity.machine_id)) &&
         (identity.name.empty() || is_name(identity.name)) &&
         (identity.boot_id.empty() || is_boot_id(identity.boot_id)) &&
         (identity.process_namespace.empty() || is_namespace(identity.process_namespace)) &&
         (identity.host_key.empty() || is_host_key(identity.host_key));
}

std::optional<HostIdentity> parse_identity(std::string_view line) {
  HostIdentity identity;
  const std::array words = {&identity.machine_id, &identity.name, &identity.boot_id,
                            &identity.process_namespace};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t end = i + 1 < words.size() ? line.find(' ') : line.size();
    if (end == line.npos) return std::nullopt;
    const std::string_view text = line.substr(0, end);
    if (text.empty()) return std::nullopt;
    if (text != kUnknown) *words[i] = text;
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  if (!is_well_formed(identity)) return std::nullopt;
  return identity;
}

std::string to_line(const HostIdentity& identity) {
  if (!identity.is_known()) return "";
  return fmt::format("{} {} {} {}", word(identity.machine_id), word(identity.name),
                     identity.boot_id, word(identity.process_namespace));
}

std::string describe(const HostIdentity& identity) {
  if (!identity.is_known()) return "a host that does not say who it is";
  constexpr std::size_t kShort = 8;
  std::string text = fmt::format("{} (boot {}", identity.name.empty() ? "?" : identity.name,
                                 identity.boot_id.substr(0, kShort));
  if (!identity.machine_id.empty()) text += ", machine " + identity.machine_id.substr(0, kShort);
  if (!identity.process_namespace.empty())
    text += ", process namespace " + identity.process_namespace;
  if (!identity.host_key.empty()) text += ", " + identity.host_key;
  return text + ")";
}

}  // namespace dtool::killfiles
