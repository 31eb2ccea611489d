// SPDX-License-Identifier: MIT
// Character by character. A row's cells are stored one after another in one string, which all rows
// reuse.
#include "trainer/data/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "killfiles/printable.h"
#include "trainer/data/idx.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

constexpr int kEnd = -1;  ///< the end of the file

/// As much of a cell as a message needs.
std::string shown(std::string_view text) {
  return killfiles::printable_start(text, 40);
}

/// std::from_chars, which no locale changes, and which knows no leading plus.
std::from_chars_result read_number(std::string_view cell, double& value) {
  if (cell.size() > 1 && cell[0] == '+' && cell[1] != '-') cell.remove_prefix(1);
  return std::from_chars(cell.data(), cell.data() + cell.size(), value);
}

bool is_number(std::string_view cell) {
  double value = 0;
  const auto [end, error] = read_number(cell, value);
  return error == std::errc() && end == cell.data() + cell.size();
}

/// How to write a cell that was meant as a number.
std::string hint_for(std::string_view cell) {
  if (cell.find(',') != std::string_view::npos &&
      cell.find_first_not_of("+-0123456789,eE") == std::string_view::npos) {
    return "decimals are written with a point";
  }
  if (cell.front() == ' ' || cell.back() == ' ') return "blanks belong to a cell: remove them";
  return cell.find_first_of(";\t|") == std::string_view::npos
             ? ""
             : "data.separator is the character between cells";
}

[[noreturn]] void refuse_change(const std::string& file) {
  throw UsageError(fmt::format("{}: was changed while it was read", file),
                   "write another file, and rename it when it is whole");
}

class Parser {
 public:
  Parser(const std::string& file, CsvText text, const CsvFormat& format)
      : file_(file), source_(std::move(text)), format_(format), buffer_(1 << 16, '\0') {}

  /// Reads up to the first row of numbers, and returns the columns' names.
  const std::vector<std::string>& begin();
  /// The next row; false at the end of the file. Its numbers are yet to be read.
  bool next();

  std::int64_t line() const { return row_line_; }
  void numbers(std::vector<double>& into) const;
  [[noreturn]] void fail(const std::string& why, const std::string& hint = "") const;

 private:
  int peek();
  int next_character();
  bool ends_cell(int c) const { return c == format_.separator || c == '\n' || c == kEnd; }

  bool split_row();
  void take_text();
  int plain_cell();
  int quoted_cell();
  std::size_t cells() const { return ends_.size(); }
  std::string_view cell(std::size_t column) const;

  void name_columns();
  double number(std::size_t column) const;
  std::string place(std::size_t column) const;

  const std::string& file_;
  CsvText source_;
  CsvFormat format_;
  std::vector<std::string> columns_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::int64_t line_ = 1;
  std::int64_t row_line_ = 1;      ///< the line where the row being read begins
  std::string text_;               ///< its cells, without quotes and separators
  std::vector<std::size_t> ends_;  ///< the end of each cell in `text_`
  bool is_split_ = false;          ///< the row that `next` is to give
  bool is_first_ = false;          ///< the row is the file's first
};

int Parser::peek() {
  if (at_ == end_) {
    at_ = 0;
    end_ = source_(buffer_.data(), buffer_.size());
  }
  return at_ < end_ ? static_cast<unsigned char>(buffer_[at_]) : kEnd;
}

/// CRLF counts as one character, LF.
int Parser::next_character() {
  int c = peek();
  if (c == kEnd) return c;
  ++at_;
  if (c == '\r' && peek() == '\n') c = static_cast<unsigned char>(buffer_[at_++]);
  if (c == '\n') ++line_;
  if (c == '\0') fail("holds a zero byte", "it is to be text in UTF-8");
  return c;
}

void Parser::fail(const std::string& why, const std::string& hint) const {
  throw UsageError(fmt::format("{}:{}: {}", file_, row_line_, why), hint);
}

std::string Parser::place(std::size_t column) const {
  const bool is_named = column < columns_.size();
  return fmt::format("column '{}'",
                     is_named ? shown(columns_[column]) : fmt::format("{}", column + 1));
}

/// False at the end of the file.
bool Parser::split_row() {
  text_.clear();
  ends_.clear();
  row_line_ = line_;
  if (peek() == kEnd) return false;
  for (;;) {
    const int c = peek() == '"' ? quoted_cell() : plain_cell();
    ends_.push_back(text_.size());
    if (c != format_.separator) return true;
  }
}

/// Takes the characters that mean nothing but themselves: nearly all.
void Parser::take_text() {
  const auto begin = at_;
  const auto is_text = [&](char c) {
    return c != format_.separator && c != '"' && c != '\n' && c != '\r' && c != '\0';
  };
  while (at_ < end_ && is_text(buffer_[at_])) ++at_;
  text_.append(buffer_, begin, at_ - begin);
}

/// Returns the character that ends it.
int Parser::plain_cell() {
  for (;;) {
    take_text();
    const int c = next_character();
    if (ends_cell(c)) return c;
    if (c == '"') fail(place(cells()) + ": a quote in a cell that does not begin with one");
    text_ += static_cast<char>(c);
  }
}

/// The same, and takes the text inside the quotes.
int Parser::quoted_cell() {
  next_character();
  for (;;) {
    int c = next_character();
    if (c == kEnd) fail("a quote that is never closed");
    if (c == '"') {
      c = next_character();
      if (ends_cell(c)) return c;
      if (c != '"') fail(place(cells()) + ": after the closing quote comes more text");
    }
    text_ += static_cast<char>(c);
  }
}

std::string_view Parser::cell(std::size_t column) const {
  const std::size_t begin = column == 0 ? 0 : ends_[column - 1];
  return std::string_view(text_).substr(begin, ends_[column] - begin);
}

const std::vector<std::string>& Parser::begin() {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (peek() != kEnd && std::string_view(buffer_).substr(0, end_).starts_with(kByteOrderMark)) {
    at_ = kByteOrderMark.size();
  }
  if (!split_row()) throw UsageError(fmt::format("{}: holds no rows", file_));
  name_columns();
  is_split_ = is_first_ = format_.header == Header::absent;
  return columns_;
}

bool Parser::next() {
  if (!std::exchange(is_split_, false)) {
    is_first_ = false;
    if (!split_row()) return false;
  }
  if (cells() != columns_.size()) {
    fail(fmt::format("has {} cell{}, the first row has {}", cells(), cells() == 1 ? "" : "s",
                     columns_.size()));
  }
  return true;
}

void Parser::name_columns() {
  std::set<std::string> seen;
  std::size_t numbers = 0;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < cells(); ++i) {
    const bool is_named = format_.header == Header::present;
    std::string name = is_named ? std::string(cell(i)) : fmt::format("{}", i + 1);
    if (name.empty()) name = fmt::format("column {}", i + 1);
    if (!seen.insert(name).second) fail(fmt::format("two columns are called '{}'", shown(name)));
    if (is_named && is_number(cell(i))) ++numbers;
    names.push_back(std::move(name));
  }
  if (numbers == cells()) {
    fail("the header is all numbers", "data.header = false reads the first row as numbers, too");
  }
  columns_ = std::move(names);
}

void Parser::numbers(std::vector<double>& into) const {
  into.resize(columns_.size());
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = number(i);
}

double Parser::number(std::size_t column) const {
  const std::string_view text = cell(column);
  double value = 0;
  const auto [end, error] = read_number(text, value);
  const bool is_whole = end == text.data() + text.size() && error != std::errc::invalid_argument;
  if (is_whole && error == std::errc() && std::isfinite(value)) return value;
  if (text.empty()) fail(place(column) + " is empty");
  const auto refuse = [&](const char* why, const std::string& hint = "") {
    fail(fmt::format("{}: '{}' {}", place(column), shown(text), why), hint);
  };
  if (is_whole && error == std::errc::result_out_of_range) refuse("is beyond the range of numbers");
  if (is_whole) refuse("is no finite number");
  refuse("is not a number",
         is_first_ ? "data.header = true takes the first row for names" : hint_for(text));
  return value;
}

}  // namespace

CsvTable::CsvTable(std::string file, std::function<CsvText()> open, const CsvFormat& format)
    : file_(std::move(file)), open_(std::move(open)), format_(format) {
  Parser parser(file_, open_(), format_);
  columns_ = parser.begin();
  while (parser.next()) ++rows_;
  if (rows_ == 0) throw UsageError(fmt::format("{}: holds a header and no rows", file_));
}

void CsvTable::read(const std::function<void(const CsvRow&)>& take) const {
  Parser parser(file_, open_(), format_);
  bool is_same = parser.begin() == columns_;
  std::vector<double> numbers;
  std::int64_t row = 0;
  while (is_same && parser.next()) {
    is_same = row < rows_;
    if (!is_same) break;
    parser.numbers(numbers);
    take({row++, parser.line(), numbers});
  }
  if (is_same && row == rows_) return;
  refuse_change(file_);
}

std::string CsvTable::place(std::int64_t line, std::size_t column) const {
  return fmt::format("{}:{}: column '{}'", file_, line, shown(columns_[column]));
}

CsvTable read_csv(const std::filesystem::path& file, const CsvFormat& format) {
  const auto packed = std::make_shared<PackedFile>(file);
  const auto open = [packed, name = file.string()]() -> CsvText {
    if (!packed->is_unchanged()) refuse_change(name);
    packed->rewind();
    return [packed, name](char* into, std::size_t size) {
      const std::size_t part = packed->read(into, size);
      if (part < size && !packed->is_unchanged()) refuse_change(name);
      return part;
    };
  };
  return {file.string(), open, format};
}

}  // namespace dtool::trainer
