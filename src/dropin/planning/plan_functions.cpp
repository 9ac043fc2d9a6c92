#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "src/dropin/planning/plan_of_trace.h"
#include "src/dropin/planning/spillway_plan.h"

namespace {

// Returns JSON in any case; `answer` may contain invalid UTF-8.
std::string dumped(const nlohmann::json& answer) {
  return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string answer_to(const char* trace, const char* request) {
  try {
    if (trace == nullptr || request == nullptr) {
      return dumped({{"error", "trace and request are texts of JSON; neither may be NULL"}});
    }
    return dumped(
        spillway::dropin::plan_trace(trace, spillway::dropin::read_plan_request(request)));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return dumped({{"error", error.what()}});
  }
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): C.

char* spillway_plan_trace(const char* trace, const char* request) {
  try {
    const std::string answer = answer_to(trace, request);
    auto* const copy = static_cast<char*>(std::malloc(answer.size() + 1));
    if (copy != nullptr) std::memcpy(copy, answer.c_str(), answer.size() + 1);
    return copy;
  } catch (...) {
    return nullptr;
  }
}

void spillway_plan_free(char* answer) { std::free(answer); }

const char* spillway_plan_version(void) { return SPILLWAY_VERSION; }

// NOLINTEND(readability-identifier-naming)
