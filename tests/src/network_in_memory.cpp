#include "tests/src/network_in_memory.h"

#include <memory>
#include <utility>
#include <vector>

#include "prefetch/machine.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/sub_batch.h"
#include "src/host/host_processor.h"
#include "um/host/host_device.h"

namespace spillway::test {
namespace {

// A resident run takes of its budget only what it needs.
Plans plan(const Workload& workload, MemoryMode memory, const Budget& budget) {
  std::vector<prefetch::Profile> profiles;
  for (const RepeatedStep& part : workload.training_steps()) {
    profiles.push_back(prefetch::model_profile(part.step.graph, prefetch::find_machine("v100")));
  }
  const um::Bytes roomy = 2 * workload.need().roomy;
  const um::Bytes limit =
      memory == MemoryMode::kResident ? roomy : budget.resolve(workload.need(), roomy);
  return make_plans(workload, profiles, limit,
                    {.memory = memory, .planner = &prefetch::find_planner("joint")});
}

Processor host_processor() { return host::open_processor(std::make_unique<um::HostDevice>()); }

}  // namespace

NetworkInMemory::NetworkInMemory(nets::Network network, const StepOptions& options,
                                 MemoryMode memory)
    : NetworkInMemory{host_processor(), std::move(network), options, memory} {}

NetworkInMemory::NetworkInMemory(Processor processor, nets::Network network,
                                 const StepOptions& options, MemoryMode memory)
    : NetworkInMemory{std::move(processor), std::move(network), options, memory,
                      Budget::parse("min")} {}

NetworkInMemory::NetworkInMemory(Processor processor, nets::Network network,
                                 const StepOptions& options, MemoryMode memory,
                                 const Budget& budget)
    : NetworkInMemory{
          std::move(processor), std::move(network), options, memory, options.batch, budget} {}

NetworkInMemory::NetworkInMemory(nets::Network network, const StepOptions& options,
                                 MemoryMode memory, std::size_t sub_batch)
    : NetworkInMemory{host_processor(), std::move(network), options,
                      memory,           sub_batch,          Budget::parse("min")} {}

NetworkInMemory::NetworkInMemory(Processor processor, nets::Network network,
                                 const StepOptions& options, MemoryMode memory,
                                 std::size_t sub_batch, const Budget& budget)
    : processor_{std::move(processor)},
      network_{std::move(network)},
      workload_{network_, *processor_.backend, options, prefetch::cut(options.batch, sub_batch)},
      plans_{plan(workload_, memory, budget)},
      session_{processor_, workload_, plans_, memory, {.poison = true}, never_} {}

}  // namespace spillway::test
