#include "src/bench/train/train_series.h"

#include <algorithm>

#include "um/error.h"

namespace spillway {

std::vector<std::size_t> batches_around(std::size_t batch, bool few) {
  um::expects(batch > 0, "a batch of at least one");
  const std::vector<std::size_t> quarters =
      few ? std::vector<std::size_t>{2, 4, 8} : std::vector<std::size_t>{1, 2, 4, 6, 8};
  std::vector<std::size_t> batches;
  for (const std::size_t n : quarters) {
    const std::size_t rounded = batch * n / 4;
    if (rounded > 0 && (batches.empty() || rounded > batches.back())) batches.push_back(rounded);
  }
  return batches;
}

um::Bytes budget_at_middle(std::span<const prefetch::NearNeed> needs, std::size_t middle) {
  um::expects(middle < needs.size(), "one of the batches");
  const um::Bytes own = needs[middle].resident;
  const um::Bytes before = middle > 0 ? needs[middle - 1].resident : um::Bytes{};
  const um::Bytes budget{(own.count() + before.count()) / 2};
  const um::Bytes smallest = needs.back().smallest;
  return smallest < own ? std::max(budget, smallest) : budget;
}

void add_batch_series(TrainComparison& comparison, std::span<const TrainSubject* const> batches,
                      std::span<const TrainStrategy> strategies, const NamedBudget& budget) {
  for (const TrainSubject* const subject : batches) {
    const auto add = [&](const TrainStrategy& strategy) {
      comparison.add_row(TrainSeries::kBatch, *subject, strategy, budget.text, budget.size);
    };
    add(resident_strategy());
    for (const TrainStrategy& strategy : strategies) {
      if (!strategy.is_resident()) add(strategy);
    }
  }
}

void add_budget_series(TrainComparison& comparison, TrainSeries series, const TrainSubject& subject,
                       std::span<const TrainStrategy> strategies,
                       std::span<const NamedBudget> budgets) {
  const um::Bytes need = subject.workload().need().resident;
  comparison.add_row(series, subject, resident_strategy(), "100%", need);
  for (const NamedBudget& budget : budgets) {
    for (const TrainStrategy& strategy : strategies) {
      if (strategy.is_resident()) continue;
      comparison.add_row(series, subject, strategy, budget.text, budget.size);
    }
  }
}

}  // namespace spillway
