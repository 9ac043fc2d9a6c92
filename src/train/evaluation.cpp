#include "src/train/evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "src/io/data/batch_loader.h"
#include "src/train/session.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr float kTopRanks = 5;

// Adds up what the steps of an evaluation give.
class EvaluationSums {
 public:
  EvaluationSums(const Dataset& data, const EvaluateOptions& options)
      : classes_{data.classes()}, options_{options} {}

  void add(const Batch& batch, const StepReport& report) {
    count_ += static_cast<double>(count_labels(batch));
    loss_ += static_cast<double>(report.loss);
    correct_ += static_cast<double>(report.correct);
    has_judged_ = !report.judged.empty();
    const std::span<const float> logits{report.logits};
    const std::size_t each = has_judged_ ? logits.size() / report.judged.size() : 0;
    // Where a sample has several labels, of a whole vocabulary perhaps, there is no matrix.
    if (has_judged_ && options_.has_confusion) confusion_.resize(classes_ * classes_);
    for (std::size_t i = 0; i < report.judged.size(); ++i) {
      const std::int32_t label = batch.labels[i];
      if (label >= 0) {
        add({.index = index_,
             .label = label,
             .judged = report.judged[i],
             .logits = logits.subspan(i * each, each)});
      }
      ++index_;
    }
  }

  [[nodiscard]] Evaluation result() const {
    if (count_ == 0) throw um::Error{"no sample of the test split has a label, or can be read"};
    Evaluation result{.loss = loss_ / count_, .accuracy = correct_ / count_};
    if (!has_judged_) return result;
    if (static_cast<float>(classes_) > kTopRanks) result.top5 = near_ / count_;
    result.confusion = confusion_;
    return result;
  }

 private:
  void add(const JudgedImage& image) {
    // Where logits are no numbers, none comes before the label's.
    if (image.judged.rank < kTopRanks && std::isfinite(image.judged.probability)) ++near_;
    const auto prediction = static_cast<std::size_t>(image.judged.prediction);
    if (!confusion_.empty() && prediction < classes_) {  // not where all logits are NaN
      ++confusion_[static_cast<std::size_t>(image.label) * classes_ + prediction];
    }
    if (options_.on_judged) options_.on_judged(image);
  }

  std::size_t classes_;
  const EvaluateOptions& options_;
  double loss_ = 0;
  double correct_ = 0;
  double count_ = 0;
  double near_ = 0;
  bool has_judged_ = false;
  std::size_t index_ = 0;
  std::vector<std::uint64_t> confusion_;
};

// With the parameters that are there.
Evaluation evaluate_as_it_is(Session& session, const Dataset& data,
                             const EvaluateOptions& options) {
  const std::size_t batch = session.evaluation_batch();
  BatchLoader loader{data, batch, evaluation_order(data.size(), batch),
                     loader_options(session, options.loader_threads)};
  const SettledSession settled{session};
  EvaluationSums sums{data, options};
  for (std::uint64_t step = evaluation_steps(data.size(), batch); step > 0; --step) {
    if (options.is_stopped && options.is_stopped()) throw Interrupted{};
    const Batch& batch_of_step = loader.next();
    const StepReport report =
        session.evaluate({.batch = &batch_of_step, .next_batch = loader.peek()});
    sums.add(batch_of_step, report);
  }
  return sums.result();
}

}  // namespace

Evaluation evaluate(Session& session, const Dataset& data, const EvaluateOptions& options) {
  if (!session.state().has_averages()) return evaluate_as_it_is(session, data, options);
  session.state().swap_averages();
  try {
    Evaluation result = evaluate_as_it_is(session, data, options);
    session.state().swap_averages();
    return result;
  } catch (...) {
    if (session.is_between_steps()) session.state().swap_averages();
    throw;
  }
}

}  // namespace spillway
