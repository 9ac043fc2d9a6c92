#include "src/cli/sample/sample_flags.h"

#include <CLI/CLI.hpp>

#include "src/cli/flags/number_checks.h"

namespace spillway::cli {
namespace {

constexpr const char* kText = "Text";

}  // namespace

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

}  // namespace spillway::cli
