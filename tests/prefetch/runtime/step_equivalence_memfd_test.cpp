#include "tests/prefetch/runtime/step_equivalence.h"

namespace spillway::prefetch::testing {
namespace {

// As step_equivalence_test.cpp, on the paging that any Linux has; an executable of its own because
// TSan takes mapping a page anew for a write.

RC_GTEST_PROP(MemfdSegvStep, GivesTheSameUnderAPlanWithoutAFault, ()) {
  check_planned_managed(um::Paging::kMemfdSegv);
}

RC_GTEST_PROP(MemfdSegvStep, GivesTheSameByPageFaultsAlone, ()) {
  check_on_demand_managed(um::Paging::kMemfdSegv);
}

}  // namespace
}  // namespace spillway::prefetch::testing
