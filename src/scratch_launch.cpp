#include "src/scratch_launch.h"

#include <cstring>
#include <unordered_map>
#include <variant>

#include "prefetch/liveness.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::DataId;
using um::Bytes;

constexpr Bytes kAlignment{4096};

// Every block a launch touches, each once.
std::vector<DataId> touched(const prefetch::Task& task) {
  std::vector<DataId> ids = prefetch::operands(task);
  ids.insert(ids.end(), task.updates_once.begin(), task.updates_once.end());
  return ids;
}

Bytes padded_size(const Step& step, DataId id) {
  return um::round_up(step.graph[id].size, kAlignment);
}

}  // namespace

Bytes ScratchLaunch::size(const Step& step, prefetch::TaskId task, std::uint32_t algorithm) {
  Bytes total = um::round_up(step.graph[task].algorithms[algorithm].workspace, kAlignment);
  for (const DataId id : touched(step.graph[task])) total += padded_size(step, id);
  return total;
}

ScratchLaunch::ScratchLaunch(const Step& step, prefetch::TaskId task, std::uint32_t algorithm,
                             const Backend& backend, um::Range scratch) {
  um::expects(scratch.size() >= size(step, task, algorithm).count(), "enough scratch");
  const Launch& launch = step.launches[static_cast<std::size_t>(task)];
  kernel_ = backend.prepare(launch.operation, step.graph[task].algorithms[algorithm].name);
  if (const auto* load = std::get_if<LoadBatch>(&launch.operation)) {
    batch_.images.assign(load->x.elements(), 0.F);
    batch_.labels.assign(load->x.batch, 0);
  }
  context_.batch = &batch_;
  std::unordered_map<std::uint32_t, std::byte*> place;
  std::byte* next = scratch.data();
  for (const DataId id : touched(step.graph[task])) {
    const Bytes size = padded_size(step, id);
    std::memset(next, 0, size.count());
    place.emplace(static_cast<std::uint32_t>(id), next);
    next += size.count();
  }
  for (const DataId id : launch.operands) {
    operands_.push_back(place.at(static_cast<std::uint32_t>(id)));
  }
  workspace_ = next;
}

void ScratchLaunch::run() {
  kernel_->run({.operands = operands_, .workspace = workspace_, .context = &context_});
}

}  // namespace spillway
