#include "tests/um/managed_discard_contract.h"
#include "tests/um/managed_failure_contract.h"
#include "tests/um/managed_hints_contract.h"
#include "tests/um/managed_space_contract.h"
#include "tests/um/managed_space_stress.h"

namespace spillway::um {
namespace {

const auto kWays = testing::Values(PagingWay{.paging = Paging::kMemfdSegv, .page = 4_KiB},
                                   PagingWay{.paging = Paging::kMemfdSegv, .page = 64_KiB},
                                   PagingWay{.paging = Paging::kMemfdSegv, .page = 2_MiB});

INSTANTIATE_TEST_SUITE_P(MemfdSegv, ManagedSpaceContract, kWays, name_of);
INSTANTIATE_TEST_SUITE_P(MemfdSegv, ManagedFailureContract, kWays, name_of);
INSTANTIATE_TEST_SUITE_P(MemfdSegv, ManagedFaultFailureContract, kWays, name_of);
INSTANTIATE_TEST_SUITE_P(MemfdSegv, ManagedSpaceStress, kWays, name_of);

}  // namespace
}  // namespace spillway::um
