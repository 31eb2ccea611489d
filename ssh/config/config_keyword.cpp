// SPDX-License-Identifier: MIT
// The keywords of SSH client configuration files, and the times in them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <set>

#include "ssh/config/config_block.h"
#include "ssh/notice.h"

namespace dtool::ssh {

namespace {

/// Decided by `ssh` alone; dtool asks only whether they are there.
constexpr std::array<std::string_view, 16> kOfProgram = {"controlpath",
                                                         "canonicalizehostname",
                                                         "knownhostscommand",
                                                         "pkcs11provider",
                                                         "passwordauthentication",
                                                         "kbdinteractiveauthentication",
                                                         "gssapiauthentication",
                                                         "hostbasedauthentication",
                                                         "challengeresponseauthentication",
                                                         "revokedhostkeys",
                                                         "hostkeyalgorithms",
                                                         "bindaddress",
                                                         "bindinterface",
                                                         "setenv",
                                                         "pubkeyauthentication",
                                                         "preferredauthentications"};

/// dtool follows these itself.
constexpr std::array<std::string_view, 20> kUsed = {"addressfamily",
                                                    "ciphers",
                                                    "macs",
                                                    "kexalgorithms",
                                                    "requiredrsasize",
                                                    "pubkeyacceptedalgorithms",
                                                    "pubkeyacceptedkeytypes",
                                                    "hostname",
                                                    "hostkeyalias",
                                                    "user",
                                                    "port",
                                                    "identityfile",
                                                    "identitiesonly",
                                                    "identityagent",
                                                    "userknownhostsfile",
                                                    "globalknownhostsfile",
                                                    "proxyjump",
                                                    "proxycommand",
                                                    "connecttimeout",
                                                    "certificatefile"};

/// The others of readconf.c in OpenSSH 10, and what Debian adds to it; sorted.
constexpr std::array<std::string_view, 101> kUnused = {"addkeystoagent",
                                                       "afstokenpassing",
                                                       "batchmode",
                                                       "canonicaldomains",
                                                       "canonicalizefallbacklocal",
                                                       "canonicalizemaxdots",
                                                       "canonicalizepermittedcnames",
                                                       "casignaturealgorithms",
                                                       "channeltimeout",
                                                       "checkhostip",
                                                       "cipher",
                                                       "clearallforwardings",
                                                       "compression",
                                                       "compressionlevel",
                                                       "connectionattempts",
                                                       "controlmaster",
                                                       "controlpersist",
                                                       "dsaauthentication",
                                                       "dynamicforward",
                                                       "enableescapecommandline",
                                                       "enablesshkeysign",
                                                       "escapechar",
                                                       "exitonforwardfailure",
                                                       "fallbacktorsh",
                                                       "fingerprinthash",
                                                       "forkafterauthentication",
                                                       "forwardagent",
                                                       "forwardx11",
                                                       "forwardx11timeout",
                                                       "forwardx11trusted",
                                                       "gatewayports",
                                                       "globalknownhostsfile2",
                                                       "gssapiclientidentity",
                                                       "gssapidelegatecredentials",
                                                       "gssapikexalgorithms",
                                                       "gssapikeyexchange",
                                                       "gssapirenewalforcesrekey",
                                                       "gssapiserveridentity",
                                                       "gssapitrustdns",
                                                       "hashknownhosts",
                                                       "host",
                                                       "hostbasedacceptedalgorithms",
                                                       "hostbasedkeytypes",
                                                       "identityfile2",
                                                       "ignoreunknown",
                                                       "include",
                                                       "ipqos",
                                                       "kbdinteractivedevices",
                                                       "keepalive",
                                                       "kerberosauthentication",
                                                       "kerberostgtpassing",
                                                       "localcommand",
                                                       "localforward",
                                                       "loglevel",
                                                       "logverbose",
                                                       "match",
                                                       "nohostauthenticationforlocalhost",
                                                       "numberofpasswordprompts",
                                                       "obscurekeystroketiming",
                                                       "permitlocalcommand",
                                                       "permitremoteopen",
                                                       "protocol",
                                                       "protocolkeepalives",
                                                       "proxyusefdpass",
                                                       "refuseconnection",
                                                       "rekeylimit",
                                                       "remotecommand",
                                                       "remoteforward",
                                                       "requesttty",
                                                       "rhostsauthentication",
                                                       "rhostsrsaauthentication",
                                                       "rsaauthentication",
                                                       "securitykeyprovider",
                                                       "sendenv",
                                                       "serveralivecountmax",
                                                       "serveraliveinterval",
                                                       "sessiontype",
                                                       "setuptimeout",
                                                       "skeyauthentication",
                                                       "smartcarddevice",
                                                       "stdinnull",
                                                       "streamlocalbindmask",
                                                       "streamlocalbindunlink",
                                                       "stricthostkeychecking",
                                                       "syslogfacility",
                                                       "tag",
                                                       "tcpkeepalive",
                                                       "tisauthentication",
                                                       "tunnel",
                                                       "tunneldevice",
                                                       "updatehostkeys",
                                                       "useblacklistedkeys",
                                                       "useprivilegedport",
                                                       "userknownhostsfile2",
                                                       "useroaming",
                                                       "usersh",
                                                       "verifyhostkeydns",
                                                       "versionaddendum",
                                                       "visualhostkey",
                                                       "warnweakcrypto",
                                                       "xauthlocation"};
static_assert(std::ranges::is_sorted(kUnused));

}  // namespace

KeywordUse use_of(std::string_view keyword) {
  if (std::ranges::find(kOfProgram, keyword) != kOfProgram.end()) return KeywordUse::by_ssh;
  if (std::ranges::find(kUsed, keyword) != kUsed.end()) return KeywordUse::by_dtool;
  const bool is_known = std::ranges::binary_search(kUnused, keyword);
  return is_known ? KeywordUse::by_nobody : KeywordUse::unknown;
}

void note_unless_known(std::string_view keyword, const std::string& place,
                       const std::vector<std::string>& ignored) {
  if (use_of(keyword) != KeywordUse::unknown || matches_any(keyword, ignored)) return;
  static std::set<std::string> told;  // a command reads its configuration several times
  if (told.insert(place).second)
    notice(fmt::format("{}: ssh knows no setting '{}': it is left out", place, keyword));
}

// Reads OpenSSH's times: numbers with a unit each, added up.

namespace {

constexpr std::int64_t kMostSeconds = 366LL * 24 * 3600;

/// Nothing, as 0, for a letter that is no unit.
std::int64_t seconds_in(char unit) {
  constexpr std::string_view kUnits = "smhdwSMHDW";
  constexpr std::array<std::int64_t, 5> kSeconds = {1, 60, 3600, 24 * 3600, 7 * 24 * 3600};
  const std::size_t place = kUnits.find(unit);
  return place == kUnits.npos ? 0 : kSeconds.at(place % kSeconds.size());
}

}  // namespace

std::optional<std::chrono::seconds> read_config_time(std::string_view text) {
  std::int64_t total = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    std::int64_t count = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || count < 0 || count > kMostSeconds) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    const std::int64_t unit = text.empty() ? 1 : seconds_in(text.front());
    if (unit == 0) return std::nullopt;
    if (!text.empty()) text.remove_prefix(1);
    total += count * unit;
    if (total > kMostSeconds) return std::nullopt;
  }
  return std::chrono::seconds(total);
}

}  // namespace dtool::ssh
