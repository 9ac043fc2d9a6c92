#include "um/host/far/checked_far.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "um/error.h"
#include "um/host/far/crc32c.h"
#include "um/machine/mapping.h"

namespace spillway::um {
namespace {

constexpr Bytes kPart = 4_KiB;
constexpr std::size_t kAtOnce = 16;  // parts whose checksums lie on the stack

/// Calls `check(first, sums)` with the checksums of the parts of `bytes`, some at a time.
template <typename Check>
void for_sums_of(std::span<const std::byte> bytes, const Check& check) {
  std::array<std::uint32_t, kAtOnce> sums{};
  const std::size_t parts = bytes.size() / kPart.count();
  for (std::size_t first = 0; first < parts; first += kAtOnce) {
    const std::span some{sums.data(), std::min(kAtOnce, parts - first)};
    crc32c_of_parts(bytes.subspan(first * kPart.count(), some.size() * kPart.count()), some);
    for (std::uint32_t& sum : some) sum = std::max(sum, 1U);  // zero stands for: never written
    check(first, some);
  }
}

/// The first part of `bytes` that is not what `written` says.
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
  far_->read(offset, to);  // it may have been damaged on its way
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

}  // namespace spillway::um
