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
  // The error for `path`, with "MODEL" in place of the folder.
  [[nodiscard]] std::string said_of(const fs::path& path) const {
    std::string sentence = refusal([&] { return WeightFile{path, gpt_}; });
    const std::string folder = model_.string();
    for (auto at = sentence.find(folder); at != std::string::npos; at = sentence.find(folder)) {
      sentence.replace(at, folder.size(), "MODEL");
    }
    return sentence;
  }
  [[nodiscard]] std::string said_of_folder() const { return said_of(model_); }
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

TEST_F(ModelInFiles, SaysWhatIsMissing) {
  const std::string neither =
      "there is neither model.safetensors nor model.safetensors.index.json in MODEL; ";
  EXPECT_EQ(said_of_folder(), neither + "download the model's safetensors files into it");
  write("pytorch_model.bin", "PK");
  EXPECT_EQ(said_of_folder(), neither +
                                  "it has pytorch_model.bin, which torch.save() writes; "
                                  "convert that with safetensors.torch.save_file()");
  write("weights.safetensors", "");
  EXPECT_EQ(said_of_folder(), neither + "give its file, MODEL/weights.safetensors");
  write("b.safetensors", "");
  EXPECT_EQ(said_of_folder(), neither + "give one of its files, such as MODEL/b.safetensors");
  fs::remove(model_ / "b.safetensors");
  write(kOne, one_.bytes());
  EXPECT_EQ(said_of_folder(),
            neither + "it has " + kOne + ", and needs the index of such files; download that, too");
  write("checkpoint.json", "{}");
  EXPECT_EQ(said_of_folder(),
            neither + "it holds checkpoints of spillway; spillway export makes such a file of one");
}

TEST_F(ModelInFiles, SaysWhichFilesAreMissing) {
  write_parts();
  fs::remove(model_ / kTwo);
  EXPECT_EQ(said_of_folder(),
            "1 file that MODEL/model.safetensors.index.json lists is not there: " +
                std::string{kTwo} + "; download the whole model");
  fs::remove(model_ / kOne);
  EXPECT_EQ(said_of_folder(),
            "2 files that MODEL/model.safetensors.index.json lists are not there: " +
                std::string{kOne} + ", " + kTwo + "; download the whole model");
  write_parts();
  write(kTwo, "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_EQ(said_of_folder(), "cannot read MODEL/" + std::string{kTwo} +
                                  " as a safetensors file: it is a pointer of Git LFS; fetch the "
                                  "file with git lfs pull");
}

TEST_F(ModelInFiles, IsReadFromItsFolderAlone) {
  write_parts();
  fs::copy(model_ / kOne, folder_.path() / "outside.safetensors");
  const std::vector<json> others{"../outside.safetensors",
                                 (folder_.path() / "outside.safetensors").string(),
                                 "a/b.safetensors",
                                 "..",
                                 ".",
                                 "",
                                 std::string{"model-00001-of-00002.safetensors\0x", 34},
                                 7,
                                 json::array({kOne})};
  for (const json& other : others) {
    map_ = json{{"transformer.wte.weight", other}};
    const std::string sentence = said_with_parts();
    EXPECT_TRUE(
        sentence.starts_with("cannot read MODEL/model.safetensors.index.json as the index "
                             "of a model: tensor 'transformer.wte.weight' is in "))
        << sentence;
    EXPECT_TRUE(sentence.ends_with(", which is no file beside it")) << sentence;
  }
}

TEST_F(ModelInFiles, IsRefusedWhereTheIndexIsNone) {
  write_parts();
  const std::string cannot =
      "cannot read MODEL/model.safetensors.index.json as the index of a model: ";
  for (const char* const text :
       {"", "[]", "not JSON", "{}", R"({"weight_map": {}})", R"({"weight_map": ["a"]})"}) {
    write(kIndex, text);
    EXPECT_EQ(said_of_folder(), cannot + "it has no weight_map, which says where each tensor is");
  }
  write(kIndex, std::string(100000, '['));
  EXPECT_EQ(said_of_folder().rfind(cannot, 0), 0U);
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
