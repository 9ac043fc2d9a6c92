#include "src/ranks/rank_names.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

#include "um/error.h"

namespace spillway {
namespace {

constexpr std::size_t kNamedGroups = 8;  // groups of ranks named in one sentence

// Number of `ranks` at the front that are consecutive and on one node.
std::size_t neighbours(std::span<const std::size_t> ranks, std::span<const std::string> nodes) {
  std::size_t count = 1;
  while (count < ranks.size() && ranks[count] == ranks[0] + count &&
         nodes[ranks[count]] == nodes[ranks[0]]) {
    ++count;
  }
  return count;
}

std::string name_of(std::span<const std::size_t> group, const std::string& node) {
  const std::size_t last = group.size() - 1;
  std::string text =
      last == 0 ? fmt::format("rank {}", group[0])
                : fmt::format("ranks {} {} {}", group[0], last == 1 ? "and" : "to", group[last]);
  return node.empty() ? text : text + " on " + node;
}

}  // namespace

std::string rank_names(std::span<const std::size_t> ranks, std::span<const std::string> nodes) {
  um::expects(!ranks.empty(), "at least one rank to name");
  std::string text;
  std::size_t groups = 0;
  while (!ranks.empty() && groups < kNamedGroups) {
    const std::size_t count = neighbours(ranks, nodes);
    const bool ends = count == ranks.size();
    text += groups == 0 ? "" : ends ? " and " : ", ";
    text += name_of(ranks.first(count), nodes[ranks[0]]);
    ranks = ranks.subspan(count);
    ++groups;
  }
  return ranks.empty() ? text : text + fmt::format(" and {} more", ranks.size());
}

std::string silence(std::span<const std::size_t> silent, std::span<const std::string> nodes,
                    std::chrono::milliseconds time_limit) {
  return fmt::format("nothing has come from {} for {:g} s: {}, or cannot be reached",
                     rank_names(silent, nodes), static_cast<double>(time_limit.count()) * 1e-3,
                     silent.size() == 1 ? "it hangs, has ended" : "they hang, have ended");
}

std::optional<std::size_t> parse_rank_count(std::string_view text) {
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  if (status != std::errc{} || stop != end) return std::nullopt;
  return number;
}

}  // namespace spillway
