#include "src/profile/scratch_launch.h"

#include <algorithm>
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
                             const Backend& backend)
    : backend_{backend}, batch_{empty_batch(backend.batch_memory())} {
  const prefetch::Task& traits = step.graph[task];
  const Launch& launch = step.launches[static_cast<std::size_t>(task)];
  kernel_ = backend.prepare(launch.operation, traits.algorithms[algorithm].name);
  if (const auto* load = std::get_if<LoadBatch>(&launch.operation); load && !load->is_staged) {
    if (load->has_bytes) {
      byte_numbers_.resize(load->x.image.channels * kByteValues);
      batch_.byte_numbers = byte_numbers_;
      batch_.bytes.assign(load->x.elements(), 0);
    } else {
      batch_.images.assign(load->x.elements(), 0.F);
    }
    batch_.labels.assign(load->label_count(), 0);
  }
  backend.begin_step({});
  std::unordered_map<std::uint32_t, std::size_t> index;
  for (const DataId id : touched(traits)) {
    index.emplace(static_cast<std::uint32_t>(id), pieces_.size());
    pieces_.push_back({.block = id, .size = padded_size(step, id)});
    const bool is_only_written =
        std::ranges::count(traits.writes, id) > 0 && std::ranges::count(traits.reads, id) == 0;
    is_read_.push_back(!is_only_written);
  }
  for (const DataId id : launch.operands) {
    operand_pieces_.push_back(index.at(static_cast<std::uint32_t>(id)));
  }
  pieces_.push_back(
      {.block = {}, .size = um::round_up(traits.algorithms[algorithm].workspace, kAlignment)});
  is_read_.push_back(false);
}

void ScratchLaunch::place(ScratchRing& ring) {
  const std::vector<ScratchRing::Place> places = ring.place(pieces_);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].is_new && is_read_[i] && pieces_[i].size > Bytes{}) {
      backend_.clear({places[i].address, pieces_[i].size.count()});
    }
  }
  operands_.clear();
  for (const std::size_t piece : operand_pieces_) operands_.push_back(places[piece].address);
  workspace_ = places.back().address;
}

void ScratchLaunch::run() {
  const StepContext context{.batch = &batch_};
  kernel_->run({.operands = operands_, .workspace = workspace_, .context = &context});
}

}  // namespace spillway
