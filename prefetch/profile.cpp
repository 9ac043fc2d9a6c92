#include "prefetch/profile.h"

namespace spillway::prefetch {

um::Nanoseconds compute_time(const Profile& profile, const std::vector<TaskRun>& runs) {
  um::Nanoseconds total{0};
  for (const TaskRun& run : runs) total += profile(run);
  return total;
}

}  // namespace spillway::prefetch
