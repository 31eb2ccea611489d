// SPDX-License-Identifier: MIT
#include "sync/package_writer.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <utility>

#include "ssh/wire/protocol.h"
#include "ssh/wire/tree.h"

namespace dtool::tree_sync {
namespace {

constexpr std::size_t kPiece = 131'072;
/// Up to here zstd's window is 256 KiB and not 2 MiB: hosts are done sooner, since getting memory
/// takes time, and the package is hardly larger.
constexpr std::uint64_t kNarrow = 8'000'000;

}  // namespace

PackageWriter::PackageWriter(ssh::SharedBytes::Write write, Compression compression,
                             std::string_view key, std::uint64_t expected)
    : write_(std::move(write)),
      compressor_(compression == Compression::zstd ? ::ZSTD_createCCtx() : nullptr,
                  [](ZSTD_CCtx* each) { ::ZSTD_freeCCtx(each); }) {
  if (!key.empty()) cipher_.emplace(key);
  if (compressor_ == nullptr) return;
  const bool is_narrow = expected <= kNarrow;
  ::ZSTD_CCtx_setParameter(compressor_.get(), ZSTD_c_compressionLevel, 3);
  ::ZSTD_CCtx_setParameter(compressor_.get(), ZSTD_c_windowLog, is_narrow ? 18 : 21);
  // A library without threads refuses that, and compresses all the same.
  const int cores = std::min(8, static_cast<int>(std::thread::hardware_concurrency()));
  if (!is_narrow) ::ZSTD_CCtx_setParameter(compressor_.get(), ZSTD_c_nbWorkers, cores);
}

void PackageWriter::send(char* bytes, std::size_t size) {
  if (size == 0) return;
  if (cipher_) cipher_->apply(bytes, size);
  write_(host::to_frame(host::Kind::package_bytes, {bytes, size}));
}

void PackageWriter::compress(std::string_view bytes, bool is_end) {
  piece_.resize(kPiece);
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  while (compressor_ != nullptr) {
    ZSTD_outBuffer out{piece_.data(), piece_.size(), 0};
    const std::size_t left =
        ::ZSTD_compressStream2(compressor_.get(), &out, &in, is_end ? ZSTD_e_end : ZSTD_e_continue);
    if (::ZSTD_isError(left) != 0)
      throw std::runtime_error(fmt::format("zstd: {}", ::ZSTD_getErrorName(left)));
    send(piece_.data(), out.pos);
    if (is_end ? left == 0 : in.pos == in.size) return;
  }
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kPiece, bytes.size()))) {
    piece_ = bytes.substr(0, kPiece);
    send(piece_.data(), piece_.size());
  }
}

void PackageWriter::finish() {
  compress({}, true);
  write_(host::to_frame(host::Kind::package_bytes, {}));
}

void add_names(PackageWriter& package, const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3 << 20;  // bytes in a frame
  host::Names some;
  std::size_t bytes = 0;
  for (const std::string& name : names) {
    some.names.push_back(name);
    bytes += name.size() + 8;
    if (bytes < kMost) continue;
    package.add(host::to_frame(std::exchange(some, {})));
    bytes = 0;
  }
  if (!some.names.empty()) package.add(host::to_frame(some));
}

std::shared_ptr<const ssh::SharedBytes> pack_names(const std::vector<std::string>& names,
                                                   Compression compression) {
  ssh::SharedBytes bytes;
  bytes.make = [&names, compression](const ssh::SharedBytes::Write& write) {
    PackageWriter package(write, compression, "", 0);
    add_names(package, names);
    package.finish();
  };
  return std::make_shared<const ssh::SharedBytes>(std::move(bytes));
}

}  // namespace dtool::tree_sync
