// SPDX-License-Identifier: MIT
// Reads SSH client configuration as OpenSSH's readconf.c does: keyword, blanks or one `=`, values.
// Handles quotes, backslashes and comments after values. A block ends at the next Host or Match.
#include "ssh/config/config_block.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "ssh/host.h"
#include "ssh/machine/files.h"
#include "ssh/wire/words.h"

namespace dtool::ssh {

namespace {

namespace fs = std::filesystem;

constexpr int kDeepestInclude = 16;  // OpenSSH has the same limit
constexpr std::string_view kBlanks = " \t\r\f\v";

std::string_view trim(std::string_view text) {
  const std::string_view::size_type begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Takes one word off the front: quotes of both kinds, `\` before a quote, a `\` or, outside quotes,
// a blank.
std::string take_word(std::string_view& text) {
  std::string word;
  char quote = 0;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : 0;
    if (c == '\\' && (next == '"' || next == '\'' || next == '\\' || (next == ' ' && !quote))) {
      word += next;
      ++i;
    } else if (quote != 0 ? c == quote : (c == '"' || c == '\'')) {
      quote = quote != 0 ? 0 : c;
    } else if (quote == 0 && kBlanks.find(c) != std::string_view::npos) {
      break;
    } else {
      word += c;
    }
  }
  if (quote != 0)
    throw std::invalid_argument(fmt::format("the quotation mark {} has no partner", quote));
  text = trim(text.substr(i));
  return word;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (text = trim(text); !text.empty() && text.front() != '#';) words.push_back(take_word(text));
  return words;
}

std::vector<std::string> split_commas(std::string_view list) {
  std::vector<std::string> parts;
  for (const std::string_view part : host::split(list, ',')) parts.emplace_back(trim(part));
  return parts;
}

void require_jump(std::string_view jump) {
  if (jump.find('%') != std::string_view::npos) return;  // known only once the host is
  if (jump.starts_with("ssh://")) jump.remove_prefix(6);
  if (jump.ends_with('/')) jump.remove_suffix(1);
  parse_host(jump);
}

void require_value(const std::string& keyword, const std::string& value) {
  if (keyword == "port") {
    if (!host::parse_port(value)) {
      throw std::invalid_argument(fmt::format("Port '{}' is not a number from 1 to 65535", value));
    }
  } else if (keyword == "connecttimeout") {
    if (value != "none" && !read_config_time(value)) {
      throw std::invalid_argument(
          fmt::format("ConnectTimeout '{}' is not a time such as 10 or 1m30s", value));
    }
  } else if (keyword == "identitiesonly") {
    const std::string word = host::to_lower(value);
    if (word != "yes" && word != "no" && word != "true" && word != "false") {
      throw std::invalid_argument(fmt::format("IdentitiesOnly '{}' is not yes or no", value));
    }
  } else if (keyword == "proxyjump" && host::to_lower(value) != "none") {
    for (const std::string& jump : split_commas(value)) require_jump(jump);
  }
}

enum class Holds { if_it_matches, never, as_ssh_finds };

/// A criterion of Match. For dtool, one that depends on a second pass, a program or the local
/// network never holds; `canonical` does only where names are made so.
struct Criterion {
  std::string_view name;
  Holds holds;
  bool has_value = true;
};
constexpr std::array<Criterion, 12> kCriteria = {{{"host", Holds::if_it_matches},
                                                  {"originalhost", Holds::if_it_matches},
                                                  {"user", Holds::if_it_matches},
                                                  {"localuser", Holds::if_it_matches},
                                                  {"canonical", Holds::never, false},
                                                  {"final", Holds::as_ssh_finds, false},
                                                  {"exec", Holds::as_ssh_finds},
                                                  {"localnetwork", Holds::as_ssh_finds},
                                                  {"tagged", Holds::as_ssh_finds},
                                                  {"version", Holds::as_ssh_finds},
                                                  {"sessiontype", Holds::as_ssh_finds},
                                                  {"command", Holds::as_ssh_finds}}};

// The words of a Match line: `all`, `user ann,bob`, `!host=*.org`.
void read_match(const std::vector<std::string>& words, const std::string& place,
                ConfigBlock& block) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    ConfigCondition condition;
    std::string word = words[i];
    if (word.starts_with('!')) {
      condition.negated = true;
      word.erase(0, 1);
    }
    std::optional<std::string> argument;
    if (const std::size_t equals = word.find('='); equals != std::string::npos) {
      argument = word.substr(equals + 1);
      word.resize(equals);
    }
    condition.kind = host::to_lower(word);
    if (condition.kind == "all" && !condition.negated && !argument) continue;
    const auto* criterion = std::ranges::find(kCriteria, condition.kind, &Criterion::name);
    if (criterion == kCriteria.end())
      throw std::invalid_argument(fmt::format("Match knows no '{}'", words[i]));
    if (criterion->has_value && !argument) {
      if (i + 1 == words.size())
        throw std::invalid_argument(fmt::format("Match '{}' has no value", words[i]));
      argument = words[++i];
    }
    if (criterion->holds == Holds::as_ssh_finds && block.undecided.empty())
      block.undecided = fmt::format("Match {} ({})", condition.kind, place);
    if (criterion->holds == Holds::if_it_matches)
      condition.patterns = split_commas(*argument);
    else
      condition = {"never", {}, false};
    block.conditions.push_back(std::move(condition));
  }
}

// The files that an Include word names, in order; there may be none.
std::vector<fs::path> find_included(const std::string& word, const fs::path& folder,
                                    const fs::path& home) {
  fs::path pattern = word.starts_with("~/") ? home / word.substr(2) : fs::path(word);
  if (pattern.is_relative()) pattern = folder / pattern;
  glob_t found = {};
  std::vector<fs::path> files;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (const char* path : std::span(found.gl_pathv, found.gl_pathc)) {
      std::error_code ignored;  // folders and dangling links are passed over, as ssh does
      const fs::file_type type = fs::status(path, ignored).type();
      if (type != fs::file_type::directory && type != fs::file_type::not_found) {
        files.emplace_back(path);
      }
    }
  }
  globfree(&found);
  return files;
}

class ConfigReader {
 public:
  ConfigReader(fs::path folder, fs::path home)
      : folder_(std::move(folder)), home_(std::move(home)) {}

  // Reads a file whose every line is subject to `outer`, the block around its Include line.
  void read(const fs::path& file, std::optional<std::size_t> outer, int depth) {
    std::istringstream text(read_file(file));
    blocks_.push_back({outer, {}, {}, false});
    int number = 0;
    for (std::string line; std::getline(text, line);) {
      ++number;
      try {
        read_line(line, outer, depth, fmt::format("{}:{}", file.string(), number));
      } catch (const Placed&) {
        throw;
      } catch (const std::invalid_argument& fault) {
        throw Placed(fmt::format("{}:{}: {}", file.string(), number, fault.what()));
      } catch (const std::system_error& fault) {
        throw Placed(fmt::format("{}:{}: {}", file.string(), number, fault.what()));
      }
    }
  }

  std::vector<ConfigBlock> take() { return std::move(blocks_); }

 private:
  // A fault that names its line already.
  struct Placed : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
  };

  void read_line(std::string_view line, std::optional<std::size_t> outer, int depth,
                 const std::string& place) {
    line = trim(line);
    if (line.empty() || line.front() == '#') return;
    const std::size_t end = std::min(line.find_first_of(" \t\r\f\v="), line.size());
    const std::string keyword = host::to_lower(line.substr(0, end));
    std::string_view rest = trim(line.substr(end));
    if (rest.starts_with('=')) rest = trim(rest.substr(1));
    if (keyword == "include") {
      include(require_words("Include", rest), depth);
    } else if (keyword == "host" || keyword == "match") {
      std::vector<std::string> words = require_words(keyword == "host" ? "Host" : "Match", rest);
      ConfigBlock block{outer, {}, {}};
      if (keyword == "match")
        read_match(words, place, block);
      else
        block.conditions.push_back({"originalhost", std::move(words), false});
      blocks_.push_back(std::move(block));
    } else if (use_of(keyword) == KeywordUse::by_ssh) {
      const std::vector<std::string> words = require_words(keyword, rest);
      blocks_.back().settings.push_back({keyword, {words.front()}});
    } else if (use_of(keyword) == KeywordUse::by_dtool) {
      blocks_.back().settings.push_back(
          read_config_setting(line.substr(0, end), rest, ValueForm::file));
    } else if (keyword == "ignoreunknown") {
      for (const std::string& word : split_words(host::to_lower(rest)))
        std::ranges::move(split_commas(word), std::back_inserter(ignored_));
    } else {
      note_unless_known(keyword, place, ignored_);
    }
  }

  void include(const std::vector<std::string>& words, int depth) {
    if (depth == kDeepestInclude) {
      throw std::invalid_argument(fmt::format("Include is nested more than {} deep", depth));
    }
    const std::size_t around = blocks_.size() - 1;
    for (const std::string& word : words) {
      for (const fs::path& file : find_included(word, folder_, home_)) {
        read(file, around, depth + 1);
      }
    }
    blocks_.push_back({around, {}, {}, false});  // the block around the Include line goes on
  }

  static std::vector<std::string> require_words(std::string_view keyword, std::string_view text) {
    std::vector<std::string> words = split_words(text);
    if (words.empty() || words.front().empty())
      throw std::invalid_argument(fmt::format("{} has no value", keyword));
    return words;
  }

  fs::path folder_;
  fs::path home_;
  std::vector<ConfigBlock> blocks_;
  std::vector<std::string> ignored_;  ///< patterns of IgnoreUnknown, so far
};

}  // namespace

ConfigSetting read_config_setting(std::string_view keyword, std::string_view value,
                                  ValueForm form) {
  ConfigSetting setting = {host::to_lower(keyword), {}};
  const bool may_be_several = setting.keyword.ends_with("knownhostsfile");
  const bool is_quoted = value.find('"') != std::string_view::npos;
  if (setting.keyword == "proxycommand") {  // the rest of the line, quotes and all
    if (!trim(value).empty()) setting.values = {std::string(trim(value))};
  } else if (form == ValueForm::word && !may_be_several && !is_quoted) {
    setting.values = {std::string(value)};
  } else {
    setting.values = split_words(value);
  }
  if (setting.values.empty() || setting.values.front().empty()) {
    throw std::invalid_argument(fmt::format("{} has no value", keyword));
  }
  if (setting.values.size() > 1 && !may_be_several) {
    throw std::invalid_argument(
        fmt::format("{} has several values: '{}'\nhint: put quotes around a value with blanks",
                    keyword, trim(value)));
  }
  require_value(setting.keyword, setting.values.front());
  return setting;
}

std::vector<ConfigBlock> read_config_blocks(const fs::path& file, const fs::path& folder,
                                            const fs::path& home) {
  ConfigReader reader(folder, home);
  reader.read(file, std::nullopt, 0);
  return reader.take();
}

namespace {

// `*` any characters, `?` one.
bool matches(std::string_view text, std::string_view pattern) {
  std::size_t t = 0, p = 0, star = std::string_view::npos, after_star = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++t, ++p;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.substr(p).find_first_not_of('*') == std::string_view::npos;
}

// `${NAME}`; a variable that is not set stays, so that messages show what is missing.
std::string expand_variables(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t begin = text.find("${");
    const std::size_t end = begin == std::string_view::npos ? begin : text.find('}', begin);
    if (end == std::string_view::npos) return out.append(text);
    out += text.substr(0, begin);
    const std::string name(text.substr(begin + 2, end - begin - 2));
    const char* value = std::getenv(name.c_str());
    out += value != nullptr ? std::string_view(value) : text.substr(begin, end + 1 - begin);
    text.remove_prefix(end + 1);
  }
}

}  // namespace

bool matches_any(std::string_view text, const std::vector<std::string>& patterns) {
  bool found = false;
  for (const std::string_view pattern : patterns) {
    if (pattern.starts_with('!')) {
      if (matches(text, pattern.substr(1))) return false;
    } else {
      found = found || matches(text, pattern);
    }
  }
  return found;
}

std::string expand_tokens(std::string_view text, const ConfigTokens& tokens) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto token =
        text[i] == '%' && i + 1 < text.size() ? tokens.find(text[i + 1]) : tokens.end();
    if (token == tokens.end()) {
      out += text[i];
    } else {
      out += token->second;
      ++i;
    }
  }
  return out;
}

std::filesystem::path expand_path(std::string_view text, const ConfigTokens& tokens) {
  return from_home(expand_variables(expand_tokens(text, tokens)));
}

}  // namespace dtool::ssh
