#include "src/files/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <string_view>

#include "um/error.h"

namespace spillway {
namespace {

void check(bool is_done) {
  if (!is_done) throw um::Error{"OpenSSL cannot compute SHA-256; check the OpenSSL installation"};
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const noexcept { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_{EVP_MD_CTX_new()} {
  check(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::update(std::span<const std::byte> bytes) {
  check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::hex() const {
  const Sha256 copy;  // finishing a digest ends it
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  check(EVP_MD_CTX_copy_ex(copy.context_.get(), context_.get()) == 1 &&
        EVP_DigestFinal_ex(copy.context_.get(), digest.data(), &size) == 1);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text += kDigits[digest.at(i) / 16];
    text += kDigits[digest.at(i) % 16];
  }
  return text;
}

}  // namespace spillway
