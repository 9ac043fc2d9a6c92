#include "src/cli/sub_batch_option.h"

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

void SubBatchOption::add_to(CLI::App& app) {
  app.add_option("--sub-batch", text,
                 "Plan the batch in sub-batches of at most so many images, whose gradients are "
                 "added up; auto: by moDNN's Eq. 3 for modnn and vdnn+, by trial for the others; "
                 "off. The figures are the whole batch's, --out and --timeline are its last "
                 "sub-batch; needs --machine, and train cannot run it yet")
      ->check(check)
      ->capture_default_str()
      ->group("Planning");
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
