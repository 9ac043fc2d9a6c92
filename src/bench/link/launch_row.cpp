#include "src/bench/link/launch_row.h"

#include <nlohmann/json.hpp>

namespace spillway {

nlohmann::json to_json(const LaunchRow& row) {
  return {{"beside", row.beside ? nlohmann::json(to_string(*row.beside)) : nlohmann::json{}},
          {"bytes", row.size.count()},
          {"call_seconds", to_json(row.call)},
          {"seconds", to_json(row.whole)}};
}

}  // namespace spillway
