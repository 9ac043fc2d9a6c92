#include "src/train/trainer_options.h"

#include "src/plan/sub_batch_choice.h"

namespace spillway {

std::optional<std::string_view> file_of_one_step(const PlanningOptions& planning,
                                                 std::size_t batch) {
  if (SubBatchChoice{planning.sub_batch}.leaves_whole(batch)) return std::nullopt;
  if (!planning.plan_file.empty()) return "plan";
  if (!planning.profile_file.empty()) return "profile";
  return std::nullopt;
}

}  // namespace spillway
