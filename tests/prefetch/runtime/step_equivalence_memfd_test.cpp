#include "tests/prefetch/runtime/step_equivalence.h"

namespace spillway::prefetch::testing {
namespace {

// As step_equivalence_test.cpp, with the paging of any Linux. A separate executable, since TSan
// takes remapping a page for a write.

RC_GTEST_PROP(MemfdSegvStep, GivesTheSameUnderAPlanWithoutAFault, ()) {
  check_planned_managed(um::Paging::kMemfdSegv);
}

RC_GTEST_PROP(MemfdSegvStep, GivesTheSameByPageFaultsAlone, ()) {
  check_on_demand_managed(um::Paging::kMemfdSegv);
}

}  // namespace
}  // namespace spillway::prefetch::testing
