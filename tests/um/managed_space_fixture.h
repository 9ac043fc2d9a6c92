#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <ostream>
#include <string>

#include "tests/um/host/managed_test_space.h"
#include "um/host/managed/uffd_move.h"

namespace spillway::um {

/// One way to page that has to keep the contract.
struct PagingWay {
  Paging paging;
  Bytes page;
};

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
inline void PrintTo(const PagingWay& way, std::ostream* out) {
  *out << (way.paging == Paging::kUffdMove ? "UffdMove" : "MemfdSegv") << way.page / 1_KiB << "KiB";
}

inline std::string name_of(const testing::TestParamInfo<PagingWay>& info) {
  return testing::PrintToString(info.param);
}

/// A managed space paged in one way. managed_space_contract.h, managed_hints_contract.h,
/// managed_discard_contract.h and managed_failure_contract.h say what each way has to keep;
/// managed_space_stress.h hammers it.
class ManagedSpaceContract : public testing::TestWithParam<PagingWay> {
 protected:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] static ManagedOptions options(std::uint64_t pages, std::uint64_t near_pages) {
    const Bytes page = GetParam().page;
    return {
        .size = pages * page, .near = near_pages * page, .page = page, .paging = GetParam().paging};
  }
  void make(const ManagedOptions& options) { space.emplace(options, options.near); }

  void SetUp() override {
    if (GetParam().paging != Paging::kUffdMove) return;
    if (const auto reason = probe_uffd_move()) GTEST_SKIP() << *reason;
  }
  void TearDown() override { space.reset(); }

  std::optional<ManagedTestSpace> space;
};

}  // namespace spillway::um
