#include "src/train/parts/gather_lists.h"

#include <nlohmann/json.hpp>

#include "src/ranks/agreement.h"

namespace spillway {

std::vector<std::vector<std::string>> gather_lists(Communicator& communicator,
                                                   const std::vector<std::string>& own) {
  using nlohmann::json;
  const std::string text = json(own).dump(-1, ' ', false, json::error_handler_t::replace);
  std::vector<std::vector<std::string>> lists;
  for (const std::string& each : gather_texts(communicator, text)) {
    lists.push_back(json::parse(each).get<std::vector<std::string>>());
  }
  return lists;
}

}  // namespace spillway
