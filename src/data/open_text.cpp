#include "src/data/open_text.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>

#include "src/data/text/byte_pair_encoder.h"
#include "src/data/text/encoded_text.h"
#include "src/data/text/token_file.h"
#include "src/data/text_windows.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr std::size_t kByteValues = 256;

using OpenFile = std::function<std::unique_ptr<TokenSequence>(const std::filesystem::path&)>;

// A file whose name has a comma is one file.
DatasetPair open_files(std::string_view files, const OpenFile& open, const TokenTask& task) {
  const auto open_checked = [&](std::string_view path) {
    std::unique_ptr<TokenSequence> text = open(path);
    expect_in_vocabulary(*text, task.vocabulary);
    return text;
  };
  const std::size_t comma = files.find(',');
  std::error_code ignored;
  if (comma == files.npos || std::filesystem::exists(files, ignored)) {
    return cut_windows(open_checked(files), task);
  }
  auto train = open_checked(files.substr(0, comma));
  return cut_windows(std::move(train), open_checked(files.substr(comma + 1)), task);
}

// Of tokens below `tokens`, and a mask behind them where some are masked.
void expect_vocabulary(const TokenTask& task, std::size_t tokens, const std::string& what) {
  const bool has_mask = task.objective == Objective::kMaskedTokens;
  const std::size_t needed = tokens + (has_mask ? 1 : 0);
  if (task.vocabulary >= needed) return;
  throw um::Error{what + " has " + std::to_string(tokens) + " tokens" +
                  (has_mask ? ", and the network needs one more for the mask" : "") +
                  ", but its vocabulary is " + std::to_string(task.vocabulary) +
                  "; use --vocabulary " + std::to_string(needed) + " or more"};
}

}  // namespace

DatasetPair open_text(std::string_view files, const std::string& tokenizer, TokenTask task) {
  task.mask = static_cast<std::int32_t>(task.vocabulary - 1);
  if (!tokenizer.empty()) {
    BytePairEncoder encoder{read_byte_pairs(tokenizer)};
    expect_vocabulary(task, encoder.pairs().size, "the tokenizer in " + tokenizer);
    return open_files(
        files, [&](const auto& path) { return encode_file(path, encoder); }, task);
  }
  if (task.objective == Objective::kMaskedTokens) {
    expect_vocabulary(task, kByteValues, "a text of bytes");
  }
  return open_files(files, open_bytes, task);
}

DatasetPair open_tokens(std::string_view files, const TokenTask& task) {
  return open_files(files, open_token_file, task);
}

}  // namespace spillway
