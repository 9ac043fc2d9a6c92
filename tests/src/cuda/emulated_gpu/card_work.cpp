#include "tests/src/cuda/emulated_gpu/card_work.h"

#include <algorithm>
#include <utility>

namespace spillway::emulated {

void join(WorkClock& clock, const WorkClock& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

WorkQueue::WorkQueue(const CardSettings& settings, std::function<void(WorkNode&)> compute)
    : order_{settings.order}, chance_{settings.seed}, compute_{std::move(compute)} {}

bool WorkQueue::is_early(WorkKind kind) const {
  switch (order_) {
    case WorkOrder::kEager:
      return true;
    case WorkOrder::kMoves:
      return kind == WorkKind::kMove;
    case WorkOrder::kCompute:
      return kind == WorkKind::kCompute;
    case WorkOrder::kLate:
    case WorkOrder::kAll:
    case WorkOrder::kChance:
      break;
  }
  return false;
}

// Sets what the node waits for, and its clock.
void WorkQueue::link(const WorkNodePtr& node, std::vector<WorkNodePtr> after) {
  node->clock = seen_;
  for (const WorkNodePtr& each : after) join(node->clock, each->clock);
  if (node->clock.size() <= node->lane) node->clock.resize(node->lane + 1);
  ++node->clock[node->lane];
  join(all_, node->clock);
  for (WorkNodePtr& each : after) {
    if (each->is_done) continue;
    ++node->missing;
    each->next.push_back(node.get());
    node->after.push_back(std::move(each));
  }
  pending_.insert(node);
  if (node->missing == 0) ready_.push_back(node);
}

void WorkQueue::enqueue(CUstream_st& stream, const WorkNodePtr& node,
                        std::vector<WorkNodePtr> after) {
  if (stream.tail) after.push_back(stream.tail);
  link(node, std::move(after));
  stream.tail = node;
}

void WorkQueue::add(CUstream_st& stream, WorkKind kind, std::shared_ptr<const Work> work) {
  auto node = std::make_shared<WorkNode>();
  node->work = std::move(work);
  node->kind = kind;
  node->device = stream.device;
  node->lane = stream.lane;
  if (stream.capture) {
    node->after = stream.captured;
    node->index = stream.capture->nodes.size();
    stream.captured = {node};
    stream.capture->nodes.push_back(std::move(node));
    return;
  }
  enqueue(stream, node, {});
  begin_by_order(node);
}

WorkNodePtr WorkQueue::make_end(CUstream_st& stream) {
  auto node = std::make_shared<WorkNode>();
  node->device = stream.device;
  node->lane = stream.lane;
  return node;
}

void WorkQueue::add_graph(CUstream_st& stream, CUgraphExec_st& graph) {
  // A launch waits for the last one of the same graph, too.
  std::vector<WorkNodePtr> before;
  if (graph.last) before.push_back(graph.last);
  const WorkNodePtr begin = make_end(stream);
  enqueue(stream, begin, std::move(before));
  std::vector<WorkNodePtr> copies;
  copies.reserve(graph.nodes.size());
  for (const WorkNodePtr& captured : graph.nodes) {
    auto copy = std::make_shared<WorkNode>();
    copy->work = captured->work;
    copy->kind = captured->kind;
    copy->device = captured->device;
    copy->lane = captured->lane;
    std::vector<WorkNodePtr> after{begin};
    for (const WorkNodePtr& each : captured->after) after.push_back(copies[each->index]);
    link(copy, std::move(after));
    copies.push_back(copy);
  }
  const WorkNodePtr end = make_end(stream);
  enqueue(stream, end, copies);
  graph.last = end;
  for (const WorkNodePtr& copy : copies) begin_by_order(copy);
  if (order_ == WorkOrder::kEager) demand(end);
}

void WorkQueue::add_wait(CUstream_st& stream, const WorkNodePtr& node) {
  const WorkNodePtr end = make_end(stream);
  enqueue(stream, end, {node});
  begin_by_order(end);
}

void WorkQueue::begin_by_order(const WorkNodePtr& node) {
  if (order_ == WorkOrder::kChance) {
    while (!ready_.empty() && chance_() % 2 == 0) compute_by_chance();
  } else if (is_early(node->kind)) {
    demand(node);
  }
}

void WorkQueue::compute_by_chance() { compute_one(ready_[chance_() % ready_.size()]); }

// By value: the node leaves the lists that hold it.
void WorkQueue::compute_one(const WorkNodePtr& node) {
  const WorkNodePtr kept = node;
  ready_.erase(std::find(ready_.begin(), ready_.end(), kept));
  if (kept->work) compute_(*kept);
  kept->ended = std::chrono::steady_clock::now();
  kept->is_done = true;
  kept->after.clear();
  kept->work.reset();
  for (WorkNode* next : kept->next) {
    if (--next->missing == 0) ready_.push_back(next->shared_from_this());
  }
  kept->next.clear();
  pending_.erase(kept);
}

// Computes the node and all that it needs, nothing else.
void WorkQueue::demand(const WorkNodePtr& node) {
  std::vector<WorkNodePtr> stack{node};
  while (!stack.empty()) {
    const WorkNodePtr top = stack.back();
    if (top->is_done) {
      stack.pop_back();
      continue;
    }
    const std::size_t before = stack.size();
    for (const WorkNodePtr& each : top->after) {
      if (!each->is_done) stack.push_back(each);
    }
    if (stack.size() > before) continue;
    compute_one(top);
    stack.pop_back();
  }
}

void WorkQueue::wait(const WorkNodePtr& node) {
  if (!node) return;
  if (order_ == WorkOrder::kChance) {
    while (!node->is_done) compute_by_chance();
  } else {
    demand(node);
  }
  join(seen_, node->clock);
  if (order_ == WorkOrder::kAll) compute_all();
}

void WorkQueue::wait_for_all() {
  compute_all();
  seen_ = all_;
}

void WorkQueue::compute_all() {
  while (!ready_.empty()) {
    if (order_ == WorkOrder::kChance) {
      compute_by_chance();
    } else {
      compute_one(ready_.front());
    }
  }
}

}  // namespace spillway::emulated
