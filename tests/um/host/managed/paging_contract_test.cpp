// Built once per mechanism, which SPILLWAY_PAGING selects.
#include "tests/um/managed_contract.h"
#include "tests/um/managed_space_stress.h"

namespace spillway::um {
namespace {

constexpr Paging kPaging = Paging::SPILLWAY_PAGING;
const auto kWays = testing::Values(PagingWay{.paging = kPaging, .page = 4_KiB},
                                   PagingWay{.paging = kPaging, .page = 64_KiB},
                                   PagingWay{.paging = kPaging, .page = 2_MiB});

INSTANTIATE_TEST_SUITE_P(Paging, ManagedSpaceContract, kWays, name_of);
INSTANTIATE_TEST_SUITE_P(Paging, ManagedFailureContract, kWays, name_of);
INSTANTIATE_TEST_SUITE_P(Paging, ManagedFaultFailureContract, kWays, name_of);
INSTANTIATE_TEST_SUITE_P(Paging, ManagedSpaceStress, kWays, name_of);

}  // namespace
}  // namespace spillway::um
