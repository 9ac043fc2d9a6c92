#include "prefetch/learned/learned_step.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "um/error.h"

namespace spillway::prefetch {
namespace {

using Kind = RecordedEvent::Kind;

constexpr Position kNone = ~0U;

// An iteration's use of one block.
struct Use {
  um::Bytes size;
  Position first = kNone;  // task
  Position last = kNone;   // task
  Position freed = kNone;  // the task that is running when it is freed; kNone: never
  bool is_allocated = false;
  bool is_read_first = false;  // written outside the cycle's declared touches
  bool is_carried = false;  // has content when the cycle begins, and is freed and allocated in it
};

// Events of a cycle in order, over all its iterations.
struct CycleEvent {
  Kind kind;
  Touch touch;  // with the block's name in the cycle
  std::size_t iteration;
  std::size_t index;  // among the iteration's
};

std::vector<CycleEvent> events_of(const RecordedCycles& recorded) {
  std::vector<CycleEvent> events;
  for (std::size_t i = 0; i < recorded.cycle; ++i) {
    const std::vector<RecordedEvent>& all = recorded.iterations[i].events();
    for (std::size_t j = 0; j < all.size(); ++j) {
      events.push_back({.kind = all[j].kind, .touch = all[j].touch, .iteration = i, .index = j});
      events.back().touch.block.born %= recorded.cycle;
    }
  }
  return events;
}

template <typename Value>
Value median(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

class StepMaker {
 public:
  StepMaker(const RecordedCycles& recorded, um::Bytes page, const GroupingOptions& grouping)
      : recorded_{recorded}, events_{events_of(recorded)}, page_{page}, grouping_{grouping} {}

  std::variant<LearnedStep, NotLearned> make(const LinkProfile& link) {
    if (auto refused = follow_events()) return std::move(*refused);
    if (begins_.empty()) return NotLearned{"the iteration touches no block"};
    add_blocks();
    add_tasks();
    add_profile(link);
    return std::move(step_);
  }

 private:
  // Returns the time of a touch, or of the end, of the cycle that begins with recording `from`.
  [[nodiscard]] um::Nanoseconds moment(std::size_t event, std::size_t from) const {
    if (event == events_.size()) return recorded_.iterations[from + recorded_.cycle - 1].end();
    const CycleEvent& at = events_[event];
    return recorded_.iterations[from + at.iteration].events()[at.index].touch.at;
  }
  // Returns the median over cycles of the gap between two events.
  [[nodiscard]] um::Nanoseconds gap(std::size_t from, std::size_t to) const {
    std::vector<um::Nanoseconds> gaps;
    for (std::size_t i = 0; i < recorded_.iterations.size(); i += recorded_.cycle) {
      gaps.push_back(std::max(um::Nanoseconds{1}, moment(to, i) - moment(from, i)));
    }
    return median(std::move(gaps));
  }

  std::optional<NotLearned> follow_events() {
    step_.ends.resize(recorded_.cycle);
    step_.first = recorded_.iterations.front().iteration() % recorded_.cycle;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const Touch& touch = events_[i].touch;
      Use& use = uses_[touch.block];
      if (events_[i].kind == Kind::kTouch) {
        add_touch(i, use);
      } else if (events_[i].kind == Kind::kAllocate) {
        use.is_carried = use.first != kNone || use.freed != kNone;
        use.is_allocated = true;
        use.size = touch.size;
      } else {
        use.freed = begins_.empty() ? 0 : task();
      }
    }
    std::size_t end = 0;
    for (std::size_t& each : step_.ends) end = each = std::max(end, each);
    for (const auto& [name, use] : uses_) {
      if (use.is_allocated && use.freed == kNone) {
        return NotLearned{"the iteration leaves behind a block that it allocated, for ever"};
      }
      if (!use.is_allocated && use.freed != kNone) {
        return NotLearned{"the iteration frees a block that none like it has allocated"};
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] Position task() const { return static_cast<Position>(begins_.size() - 1); }

  void add_touch(std::size_t event, Use& use) {
    const Touch& touch = events_[event].touch;
    use.size = touch.size;
    if (!joins_last(event, use)) {
      begins_.push_back(event);
      in_task_ = {};
    }
    if (use.last != task() || use.first == kNone) in_task_ += um::round_up(use.size, page_);
    if (use.first == kNone) {
      use.first = task();
      use.is_read_first = touch.access == um::Access::kRead;
    }
    use.last = task();
    step_.touches.push_back({.block = touch.block, .access = touch.access, .task = task()});
    step_.ends[events_[event].iteration] = step_.touches.size();
  }

  [[nodiscard]] bool joins_last(std::size_t event, const Use& use) const {
    if (begins_.empty() || events_[event - 1].kind != Kind::kTouch) return false;
    if (events_[event].iteration != events_[event - 1].iteration) return false;
    const um::Bytes more =
        use.first != kNone && use.last == task() ? um::Bytes{} : um::round_up(use.size, page_);
    return gap(event - 1, event) <= grouping_.together && in_task_ + more <= grouping_.max;
  }

  [[nodiscard]] static bool is_tensor(const Use& use) {
    return use.is_allocated && !use.is_carried && !use.is_read_first && use.freed == use.last;
  }

  void add_blocks() {
    for (const auto& [name, use] : uses_) {
      if (use.first == kNone) continue;
      const bool intervals = use.size < page_;
      step_.blocks[name] = step_.graph.add(
          DataBlock{.name = (name.is_fresh ? "allocation " : "block ") + std::to_string(name.id),
                    .size = use.size,
                    .kind = is_tensor(use) && !intervals ? DataKind::kTensor : DataKind::kState,
                    .is_offloadable = !is_tensor(use) && !intervals});
    }
  }

  void add_tasks() {
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      step_.graph.add(Task{.name = "task " + std::to_string(i)});
    }
    for (const ExpectedTouch& touch : step_.touches) {
      Task& task = step_.graph.tasks[touch.task];
      const DataId data = step_.blocks.at(touch.block);
      const bool is_first =
          step_.graph[data].kind == DataKind::kTensor && uses_.at(touch.block).first == touch.task;
      const auto add = [data](std::vector<DataId>& list) {
        if (std::ranges::count(list, data) == 0) list.push_back(data);
      };
      if (!is_first) add(task.reads);
      if (is_first || touch.access != um::Access::kRead) add(task.writes);
    }
  }

  void add_profile(const LinkProfile& link) {
    step_.profile = {.source = "recorded iterations",
                     .graph = fingerprint(step_.graph),
                     .durations = {},
                     .link = link};
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      const std::size_t next = i + 1 < begins_.size() ? begins_[i + 1] : events_.size();
      step_.profile.durations.push_back({gap(begins_[i], next)});
    }
  }

  const RecordedCycles& recorded_;
  std::vector<CycleEvent> events_;
  um::Bytes page_;
  GroupingOptions grouping_;
  std::map<BlockName, Use> uses_;
  std::vector<std::size_t> begins_;  // by task: the event of its first touch
  um::Bytes in_task_;                // blocks of the last task, in whole pages
  LearnedStep step_;
};

}  // namespace

std::variant<LearnedStep, NotLearned> learn_step(const RecordedCycles& recorded,
                                                 const LinkProfile& link, um::Bytes page,
                                                 const GroupingOptions& grouping) {
  um::expects(recorded.cycle > 0 && !recorded.iterations.empty() &&
                  recorded.iterations.size() % recorded.cycle == 0,
              "whole cycles are learned");
  return StepMaker{recorded, page, grouping}.make(link);
}

}  // namespace spillway::prefetch
