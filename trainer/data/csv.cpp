// SPDX-License-Identifier: MIT
// One pass, character by character. A row's cells are stored one after another in one string, which
// all rows reuse.
#include "trainer/data/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <set>

#include "trainer/data/packed_file.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

/// Fills a buffer and returns how much of it; less than its size at the end only.
using Source = std::function<std::size_t(char* into, std::size_t size)>;

constexpr int kEnd = -1;  ///< of the file

/// As much of a cell as a message needs.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string result(text.substr(0, kMost));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < ' ') c = '?';
  }
  return text.size() > kMost ? result + "..." : result;
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

class Parser {
 public:
  Parser(const std::string& name, Source source, const CsvFormat& format)
      : source_(std::move(source)), format_(format), buffer_(1 << 16, '\0') {
    table_.file = name;
  }

  CsvTable parse();

 private:
  int peek();
  int next();
  bool ends_cell(int c) const { return c == format_.separator || c == '\n' || c == kEnd; }

  bool next_row();
  void take_text();
  int plain_cell();
  int quoted_cell();
  std::size_t cells() const { return ends_.size(); }
  std::string_view cell(std::size_t column) const;

  void name_columns();
  void take_row();
  double number(std::size_t column) const;
  std::string place(std::size_t column) const;
  [[noreturn]] void fail(const std::string& why, const std::string& hint = "") const;

  Source source_;
  CsvFormat format_;
  CsvTable table_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::int64_t line_ = 1;
  std::int64_t row_line_ = 1;      ///< where the row being read begins
  std::string text_;               ///< its cells, without quotes and separators
  std::vector<std::size_t> ends_;  ///< of each in `text_`
};

int Parser::peek() {
  if (at_ == end_) {
    at_ = 0;
    end_ = source_(buffer_.data(), buffer_.size());
  }
  return at_ < end_ ? static_cast<unsigned char>(buffer_[at_]) : kEnd;
}

/// CRLF counts as one character, LF.
int Parser::next() {
  int c = peek();
  if (c == kEnd) return c;
  ++at_;
  if (c == '\r' && peek() == '\n') c = static_cast<unsigned char>(buffer_[at_++]);
  if (c == '\n') ++line_;
  if (c == '\0') fail("holds a zero byte", "it is to be text in UTF-8");
  return c;
}

void Parser::fail(const std::string& why, const std::string& hint) const {
  throw UsageError(fmt::format("{}:{}: {}", table_.file, row_line_, why), hint);
}

std::string Parser::place(std::size_t column) const {
  const bool is_named = column < table_.columns.size();
  return fmt::format("column '{}'",
                     is_named ? shown(table_.columns[column]) : fmt::format("{}", column + 1));
}

/// False at the end of the file.
bool Parser::next_row() {
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
    const int c = next();
    if (ends_cell(c)) return c;
    if (c == '"') fail(place(cells()) + ": a quote in a cell that does not begin with one");
    text_ += static_cast<char>(c);
  }
}

/// The same, and takes the text inside the quotes.
int Parser::quoted_cell() {
  next();
  for (;;) {
    int c = next();
    if (c == kEnd) fail("a quote that is never closed");
    if (c == '"') {
      c = next();
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

CsvTable Parser::parse() {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (peek() != kEnd && std::string_view(buffer_).substr(0, end_).starts_with(kByteOrderMark)) {
    at_ = kByteOrderMark.size();
  }
  if (!next_row()) throw UsageError(fmt::format("{}: holds no rows", table_.file));
  name_columns();
  if (format_.header == Header::absent) take_row();
  while (next_row()) take_row();
  if (table_.lines.empty()) {
    throw UsageError(fmt::format("{}: holds a header and no rows", table_.file));
  }
  return std::move(table_);
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
  table_.columns = std::move(names);
}

void Parser::take_row() {
  const std::size_t columns = table_.columns.size();
  if (cells() != columns) {
    fail(fmt::format("has {} cell{}, the first row has {}", cells(), cells() == 1 ? "" : "s",
                     columns));
  }
  table_.lines.push_back(row_line_);
  for (std::size_t i = 0; i < columns; ++i) table_.values.push_back(number(i));
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
  const bool is_first = table_.lines.size() == 1 && format_.header == Header::absent;
  refuse("is not a number",
         is_first ? "data.header = true takes the first row for names" : hint_for(text));
  return value;
}

}  // namespace

std::string CsvTable::place(std::int64_t row, std::size_t column) const {
  return fmt::format("{}:{}: column '{}'", file, lines[static_cast<std::size_t>(row)],
                     shown(columns[column]));
}

CsvTable parse_csv(const std::string& name, std::string_view text, const CsvFormat& format) {
  const Source source = [text](char* into, std::size_t size) mutable {
    const std::size_t part = text.copy(into, size);
    text.remove_prefix(part);
    return part;
  };
  return Parser(name, source, format).parse();
}

CsvTable read_csv(const std::filesystem::path& file, const CsvFormat& format) {
  PackedFile packed(file);
  const Source source = [&](char* into, std::size_t size) { return packed.read(into, size); };
  return Parser(file.string(), source, format).parse();
}

}  // namespace dtool::trainer
