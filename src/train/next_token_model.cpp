#include "src/train/next_token_model.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <variant>

#include "prefetch/files/machine.h"
#include "prefetch/runtime/resident_memory.h"
#include "prefetch/runtime/step_layout.h"
#include "src/io/data/dataset.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/program/step.h"
#include "src/run/batch_stage.h"
#include "src/run/executor.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr std::size_t kShortest = 16;  // a shorter step costs as much

prefetch::Plan resident_plan(const prefetch::TaskGraph& graph, um::Bytes page) {
  const prefetch::Profile profile = prefetch::model_profile(graph, prefetch::find_machine("host"));
  um::Bytes all;  // an upper bound
  for (const prefetch::DataBlock& block : graph.data) all += um::round_up(block.size, page) + page;
  for (const prefetch::Task& task : graph.tasks) {
    for (const prefetch::Algorithm& each : task.algorithms) all += each.workspace + page;
  }
  const StepToPlan step{.graph = graph, .page = page, .need = {}, .elsewhere = {}};
  return plan_step(step, profile, um::round_up(all, page), {.memory = MemoryMode::kResident}).plan;
}

std::vector<std::byte*> places(const Step& step, const State& state, const BatchStage& stage) {
  std::vector<std::byte*> all = state.addresses(step);
  stage.place(step, all);
  return all;
}

// True if the parameters are the same for any shorter length.
bool takes_shorter(const nets::CatalogueEntry& entry, const nets::Network& network) {
  try {
    const nets::Network shortest = nets::build_network(entry, {.image = nets::tokens(1)});
    return nets::count_parameters(shortest) == nets::count_parameters(network);
  } catch (const um::Error&) {
    return false;
  }
}

}  // namespace

std::string why_no_next_token(const nets::Network& network) {
  if (!network.reads_text()) return "reads images";
  if (!std::holds_alternative<nets::VocabularyLoss>(network.nodes.back().layer)) {
    return "has no loss over a vocabulary";
  }
  if (objective_of(network) == Objective::kNextToken) return {};
  return "looks at the whole text, and has learnt hidden tokens instead of the next one";
}

// One step with one text, and the memory it needs beside the weights.
class NextTokenModel::Runner {
 public:
  Runner(ExecutionContext& context, const nets::Network& network, const State& state,
         std::stop_token stop)
      : length_{network.input().height},
        stream_{*context.compute},
        batch_{empty_batch(*std::pmr::new_delete_resource())},
        step_{make_sampling_step(network, *context.backend, {})},
        plan_{resident_plan(step_.graph, step_page(step_.graph, *context.backend))},
        layout_{step_.graph, plan_},
        stage_{context, step_.staged ? step_.graph[*step_.staged].size : um::Bytes{},
               context.device->memory()},
        buffer_{context.device->memory(),
                prefetch::PinnedBlocks::buffer_size(step_.graph, layout_.block_sizes)},
        slab_{context.device->memory(), layout_.placement.extent},
        pinned_{step_.graph, layout_.block_sizes, places(step_, state, stage_), buffer_.bytes()},
        memory_{prefetch::SlabAddress{layout_, pinned_, slab_.bytes()}},
        executor_{step_, plan_, *context.backend, memory_, *context.compute, std::move(stop)} {
    batch_.images.resize(length_);
    batch_.labels.assign(length_, -1);
  }

  [[nodiscard]] std::size_t length() const { return length_; }

  void run(std::span<const std::int32_t> tokens, std::span<float> logits) {
    std::ranges::fill(batch_.images, 0.F);  // tokens behind the text are not attended to
    std::ranges::transform(tokens, batch_.images.begin(),
                           [](std::int32_t token) { return static_cast<float>(token); });
    if (step_.staged) stage_.expect({.load = load_of(step_), .batch = &batch_}, {});
    static_cast<void>(executor_.run({.batch = &batch_, .position = tokens.size() - 1}, [this] {
      if (step_.staged) stage_.loaded();
    }));
    const std::span<std::byte> bytes = std::as_writable_bytes(logits);
    const std::byte* const made = memory_.address(step_.results.front());
    stream_.enqueue([&] { stream_.read({made, bytes.size()}, bytes); });
    stream_.synchronize();
  }

 private:
  std::size_t length_;
  um::Stream& stream_;
  Batch batch_;
  Step step_;
  prefetch::Plan plan_;
  prefetch::StepLayout layout_;
  BatchStage stage_;
  um::Block buffer_;
  um::Block slab_;
  prefetch::PinnedBlocks pinned_;
  prefetch::ResidentMemory memory_;
  Executor executor_;
};

NextTokenModel::NextTokenModel(ExecutionContext& context, const nets::CatalogueEntry& network,
                               std::stop_token stop)
    : context_{context},
      entry_{network},
      stop_{std::move(stop)},
      network_{nets::build_network(network)},
      takes_shorter_{takes_shorter(network, network_)} {
  um::expects(why_no_next_token(network_).empty(), "a network that says what comes next");
  const Step step = make_sampling_step(network_, *context.backend, {});
  state_ = std::make_unique<State>(step, step_page(step.graph, *context.backend), *context.backend,
                                   context.device->memory());
}

NextTokenModel::~NextTokenModel() = default;

nets::Network NextTokenModel::of_length(std::size_t tokens) const {
  return nets::build_network(entry_, {.image = nets::tokens(tokens)});
}

// Returns the length of the step: a power of two, or the longest.
std::size_t NextTokenModel::length_for(std::size_t tokens) const {
  if (!takes_shorter_) return longest();
  return std::min(std::max(std::bit_ceil(tokens), kShortest), longest());
}

std::span<const float> NextTokenModel::logits(std::span<const std::int32_t> tokens) {
  um::expects(!tokens.empty() && tokens.size() <= longest(), "a text that it can look at");
  const std::size_t length = length_for(tokens.size());
  if (runner_ == nullptr || runner_->length() != length) {
    runner_.reset();  // frees its memory before the next one allocates
    runner_ = std::make_unique<Runner>(context_, of_length(length), *state_, stop_);
  }
  logits_.resize(vocabulary());
  runner_->run(tokens, logits_);
  return logits_;
}

}  // namespace spillway
