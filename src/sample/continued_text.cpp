#include "src/sample/continued_text.h"

#include <algorithm>
#include <span>
#include <string>

#include "src/execute/executor.h"
#include "um/error.h"

namespace spillway {

void continue_text(NextTokenModel& model, TokenSampler& sampler, std::vector<std::int32_t> text,
                   std::size_t known, std::size_t count,
                   const std::function<void(std::int32_t)>& on_token) {
  um::expects(!text.empty() && known > 0, "a text to continue, and tokens to do so with");
  std::size_t made = 0;
  try {
    for (; made < count; ++made) {
      const std::span<const std::int32_t> all{text};
      const std::span<const float> logits =
          model.logits(all.last(std::min(all.size(), model.longest())));
      const std::int32_t token = sampler.draw(logits.first(std::min(known, logits.size())));
      text.push_back(token);
      on_token(token);
    }
  } catch (const Interrupted&) {
    throw Interrupted{std::to_string(made) + " of " + std::to_string(count) + " tokens were made"};
  }
}

}  // namespace spillway
