#include "prefetch/task_graph.h"

namespace spillway::prefetch {
namespace {

// FNV-1a, 64 bits.
class Fingerprint {
 public:
  void add(std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) mix(number >> static_cast<unsigned>(shift) & 0xffU);
  }
  void add(std::string_view text) {
    add(text.size());
    for (const char c : text) mix(static_cast<unsigned char>(c));
  }
  void add(const std::vector<DataId>& ids) {
    add(ids.size());
    for (const DataId id : ids) add(static_cast<std::uint64_t>(id));
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  void mix(std::uint64_t byte) { value_ = (value_ ^ byte) * 0x100000001b3ULL; }
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace

std::uint64_t fingerprint(const TaskGraph& graph) {
  Fingerprint print;
  print.add(graph.data.size());
  for (const DataBlock& block : graph.data) {
    print.add(block.name);
    print.add(block.size.count());
    print.add(static_cast<std::uint64_t>(block.kind) + (block.is_offloadable ? 2U : 0U) +
              (block.is_sent ? 4U : 0U));
    if (block.lies_in) print.add(static_cast<std::uint64_t>(*block.lies_in));
  }
  print.add(graph.tasks.size());
  for (const Task& task : graph.tasks) {
    print.add(task.name);
    print.add(static_cast<std::uint64_t>(task.phase));
    print.add(static_cast<std::uint64_t>(task.is_recomputable));
    print.add(task.reads);
    print.add(task.writes);
    print.add(task.updates_once);
    print.add(task.algorithms.size());
    for (const Algorithm& algorithm : task.algorithms) {
      print.add(algorithm.name);
      print.add(algorithm.workspace.count());
    }
    if (!task.after.empty()) print.add("after");
    for (const TaskId before : task.after) print.add(static_cast<std::uint64_t>(before));
    if (!task.variant.empty()) print.add(task.variant);
  }
  if (!graph.far_updates.empty()) print.add(graph.far_updates.size());
  for (const FarUpdate& update : graph.far_updates) {
    print.add(update.name);
    print.add(static_cast<std::uint64_t>(update.gradient));
    print.add(static_cast<std::uint64_t>(update.parameters));
    print.add(update.numbers);
  }
  if (!graph.exchanges.empty()) print.add("exchanges");
  for (const GradientExchange& exchange : graph.exchanges) {
    print.add(exchange.name);
    print.add(exchange.blocks);
    if (!exchange.divided.empty()) print.add(exchange.divided);
    if (!exchange.waiting.empty()) print.add(exchange.waiting);
    print.add(static_cast<std::uint64_t>(exchange.ready) +
              (static_cast<std::uint64_t>(exchange.collective) << 32U));
  }
  return print.value();
}

std::uint64_t fingerprint(std::string_view text) {
  Fingerprint print;
  print.add(text);
  return print.value();
}

}  // namespace spillway::prefetch
