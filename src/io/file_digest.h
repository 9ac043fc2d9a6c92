#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "um/files/input_file.h"

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace spillway {

/// Returns the SHA-256 of the bytes that `file` had when it was opened, as sha256sum prints it.
/// Throws: um::Error when the file cannot be read to its end.
[[nodiscard]] std::string sha256_of(const um::InputFile& file);
[[nodiscard]] std::string sha256_of(std::span<const std::byte> bytes);
[[nodiscard]] std::string sha256_of(const std::string& text);

/// Computes the SHA-256 of bytes that come piece by piece.
class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  /// Returns the digest of all bytes so far, as 64 lower-case digits. More bytes may follow.
  [[nodiscard]] std::string hex() const;

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const noexcept;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace spillway
