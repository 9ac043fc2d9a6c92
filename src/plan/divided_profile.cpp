#include "src/plan/divided_profile.h"

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "um/error.h"

namespace spillway {
namespace {

// "fc6.update[1]" of "fc6.take[1]"; else the same.
std::string measured_name(std::string task) {
  constexpr const char* kTake = ".take";
  const std::size_t place = task.rfind(kTake);
  return place == std::string::npos ? task : task.replace(place, 5, ".update");
}

}  // namespace

prefetch::Profile divided_profile(const prefetch::TaskGraph& divided,
                                  const prefetch::TaskGraph& whole,
                                  const prefetch::Profile& profile) {
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t t = 0; t < whole.tasks.size(); ++t) places.emplace(whole.tasks[t].name, t);
  prefetch::Profile result = profile;
  result.graph = prefetch::fingerprint(divided);
  result.durations.clear();
  for (const prefetch::Task& task : divided.tasks) {
    auto found = places.find(task.name);
    if (found == places.end()) found = places.find(measured_name(task.name));
    um::expects(found != places.end(), "a profile of the same tasks");
    const prefetch::Task& measured = whole.tasks[found->second];
    std::vector<um::Nanoseconds> durations = profile.durations[found->second];
    if (task.traffic != measured.traffic) {
      const double share =
          static_cast<double>(task.traffic.count()) / static_cast<double>(measured.traffic.count());
      for (um::Nanoseconds& time : durations) {
        time = um::Nanoseconds{
            static_cast<um::Nanoseconds::rep>(static_cast<double>(time.count()) * share)};
      }
    }
    result.durations.push_back(std::move(durations));
  }
  return result;
}

}  // namespace spillway
