// One pass over the text. A cell only becomes a string in the header and in messages.
#include "trainer/data/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "trainer/data/csv_cell.h"
#include "trainer/data/packed_file.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

struct Cell {
  std::string_view inside;  ///< without quotes and blanks around; doubled quotes are as they were
  enum class End { separator, row } end = End::row;
};

class Parser {
 public:
  Parser(const std::string& name, std::string_view text, const CsvFormat& format)
      : text_(text), format_(format) {
    table_.file = name;
  }

  CsvTable parse();

 private:
  void refuse_other_encodings() const;
  char find_separator() const;
  bool skip_empty_lines();
  Cell next_cell();
  std::string_view quoted_inside();
  void end_line();
  std::vector<std::string_view> next_row();
  void take_first_row();
  void name_columns(const std::vector<std::string_view>& cells);
  void reserve();
  void take_row();
  void take_cell(std::size_t column, std::string_view inside);
  bool take_plain_number();
  [[noreturn]] void refuse_count(std::size_t cells) const;
  [[noreturn]] void fail(const std::string& why, const std::string& hint = "") const;

  bool is_blank(char c) const { return c == ' ' || (c == '\t' && separator_ != '\t'); }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool at_line_end() const {
    return at_ == text_.size() || text_[at_] == '\n' ||
           (text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n'));
  }

  std::string_view text_;
  CsvFormat format_;
  CsvTable table_;
  char separator_ = ',';
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  std::int64_t row_line_ = 1;  ///< where the row being read begins
};

CsvTable Parser::parse() {
  if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
  refuse_other_encodings();
  separator_ = find_separator();
  if (!skip_empty_lines()) {
    throw UsageError(fmt::format("{}: holds no rows", table_.file));
  }
  take_first_row();
  reserve();
  while (skip_empty_lines()) take_row();
  if (table_.lines.empty()) {
    throw UsageError(fmt::format("{}: holds a header and no rows", table_.file));
  }
  return std::move(table_);
}

void Parser::fail(const std::string& why, const std::string& hint) const {
  throw UsageError(fmt::format("{}:{}: {}", table_.file, row_line_, why), hint);
}

void Parser::refuse_other_encodings() const {
  const bool utf16 = text_.starts_with("\xff\xfe") || text_.starts_with("\xfe\xff");
  if (utf16) throw UsageError(fmt::format("{}: is in UTF-16", table_.file), "save it as UTF-8");
  if (text_.substr(0, 4096).find('\0') != std::string_view::npos) {
    throw UsageError(fmt::format("{}: is not text", table_.file));
  }
}

/// Numbers have no tabs and semicolons, but some have commas for points.
char Parser::find_separator() const {
  switch (format_.separator) {
    case Separator::comma:
      return ',';
    case Separator::semicolon:
      return ';';
    case Separator::tab:
      return '\t';
    case Separator::automatic:
      break;
  }
  bool quoted = false;
  bool semicolon = false;
  const auto begin = text_.find_first_not_of(" \r\n");
  for (std::size_t i = std::min(begin, text_.size()); i < text_.size(); ++i) {
    if (text_[i] == '"') quoted = !quoted;
    if (quoted) continue;
    if (text_[i] == '\n') break;
    if (text_[i] == '\t') return '\t';
    semicolon = semicolon || text_[i] == ';';
  }
  return semicolon ? ';' : ',';
}

/// False at the end of the text.
bool Parser::skip_empty_lines() {
  for (;;) {
    const auto begin = at_;
    skip_blanks();
    if (at_ == text_.size()) return false;
    if (!at_line_end()) {
      at_ = begin;
      row_line_ = line_;
      return true;
    }
    end_line();
  }
}

void Parser::end_line() {
  if (at_ < text_.size() && text_[at_] == '\r') ++at_;
  if (at_ < text_.size()) ++at_;
  ++line_;
}

/// After the opening quote; leaves `at_` after the closing one.
std::string_view Parser::quoted_inside() {
  const auto begin = at_;
  for (; at_ < text_.size(); ++at_) {
    if (text_[at_] == '\n') ++line_;
    if (text_[at_] != '"') continue;
    if (at_ + 1 == text_.size() || text_[at_ + 1] != '"') {
      ++at_;
      return text_.substr(begin, at_ - 1 - begin);
    }
    ++at_;  // a doubled quote
  }
  fail("a quote that is never closed");
}

Cell Parser::next_cell() {
  skip_blanks();
  Cell cell;
  if (at_ < text_.size() && text_[at_] == '"') {
    ++at_;
    cell.inside = quoted_inside();
    skip_blanks();
    if (!at_line_end() && text_[at_] != separator_) {
      fail(fmt::format("after the closing quote of '{}' comes more text", shown(cell.inside)));
    }
  } else {
    const auto begin = at_;
    while (!at_line_end() && text_[at_] != separator_) ++at_;
    auto end = at_;
    while (end > begin && is_blank(text_[end - 1])) --end;
    cell.inside = text_.substr(begin, end - begin);
  }
  if (at_line_end()) {
    end_line();
  } else {
    ++at_;
    cell.end = Cell::End::separator;
  }
  return cell;
}

std::vector<std::string_view> Parser::next_row() {
  std::vector<std::string_view> cells;
  for (;;) {
    const Cell cell = next_cell();
    cells.push_back(cell.inside);
    if (cell.end == Cell::End::row) return cells;
  }
}

void Parser::take_first_row() {
  const auto begin = at_;
  const auto begin_line = line_;
  const auto cells = next_row();
  std::optional<std::string_view> number;
  std::optional<std::string_view> text;
  for (const auto& each : cells) {
    double value = 0;
    const Reading reading = read_cell(each, value);
    if (reading != Reading::none && reading != Reading::empty) number = each;
    if (reading == Reading::none) text = each;
  }
  if (format_.header == Header::automatic && number && text) {
    fail(fmt::format("'{}' is a number and '{}' is none, so this may be a header or not",
                     shown(*number), shown(*text)),
         "say data.header = \"yes\" or \"no\"");
  }
  const bool header = format_.header == Header::present ||
                      (format_.header == Header::automatic && text.has_value());
  if (header) return name_columns(cells);
  for (std::size_t i = 0; i < cells.size(); ++i) table_.columns.push_back(fmt::format("{}", i + 1));
  at_ = begin;
  line_ = begin_line;
  take_row();
}

void Parser::name_columns(const std::vector<std::string_view>& cells) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::string name(cells[i]);
    for (auto at = name.find("\"\""); at != std::string::npos; at = name.find("\"\"", at + 1)) {
      name.erase(at, 1);
    }
    if (name.empty()) name = fmt::format("column {}", i + 1);
    if (!seen.insert(name).second) fail(fmt::format("two columns are called '{}'", shown(name)));
    table_.columns.push_back(name);
  }
}

/// For as many rows as there are lines, so that no growing table is copied.
void Parser::reserve() {
  const auto lines = static_cast<std::size_t>(std::count(text_.begin(), text_.end(), '\n')) + 1;
  table_.lines.reserve(lines);
  table_.values.reserve(std::min(lines * table_.columns.size(), text_.size() / 2 + 1));
}

/// The way of nearly every cell: digits up to the separator or the end of the line.
bool Parser::take_plain_number() {
  std::string_view rest = text_.substr(at_);
  double value = 0;
  if (take_number(rest, value) != Reading::number) return false;
  if (!rest.empty() && rest.front() != separator_ && rest.front() != '\n' && rest.front() != '\r') {
    return false;
  }
  const auto before = at_;
  at_ = text_.size() - rest.size();
  if (!at_line_end() && text_[at_] != separator_) {
    at_ = before;
    return false;
  }
  table_.values.push_back(value);
  return true;
}

void Parser::take_row() {
  table_.lines.push_back(row_line_);
  const std::size_t columns = table_.columns.size();
  for (std::size_t column = 0;; ++column) {
    bool last = false;
    const auto begin = at_;
    const auto begin_line = line_;
    if (take_plain_number()) {
      last = at_line_end();
      if (last) {
        end_line();
      } else {
        ++at_;
      }
    } else {
      const Cell cell = next_cell();
      last = cell.end == Cell::End::row;
      take_cell(column, cell.inside);
    }
    if (last && column + 1 == columns) return;
    if (last != (column + 1 == columns)) {
      at_ = begin;
      line_ = begin_line;
      refuse_count(column + next_row().size());
    }
  }
}

void Parser::take_cell(std::size_t column, std::string_view inside) {
  double value = 0;
  const Reading reading = read_cell(inside, value);
  if (reading != Reading::number)
    refuse_cell(table_.place(table_.rows() - 1, column), inside, reading);
  table_.values.push_back(value);
}

void Parser::refuse_count(std::size_t cells) const {
  fail(fmt::format("has {} cell{}, the first row has {}", cells, cells == 1 ? "" : "s",
                   table_.columns.size()));
}

}  // namespace

std::string CsvTable::place(std::int64_t row, std::size_t column) const {
  return fmt::format("{}:{}: column '{}'", file, lines[static_cast<std::size_t>(row)],
                     shown(columns[column]));
}

CsvTable parse_csv(const std::string& name, std::string_view text, const CsvFormat& format) {
  return Parser(name, text, format).parse();
}

CsvTable read_csv(const std::filesystem::path& file, const CsvFormat& format) {
  return parse_csv(file.string(), read_packed(file), format);
}

}  // namespace dtool::trainer
