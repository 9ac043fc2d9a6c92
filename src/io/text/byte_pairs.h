#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace spillway {

/// Separates two texts of a file, as a token of its own.
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

/// The vocabulary of a byte-pair encoding (Sennrich et al., 2016) of bytes, as GPT-2's (Radford et
/// al., 2019). It has a token for each byte and one for each merged pair.
struct BytePairs {
  struct Merge {
    std::uint32_t rank;  ///< the lowest is merged first
    std::int32_t token;  ///< the pair's token
  };

  [[nodiscard]] static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32U |
           static_cast<std::uint32_t>(right);
  }

  std::array<std::int32_t, 256> bytes{};            ///< the token of each byte
  std::unordered_map<std::uint64_t, Merge> merges;  ///< by key() of the two tokens
  std::optional<std::int32_t> end_of_text;          ///< token of kEndOfText
  std::size_t size = 0;                             ///< tokens are less than this
  std::vector<std::string> texts;  ///< the bytes of each token; empty for unused numbers
  std::string sha256;              ///< of both files
};

/// Reads a vocabulary in `folder`: encoder.json and vocab.bpe, or vocab.json and merges.txt.
/// Throws: um::Error that names the missing or wrong file and says what is wrong.
[[nodiscard]] BytePairs read_byte_pairs(const std::filesystem::path& folder);

/// Returns the UTF-8 characters that GPT-2's vocabulary files write for bytes. A byte that is
/// printable in Latin 1 stands for itself; the others are U+0100, U+0101 and so on, in order.
[[nodiscard]] std::array<std::string, 256> byte_characters();

/// Returns the bytes that `characters` stand for. Other characters stay as they are.
[[nodiscard]] std::string bytes_of_characters(std::string_view characters);

}  // namespace spillway
