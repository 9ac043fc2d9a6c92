#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nets/network.h"
#include "prefetch/files/json.h"
#include "src/cli/commands.h"
#include "src/cli/flags/cli11.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/flag_values.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/terminal/interrupt.h"
#include "src/cli/terminal/terminal.h"
#include "src/train/next_token_model.h"
#include "src/train/token_sampler.h"
#include "src/train/trained_text_model.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

// Flags of `spillway sample`.
struct SampleFlags {
  std::string checkpoint;
  std::string tokenizer;      // empty: bytes are tokens
  bool uses_weights = false;  // even if the checkpoint has averages
  std::string prompt;
  std::size_t tokens = 200;
  SamplingOptions sampling;
  DeviceFlags device;
  std::string json;

  void add_to(CLI::App& command);

 private:
  void add_text_to(CLI::App& command);
  void add_sampling_to(CLI::App& command);
};

constexpr const char* kText = "Text";

void SampleFlags::add_to(CLI::App& command) {
  command
      .add_option("checkpoint", checkpoint,
                  "Folder of train --checkpoint; the newest checkpoint there that verifies is used")
      ->required()
      ->type_name("DIR");
  add_text_to(command);
  add_sampling_to(command);
  device.add_running_to(command);
  command
      .add_option("--json", json,
                  "Write the text, its tokens and the settings as one JSON object to this file, - "
                  "for standard output instead of the text")
      ->group("Output");
}

void SampleFlags::add_text_to(CLI::App& command) {
  command
      .add_flag("--raw-weights", uses_weights,
                "Of a training with --ema, use the weights instead of their averages")
      ->group(kText);
  command
      .add_option(
          "--tokenizer", tokenizer,
          "Folder of the byte-pair encoding that the network was trained with (encoder.json "
          "and vocab.bpe, or vocab.json and merges.txt). Not needed after a training on "
          "bytes")
      ->group(kText);
  command
      .add_option("--prompt", prompt,
                  "Text to continue (default: none; the text then begins behind a newline, or "
                  "behind <|endoftext|> where the tokenizer has it)")
      ->group(kText);
  command.add_option("--tokens", tokens, "Number of tokens to add")
      ->check(check_whole_number_from_one)
      ->capture_default_str()
      ->group(kText);
}

void SampleFlags::add_sampling_to(CLI::App& command) {
  command
      .add_option("--temperature", sampling.temperature,
                  "Divide the logits by this: below 1 likely tokens become still likelier, above 1 "
                  "less so, and 0 always takes the likeliest one")
      ->check(check_amount)
      ->capture_default_str()
      ->group(kText);
  command
      .add_option("--top-k", sampling.top_k,
                  "Draw among the K likeliest tokens only (default: among all)")
      ->check(check_whole_number_from_one)
      ->group(kText);
  command
      .add_option("--seed", sampling.seed,
                  "Random seed; the same seed with the same number of threads gives the same text")
      ->check(check_whole_number)
      ->capture_default_str()
      ->group(kText);
}

using nlohmann::json;

// Writes and flushes.
void print(std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stdout));
  expect_output_written();
}

std::vector<std::int32_t> encode_prompt(const std::string& prompt, TextCodec& codec,
                                        std::size_t vocabulary) {
  std::vector<std::int32_t> tokens;
  try {
    tokens = codec.encode(prompt);
  } catch (const um::Error& error) {
    throw um::Error{std::string{"--prompt cannot be encoded: "} + error.what()};
  }
  for (const std::int32_t token : tokens) {
    if (static_cast<std::size_t>(token) < vocabulary) continue;
    throw um::Error{fmt::format("--prompt has token {}, but the network's vocabulary has only {}",
                                token, vocabulary)};
  }
  if (!tokens.empty()) return tokens;
  // If the vocabulary has no newline, any token will do.
  const std::int32_t beginning = codec.beginning();
  return {static_cast<std::size_t>(beginning) < vocabulary ? beginning : 0};
}

// Generates one text.
class Sampling {
 public:
  Sampling(const SampleFlags& flags, std::stop_token stop)
      : flags_{flags},
        trained_{open_text_model(flags.checkpoint, flags.tokenizer, flags.uses_weights)},
        begin_{encode_prompt(flags.prompt, *trained_.codec, trained_.network.classes)},
        context_{flags.device.open()},
        model_{context_, trained_.network, std::move(stop)} {
    load_weights(trained_, model_.state());
  }

  void run() {
    describe();
    if (prints_text()) print(flags_.prompt);
    TokenSampler sampler{flags_.sampling};
    const auto start = std::chrono::steady_clock::now();
    continue_text(model_, sampler, begin_, trained_.codec->size(), flags_.tokens,
                  [this](std::int32_t token) { add(token); });
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (prints_text()) print("\n");
    tell("{} in {:.2f} s\n", um::count_of(tokens_.size(), "token"), time.count());
    if (!flags_.json.empty()) prefetch::write_json(to_json(time.count()), flags_.json);
  }

 private:
  [[nodiscard]] bool prints_text() const { return flags_.json != "-"; }
  [[nodiscard]] bool has_averages() const {
    return trained_.checkpoint.manifest.checkpoint.settings.average_decay > 0 &&
           !flags_.uses_weights;
  }
  [[nodiscard]] std::uint64_t step() const { return trained_.checkpoint.manifest.checkpoint.step; }

  void describe() const {
    for (const std::string& problem : trained_.checkpoint.passed_over) {
      tell("warning: {}; using the checkpoint of step {}\n", problem, step());
    }
    tell("{} of step {}, which looks at {} at most, on {}\n", trained_.network.name, step(),
         um::count_of(model_.longest(), "token"), context_.backend->description());
  }

  void add(std::int32_t token) {
    const std::string_view text = trained_.codec->text(token);
    tokens_.push_back(token);
    text_ += text;
    if (prints_text()) print(text);
  }

  [[nodiscard]] json to_json(double seconds) const {
    json result{{"network", trained_.network.name},
                {"step", step()},
                {"averaged", has_averages()},
                {"prompt", flags_.prompt},
                {"text", text_},  // a token may be part of a character
                {"tokens", tokens_},
                {"temperature", flags_.sampling.temperature},
                {"top_k", nullptr},
                {"seed", flags_.sampling.seed},
                {"device", context_.device->name()},
                {"backend", context_.backend->description()},
                {"tokens_per_second", static_cast<double>(tokens_.size()) / seconds}};
    if (flags_.sampling.top_k > 0) result["top_k"] = flags_.sampling.top_k;
    return result;
  }

  const SampleFlags& flags_;
  TrainedTextModel trained_;
  std::vector<std::int32_t> begin_;
  ExecutionContext context_;
  NextTokenModel model_;
  std::vector<std::int32_t> tokens_;
  std::string text_;  // text of the tokens
};

}  // namespace

void add_sample_command(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("sample", "Continue a text with a network that was trained on text");
  const auto flags = std::make_shared<SampleFlags>();  // shared with the callback
  flags->add_to(*command);
  command->footer(
      "The checkpoint is of a network that learns the next token, such as gpt2 or a llama, of "
      "train --data text:FILE. The text goes to standard output as it is made, the prompt first. "
      "For each token the network goes forward over the whole text, or as many of its last tokens "
      "as it was trained to look at; there is no key-value cache. All weights are in near memory. "
      "Of a training with --ema, the averages of the weights are used, unless --raw-weights is "
      "given.\n"
      "Example: spillway sample run1 --prompt \"To be\" --tokens 300 --temperature 0.8 --top-k 40");
  command->callback([flags] {
    expect_writable(flags->json);
    const Interrupt interrupt;
    Sampling{*flags, interrupt.token()}.run();
  });
}

}  // namespace spillway::cli
