#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace spillway::test {

/// What `train --json` writes of a step that waited a fifth of its time for data.
inline std::string step_line(int step, double loss) {
  nlohmann::json line = nlohmann::json::parse(R"({
    "epoch": 1, "accuracy": 0.5, "learning_rate": 0.01, "seconds": 0.8, "data_wait_seconds": 0.2,
    "near_peak_bytes": 1000000})");
  line["step"] = static_cast<unsigned>(step);
  line["loss"] = loss;
  return line.dump() + "\n";
}

inline std::string evaluation_line(int step, double loss, double accuracy) {
  const nlohmann::json evaluation{{"step", static_cast<unsigned>(step)},
                                  {"epoch", 1U},
                                  {"test_loss", loss},
                                  {"test_accuracy", accuracy}};
  return nlohmann::json{{"evaluation", evaluation}}.dump() + "\n";
}

inline std::string summary_line() {
  return R"({"summary": {"network": "lenet", "batch": 8, "data": "synthetic images"}})"
         "\n";
}

}  // namespace spillway::test
