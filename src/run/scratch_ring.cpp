#include "src/run/scratch_ring.h"

#include <algorithm>
#include <unordered_map>
#include <variant>

#include "prefetch/liveness.h"
#include "um/error.h"

namespace spillway {

std::uint64_t ScratchRing::skip_to_fit(std::uint64_t position, um::Bytes size) const {
  const std::uint64_t all = memory_.size();
  return position % all + size.count() > all ? (position / all + 1) * all : position;
}

// True if the piece is a block in the ring that is still intact when the ring is filled to `end`.
bool ScratchRing::is_kept(const Piece& piece, std::uint64_t end) const {
  if (!piece.block) return false;
  const auto found = positions_.find(static_cast<std::uint32_t>(*piece.block));
  return found != positions_.end() && found->second + memory_.size() >= end;
}

// Returns the head after placing all pieces that are not kept with the head at `kept`.
std::uint64_t ScratchRing::find_end(std::span<const Piece> pieces, std::uint64_t kept) const {
  std::uint64_t end = head_;
  for (const Piece& piece : pieces) {
    if (!is_kept(piece, kept)) end = skip_to_fit(end, piece.size) + piece.size.count();
  }
  return end;
}

std::vector<ScratchRing::Place> ScratchRing::place(std::span<const Piece> pieces) {
  um::Bytes total;
  for (const Piece& piece : pieces) total += piece.size;
  um::expects(total.count() <= memory_.size(), "the pieces of a task fit in the ring");
  if (total == um::Bytes{}) {
    return std::vector<Place>(pieces.size(), {.address = memory_.data(), .is_new = true});
  }

  // A placed piece may overwrite a kept one, which must then be placed, too.
  std::uint64_t end = head_;
  for (std::uint64_t next = find_end(pieces, end); next != end; next = find_end(pieces, end)) {
    end = next;
  }
  const bool none_is_kept =
      std::ranges::none_of(pieces, [&](const Piece& piece) { return is_kept(piece, end); });
  if (none_is_kept && end - head_ > memory_.size()) {  // skips a part of the ring
    head_ = skip_to_fit(head_, um::Bytes{memory_.size()});
    end = head_ + total.count();
  }

  std::vector<Place> places;
  for (const Piece& piece : pieces) {
    const bool is_new = !is_kept(piece, end);
    std::uint64_t position = 0;
    if (!is_new) {
      position = positions_.at(static_cast<std::uint32_t>(*piece.block));
    } else {
      position = skip_to_fit(head_, piece.size);
      head_ = position + piece.size.count();
      if (piece.block) positions_[static_cast<std::uint32_t>(*piece.block)] = position;
    }
    places.push_back({.address = memory_.data() + position % memory_.size(), .is_new = is_new});
  }
  return places;
}

namespace {

using prefetch::DataId;
using um::Bytes;

constexpr Bytes kAlignment{4096};

// Returns every block that a launch touches, each once.
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
    const std::size_t samples = load->first_sample + load->x.batch;
    if (load->has_bytes) {
      byte_numbers_.resize(load->x.image.channels * kByteValues);
      batch_.byte_numbers = byte_numbers_;
      batch_.bytes.assign(samples * load->x.image.elements(), 0);
    } else {
      batch_.images.assign(samples * load->x.image.elements(), 0.F);
    }
    batch_.labels.assign(samples * load->labels_each, 0);
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
