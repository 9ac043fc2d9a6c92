#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "src/data/text/token_sequence.h"
#include "um/files/input_file.h"

namespace spillway {

/// How numbers lie in a file.
struct TokenPacking {
  std::string form;          ///< for the user: "bytes of"
  std::uint64_t header = 0;  ///< bytes before the first token
  std::size_t width = 1;     ///< bytes of a token, the lowest first: 1 or 2
};

/// The numbers in a file, which are read when they are asked for.
class PackedTokens final : public TokenSequence {
 public:
  /// Requires: a file of whole tokens behind its header, at least one.
  PackedTokens(um::InputFile file, TokenPacking packing);

  [[nodiscard]] std::string name() const override { return packing_.form + " " + file(); }
  [[nodiscard]] std::string file() const override { return file_.path().string(); }
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  void read(std::uint64_t first, std::span<std::int32_t> tokens) const override;
  [[nodiscard]] std::string content_sha256() const override;

 private:
  um::InputFile file_;
  TokenPacking packing_;
  std::uint64_t size_;
  mutable std::once_flag is_digested_;
  mutable std::string sha256_;
};

}  // namespace spillway
