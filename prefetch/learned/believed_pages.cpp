#include "prefetch/learned/believed_pages.h"

#include <algorithm>

namespace spillway::prefetch {

NearPages::NearPages(const TaskGraph& graph, const BlockSizes& block_sizes)
    : page_{block_sizes.page()}, blocks_(graph.data.size()) {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i].pages.assign(block_sizes.size(DataId(i)) / page_, State::kFar);
  }
}

bool NearPages::touch(DataId data) {
  Block& block = at(data);
  bool was_near = true;
  bool was_moving = false;
  for (State& page : block.pages) {
    if (page == State::kFar) ++near_;
    was_near = was_near && page == State::kNear;
    was_moving = was_moving || page == State::kComing || page == State::kLeaving;
    page = State::kNear;
  }
  if (was_moving) ++block.life;
  was_near = was_near || !block.has_content;
  block.last_use = ++uses_;
  block.has_content = true;
  return was_near;
}

void NearPages::shrink(um::Bytes max, DataId kept) {
  while (near_ * page_ > max) {
    Block* oldest = nullptr;
    for (Block& block : blocks_) {
      if (&block == &at(kept) || std::ranges::count(block.pages, State::kNear) == 0) continue;
      if (oldest == nullptr || block.last_use < oldest->last_use) oldest = &block;
    }
    if (oldest == nullptr) return;
    for (State& page : oldest->pages) {
      if (page != State::kNear || near_ * page_ <= max) continue;
      page = State::kFar;
      --near_;
    }
  }
}

void NearPages::release(DataId data) {
  Block& block = at(data);
  for (State& page : block.pages) {
    if (page != State::kFar) --near_;
    page = State::kFar;
  }
  block.has_content = false;
  ++block.life;
}

bool NearPages::are_leaving(const PageRange& range) const {
  const std::vector<State>& pages = at(range.data).pages;
  for (std::uint64_t i = range.begin; i < range.end; ++i) {
    if (pages[i] == State::kLeaving) return true;
  }
  return false;
}

um::Bytes NearPages::far(const PageRange& range) const {
  const std::vector<State>& pages = at(range.data).pages;
  std::uint64_t far = 0;
  for (std::uint64_t i = range.begin; i < range.end; ++i) far += pages[i] == State::kFar ? 1 : 0;
  return far * page_;
}

template <typename Moves>
std::optional<PageRange> NearPages::move(const PageRange& range, State to, const Moves& moves) {
  std::vector<State>& pages = at(range.data).pages;
  PageRange moved{.data = range.data, .begin = range.end, .end = range.begin};
  for (std::uint64_t i = range.begin; i < range.end; ++i) {
    if (!moves(pages[i])) continue;
    if (pages[i] == State::kFar) ++near_;
    pages[i] = to;
    moved.begin = std::min(moved.begin, i);
    moved.end = i + 1;
  }
  if (moved.begin >= moved.end) return std::nullopt;
  return moved;
}

std::optional<PageRange> NearPages::bring(const PageRange& range) {
  return move(range, State::kComing, [](State page) { return page == State::kFar; });
}

std::optional<PageRange> NearPages::send(const PageRange& range) {
  return move(range, State::kLeaving,
              [](State page) { return page == State::kNear || page == State::kComing; });
}

void NearPages::arrive(const PageRange& range) {
  const auto came = move(range, State::kNear, [](State page) { return page == State::kComing; });
  if (came) at(range.data).last_use = ++uses_;
}

void NearPages::leave(const PageRange& range) {
  std::vector<State>& pages = at(range.data).pages;
  for (std::uint64_t i = range.begin; i < range.end; ++i) {
    if (pages[i] != State::kLeaving) continue;
    pages[i] = State::kFar;
    --near_;
  }
}

}  // namespace spillway::prefetch
