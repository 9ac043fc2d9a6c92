#include "src/io/file_digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

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
  const Sha256 copy;  // OpenSSL's finish ends a digest, so use a copy
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

std::string sha256_of(const um::InputFile& file) {
  constexpr std::uint64_t kPart = 1ULL << 20U;
  std::vector<std::byte> part(std::min(kPart, file.size()));
  Sha256 digest;
  for (std::uint64_t at = 0; at < file.size(); at += part.size()) {
    const std::span<std::byte> bytes =
        std::span{part}.first(std::min<std::uint64_t>(part.size(), file.size() - at));
    file.read(at, bytes);
    digest.update(bytes);
  }
  return digest.hex();
}

std::string sha256_of(std::span<const std::byte> bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.hex();
}

std::string sha256_of(const std::string& text) { return sha256_of(std::as_bytes(std::span{text})); }

}  // namespace spillway
