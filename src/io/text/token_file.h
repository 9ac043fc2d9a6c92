#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace spillway {

/// A text as tokens, numbers in a vocabulary, one after the other.
///
/// Thread safety: any number of threads may call any of the functions at once.
class TokenSequence {
 public:
  virtual ~TokenSequence() = default;
  /// For the user: "bytes of /data/book.txt".
  [[nodiscard]] virtual std::string name() const = 0;
  /// The file of the text.
  [[nodiscard]] virtual std::string file() const = 0;
  /// Number of tokens, at least 1.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Writes tokens `first`, `first` + 1, ... to `tokens`. Requires: first + tokens.size() <=
  /// size(). Throws: um::Error when they cannot be read.
  virtual void read(std::uint64_t first, std::span<std::int32_t> tokens) const = 0;
  /// SHA-256 of the bytes that the tokens are made of and of the way they are. Throws: um::Error.
  [[nodiscard]] virtual std::string content_sha256() const = 0;
};

/// Reads all of `text`. Throws: um::Error that names the file and the first token that is not in a
/// vocabulary of so many.
void expect_in_vocabulary(const TokenSequence& text, std::size_t vocabulary);

/// The bytes of a file, each a token. Throws: um::Error when it cannot be read or is empty.
[[nodiscard]] std::unique_ptr<TokenSequence> open_bytes(const std::filesystem::path& file);

/// The tokens in a file of llm.c's: 256 numbers of 32 bits, the first of them 20240520, the version
/// 1, and the number of tokens, then these, of 16 bits. A file that begins otherwise is all tokens
/// of 16 bits, as nanoGPT writes them. Throws: um::Error that says what is wrong with the file.
[[nodiscard]] std::unique_ptr<TokenSequence> open_token_file(const std::filesystem::path& file);

}  // namespace spillway
