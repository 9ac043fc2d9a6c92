#include "prefetch/learned/replay_names.h"

namespace spillway::prefetch {

ReplayNames::Claim ReplayNames::claim(std::uint64_t block, const BlockName& name) {
  if (const auto known = names_.find(block); known != names_.end()) return {.name = known->second};
  BlockName in_cycle = name;
  in_cycle.born %= cycle_;
  const auto [owner, is_free] = owners_.try_emplace(in_cycle, block);
  if (!is_free) {
    names_.erase(owner->second);
    owner->second = block;
  }
  names_.emplace(block, in_cycle);
  return {.name = in_cycle, .has_displaced = !is_free};
}

std::optional<BlockName> ReplayNames::release(std::uint64_t block) {
  const auto found = names_.find(block);
  if (found == names_.end()) return std::nullopt;
  const BlockName name = found->second;
  names_.erase(found);
  owners_.erase(name);
  return name;
}

std::optional<std::uint64_t> ReplayNames::owner(const BlockName& name) const {
  const auto found = owners_.find(name);
  if (found == owners_.end()) return std::nullopt;
  return found->second;
}

}  // namespace spillway::prefetch
