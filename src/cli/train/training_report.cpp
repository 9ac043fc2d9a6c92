#include "src/cli/train/training_report.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "prefetch/files/json.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/terminal/terminal.h"
#include "src/report/training_log.h"
#include "um/bytes.h"
#include "um/error.h"
#include "um/machine/available_memory.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

using nlohmann::json;

namespace fs = std::filesystem;

constexpr double kLargestError = 0.15;  // larger errors of a prediction are reported

json to_json(const um::Counters& counters) {
  return {{"bytes_prefetched", counters.bytes_prefetched.count()},
          {"bytes_offloaded", counters.bytes_offloaded.count()},
          {"faults", counters.faults},
          {"evictions", counters.evictions},
          {"refused_hints", counters.refused_hints},
          {"fault_seconds", um::seconds(counters.fault_time)}};
}

// The first steps take longer than others, which the median of so few shows.
constexpr std::uint64_t kFewSteps = 10;

// Whether steps ran long enough to tell why a prediction is wrong.
bool ran_long(const TrainingSummary& summary) {
  constexpr std::chrono::seconds kLongEnough{1};
  const auto steps = static_cast<std::int64_t>(summary.steps_run);
  return summary.steps_run > kFewSteps && steps * summary.median_step >= kLongEnough;
}

// Says that a prediction is wrong by much, and why, where that can be told.
std::string reason_of_error(const TrainingSummary& summary, const std::string& profile_file) {
  constexpr double kUnsteady = 1.3;
  std::string off = ": more than 15 % off";
  if (!ran_long(summary)) return off;
  const double quick = um::seconds(summary.quick_step);
  const double slow = um::seconds(summary.slow_step);
  if (slow > kUnsteady * quick) {
    return off + fmt::format("; steps took from {:.4f} to {:.4f} s: perhaps this machine was busy",
                             quick, slow);
  }
  if (!profile_file.empty()) {
    return off + ", in steady steps: perhaps the times in " + profile_file +
           " are of another machine or step";
  }
  return off + ", in steady steps: tasks took other times when they were measured before";
}

// Returns the relative error of the prediction; nothing without a prediction, or if the only step
// was the first one, which warms up.
std::optional<double> error_of(const TrainingSummary& summary) {
  if (!summary.predicted_step || summary.steps_run < 2) return std::nullopt;
  return um::seconds(*summary.predicted_step) / um::seconds(summary.median_step) - 1;
}

// Has the file end with a whole line: removes what a killed training left of its last one.
void end_lines(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return;
  const std::uintmax_t size = fs::file_size(path, error);
  const std::uintmax_t begin = size - std::min<std::uintmax_t>(size, kLongestLogLine);
  std::string end(static_cast<std::size_t>(size - begin), '\0');
  std::ifstream file{path, std::ios::binary};
  file.seekg(static_cast<std::streamoff>(begin));
  file.read(end.data(), static_cast<std::streamsize>(end.size()));
  if (!file) throw um::system_error("cannot read " + path, errno);
  const std::size_t newline = end.rfind('\n');
  const std::size_t whole = newline == std::string::npos ? 0 : newline + 1;
  if (whole == end.size()) return;
  if (json::accept(end.substr(whole))) {
    std::ofstream{path, std::ios::app} << '\n';
    return;
  }
  fs::resize_file(path, begin + whole, error);
  if (error) throw um::system_error("cannot write " + path, error.value());
}

}  // namespace

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::lround(seconds));
  const std::uint64_t hours = whole / 3600;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, whole / 60 % 60, whole % 60)
                   : fmt::format("{}:{:02}", whole / 60, whole % 60);
}

bool is_far_off(const TrainingSummary& summary) {
  const auto error = error_of(summary);
  return error && std::abs(*error) > kLargestError;
}

bool shows_other_times(const TrainingSummary& summary) {
  return is_far_off(summary) && summary.steps_run > kFewSteps;
}

void expect_own_log(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || path == "-" || !fs::is_regular_file(path, ignored)) return;
  std::string first(kLongestLogLine, '\0');
  std::ifstream file{path, std::ios::binary};
  file.read(first.data(), static_cast<std::streamsize>(first.size()));
  first.resize(static_cast<std::size_t>(file.gcount()));
  if (first.empty() || is_training_log(first)) return;
  throw um::Error{path +
                  " is not the log of a training, so that none can go on in it; give --json "
                  "another name"};
}

JsonLines::JsonLines(const std::string& path, bool goes_on) : path_{path} {
  if (path.empty() || path == "-") return;
  if (goes_on) end_lines(path);
  file_.open(path, goes_on ? std::ios::app : std::ios::out);
  if (!file_) throw um::system_error("cannot write " + path, errno);
}

void JsonLines::write(const nlohmann::json& object) {
  if (path_.empty()) return;
  std::ostream& out = path_ == "-" ? std::cout : file_;
  out << prefetch::json_text(object) << std::endl;
  if (!out) {
    throw um::system_error("cannot write " + (path_ == "-" ? "to standard output" : path_), errno);
  }
}

json test_figures(const Evaluation& evaluation, bool is_of_text) {
  json figures{{"test_loss", evaluation.loss}, {"test_accuracy", evaluation.accuracy}};
  if (evaluation.top5) figures["test_top5"] = *evaluation.top5;
  if (is_of_text) figures["perplexity"] = perplexity_of(evaluation);
  return figures;
}

StepSamples samples_of_step(const nets::Network& network, std::size_t batch) {
  return {.batch = batch, .tokens_each = network.reads_text() ? network.input().height : 0};
}

TrainingReport::TrainingReport(JsonLines json, std::optional<TensorBoardLog> tensorboard,
                               const StepSamples& samples, const StepRange& steps, um::Bytes budget)
    : json_{std::move(json)},
      tensorboard_{std::move(tensorboard)},
      samples_{samples},
      steps_{steps},
      budget_{budget} {}

TrainingReport::~TrainingReport() { end_progress(); }

void TrainingReport::end_progress() {
  progress_.show_latest();
  progress_.end();
}

void TrainingReport::step(std::uint64_t step, std::uint64_t epoch, const StepReport& report) {
  json line{{"step", step},
            {"epoch", epoch},
            {"loss", report.loss},
            {"correct", report.correct},
            {"learning_rate", um::shortest_decimal(report.learning_rate)},
            {"seconds", um::seconds(report.duration)},
            {"data_wait_seconds", um::seconds(report.data_wait)},
            {"near_peak_bytes", report.near_peak.count()}};
  if (report.stalled) line["stalled_seconds"] = um::seconds(*report.stalled);
  line.update(to_json(report.counters));
  std::vector<std::string> fields{fmt::format("step {}/{}", step, steps_.last),
                                  fmt::format("loss {:.4f}", report.loss), time_left(step)};
  if (report.counted > 0) {
    const double accuracy =
        static_cast<double>(report.correct) / static_cast<double>(report.counted);
    line["accuracy"] = accuracy;
    fields.push_back(fmt::format("accuracy {:.1f} %", 100 * accuracy));
  }
  json_.write(line);
  add_to_tensorboard(step, report);
  fields.insert(
      fields.end(),
      {throughput(report.duration), fmt::format("rate {:.3g}", report.learning_rate),
       fmt::format("epoch {}", epoch),
       fmt::format("near {} of {}", um::to_string(report.near_peak), um::to_string(budget_)),
       fmt::format("in {} out {}", um::to_string(report.counters.bytes_prefetched),
                   um::to_string(report.counters.bytes_offloaded)),
       fmt::format("faults {}", report.counters.faults)});
  progress_.show_fields(fields);
}

void TrainingReport::add_to_tensorboard(std::uint64_t step, const StepReport& report) {
  if (!tensorboard_) return;
  const double rate = samples_per_second(report.duration);
  std::vector<Scalar> scalars{
      {"loss", report.loss},
      {"learning_rate", report.learning_rate},
      {"step/seconds", um::seconds(report.duration)},
      is_of_text()
          ? Scalar{"step/tokens_per_second", rate * static_cast<double>(samples_.tokens_each)}
          : Scalar{"step/images_per_second", rate},
      {"memory/near_peak_bytes", static_cast<double>(report.near_peak.count())},
      {"memory/bytes_in", static_cast<double>(report.counters.bytes_prefetched.count())},
      {"memory/bytes_out", static_cast<double>(report.counters.bytes_offloaded.count())},
      {"memory/faults", static_cast<double>(report.counters.faults)}};
  if (report.counted > 0) {
    scalars.push_back({"accuracy", report.correct / static_cast<double>(report.counted)});
  }
  tensorboard_->add(step, scalars);
}

std::string TrainingReport::time_left(std::uint64_t step) const {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
  const auto left = static_cast<double>(steps_.last - std::min(step, steps_.last));
  const double each = passed.count() / static_cast<double>(step - steps_.before);
  return clock_text(left * each) + " left";
}

void TrainingReport::evaluation(std::uint64_t step, std::uint64_t epoch,
                                const Evaluation& evaluation) {
  json line{{"step", step}, {"epoch", epoch}};
  line.update(test_figures(evaluation, is_of_text()));
  json_.write({{"evaluation", line}});
  if (tensorboard_) {
    std::vector<Scalar> scalars{{"test/loss", evaluation.loss},
                                {"test/accuracy", evaluation.accuracy}};
    if (evaluation.top5) scalars.push_back({"test/top5", *evaluation.top5});
    if (is_of_text()) scalars.push_back({"test/perplexity", perplexity_of(evaluation)});
    tensorboard_->add(step, scalars);
  }
  end_progress();
  const std::string perplexity =
      is_of_text() ? fmt::format(", perplexity {:.2f}", perplexity_of(evaluation)) : "";
  tell("step {}, epoch {}: test loss {:.4f}{}, accuracy {:.2f} %{}\n", step, epoch, evaluation.loss,
       perplexity, 100 * evaluation.accuracy,
       evaluation.top5 ? fmt::format(", top-5 {:.2f} %", 100 * *evaluation.top5) : "");
}

void TrainingReport::warn(const std::string& sentence) {
  end_progress();
  tell("warning: {}\n", sentence);
}

void TrainingReport::early_stop(std::uint64_t step, const BestEvaluation& best) {
  json_.write({{"early_stop", {{"step", step}, {"best_step", best.step}}}});
  end_progress();
  tell(
      "ended early after step {}: no evaluation was better than that of step {} (accuracy {:.2f} "
      "%, loss {:.4f})\n",
      step, best.step, 100 * best.accuracy, best.loss);
}

void TrainingReport::finish(json line, const TrainingSummary& summary) {
  line.update(to_json(summary.counters));
  line["stalled_seconds"] = um::seconds(summary.stalled);
  line["timed_steps"] = summary.timed_steps;
  line["data_wait_seconds"] = um::seconds(summary.data_wait);
  line["steps_run"] = summary.steps_run;
  line["median_step_seconds"] = um::seconds(summary.median_step);
  const double rate = samples_per_second(summary.median_step);
  line["images_per_second"] = rate;
  if (is_of_text()) {
    line["tokens_per_second"] = rate * static_cast<double>(samples_.tokens_each);
  }
  line["predicted_step_seconds"] = nullptr;
  if (summary.predicted_step) {
    line["predicted_step_seconds"] = um::seconds(*summary.predicted_step);
  }
  line["prediction_error"] = nullptr;
  if (const auto error = error_of(summary)) line["prediction_error"] = *error;
  if (summary.steps_run > 0) {
    line["first_loss"] = summary.first_loss;
    line["last_loss"] = summary.last_loss;
  }
  if (summary.last_accuracy) line["last_accuracy"] = *summary.last_accuracy;
  if (summary.evaluation) line.update(test_figures(*summary.evaluation, is_of_text()));
  line["peak_resident_set_bytes"] = um::peak_resident_memory().count();
  line["cgroup_peak_bytes"] = nullptr;
  if (const auto peak = um::peak_of_cgroup()) line["cgroup_peak_bytes"] = peak->count();
  json_.write({{"summary", line}});
}

double TrainingReport::samples_per_second(um::Nanoseconds step) const {
  return step.count() == 0 ? 0 : static_cast<double>(samples_.batch) / um::seconds(step);
}

// Returns "31.2 images/s" or "3125 tokens/s".
std::string TrainingReport::throughput(um::Nanoseconds step) const {
  const double rate = samples_per_second(step);
  return is_of_text()
             ? fmt::format("{:.0f} tokens/s", rate * static_cast<double>(samples_.tokens_each))
             : fmt::format("{:.1f} images/s", rate);
}

std::string TrainingReport::what_was_learned(const TrainingSummary& summary) const {
  std::string text = "loss ";
  if (summary.steps_run > 1) text += fmt::format("{:.4g} -> ", summary.first_loss);
  text += fmt::format("{:.4g}", summary.last_loss);
  if (summary.last_accuracy) {
    text += fmt::format(", accuracy {:.1f} %", 100 * *summary.last_accuracy);
  }
  if (!summary.evaluation) return text + " (of the last batch; not tested)";
  const Evaluation& test = *summary.evaluation;
  return text + (is_of_text() ? fmt::format(" (test loss {:.4g}, perplexity {:.2f})", test.loss,
                                            perplexity_of(test))
                              : fmt::format(" (test {:.1f} %)", 100 * test.accuracy));
}

void TrainingReport::print(const TrainingSummary& summary, const std::string& profile_file) {
  end_progress();
  if (summary.steps_run > 0) tell("{}\n", what_was_learned(summary));
  const bool is_all = summary.timed_steps == summary.steps_run;
  tell("{}, median {:.4f} s ({}), waiting {:.2f} s in {}\n",
       um::count_of(summary.steps_run, "step"), um::seconds(summary.median_step),
       throughput(summary.median_step), um::seconds(summary.stalled),
       is_all ? "all" : um::count_of(summary.timed_steps, "timed step"));
  const um::Counters& counters = summary.counters;
  tell("near peak {} of {}; moved {} in, {} out; {}, {}\n", um::to_string(summary.near_peak),
       um::to_string(budget_), um::to_string(counters.bytes_prefetched),
       um::to_string(counters.bytes_offloaded), um::count_of(counters.faults, "fault"),
       um::count_of(counters.evictions, "eviction"));
  const std::optional<um::Bytes> of_cgroup = um::peak_of_cgroup();
  tell("RAM of the process at most {}{}\n", um::to_string(um::peak_resident_memory()),
       of_cgroup ? fmt::format("; of its cgroup {} since that was made, other processes and file "
                               "pages included",
                               um::to_string(*of_cgroup))
                 : "");
  if (counters.refused_hints > 0) {
    tell("{} not prefetched for want of near memory\n",
         um::count_of(counters.refused_hints, "page"));
  }
  if (summary.data_wait > um::Nanoseconds{std::chrono::seconds{1}}) {
    tell("waiting {:.2f} s for data\n", um::seconds(summary.data_wait));
  }
  if (summary.broken_files > 0) {
    tell("skipped {}\n", um::count_of(summary.broken_files, "broken image file"));
  }
  tell("weights {}\n", summary.weights_sha256);
  if (!summary.predicted_step) {
    tell(
        "no step was predicted: all stays near and no task has a choice of algorithms, so that "
        "nothing was measured\n");
  }
  const auto error = error_of(summary);
  if (!error) return;
  tell("predicted step {:.4f} s ({:+.1f} %){}\n", um::seconds(*summary.predicted_step),
       100 * *error, is_far_off(summary) ? reason_of_error(summary, profile_file) : "");
}

void expect_confusion_matrix_of(const nets::Network& network) {
  if (!network.reads_text() && network.labels() == nets::square(1)) return;
  throw um::Error{"--confusion is of images with one label each, and a sample of network " +
                  network.name + " has several; leave it out"};
}

void write_confusion_matrix(std::span<const std::uint64_t> confusion,
                            std::span<const std::string> class_names, const std::string& path) {
  const auto classes =
      static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(confusion.size()))));
  const auto name_of_class = [&](std::size_t number) {
    return class_names.empty() ? std::to_string(number) : um::csv_field(class_names[number]);
  };
  std::string text = "label";
  for (std::size_t c = 0; c < classes; ++c) text += "," + name_of_class(c);
  text += '\n';
  for (std::size_t label = 0; label < classes; ++label) {
    const auto row = confusion.subspan(label * classes, classes);
    text += fmt::format("{},{}\n", name_of_class(label), fmt::join(row, ","));
  }
  write_text(text, path);
}

}  // namespace spillway::cli
