#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace spillway {

/// Tokens are numbers below this, which a float represents exactly.
inline constexpr std::size_t kLargestVocabulary = 1ULL << 24U;

/// A text as a sequence of tokens, which are numbers in a vocabulary.
///
/// Thread safety: any number of threads may call any function at once.
class TokenSequence {
 public:
  virtual ~TokenSequence() = default;
  /// Name for the user: "bytes of /data/book.txt".
  [[nodiscard]] virtual std::string name() const = 0;
  /// Path of the text's file.
  [[nodiscard]] virtual std::string file() const = 0;
  /// Number of tokens, at least 1.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Writes tokens `first`, `first` + 1, ... to `tokens`. Requires: first + tokens.size() <=
  /// size(). Throws: um::Error when they cannot be read.
  virtual void read(std::uint64_t first, std::span<std::int32_t> tokens) const = 0;
  /// SHA-256 of the bytes of the tokens and of their encoding. Throws: um::Error.
  [[nodiscard]] virtual std::string content_sha256() const = 0;
};

/// Reads all of `text`. Throws: um::Error that names the file and the first token that is not in a
/// vocabulary of `vocabulary` tokens.
void expect_in_vocabulary(const TokenSequence& text, std::size_t vocabulary);

/// Opens a file with a token for each byte. Throws: um::Error when it cannot be read or is empty.
[[nodiscard]] std::unique_ptr<TokenSequence> open_bytes(const std::filesystem::path& file);

/// Opens a token file of llm.c: a header of 256 32-bit numbers, then 16-bit tokens. The header
/// begins with 20240520, the version 1 and the number of tokens. Any other file is read as nanoGPT
/// writes it, as 16-bit tokens only. Throws: um::Error that says what is wrong with the file.
[[nodiscard]] std::unique_ptr<TokenSequence> open_token_file(const std::filesystem::path& file);

}  // namespace spillway
