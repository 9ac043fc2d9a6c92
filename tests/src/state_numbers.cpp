#include "tests/src/state_numbers.h"

#include <functional>
#include <numeric>
#include <span>

#include "src/io/safetensors.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

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
