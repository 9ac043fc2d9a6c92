#include "um/host/far/far_store.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "um/bytes.h"
#include "um/error.h"
#include "um/host/far/crc32c.h"
#include "um/host/far/far_file.h"
#include "um/host/far/link.h"
#include "um/machine/available_memory.h"
#include "um/machine/mapping.h"

namespace spillway::um {
namespace {

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

}  // namespace

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

namespace {

/// Far memory in RAM. Each page takes physical memory when it is first written.
class FarRam final : public FarStore {
 public:
  /// Throws: OutOfMemory when the machine cannot hold `size` more bytes.
  explicit FarRam(Bytes size);
  FarRam(const FarRam&) = delete;
  FarRam& operator=(const FarRam&) = delete;
  ~FarRam() override;

  [[nodiscard]] Range addresses(Bytes offset, Bytes size) override;
  void read(Bytes offset, std::span<std::byte> to) override;
  void write(Bytes offset, std::span<const std::byte> from) override;
  [[nodiscard]] Bytes size() const override { return Bytes{memory_.size()}; }
  [[nodiscard]] std::string description() const override { return "RAM"; }

 private:
  Range memory_;
};

Range map_far_ram(Bytes size) {
  expect_available(size, "put " + to_string(size) + " of far memory in RAM",
                   "put it on disk with --far file:PATH", kBesideTraining);
  return map_memory(size);
}

FarRam::FarRam(Bytes size) : memory_{map_far_ram(size)} {}

FarRam::~FarRam() { unmap_memory(memory_); }

Range FarRam::addresses(Bytes offset, Bytes size) {
  expects(offset <= this->size() && size <= this->size() - offset, "a range of the far store");
  return memory_.subspan(offset.count(), size.count());
}

void FarRam::read(Bytes offset, std::span<std::byte> to) {
  expect_far_access(size(), offset, to);
  copy_bytes(to, memory_.subspan(offset.count(), to.size()));
}

void FarRam::write(Bytes offset, std::span<const std::byte> from) {
  expect_far_access(size(), offset, from);
  copy_bytes(memory_.subspan(offset.count(), from.size()), from);
}

}  // namespace

std::unique_ptr<FarStore> make_far_store(const FarOptions& options, Bytes size) {
  if (options.file.empty()) return std::make_unique<FarRam>(size);
  auto file = std::make_unique<FarFile>(options.file, size);
  if (!options.checksums) return file;
  const std::string folder = file->folder().string();
  return std::make_unique<CheckedFar>(std::move(file), folder);
}

}  // namespace spillway::um
