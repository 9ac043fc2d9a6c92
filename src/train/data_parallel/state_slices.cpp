#include "src/train/data_parallel/state_slices.h"

#include <vector>

#include "src/ranks/collectives.h"
#include "src/ranks/communicator.h"
#include "um/error.h"

namespace spillway {
namespace {

enum class Command : std::uint64_t { kGather, kScatter, kEnd };

struct Message {
  Command command = Command::kEnd;
  std::uint64_t index = 0;
};

std::span<float> floats_at(std::byte* address, std::size_t count) {
  return {reinterpret_cast<float*>(address), count};
}

// A block as it would lie in memory.
class WholeBlock {
 public:
  WholeBlock(const StateBlock& block, const Backend& backend, um::Memory& memory) {
    for (std::size_t i = 0; i < block.ids.size(); ++i) {
      const ParameterPart part{.index = i, .count = block.ids.size()};
      parts_.emplace_back(memory, backend.parameter_part_bytes(block.spec, part));
      addresses_.push_back(parts_.back().data());
    }
  }

  [[nodiscard]] std::span<float> part(std::size_t i) const {
    return floats_at(addresses_[i], parts_[i].size().count() / sizeof(float));
  }
  [[nodiscard]] std::span<std::byte* const> addresses() const { return addresses_; }

 private:
  std::vector<um::Block> parts_;
  std::vector<std::byte*> addresses_;
};

}  // namespace

std::span<float> StateSlices::own(std::byte* part, std::size_t floats) const {
  const NumberSlice slice = slice_of_rank(ranks_.rank(), ranks_.size(), floats);
  return floats_at(part, slice.count);
}

void StateSlices::gather(std::size_t index, const StateBlock& block,
                         std::span<std::byte* const> parts, const Backend& backend,
                         std::span<float> numbers) {
  um::expects(is_rank_zero(), "rank zero gathers");
  const WholeBlock whole{block, backend, memory_};  // before anybody waits for it
  Message message{.command = Command::kGather, .index = index};
  broadcast(ranks_, message);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (block.divided[i] > 0) {
      exchange_part(true, own(parts[i], block.divided[i]), whole.part(i));
    } else {
      near_.kernels().copy(whole.part(i), floats_at(parts[i], whole.part(i).size()));
    }
  }
  near_.finish();
  backend.export_parameters(block.spec, whole.addresses(), numbers);
}

void StateSlices::scatter(std::size_t index, const StateBlock& block,
                          std::span<std::byte* const> parts, const Backend& backend,
                          std::span<const float> numbers) {
  um::expects(is_rank_zero(), "rank zero scatters");
  const WholeBlock whole{block, backend, memory_};
  for (std::size_t i = 0; i < parts.size(); ++i)
    backend.clear(std::as_writable_bytes(whole.part(i)));
  backend.import_parameters(block.spec, numbers, whole.addresses());
  Message message{.command = Command::kScatter, .index = index};
  broadcast(ranks_, message);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (block.divided[i] > 0) {
      exchange_part(false, own(parts[i], block.divided[i]), whole.part(i));
    } else {
      near_.broadcast(std::as_writable_bytes(whole.part(i)), 0);
      near_.kernels().copy(floats_at(parts[i], whole.part(i).size()), whole.part(i));
    }
  }
  near_.finish();
}

void StateSlices::on_rank_zero(const std::function<void()>& work,
                               const std::function<void()>& follow) {
  const auto work_and_end = [&] {
    try {
      work();
    } catch (...) {
      end();
      throw;
    }
    end();
  };
  spillway::on_rank_zero(ranks_, work_and_end, follow);
}

void StateSlices::end() {
  Message message;
  broadcast(ranks_, message);
}

std::optional<StateSlices::Call> StateSlices::next() {
  Message message;
  broadcast(ranks_, message);
  if (message.command == Command::kEnd) return std::nullopt;
  return Call{.index = message.index, .gathers = message.command == Command::kGather};
}

void StateSlices::join(const Call& call, const StateBlock& block, std::span<std::byte* const> parts,
                       const Backend& backend) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (block.divided[i] == 0) {
      if (call.gathers) continue;
      const ParameterPart part{.index = i, .count = parts.size()};
      const std::size_t size = backend.parameter_part_bytes(block.spec, part).count();
      near_.broadcast({parts[i], size}, 0);
    } else {
      exchange_part(call.gathers, own(parts[i], block.divided[i]), {});
    }
  }
  near_.finish();
}

// `whole` is rank zero's, which receives all slices, or sends them.
void StateSlices::exchange_part(bool gathers, std::span<float> own, std::span<float> whole) {
  const std::size_t ranks = ranks_.size();
  std::vector<std::span<const std::byte>> sends(ranks);
  std::vector<std::span<std::byte>> receives(ranks);
  const auto exchange_with = [&](std::size_t rank, std::span<float> numbers, bool receives_them) {
    if (receives_them) {
      receives[rank] = std::as_writable_bytes(numbers);
    } else {
      sends[rank] = std::as_bytes(numbers);
    }
  };
  if (is_rank_zero()) {
    for (std::size_t r = 1; r < ranks; ++r) {
      const NumberSlice slice = slice_of_rank(r, ranks, whole.size());
      exchange_with(r, whole.subspan(slice.first, slice.count), gathers);
    }
    const std::span<float> first = whole.first(own.size());
    near_.kernels().copy(gathers ? first : own, gathers ? own : first);
  } else {
    exchange_with(0, own, !gathers);
  }
  near_.exchange(sends, receives);
}

}  // namespace spillway
