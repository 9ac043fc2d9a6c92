#include "tests/src/network_in_memory.h"

#include <memory>
#include <utility>

#include "prefetch/machine.h"
#include "prefetch/planners/catalogue.h"
#include "src/host/host_processor.h"
#include "um/host/host_device.h"

namespace spillway::test {
namespace {

// A resident run takes of its budget only what it needs.
Plans plan(const Workload& workload, const prefetch::Profile& profile, MemoryMode memory) {
  const um::Bytes budget =
      memory == MemoryMode::kResident ? 2 * workload.need().roomy : workload.need().smallest;
  return make_plans(workload, profile, budget,
                    {.memory = memory, .planner = &prefetch::find_planner("joint")});
}

}  // namespace

NetworkInMemory::NetworkInMemory(nets::Network network, const StepOptions& options,
                                 MemoryMode memory)
    : processor_{host::open_processor(std::make_unique<um::HostDevice>())},
      network_{std::move(network)},
      workload_{network_, *processor_.backend, options},
      profile_{prefetch::model_profile(workload_.training().graph, prefetch::find_machine("v100"))},
      plans_{plan(workload_, profile_, memory)},
      session_{processor_, workload_, plans_, memory, {.poison = true}, never_} {}

}  // namespace spillway::test
