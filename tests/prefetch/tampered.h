#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "tests/refusal.h"

namespace spillway::prefetch::testing {

/// One defect of a file, and the expected error.
struct Tampering {
  const char* place;            ///< JSON pointer: "/tasks/3/reads/1"
  const char* value;            ///< JSON text to put there; empty: removes the value
  const char* cause;            ///< a part of the message
  const char* named = nullptr;  ///< the place in the message, if it differs
};

/// Returns `file` with this defect.
inline nlohmann::json tampered(nlohmann::json file, const Tampering& tampering) {
  const nlohmann::json::json_pointer place{tampering.place};
  if (*tampering.value != '\0') {
    file[place] = nlohmann::json::parse(tampering.value);
  } else if (nlohmann::json& parent = file[place.parent_pointer()]; parent.is_array()) {
    parent.erase(std::stoul(place.back()));
  } else {
    parent.erase(place.back());
  }
  return file;
}

/// Returns a JSON pointer as messages write it: "tasks[3].reads[1]".
inline std::string written(const char* pointer) {
  std::string result;
  for (nlohmann::json::json_pointer rest{pointer}; !rest.empty(); rest.pop_back()) {
    const std::string& key = rest.back();
    const bool is_index = key.find_first_not_of("0123456789") == std::string::npos;
    result.insert(0, is_index ? "[" + key + "]" : "." + key);
  }
  return result.substr(1);
}

/// Expects that `read` accepts the file `name`, and refuses it with each defect by a message that
/// begins with the place and contains the cause.
template <typename Read>
void expect_refusals(const nlohmann::json& file, const std::string& name,
                     std::span<const Tampering> tamperings, const Read& read) {
  EXPECT_EQ(test::refusal([&] { return read(file); }), "accepted");
  for (const Tampering& each : tamperings) {
    const std::string sentence = test::refusal([&] { return read(tampered(file, each)); });
    const std::string place = each.named != nullptr ? each.named : written(each.place);
    EXPECT_TRUE(sentence.starts_with(name + ": " + place + " ")) << sentence;
    EXPECT_NE(sentence.find(each.cause), std::string::npos)
        << each.place << " = " << each.value << ": " << sentence;
  }
}

}  // namespace spillway::prefetch::testing
