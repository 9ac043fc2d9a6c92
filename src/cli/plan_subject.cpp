#include "src/cli/plan_subject.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/far_update.h"
#include "prefetch/files/json.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/profile_file.h"
#include "prefetch/planner.h"
#include "prefetch/update_order.h"
#include "src/cli/flags/flag_values.h"
#include "src/cli/flags/memory_flags.h"
#include "src/plan/predicted_step.h"
#include "src/program/machine_size_model.h"
#include "src/program/micro_batches.h"
#include "src/run/measured_profile.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

void add_machine_to(CLI::App& app, SubjectFlags& options) {
  auto* const machine = app.add_option(
      "--machine", options.machine,
      "Machine model to plan for: k40m, v100, a100, h100, h200, gh200, a machine file "
      "(prefetch/README.md), or host, a model of a two-core machine with this machine's tensor "
      "layouts (default: host). A trace uses only its near memory and link");
  machine->check(check_machine);
  app.add_option("--profile", options.profile,
                 "Profile file with measured times, written by spillway profile")
      ->excludes(machine);
  app.add_option("--link-bandwidth", options.link_bandwidth,
                 "Bandwidth of the link in each direction, e.g. 2GB/s (default: the machine's)")
      ->check(check_bandwidth);
}

// Returns the workload of the first of `ranks` ranks. Each trains as many micro-batches as `one`.
// Buffers of exchanges are not counted.
std::unique_ptr<const Workload> of_first_rank(const PlanSubject& one, std::size_t ranks,
                                              const prefetch::BucketRule& rule,
                                              const OptimizerDivision& division) {
  const MicroBatches& own = one.workload->micro_batches();
  const MicroBatches all =
      all_of(ranks * own.batch, {.size = own.size, .count = ranks * own.count()});
  return std::make_unique<const Workload>(*one.network, *one.size_model, one.step_options,
                                          part_of_rank(all, 0, ranks),
                                          Features{.division = division, .buckets = rule});
}

}  // namespace

void PlanSubject::choose_state(const PlanRequest& request) {
  if (!workload && request.state == StateRule::kFar) {
    throw um::Error{
        "a trace says itself which weights may be far; leave out --state far, or give "
        "--offload-weights"};
  }
  if (workload) {
    state = std::make_unique<const StateChoice>(*workload, *size_model, request);
    return;
  }
  if (request.update == UpdateRule::kFar) update_trace_far(request);
  if (chooses_variants(request)) set_smallest_of_variants();
}

bool PlanSubject::chooses_variants(const PlanRequest& request) const {
  return trace && !trace->varied.groups.empty() && request.memory != MemoryMode::kResident &&
         request.planner->chooses_variants();
}

void PlanSubject::need_at_least(const prefetch::TaskGraph& graph) {
  const prefetch::NearNeed need = near_need(graph, prefetch::BlockSizes{graph, step->page});
  step->need.smallest = need.smallest;
  step->need.largest_task = need.largest_task;
}

void PlanSubject::set_smallest_of_variants() {
  need_at_least(*step_of(trace->varied.leanest(step->page)).graph);
  prefetch::TimedStep fastest = trace->varied.with(trace->varied.fastest());
  times = prefetch::trace_profile(
      {.name = trace->name, .graph = std::move(fastest.graph), .durations = fastest.durations},
      profile.link);
}

void PlanSubject::update_trace_far(const PlanRequest& request) {
  if (!request.planner->updates_far()) {
    throw um::Error{"planner " + std::string{request.planner->name()} +
                    " plans no updates on the far side; leave out --update far"};
  }
  if (prefetch::far_updatable(trace->graph, step->page).empty()) {
    throw um::Error{
        "no task of the trace is an update of offloadable weights in place that the far side may "
        "run; give --offload-weights, or leave out --update far"};
  }
  times = profile;
  updates_trace_far = true;
  use(step_of(trace->varied.first()));
  const prefetch::NearNeed need =
      near_need(*other_trace, prefetch::BlockSizes{*other_trace, step->page});
  step->need.smallest = need.smallest;  // budgets are relative to the step without far updates
  step->need.largest_task = need.largest_task;
  step->need.peak_with_workspace = need.peak_with_workspace;
}

prefetch::ChosenStep PlanSubject::step_of(const prefetch::VariantChoice& choice) const {
  const bool is_varied = !trace->varied.groups.empty();
  prefetch::TimedStep made =
      is_varied ? trace->varied.with(choice) : prefetch::TimedStep{trace->graph, trace->durations};
  prefetch::TaskGraph graph = made.graph;
  if (exchanges_on) {
    graph = prefetch::with_exchanges(std::move(graph), buckets.value());
    const std::vector<prefetch::TaskId> order = prefetch::update_order(graph);
    graph = prefetch::in_order(std::move(graph), order);
  }
  if (updates_trace_far) {
    const std::vector<prefetch::TaskId> updates = prefetch::far_updatable(graph, step->page);
    graph = prefetch::with_far_updates(std::move(graph), updates);
  }
  prefetch::Profile own = profile_for(graph, made.graph,
                                      {.source = profile.source,
                                       .graph = {},
                                       .durations = std::move(made.durations),
                                       .link = profile.link});
  if (exchanges_on) own.exchanges = prefetch::exchange_times(graph, *exchanges_on, own.link);
  return {.graph = std::make_unique<const prefetch::TaskGraph>(std::move(graph)),
          .profile = std::move(own)};
}

void PlanSubject::use(prefetch::ChosenStep chosen) {
  other_trace = std::move(chosen.graph);
  profile = std::move(chosen.profile);
  const StepToPlan before = *step;
  step.emplace(
      StepToPlan{.graph = *other_trace, .page = before.page, .need = before.need, .elsewhere = {}});
}

void PlanSubject::expect_modelled() const {
  if (machine && network) return;
  throw um::Error{
      "micro-batches need times at other batch sizes, which neither a --profile nor a trace has; "
      "give --net and --machine instead"};
}

PlanSubject PlanSubject::cut(const StepOptions& options, const prefetch::BatchCut& batches) const {
  expect_modelled();
  auto built = std::make_unique<const Workload>(*network, *size_model, options,
                                                all_of(options.batch, batches));
  const StepToPlan made = built->training_to_plan();
  return {.workload = std::move(built),
          .network = network,
          .step_options = options,
          .size_model = size_model,
          .machine = machine,
          .trace = nullptr,
          .step = made,
          .profile = prefetch::model_profile(made.graph, *machine),
          .available = available,
          .title = title,
          .identity = identity};
}

prefetch::BatchCut PlanSubject::batches() const {
  if (!workload) return {};
  const MicroBatches& cut = workload->micro_batches();
  return {.size = cut.size, .count = cut.own.count()};
}

PlanSubject PlanSubject::exchanged(const prefetch::Interconnect& interconnect,
                                   const prefetch::BucketRule& rule,
                                   const OptimizerDivision& division) const {
  PlanSubject several{.workload = nullptr,
                      .network = network,
                      .step_options = step_options,
                      .size_model = size_model,
                      .machine = machine,
                      .trace = trace,
                      .step = step,
                      .profile = profile,
                      .available = available,
                      .title = title,
                      .identity = identity,
                      .buckets = rule};
  if (workload) {
    several.workload = of_first_rank(*this, interconnect.ranks, rule, division);
    several.profile =
        profile_for(several.workload->training().graph, workload->training().graph, profile);
    several.step.emplace(several.workload->training_to_plan());
    several.profile.exchanges =
        prefetch::exchange_times(several.step->graph, interconnect, profile.link);
  } else if (division.is_whole()) {
    several.exchanges_on = interconnect;
    several.use(several.step_of(trace->varied.first()));
    const prefetch::TaskGraph& graph = *several.other_trace;
    several.step->need = near_need(graph, prefetch::BlockSizes{graph, step->page});
  } else {
    throw um::Error{
        "a trace does not say which of its blocks the optimizer keeps; leave out --zero, or plan "
        "a network (--net)"};
  }
  return several;
}

void PlanSubject::use(const Workload& chosen) {
  if (!times) times = profile;
  const StepToPlan other = chosen.training_to_plan();
  profile = profile_for(other.graph, workload->training().graph, *times);
  step.emplace(other);
}

void SubjectFlags::add_to(CLI::App& app) {
  workload.add_to(app);
  device.add_sizes_to(app);
  for (const char* name : {"--net", "--batch"}) app.get_option(name)->required(false);
  add_machine_to(app, *this);
  auto* const trace_in =
      app.add_option("--trace-in", trace,
                     "Plan a recorded step of any framework instead of a network (spillway-trace, "
                     "prefetch/README.md); needs --machine. If its tasks have variants, joint "
                     "chooses them; other planners take the first of each");
  trace_in->needs("--machine");
  app.add_flag("--offload-weights", offload_weights,
               "Let plans offload the weights of a trace that does not say whether they may")
      ->needs(trace_in);
  for (const char* name :
       {"--net",        "--batch",     "--image-size",   "--classes",        "--sequence-length",
        "--vocabulary", "--aux-heads", "--attention",    "--conv-algorithm", "--dropout",
        "--optimizer",  "--clip-norm", "--ema",          "--freeze",         "--threads",
        "--device",     "--precision", "--emulate-bf16", "--deterministic",  "--profile"}) {
    trace_in->excludes(name);
  }
}

PlanSubject SubjectFlags::open(MemoryMode memory) const {
  PlanSubject subject = trace.empty() ? open_network(memory) : open_trace();
  if (const auto rate = um::parse_bandwidth(link_bandwidth)) {
    subject.profile.link.offload = *rate;
    subject.profile.link.prefetch = *rate;
    if (subject.machine) subject.machine->link = subject.profile.link;
  }
  return subject;
}

PlanSubject SubjectFlags::open_trace() const {
  const prefetch::Machine model = prefetch::find_machine(machine);
  auto read = std::make_shared<const prefetch::Trace>(
      prefetch::read_trace(prefetch::JsonFile{trace}, {.offload_weights = offload_weights}));
  const um::Bytes page = prefetch::choose_page(read->graph);
  const StepToPlan step{.graph = read->graph,
                        .page = page,
                        .need = near_need(read->graph, prefetch::BlockSizes{read->graph, page}),
                        .elsewhere = {}};
  prefetch::Profile times = prefetch::trace_profile(*read, model.link);
  std::string title = "trace " + read->name;
  nlohmann::json identity{{"trace", read->name}};
  return {.workload = nullptr,
          .trace = std::move(read),
          .step = step,
          .profile = std::move(times),
          .available = model.near_memory,
          .title = std::move(title),
          .identity = std::move(identity)};
}

PlanSubject SubjectFlags::open_network(MemoryMode memory) const {
  if (workload.net.empty()) throw CLI::RequiredError{"--net"};
  if (workload.batch == 0) throw CLI::RequiredError{"--batch"};
  if (profile.empty() && device.device != "host") {
    throw um::Error{
        "a GPU's times are not modelled for the sizes that it has: give --profile FILE, made "
        "by spillway profile, or --machine without --device"};
  }
  std::optional<prefetch::Machine> model;  // nothing: a profile file
  if (profile.empty()) {
    model = prefetch::in_precision(prefetch::find_machine(machine.empty() ? "host" : machine),
                                   device.precision);
  }
  std::shared_ptr<const SizeModel> size_model;
  if (!model || model->name == "host") {
    size_model = device.open_size_model();
  } else {
    size_model = std::make_shared<const MachineSizeModel>(device.chosen_precision());
  }
  nets::Network network = workload.network();
  auto built = std::make_unique<const Workload>(network, *size_model, workload.step());
  const StepToPlan step = built->training_to_plan();
  prefetch::Profile times = model ? prefetch::model_profile(step.graph, *model)
                                  : profile_of_file(profile, step.graph, memory);
  const std::string name = network.name;
  const um::Bytes available = model ? model->near_memory : step.need.peak_with_workspace;
  return {
      .workload = std::move(built),
      .network = std::move(network),
      .step_options = workload.step(),
      .size_model = std::move(size_model),
      .machine = std::move(model),
      .trace = nullptr,
      .step = step,
      .profile = std::move(times),
      .available = available,
      .title = fmt::format("{} at batch {}", name, workload.batch),
      .identity = {{"network", name}, {"batch", workload.batch}, {"precision", device.precision}}};
}

}  // namespace spillway::cli
