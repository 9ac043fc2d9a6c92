#include "src/dropin/planning/plan_request.h"

#include <vector>

#include "prefetch/files/json.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/profile_file.h"

namespace spillway::dropin {

PlanOfTraceRequest read_plan_request(const std::string& text) {
  const prefetch::JsonFile file{text, "the request"};
  const prefetch::JsonView root = file.root();
  const std::vector<std::string> known{"budget_bytes", "planner",         "recompute", "parts",
                                       "link",         "offload_weights", "timeline"};
  prefetch::expect_known_keys(file.value(), root, known);
  PlanOfTraceRequest request;
  const auto set = [&](const char* key, bool& value) {
    if (root.has(key)) value = root.at(key).boolean();
  };
  set("recompute", request.may_recompute);
  set("parts", request.in_parts);
  set("offload_weights", request.offload_weights);
  set("timeline", request.with_timeline);
  if (root.has("planner")) request.planner = root.at("planner").string();
  if (root.has("budget_bytes")) request.budget = um::Bytes{root.at("budget_bytes").integer()};
  request.link =
      root.has("link") ? prefetch::read_link(root.at("link")) : prefetch::find_machine("host").link;
  return request;
}

}  // namespace spillway::dropin
