#include "tests/um/managed_discard_contract.h"
#include "tests/um/managed_failure_contract.h"
#include "tests/um/managed_hints_contract.h"
#include "tests/um/managed_space_contract.h"
#include "tests/um/managed_space_stress.h"

namespace spillway::um {
namespace {

const auto kWays = testing::Values(PagingWay{.paging = Paging::kUffdMove, .page = 4_KiB},
                                   PagingWay{.paging = Paging::kUffdMove, .page = 64_KiB},
                                   PagingWay{.paging = Paging::kUffdMove, .page = 2_MiB});

INSTANTIATE_TEST_SUITE_P(UffdMove, ManagedSpaceContract, kWays, name_of);
INSTANTIATE_TEST_SUITE_P(UffdMove, ManagedFailureContract, kWays, name_of);
INSTANTIATE_TEST_SUITE_P(UffdMove, ManagedFaultFailureContract, kWays, name_of);
INSTANTIATE_TEST_SUITE_P(UffdMove, ManagedSpaceStress, kWays, name_of);

}  // namespace
}  // namespace spillway::um
