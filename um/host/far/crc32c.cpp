#include "um/host/far/crc32c.h"

#include <array>
#include <cstring>

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

namespace spillway::um {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // Castagnoli, reflected

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1U) ^ ((sum & 1U) != 0 ? kPolynomial : 0U);
    table[byte] = sum;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

void parts_by_table(const std::byte* from, std::size_t part, std::span<std::uint32_t> sums) {
  for (std::uint32_t& sum : sums) {
    sum = crc32c_by_table({from, part});
    from += part;
  }
}

#ifdef __x86_64__

std::uint64_t word_at(const std::byte* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

__attribute__((target("sse4.2"))) std::uint32_t by_instruction(const std::byte* from,
                                                               std::size_t size) {
  std::uint64_t sum = ~0U;
  for (; size >= 8; from += 8, size -= 8) sum = _mm_crc32_u64(sum, word_at(from));
  auto rest = static_cast<std::uint32_t>(sum);
  for (; size > 0; ++from, --size) rest = _mm_crc32_u8(rest, static_cast<unsigned char>(*from));
  return ~rest;
}

__attribute__((target("sse4.2"))) void parts_by_instruction(const std::byte* from, std::size_t part,
                                                            std::span<std::uint32_t> sums) {
  std::size_t i = 0;
  for (; i + 4 <= sums.size(); i += 4, from += 4 * part) {
    std::uint64_t a = ~0U;
    std::uint64_t b = ~0U;
    std::uint64_t c = ~0U;
    std::uint64_t d = ~0U;
    for (std::size_t at = 0; at < part; at += 8) {
      a = _mm_crc32_u64(a, word_at(from + at));
      b = _mm_crc32_u64(b, word_at(from + part + at));
      c = _mm_crc32_u64(c, word_at(from + 2 * part + at));
      d = _mm_crc32_u64(d, word_at(from + 3 * part + at));
    }
    sums[i] = ~static_cast<std::uint32_t>(a);
    sums[i + 1] = ~static_cast<std::uint32_t>(b);
    sums[i + 2] = ~static_cast<std::uint32_t>(c);
    sums[i + 3] = ~static_cast<std::uint32_t>(d);
  }
  for (; i < sums.size(); ++i, from += part) sums[i] = by_instruction(from, part);
}

bool has_instruction() { return __builtin_cpu_supports("sse4.2") != 0; }

#endif

}  // namespace

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) noexcept {
  std::uint32_t sum = ~0U;
  for (const std::byte byte : bytes) {
    sum = (sum >> 8U) ^ kTable[(sum ^ static_cast<std::uint32_t>(byte)) & 0xffU];
  }
  return ~sum;
}

std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept {
#ifdef __x86_64__
  if (has_instruction()) return by_instruction(bytes.data(), bytes.size());
#endif
  return crc32c_by_table(bytes);
}

void crc32c_of_parts(std::span<const std::byte> bytes, std::span<std::uint32_t> sums) noexcept {
  if (sums.empty()) return;
  const std::size_t part = bytes.size() / sums.size();
#ifdef __x86_64__
  if (has_instruction()) return parts_by_instruction(bytes.data(), part, sums);
#endif
  parts_by_table(bytes.data(), part, sums);
}

}  // namespace spillway::um
