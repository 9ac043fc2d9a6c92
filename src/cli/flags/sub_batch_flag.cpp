#include "src/cli/flags/sub_batch_flag.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <optional>

#include "um/error.h"

namespace spillway::cli {
namespace {

std::optional<std::size_t> parse_size(const std::string& text) {
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc{} || end != text.data() + text.size() || size == 0) return std::nullopt;
  return size;
}

std::string check(const std::string& text) {
  if (text == "off" || text == "auto" || parse_size(text)) return {};
  return "'" + text + "' is no size of sub-batches; give off, auto, or a number of images like 64";
}

}  // namespace

void SubBatchOption::add_to(CLI::App& app, const std::string& help) {
  app.add_option("--sub-batch", text, help)->check(check)->capture_default_str()->group("Planning");
}

void SubBatchOption::add_to_plan(CLI::App& app) {
  add_to(app,
         "Gradient accumulation over sub-batches of at most N images: N, auto (by moDNN's Eq. 3 "
         "for modnn and vdnn+, by trial for the others), or off. Figures are for the whole batch, "
         "--timeline is of its last sub-batch. Needs --machine");
}

void SubBatchOption::add_to_train(CLI::App& app) {
  add_to(
      app,
      "Gradient accumulation over sub-batches of at most N images: N, auto (chosen as by spillway "
      "plan), or off. A --budget in percent or from min refers to the whole batch. Batch norm "
      "normalizes each sub-batch by itself. --resume takes the checkpoint's; --plan and --profile "
      "need off");
}

bool SubBatchOption::leaves_whole(std::size_t batch) const {
  return is_off() || parse_size(text) == batch;
}

bool SubBatchOption::agrees_with(std::optional<std::size_t> kept, std::size_t batch) const {
  if (text == "auto") return true;
  if (leaves_whole(batch)) return !kept;
  const std::size_t size = parse_size(text).value_or(batch + 1);
  return kept && size < batch && prefetch::cut(batch, size).size == *kept;
}

prefetch::SubBatches SubBatchOption::resolve(std::size_t batch, SubBatchPlanner& planner) const {
  if (is_off()) return prefetch::cut(batch, batch);
  const auto size = parse_size(text);
  if (!size) return planner.choose();
  if (*size > batch) {
    throw um::Error{"--sub-batch " + text + " is more than the batch of " + std::to_string(batch) +
                    "; give at most that"};
  }
  return prefetch::cut(batch, *size);
}

}  // namespace spillway::cli
