#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "tests/refusal.h"

namespace spillway::prefetch::testing {

/// One way to spoil a file, and what its refusal must name.
struct Tampering {
  const char* place;            ///< JSON pointer: "/tasks/3/reads/1"
  const char* value;            ///< JSON text to put there; empty: nothing, what is there goes
  const char* cause;            ///< a part of the sentence
  const char* named = nullptr;  ///< the place that the sentence names, where it is another one
};

/// `file` with the one thing changed.
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

/// A JSON pointer as sentences write it: "tasks[3].reads[1]".
inline std::string written(const char* pointer) {
  std::string result;
  for (nlohmann::json::json_pointer rest{pointer}; !rest.empty(); rest.pop_back()) {
    const std::string& key = rest.back();
    const bool is_index = key.find_first_not_of("0123456789") == std::string::npos;
    result.insert(0, is_index ? "[" + key + "]" : "." + key);
  }
  return result.substr(1);
}

/// Each tampering makes `read` refuse the file `name` by a sentence that begins with the place and
/// holds the cause; the file itself is accepted.
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
