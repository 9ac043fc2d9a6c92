// Models of several files with an index, and folders of them like Hugging Face's.
#include "src/io/weights/model_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/src/io/weights/reading_weights.h"

namespace spillway::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kOne = "model-00001-of-00002.safetensors";
constexpr const char* kTwo = "model-00002-of-00002.safetensors";

// A golden file of GPT-2 in two parts, with every other tensor in the second.
class ModelInFiles : public ReadingWeights {
 protected:
  ModelInFiles() {
    fs::create_directory(model_);
    for (std::size_t i = 0; i < file_.tensors.size(); ++i) {
      FileOfTensors& part = i % 2 == 0 ? one_ : two_;
      part.tensors.push_back(file_.tensors[i]);
      map_[file_.tensors[i].name] = i % 2 == 0 ? kOne : kTwo;
    }
  }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream{model_ / name, std::ios::binary} << bytes;
  }
  void write_parts() const {
    write(kOne, one_.bytes());
    write(kTwo, two_.bytes());
    write(kIndex, json{{"metadata", {{"total_size", 1}}}, {"weight_map", map_}}.dump());
  }
  // The error, with "MODEL" in place of the folder.
  [[nodiscard]] std::string said_of_folder() const {
    std::string sentence = refusal([&] { return WeightFile{model_, gpt_}; });
    const std::string folder = model_.string();
    for (auto at = sentence.find(folder); at != std::string::npos; at = sentence.find(folder)) {
      sentence.replace(at, folder.size(), "MODEL");
    }
    return sentence;
  }
  [[nodiscard]] std::string said_with_parts() const {
    write_parts();
    return said_of_folder();
  }
  // The error if the index maps `tensor` to `value`.
  [[nodiscard]] std::string said_with_place(const std::string& tensor, const json& value) {
    map_[tensor] = value;
    return said_with_parts();
  }

  fs::path model_ = folder_.path() / "model";
  FileOfTensors one_;
  FileOfTensors two_;
  json map_ = json::object();
};

TEST_F(ModelInFiles, HasTheNumbersOfTheOneThatItWas) {
  std::ofstream{path(), std::ios::binary} << file_.bytes();
  const WeightFile whole{path(), gpt_};
  write_parts();
  for (const fs::path& given : {model_, model_ / kIndex}) {
    const WeightFile parts{given, gpt_};
    for (const StoredTensor& array : gpt_.arrays) {
      std::vector<float> numbers(element_count(array.shape));
      std::vector<float> same(numbers.size());
      whole.read(array.name, numbers);
      parts.read(array.name, same);
      EXPECT_EQ(same, numbers) << array.name;
    }
  }
}

TEST_F(ModelInFiles, IsTheOneFileOfItsFolderWhereThatHasBoth) {
  write(kIndex, "{}");
  write("model.safetensors", file_.bytes());
  EXPECT_EQ(said_of_folder(), "accepted");
}

// Hugging Face's cache has links to files with other names.
TEST_F(ModelInFiles, MayBeLinks) {
  write_parts();
  fs::rename(model_ / kTwo, folder_.path() / "blob");
  fs::create_symlink("../blob", model_ / kTwo);
  EXPECT_EQ(said_of_folder(), "accepted");
}

TEST_F(ModelInFiles, IsWhatTheIndexSays) {
  const std::string name = one_.tensors.front().name;
  EXPECT_EQ(said_with_place(name, kTwo), "MODEL/model.safetensors.index.json says that tensor '" +
                                             name + "' is in " + kTwo +
                                             ", which does not have it; download the model again");
  EXPECT_EQ(said_with_place(name, kOne), "accepted");
  EXPECT_EQ(said_with_place("more", kOne),
            "MODEL/model.safetensors.index.json says that tensor 'more' is in " +
                std::string{kOne} + ", which does not have it; download the model again");
  map_.erase("more");
  two_.tensors.push_back(one_.tensors.front());
  EXPECT_EQ(said_with_parts(),
            "tensor '" + name +
                "' is in two files that MODEL/model.safetensors.index.json lists, " + kOne +
                " and " + kTwo + "; download the model again");
}

}  // namespace
}  // namespace spillway::test
