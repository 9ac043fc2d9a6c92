#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace spillway {

/// SHA-256 of bytes that come piece by piece.
class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  /// The digest of all bytes so far, as 64 lower-case digits. More bytes may follow.
  [[nodiscard]] std::string hex() const;

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const noexcept;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace spillway
