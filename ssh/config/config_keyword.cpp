// SPDX-License-Identifier: MIT
#include "ssh/config/config_keyword.h"

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

/// Of readconf.c in OpenSSH 10, and what Debian adds to it; sorted.
constexpr std::array<std::string_view, 137> kKeywords = {"addkeystoagent",
                                                         "addressfamily",
                                                         "afstokenpassing",
                                                         "batchmode",
                                                         "bindaddress",
                                                         "bindinterface",
                                                         "canonicaldomains",
                                                         "canonicalizefallbacklocal",
                                                         "canonicalizehostname",
                                                         "canonicalizemaxdots",
                                                         "canonicalizepermittedcnames",
                                                         "casignaturealgorithms",
                                                         "certificatefile",
                                                         "challengeresponseauthentication",
                                                         "channeltimeout",
                                                         "checkhostip",
                                                         "cipher",
                                                         "ciphers",
                                                         "clearallforwardings",
                                                         "compression",
                                                         "compressionlevel",
                                                         "connectionattempts",
                                                         "connecttimeout",
                                                         "controlmaster",
                                                         "controlpath",
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
                                                         "globalknownhostsfile",
                                                         "globalknownhostsfile2",
                                                         "gssapiauthentication",
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
                                                         "hostbasedauthentication",
                                                         "hostbasedkeytypes",
                                                         "hostkeyalgorithms",
                                                         "hostkeyalias",
                                                         "hostname",
                                                         "identitiesonly",
                                                         "identityagent",
                                                         "identityfile",
                                                         "identityfile2",
                                                         "ignoreunknown",
                                                         "include",
                                                         "ipqos",
                                                         "kbdinteractiveauthentication",
                                                         "kbdinteractivedevices",
                                                         "keepalive",
                                                         "kerberosauthentication",
                                                         "kerberostgtpassing",
                                                         "kexalgorithms",
                                                         "knownhostscommand",
                                                         "localcommand",
                                                         "localforward",
                                                         "loglevel",
                                                         "logverbose",
                                                         "macs",
                                                         "match",
                                                         "nohostauthenticationforlocalhost",
                                                         "numberofpasswordprompts",
                                                         "obscurekeystroketiming",
                                                         "passwordauthentication",
                                                         "permitlocalcommand",
                                                         "permitremoteopen",
                                                         "pkcs11provider",
                                                         "port",
                                                         "preferredauthentications",
                                                         "protocol",
                                                         "protocolkeepalives",
                                                         "proxycommand",
                                                         "proxyjump",
                                                         "proxyusefdpass",
                                                         "pubkeyacceptedalgorithms",
                                                         "pubkeyacceptedkeytypes",
                                                         "pubkeyauthentication",
                                                         "refuseconnection",
                                                         "rekeylimit",
                                                         "remotecommand",
                                                         "remoteforward",
                                                         "requesttty",
                                                         "requiredrsasize",
                                                         "revokedhostkeys",
                                                         "rhostsauthentication",
                                                         "rhostsrsaauthentication",
                                                         "rsaauthentication",
                                                         "securitykeyprovider",
                                                         "sendenv",
                                                         "serveralivecountmax",
                                                         "serveraliveinterval",
                                                         "sessiontype",
                                                         "setenv",
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
                                                         "user",
                                                         "userknownhostsfile",
                                                         "userknownhostsfile2",
                                                         "useroaming",
                                                         "usersh",
                                                         "verifyhostkeydns",
                                                         "versionaddendum",
                                                         "visualhostkey",
                                                         "warnweakcrypto",
                                                         "xauthlocation"};
static_assert(std::ranges::is_sorted(kKeywords));

}  // namespace

void note_unless_known(std::string_view keyword, const std::string& place,
                       const std::vector<std::string>& ignored) {
  if (std::ranges::binary_search(kKeywords, keyword) || matches_any(keyword, ignored)) return;
  static std::set<std::string> told;  // a command reads its configuration several times
  if (told.insert(place).second)
    notice(fmt::format("{}: ssh knows no setting '{}': it is left out", place, keyword));
}

// Reads OpenSSH's times: numbers with a unit each, added up.

namespace {

constexpr std::int64_t kMostSeconds = 366LL * 24 * 3600;

std::int64_t seconds_in(char unit) {
  switch (unit) {
    case 's':
    case 'S':
      return 1;
    case 'm':
    case 'M':
      return 60;
    case 'h':
    case 'H':
      return 3600;
    case 'd':
    case 'D':
      return 24 * 3600;
    case 'w':
    case 'W':
      return 7 * 24 * 3600;
    default:
      return 0;
  }
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
