#include "tests/fuzz/drawn_trace.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace spillway::fuzz {
namespace {

using nlohmann::json;

class Drawing {
 public:
  explicit Drawing(Generator& generator) : generator_{generator} {}

  /// Draws a number below `end`.
  std::size_t below(std::size_t end) { return generator_() % end; }
  bool one_in(std::size_t count) { return below(count) == 0; }
  template <class Container>
  auto pick(const Container& choices) {
    return choices[below(std::size(choices))];
  }

 private:
  Generator& generator_;
};

// Blocks and the tasks that use them so far.
class TraceDrawing {
 public:
  TraceDrawing(Generator& generator, bool has_huge_blocks)
      : draw_{generator},
        has_huge_blocks_{has_huge_blocks},
        unit_{kUnits[draw_.below(has_huge_blocks ? kUnits.size() : kUsualUnits)]},
        longest_{draw_.pick(kTimes)} {}

  json draw() {
    if (draw_.one_in(3)) {
      add_any_tasks();
    } else {
      add_rounds();
    }
    state_phases();
    const bool is_second = draw_.one_in(3);
    if (is_second) add_what_is_new();
    return {{"format", "spillway-trace"},
            {"version", is_second ? 2 : 1},
            {"name", "drawn"},
            {"data", std::move(data_)},
            {"tasks", std::move(tasks_)}};
  }

 private:
  static constexpr std::array<std::uint64_t, 8> kUnits{
      1, 4096, 65536, 1ULL << 20U, 1ULL << 21U, 1ULL << 24U, 1ULL << 32U, 1ULL << 39U};
  static constexpr std::size_t kUsualUnits = 6;
  static constexpr std::array<std::uint64_t, 6> kTimes{
      0, 1, 1000, 1'000'000, 1'000'000'000, 10'000'000'000'000};
  static constexpr std::array kPhases{"forward", "backward", "update"};
  static constexpr std::array kKinds{"other",      "convolution",   "linear",  "pool",
                                     "activation", "normalization", "dropout", "join"};

  std::uint64_t size() {
    if (has_huge_blocks_ && draw_.one_in(64)) return draw_.below(2) * (1ULL << 42U);
    const std::uint64_t whole = unit_ * (1 + draw_.below(8));
    return draw_.one_in(4) ? whole + draw_.below(3) - 1 : whole;
  }
  std::uint64_t workspace() { return draw_.one_in(2) ? 0 : size() / (1 + draw_.below(8)); }
  std::uint64_t time() { return longest_ == 0 ? 0 : draw_.below(longest_ + 1); }

  std::size_t add_block(bool is_weight) {
    json block{{"id", data_.size()}, {"bytes", size()}, {"kind", is_weight ? "weight" : "tensor"}};
    if (is_weight && !draw_.one_in(3)) block["offloadable"] = !draw_.one_in(3);
    data_.push_back(std::move(block));
    return data_.size() - 1;
  }

  void add_task(std::vector<std::size_t> reads, std::vector<std::size_t> writes,
                const char* phase) {
    json task{{"name", "task " + std::to_string(tasks_.size())},
              {"reads", std::move(reads)},
              {"writes", std::move(writes)},
              {"phase", phase}};
    if (draw_.one_in(2)) task["recomputable"] = !draw_.one_in(4);
    if (draw_.one_in(2)) task["kind"] = draw_.pick(kKinds);
    if (draw_.one_in(3)) {
      for (std::size_t i = 1 + draw_.below(3); i > 0; --i) {
        task["algorithms"].push_back({{"name", "algorithm " + std::to_string(i)},
                                      {"duration_ns", time()},
                                      {"workspace_bytes", workspace()}});
      }
    } else {
      task["duration_ns"] = time();
      task["workspace_bytes"] = workspace();
    }
    tasks_.push_back(std::move(task));
  }

  // Adds tasks that read and write random blocks. Blocks without a writer come from outside.
  void add_any_tasks() {
    for (std::size_t i = 2 + draw_.below(10); i > 0; --i) add_block(draw_.one_in(4));
    const auto some = [&] {
      std::vector<std::size_t> ids;
      for (std::size_t i = draw_.below(4); i > 0; --i) ids.push_back(draw_.below(data_.size()));
      return ids;
    };
    for (std::size_t i = 1 + draw_.below(16); i > 0; --i) add_task(some(), some(), "forward");
  }

  // Adds micro-batches of a chain of layers, with one update at the end or one after each.
  void add_rounds() {
    const std::size_t layers = 1 + draw_.below(4);
    const bool updates_each = draw_.one_in(4);
    std::vector<std::size_t> weights;
    std::vector<std::size_t> gradients;
    for (std::size_t i = 0; i < layers; ++i) {
      weights.push_back(add_block(true));
      gradients.push_back(add_block(draw_.one_in(2)));
    }
    for (std::size_t round = 1 + draw_.below(3); round > 0; --round) {
      add_round(weights, gradients, updates_each || round == 1);
    }
  }

  void add_round(const std::vector<std::size_t>& weights, const std::vector<std::size_t>& gradients,
                 bool updates) {
    std::vector<std::size_t> y{add_block(false)};
    if (!draw_.one_in(3)) add_task({}, {y[0]}, "forward");
    for (std::size_t i = 0; i < weights.size(); ++i) {
      std::vector<std::size_t> reads{y[i], weights[i]};
      if (i > 0 && draw_.one_in(3)) reads.push_back(y[i - 1]);
      y.push_back(add_block(false));
      add_task(reads, {y[i + 1]}, "forward");
    }
    std::size_t dy = add_block(false);
    add_task({y.back()}, {dy}, draw_.one_in(2) ? "forward" : "backward");
    for (std::size_t i = weights.size(); i-- > 0;) {
      const std::size_t dx = draw_.one_in(4) ? dy : add_block(false);
      add_task({y[i], y[i + 1], dy, weights[i], gradients[i]}, {dx, gradients[i]}, "backward");
      if (updates) add_task({gradients[i], weights[i]}, {weights[i]}, "update");
      dy = dx;
    }
  }

  // Keeps phases as they are, reorders them, or removes some or all.
  void state_phases() {
    const std::size_t way = draw_.below(5);
    for (json& task : tasks_) {
      const bool is_left_out = way == 2 ? draw_.one_in(2) : way == 3;
      if (is_left_out) {
        task.erase("phase");
      } else if (way != 0) {
        task["phase"] = draw_.pick(kPhases);
      }
    }
    if (way == 4 && !tasks_.empty()) std::reverse(tasks_.begin(), tasks_.end());
  }

  // Adds what version 2 has: micro-batches, orders, and variants of some tasks. A task that goes
  // with an earlier one reads what that one saves.
  void add_what_is_new() {
    std::vector<std::size_t> varied;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      json& task = tasks_[i];
      if (draw_.one_in(3)) task["micro_batch"] = draw_.below(3);
      if (i > 0 && draw_.one_in(4)) task["after"] = {draw_.below(i)};
      if (!draw_.one_in(4)) continue;
      for (const char* const key : {"duration_ns", "workspace_bytes", "algorithms"}) {
        task.erase(key);
      }
      const bool follows = !varied.empty() && draw_.one_in(2);
      if (follows) task["same_variant_as"] = draw_.pick(varied);
      const std::size_t saved = follows ? data_.size() - 1 : add_block(false);
      const bool is_reader = follows && task.at("same_variant_as") == varied.back();
      for (const char* const name : {"saves", "saves nothing"}) {
        task["variants"].push_back(
            {{"name", name}, {"duration_ns", time()}, {"workspace_bytes", workspace()}});
      }
      if (is_reader) task["variants"][0]["reads"] = {saved};
      if (!follows) task["variants"][0]["writes"] = {saved};
      if (!follows) varied.push_back(i);
    }
  }

  Drawing draw_;
  bool has_huge_blocks_;
  std::uint64_t unit_;     // of sizes
  std::uint64_t longest_;  // of times
  json data_ = json::array();
  json tasks_ = json::array();
};

}  // namespace

json drawn_trace(Generator& generator, bool has_huge_blocks) {
  return TraceDrawing{generator, has_huge_blocks}.draw();
}

json drawn_link(Generator& generator) {
  constexpr std::array<double, 6> kRates{1e3, 1e6, 1e9, 12e9, 1e15, 1e300};
  constexpr std::array<std::uint64_t, 5> kLatencies{0, 1, 10'000, 1'000'000'000,
                                                    1'000'000'000'000'000};
  constexpr std::array<double, 4> kSpeeds{1, 0.5, 1e-3, 1e-300};
  Drawing draw{generator};
  const bool is_usual = !draw.one_in(3);
  const auto rate = [&] {
    return is_usual ? 1e9 * static_cast<double>(1 + draw.below(20)) : draw.pick(kRates);
  };
  return {{"offload_bytes_per_second", rate()},
          {"prefetch_bytes_per_second", rate()},
          {"latency_ns", is_usual ? 10'000 : draw.pick(kLatencies)},
          {"duplex", !draw.one_in(3)},
          {"copies_while_read", draw.one_in(2)},
          {"compute_speed_while_moving", is_usual ? 1 : draw.pick(kSpeeds)},
          {"far_update_bytes_per_second", rate()},
          {"compute_speed_while_updating", is_usual ? 1 : draw.pick(kSpeeds)},
          {"fault_ns", is_usual ? 20'000 : draw.pick(kLatencies)},
          {"faults_spare_overwritten", draw.one_in(2)},
          {"faults_evict_by_use", draw.one_in(2)}};
}

}  // namespace spillway::fuzz
