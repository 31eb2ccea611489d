// SPDX-License-Identifier: MIT
#include "cli/logs/log_stream.h"

#include <fmt/format.h>

#include <algorithm>

#include "ssh/wire/log.h"

namespace dtool::cli {
namespace {

constexpr std::size_t kFingerprint = 512;

}  // namespace

void LogStream::add(std::string_view bytes) {
  try {
    if (fault_.empty()) reader_.add(bytes);
    while (fault_.empty()) {
      const auto frame = reader_.next();
      if (!frame) break;
      take(*frame);
    }
  } catch (const host::BadMessage& error) {
    fault_ = fmt::format("what it sends is no log: {}", error.what());
  }
}

void LogStream::begin_again() {
  reader_ = {};
  fault_.clear();
  has_begun_ = false;
}

void LogStream::take(const host::Frame& frame) {
  switch (frame.kind) {
    case host::Kind::log_begin: {
      const auto begin = host::open<host::LogBegin>(frame);
      if (begin.is_lost) break_off(Break::lost);
      if (begin.offset != offset_) last_.clear();
      offset_ = begin.offset;
      host_ = begin.host;
      has_begun_ = true;
      break;
    }
    case host::Kind::log_bytes:
      pass_on(host::open<host::LogBytes>(frame).bytes.text);
      break;
    case host::Kind::selected_lines: {
      if (!has_begun_) break;
      const auto selected = host::open<host::SelectedLines>(frame);
      if (!selected.lines.text.empty()) on_bytes(selected.lines.text);
      offset_ = selected.offset;
      last_ = selected.before.text;
      break;
    }
    case host::Kind::ranks_of_log:
      ranks_ = host::open<host::RanksOfLog>(frame);
      break;
    case host::Kind::log_break:
      break_off(host::open<host::LogBreak>(frame).is_rotated ? Break::rotated : Break::truncated);
      break;
    case host::Kind::log_end:
      end_ = host::open<host::LogEnd>(frame);
      break;
    case host::Kind::fault:
      fault_ = host::as_error(host::open<host::Fault>(frame)).what();
      break;
    case host::Kind::still_here:
      on_sign_of_life();
      break;
    default:
      throw host::BadMessage("another message came in the middle of a log");
  }
}

void LogStream::break_off(Break what) {
  on_break(what);
  offset_ = 0;
  last_.clear();
}

void LogStream::pass_on(std::string_view bytes) {
  if (bytes.empty() || !has_begun_) return;
  offset_ += bytes.size();
  last_ += bytes.substr(bytes.size() - std::min(bytes.size(), kFingerprint));
  if (last_.size() > kFingerprint) last_.erase(0, last_.size() - kFingerprint);
  on_bytes(bytes);
}

}  // namespace dtool::cli
