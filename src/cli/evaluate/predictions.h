#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "src/train/evaluation.h"

namespace spillway::cli {

/// What is told of each image.
struct PredictionOptions {
  std::size_t top = 1;                   ///< classes, the likeliest first
  bool has_logits = false;               ///< in JSON
  std::vector<std::string> class_names;  ///< by number; empty where there are none
};

/// A class, and how likely it is.
struct ClassProbability {
  std::size_t number = 0;
  double probability = 0;
};

/// The `count` likeliest classes of an image with these logits, by softmax; of equal ones the first
/// comes first. Fewer where there are fewer.
[[nodiscard]] std::vector<ClassProbability> likeliest_classes(std::span<const float> logits,
                                                              std::size_t count);

/// What a network says an image is, for people and for programs. What `judged` was made with:
/// StepOptions::gives_logits.
class Prediction {
 public:
  /// Without logits, the likeliest class alone.
  Prediction(const JudgedImage& image, const PredictionOptions& options);

  /// "class 3 (cat), probability 0.934; 5 (dog) 0.050"
  [[nodiscard]] std::string text() const;
  /// {"class": 3, "class_name": "cat", "probability": 0.934}, and where there are several "top",
  /// and "logits" where these are wanted.
  [[nodiscard]] nlohmann::json json() const;

 private:
  [[nodiscard]] std::string name_of(std::size_t number) const;
  [[nodiscard]] nlohmann::json json_of(const ClassProbability& each) const;

  const PredictionOptions& options_;
  std::vector<ClassProbability> classes_;
  std::vector<float> logits_;
};

}  // namespace spillway::cli
