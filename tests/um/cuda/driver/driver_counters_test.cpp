#include "um/cuda/driver/driver_counters.h"

#include <cuda_runtime_api.h>
#include <cupti.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "um/cuda/driver/check.h"
#include "um/cuda/driver/runtime_api.h"
#include "um/error.h"

namespace spillway::um {
namespace {

constexpr std::uint32_t kIn = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD;
constexpr std::uint32_t kOut = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH;

TEST(DriverTotals, AddTransfersByTheirCause) {
  DriverTotals totals;
  constexpr std::array kCauses{CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_USER,
                               CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE,
                               CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_PREFETCH,
                               CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_EVICTION,
                               CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_UNKNOWN};
  std::uint64_t bytes = 1;
  for (const std::uint32_t counter : {kIn, kOut}) {
    for (const std::uint32_t cause : kCauses) {
      totals = totals + DriverRecord{.counter = counter, .cause = cause, .value = bytes};
      bytes *= 2;
    }
  }
  EXPECT_EQ(totals, (DriverTotals{.in_by_user = 1_B,
                                  .in_by_fault = 2_B,
                                  .in_by_driver = 4_B,
                                  .out_by_user = 32_B,
                                  .out_by_fault = 64_B,
                                  .out_by_eviction = 256_B,
                                  // evicted to near, unknown to near, driver to far, unknown to far
                                  .by_other_cause = Bytes{8 + 16 + 128 + 512}}));
}

TEST(DriverTotals, CountFaultsByTheirGroupsAndTheHostsOneByOne) {
  DriverTotals totals;
  const auto add = [&](std::uint32_t counter, std::uint64_t value) {
    totals = totals + DriverRecord{.counter = counter, .cause = 0, .value = value};
  };
  add(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT, 3);
  add(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT, 4);
  add(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT, 0x7f0012345678);
  add(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING, 4096);
  add(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP, 4096);
  EXPECT_EQ(totals,
            (DriverTotals{.device_faults = 7, .host_faults = 1, .thrashes = 1, .remote_maps = 1}));
}

TEST(DriverCounters, SayInASentenceWhyThereAreNone) {
  if (!why_unusable(ask_driver(), 0)) GTEST_SKIP() << "this machine has a GPU";
  try {
    static_cast<void>(start_driver_counters(0));
    FAIL() << "counters without a driver";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.ends_with("leave the counters out") ||
                text.ends_with("add its folder to LD_LIBRARY_PATH"))
        << text;
  }
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Check, LetsSuccessPass) { EXPECT_NO_THROW(check(cudaSuccess)); }

TEST(Check, NamesTheCallersLineAndTheErrorsText) {
  const int line = __LINE__ + 2;
  try {
    check(cudaErrorMemoryAllocation);
    FAIL() << "check() let a failure pass";
  } catch (const CudaError& error) {
    EXPECT_EQ(error.code(), cudaErrorMemoryAllocation);
    EXPECT_TRUE(contains(error.what(), "driver_counters_test.cpp:" + std::to_string(line) + ")"))
        << error.what();
    EXPECT_TRUE(contains(error.what(), "cudaErrorMemoryAllocation")) << error.what();
    EXPECT_TRUE(contains(error.what(), cudaGetErrorString(cudaErrorMemoryAllocation)))
        << error.what();
  }
}

}  // namespace
}  // namespace spillway::um
