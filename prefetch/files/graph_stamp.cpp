#include "prefetch/files/graph_stamp.h"

#include <array>
#include <cstdio>

namespace spillway::prefetch {

std::string graph_stamp(std::uint64_t fingerprint) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(fingerprint));
  return text.data();
}

bool is_made_for(const TaskGraph& graph, const JsonView& file) {
  return file.has("graph") && file.at("graph").string() == graph_stamp(fingerprint(graph));
}

std::uint64_t expect_made_for(const TaskGraph& graph, const JsonView& file) {
  const std::uint64_t print = fingerprint(graph);
  const JsonView made_for = file.at("graph");
  if (made_for.string() == graph_stamp(print)) return print;
  throw made_for.error(
      "belongs to another step or machine (" + made_for.string() + ", here " + graph_stamp(print) +
      "): give the --net, --batch, --image-size, --classes, --aux-heads, --optimizer, --mixup, "
      "--cutmix, --conv-algorithm, --state, --update and --threads, and the --device, --precision "
      "and "
      "--deterministic of a GPU, that it was made with, or make it again");
}

}  // namespace spillway::prefetch
