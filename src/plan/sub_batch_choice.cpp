#include "src/plan/sub_batch_choice.h"

#include <charconv>

#include "um/error.h"

namespace spillway {
namespace {

std::optional<std::size_t> parse_size(const std::string& text) {
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc{} || end != text.data() + text.size() || size == 0) return std::nullopt;
  return size;
}

}  // namespace

void expect_sub_batch(const std::string& text) {
  if (text == "off" || text == "auto" || parse_size(text)) return;
  throw um::Error{"'" + text +
                  "' is no size of sub-batches; give off, auto, or a number of images like 64"};
}

bool SubBatchChoice::leaves_whole(std::size_t batch) const {
  return is_off() || parse_size(text) == batch;
}

bool SubBatchChoice::agrees_with(std::optional<std::size_t> kept, std::size_t batch) const {
  if (text == "auto") return true;
  if (leaves_whole(batch)) return !kept;
  const std::size_t size = parse_size(text).value_or(batch + 1);
  return kept && size < batch && prefetch::cut(batch, size).size == *kept;
}

prefetch::SubBatches SubBatchChoice::resolve(std::size_t batch, SubBatchPlanner& planner) const {
  if (is_off()) return prefetch::cut(batch, batch);
  const auto size = parse_size(text);
  if (!size) return planner.choose();
  if (*size > batch) {
    throw um::Error{"a sub-batch of " + text + " images (--sub-batch " + text +
                    ") is more than the batch of " + std::to_string(batch) + "; give at most that"};
  }
  return prefetch::cut(batch, *size);
}

}  // namespace spillway
