#include "src/data/text/packed_tokens.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/files/file_digest.h"
#include "um/error.h"

namespace spillway {

PackedTokens::PackedTokens(um::InputFile file, TokenPacking packing)
    : file_{std::move(file)}, packing_{std::move(packing)} {
  um::expects(packing_.width == 1 || packing_.width == 2, "tokens of one byte or two");
  um::expects(file_.size() > packing_.header, "at least one token");
  const std::uint64_t bytes = file_.size() - packing_.header;
  um::expects(bytes % packing_.width == 0, "whole tokens");
  size_ = bytes / packing_.width;
}

void PackedTokens::read(std::uint64_t first, std::span<std::int32_t> tokens) const {
  um::expects(first <= size_ && tokens.size() <= size_ - first, "tokens of the file");
  std::vector<std::uint8_t> bytes(tokens.size() * packing_.width);
  file_.read(packing_.header + first * packing_.width, std::as_writable_bytes(std::span{bytes}));
  if (packing_.width == 1) {
    std::ranges::copy(bytes, tokens.begin());
    return;
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = bytes[2 * i] | bytes[2 * i + 1] << 8;
}

// Once for the several who ask, since it reads the whole file.
std::string PackedTokens::content_sha256() const {
  std::call_once(is_digested_, [&] {
    sha256_ = sha256_of("numbers of " + std::to_string(packing_.width) + " after " +
                        std::to_string(packing_.header) + ": " + sha256_of(file_));
  });
  return sha256_;
}

}  // namespace spillway
