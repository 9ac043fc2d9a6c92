#include "um/host/far/far_store.h"

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "um/bytes.h"
#include "um/error.h"
#include "um/host/far/far_file.h"
#include "um/host/far/link.h"
#include "um/machine/available_memory.h"
#include "um/machine/mapping.h"

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

constexpr Bytes kPart = 4_KiB;
constexpr std::size_t kAtOnce = 16;  // parts with their checksums on the stack

/// Calls `check(first, sums)` with the checksums of the parts of `bytes`, up to kAtOnce at a time.
template <typename Check>
void for_sums_of(std::span<const std::byte> bytes, const Check& check) {
  std::array<std::uint32_t, kAtOnce> sums{};
  const std::size_t parts = bytes.size() / kPart.count();
  for (std::size_t first = 0; first < parts; first += kAtOnce) {
    const std::span some{sums.data(), std::min(kAtOnce, parts - first)};
    crc32c_of_parts(bytes.subspan(first * kPart.count(), some.size() * kPart.count()), some);
    for (std::uint32_t& sum : some) sum = std::max(sum, 1U);  // zero means: never written
    check(first, some);
  }
}

/// Returns the first part of `bytes` that does not match `written`.
std::optional<std::size_t> first_damaged(std::span<const std::byte> bytes,
                                         std::span<const std::uint32_t> written) {
  std::optional<std::size_t> damaged;
  for_sums_of(bytes, [&](std::size_t first, std::span<const std::uint32_t> sums) {
    for (std::size_t i = 0; i < sums.size() && !damaged; ++i) {
      if (written[first + i] != 0 && written[first + i] != sums[i]) damaged = first + i;
    }
  });
  return damaged;
}

//// Far memory in RAM. Each page takes physical memory when it is first written.
class FarRam final : public FarStore {
 public:
  /// Throws: OutOfMemory when the machine cannot hold `size` more bytes.
  explicit FarRam(Bytes size) {
    expect_available(size, "put " + to_string(size) + " of far memory in RAM",
                     "put it on disk with --far file:PATH", kBesideTraining);
    memory_ = map_memory(size);
  }
  FarRam(const FarRam&) = delete;
  FarRam& operator=(const FarRam&) = delete;
  ~FarRam() override { unmap_memory(memory_); }

  [[nodiscard]] Range addresses(Bytes offset, Bytes size) override {
    expects(offset <= this->size() && size <= this->size() - offset, "a range of the far store");
    return memory_.subspan(offset.count(), size.count());
  }
  void read(Bytes offset, std::span<std::byte> to) override {
    expect_far_access(size(), offset, to);
    copy_bytes(to, memory_.subspan(offset.count(), to.size()));
  }
  void write(Bytes offset, std::span<const std::byte> from) override {
    expect_far_access(size(), offset, from);
    copy_bytes(memory_.subspan(offset.count(), from.size()), from);
  }
  [[nodiscard]] Bytes size() const override { return Bytes{memory_.size()}; }
  [[nodiscard]] std::string description() const override { return "RAM"; }

 private:
  Range memory_;
};

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

CheckedFar::CheckedFar(std::unique_ptr<FarStore> far, std::string folder)
    : far_{std::move(far)},
      folder_{std::move(folder)},
      sums_{map_memory(far_->size().count() / kPart.count() * Bytes{sizeof(std::uint32_t)})} {}

CheckedFar::~CheckedFar() { unmap_memory(sums_); }

std::span<std::uint32_t> CheckedFar::sums_of(Bytes offset, std::size_t size) const {
  auto* const sums = reinterpret_cast<std::uint32_t*>(sums_.data());
  return {sums + offset / kPart, size / kPart.count()};
}

void CheckedFar::read(Bytes offset, std::span<std::byte> to) {
  far_->read(offset, to);
  const std::span<const std::uint32_t> written = sums_of(offset, to.size());
  if (!first_damaged(to, written)) return;
  far_->read(offset, to);  // the first transfer may have been damaged
  const std::optional<std::size_t> damaged = first_damaged(to, written);
  if (!damaged) return;
  throw Error{"far memory in " + folder_ + " is damaged: the 4 KiB at byte " +
              std::to_string((offset + *damaged * kPart).count()) +
              " of its file are not what was written there; do not trust that disk"};
}

void CheckedFar::write(Bytes offset, std::span<const std::byte> from) {
  far_->write(offset, from);
  const std::span<std::uint32_t> kept = sums_of(offset, from.size());
  for_sums_of(from, [&](std::size_t first, std::span<const std::uint32_t> sums) {
    std::ranges::copy(sums, kept.begin() + static_cast<std::ptrdiff_t>(first));
  });
}

void expect_far_access(Bytes store_size, Bytes offset, std::span<const std::byte> near,
                       Caller where) {
  const auto address = reinterpret_cast<std::uintptr_t>(near.data());
  expects((address | offset.count() | near.size()) % 4096 == 0,
          "address, offset and size of a far access are multiples of 4096", where);
  expects(offset <= store_size && Bytes{near.size()} <= store_size - offset,
          "a far access ends within the far store", where);
}

std::unique_ptr<FarStore> make_far_store(const FarOptions& options, Bytes size) {
  if (options.file.empty()) return std::make_unique<FarRam>(size);
  auto file = std::make_unique<FarFile>(options.file, size);
  if (!options.checksums) return file;
  const std::string folder = file->folder().string();
  return std::make_unique<CheckedFar>(std::move(file), folder);
}

}  // namespace spillway::um
