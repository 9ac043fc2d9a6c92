#include "src/bench/link/transfer.h"

#include <array>
#include <bit>

#include "src/bench/link/copy_transfer.h"
#include "src/bench/link/managed_transfer.h"
#include "src/bench/link/pageable_transfer.h"
#include "src/bench/name_of.h"
#include "um/error.h"

namespace spillway {
namespace {

using namespace um::literals;

constexpr um::Bytes kGpuPage = 2_MiB;
constexpr std::array kWayNames{"fault", "prefetch", "pageable_copy", "pinned_copy", "file"};
static_assert(kWayNames.size() == static_cast<std::size_t>(Way::kFile) + 1);
constexpr std::array kDirectionNames{"in", "out", "both"};
static_assert(kDirectionNames.size() == static_cast<std::size_t>(Direction::kBoth) + 1);

}  // namespace

std::string to_string(Way way) { return kWayNames.at(static_cast<std::size_t>(way)); }

std::string to_string(Direction direction) {
  return kDirectionNames.at(static_cast<std::size_t>(direction));
}

std::optional<Way> find_way(const std::string& name) { return find_named<Way>(kWayNames, name); }

std::optional<Direction> find_direction(const std::string& name) {
  return find_named<Direction>(kDirectionNames, name);
}

std::unique_ptr<Transfer> make_transfer(um::Device& device, Way way, um::Bytes size,
                                        const um::ManagedOptions& space) {
  um::expects(size >= 4_KiB && std::has_single_bit(size.count()),
              "a transfer moves a power of two from 4 KiB on");
  um::ManagedOptions options = space;
  if (way != Way::kFile) options.far.file.clear();
  switch (way) {
    case Way::kFault:
      return std::make_unique<FaultTransfer>(device, size, options);
    case Way::kPrefetch:
      return std::make_unique<PrefetchTransfer>(device, size, options);
    case Way::kPageableCopy:
      return make_pageable_transfer(device, size);
    case Way::kPinnedCopy:
    case Way::kFile:
      break;
  }
  return std::make_unique<CopyTransfer>(device, size, options);
}

std::optional<std::string> why_not(const um::Device& device, Way way, Direction direction,
                                   um::Bytes size) {
  if (device.evicts()) return std::nullopt;  // the host does it all
  switch (way) {
    case Way::kFault:
      return "a GPU's page faults are those of its kernels; spillway train --count-faults counts "
             "them";
    case Way::kFile:
      return "a GPU keeps far memory in RAM";
    case Way::kPrefetch:
      if (size < kGpuPage) return "a GPU moves unified memory in pages of 2 MiB";
      break;
    case Way::kPageableCopy:
      if (direction != Direction::kOut) return "Spillway copies ordinary memory from a GPU only";
      break;
    case Way::kPinnedCopy:
      break;
  }
  return std::nullopt;
}

}  // namespace spillway
