#include "tests/src/network_in_memory.h"

#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "prefetch/files/machine.h"
#include "prefetch/moves/micro_batch_size.h"
#include "prefetch/planners/catalogue.h"
#include "src/host/host_backend.h"
#include "src/io/safetensors.h"
#include "src/plan/plan_question.h"
#include "tests/temporary_folder.h"
#include "um/host/host_device.h"

namespace spillway::test {
namespace {

// A resident run takes of its budget only what it needs.
Plans plan(const Workload& workload, MemoryMode memory, const Budget& budget) {
  const prefetch::Profile profile =
      prefetch::model_profile(workload.training().graph, prefetch::find_machine("v100"));
  const um::Bytes peak_with_workspace = 2 * workload.need().peak_with_workspace;
  const um::Bytes limit = memory == MemoryMode::kResident
                              ? peak_with_workspace
                              : budget.resolve(workload.need(), peak_with_workspace);
  return answer({.steps = workload,
                 .profile = profile,
                 .budget = limit,
                 .request = {.memory = memory, .planner = &prefetch::find_planner("joint")}})
      .plans;
}

ExecutionContext host_context() { return host::open_context(std::make_unique<um::HostDevice>()); }

std::vector<StoredTensor> tensors_of(const Step& step) {
  std::vector<StoredTensor> tensors;
  for (const StateBlock& block : step.state) {
    for (const ParameterArray& array : arrays_of(block.spec)) {
      tensors.push_back({.name = block.name + array.suffix, .shape = array.shape});
    }
  }
  return tensors;
}

}  // namespace

NetworkInMemory::NetworkInMemory(nets::Network network, const StepOptions& options,
                                 MemoryMode memory)
    : NetworkInMemory{host_context(), std::move(network), options, memory} {}

NetworkInMemory::NetworkInMemory(ExecutionContext context, nets::Network network,
                                 const StepOptions& options, MemoryMode memory)
    : NetworkInMemory{std::move(context), std::move(network), options, memory,
                      Budget::parse("min")} {}

NetworkInMemory::NetworkInMemory(ExecutionContext context, nets::Network network,
                                 const StepOptions& options, MemoryMode memory,
                                 const Budget& budget)
    : NetworkInMemory{
          std::move(context), std::move(network), options, memory, options.batch, budget} {}

NetworkInMemory::NetworkInMemory(nets::Network network, const StepOptions& options,
                                 MemoryMode memory, std::size_t micro_batch)
    : NetworkInMemory{host_context(), std::move(network), options,
                      memory,         micro_batch,        Budget::parse("min")} {}

NetworkInMemory::NetworkInMemory(ExecutionContext context, nets::Network network,
                                 const StepOptions& options, MemoryMode memory,
                                 std::size_t micro_batch, const Budget& budget)
    : context_{std::move(context)},
      network_{std::move(network)},
      workload_{network_, *context_.backend, options,
                all_of(options.batch, prefetch::cut(options.batch, micro_batch))},
      plans_{plan(workload_, memory, budget)},
      session_{context_, workload_, plans_, memory, {.poison = true}} {}

void set_numbers(State& state, const Step& step, const std::vector<BlockNumbers>& numbers) {
  const TemporaryFolder folder;
  SafetensorsWriter writer{folder.file("state"), tensors_of(step)};
  for (const BlockNumbers& block : numbers) writer.append(block.values);
  writer.commit();
  state.load(folder.file("state"));
}

std::vector<BlockNumbers> numbers_of(const State& state, const Step& step) {
  const TemporaryFolder folder;
  state.save(folder.file("state"));
  const SafetensorsReader file{folder.file("state")};
  std::vector<BlockNumbers> result;
  for (const StateBlock& block : step.state) {
    BlockNumbers numbers{.name = block.name,
                         .values = std::vector<float>(element_count(block.spec))};
    std::span<float> rest{numbers.values};
    for (const ParameterArray& array : arrays_of(block.spec)) {
      const std::size_t count = std::accumulate(array.shape.begin(), array.shape.end(),
                                                std::size_t{1}, std::multiplies{});
      file.read(file.find(block.name + array.suffix).value(), rest.first(count));
      rest = rest.subspan(count);
    }
    result.push_back(std::move(numbers));
  }
  return result;
}

}  // namespace spillway::test
