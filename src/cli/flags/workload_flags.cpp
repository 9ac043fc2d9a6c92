#include "src/cli/flags/workload_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <variant>

#include "nets/families/network_catalogue.h"
#include "nets/text/network_file.h"
#include "src/cli/flags/complaint.h"
#include "src/cli/flags/named_network.h"
#include "src/cli/flags/number_checks.h"
#include "src/cli/flags/suggest_name.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

constexpr const char* kWorkload = "What is trained";
constexpr std::size_t kClasses = 10;

const std::map<std::string, ConvolutionAlgorithm> kAlgorithms{
    {"auto", ConvolutionAlgorithm::kAuto},
    {"direct", ConvolutionAlgorithm::kDirect},
    {"winograd", ConvolutionAlgorithm::kWinograd}};

const std::map<std::string, AttentionAlgorithm> kAttentions{{"auto", AttentionAlgorithm::kAuto},
                                                            {"own", AttentionAlgorithm::kOwn},
                                                            {"cudnn", AttentionAlgorithm::kCudnn}};

}  // namespace

void WorkloadFlags::add_to(CLI::App& app) {
  app.add_option(
         "--net", net,
         "Network: a name that spillway nets lists; resnet:6,32,100,6 or vgg:2,22,66,4,4 with "
         "the depths of the stages; gpt:LAYERS,HEADS,WIDTH,CONTEXT or "
         "llama:LAYERS,HEADS,KV-HEADS,WIDTH,HIDDEN,CONTEXT; a network file (a name that ends "
         "in .net or has a /; spillway nets NAME --dump FILE writes one); or an ONNX file (.onnx), "
         "which train begins with the weights of")
      ->required()
      ->check(check_network)
      ->group(kWorkload);
  app.add_option("--batch", batch, "Batch size: images, or texts, in each step")
      ->required()
      ->check(CLI::Range(kBatchRange.least, kBatchRange.most))
      ->group(kWorkload);
  sizes.add_to(app, kWorkload, "10, or the network file's");
  app.add_flag("--aux-heads", auxiliary_heads,
               "Add the auxiliary classifier losses of googlenet or inception-v3")
      ->group(kWorkload);
  app.add_option("--dropout", dropout,
                 "Probability of all dropout layers, and of attention's weights (default: the "
                 "network's, 0 in transformers)")
      ->check(within(kDropoutRange))
      ->group(kWorkload);
  app.add_option(
         "--conv-algorithm", convolution_algorithm,
         "Convolution algorithms that plans may choose: auto (all), direct, or winograd (direct "
         "where Winograd does not apply). On a GPU, direct is the engine with the smallest "
         "workspace, and winograd does not exist")
      ->check(CLI::IsMember{kAlgorithms})
      ->capture_default_str()
      ->group(kWorkload);
  app.add_option("--attention", attention,
                 "Attention kernels that plans may choose on a GPU: auto (all, unless "
                 "--conv-algorithm is given), own, or cudnn (bf16 without dropout alone; the same "
                 "kernel whatever the budget)")
      ->check(CLI::IsMember{kAttentions})
      ->capture_default_str()
      ->group(kWorkload);
  optimizer.add_choice_to(app);
  app.add_option("--ema", average_decay,
                 "Keep an exponential moving average of the weights with this decay, such as "
                 "0.999: one more state value per parameter. Evaluations are of the averages "
                 "(default: none)")
      ->check(within(kAverageDecayRange))
      ->type_name("DECAY")
      ->group(kWorkload);
  app.add_option("--freeze", frozen,
                 "Layers whose parameters stay as they are, by name, with * for any letters, such "
                 "as 'layer1*': no gradient, no update, no optimizer state. Batch norm there still "
                 "normalizes by the batch. Several patterns are separated by commas")
      ->delimiter(',')
      ->type_name("PATTERN")
      ->group(kWorkload);
}

void WorkloadFlags::add_smoothing_to(CLI::App& app, const char* group) {
  app.add_option("--label-smoothing", label_smoothing,
                 "Part of each label that is spread over all classes, in training losses alone")
      ->check(within(kLabelSmoothingRange))
      ->capture_default_str()
      ->group(group);
}

nets::Network WorkloadFlags::network() const { return network(open_named_network(net).entry); }

nets::Network WorkloadFlags::network(const nets::CatalogueEntry& entry) const {
  const bool is_file = nets::is_network_file(net);
  if (auxiliary_heads) expect_built_in(net);
  nets::NetworkOptions changes = sizes.changes_of(entry);
  changes.auxiliary_heads = auxiliary_heads;
  changes.dropout = dropout;
  if (!is_file && !reads_text(entry) && !changes.classes) changes.classes = kClasses;
  nets::Network built = nets::build_network(entry, changes);
  const bool attends = std::ranges::any_of(built.nodes, [](const nets::Node& node) {
    return std::holds_alternative<nets::Attention>(node.layer);
  });
  if (!attends && kAttentions.at(attention) != AttentionAlgorithm::kAuto) {
    throw um::Error{net + " has no attention; leave out --attention"};
  }
  if (dropout && !nets::dropout_of(built)) {
    throw um::Error{net + " has no dropout; leave out --dropout"};
  }
  return built;
}

StepOptions WorkloadFlags::step() const {
  return {.batch = batch,
          .convolution = kAlgorithms.at(convolution_algorithm),
          .attention = kAttentions.at(attention),
          .optimizer = optimizer.options(),
          .label_smoothing = label_smoothing,
          .average_decay = average_decay,
          .frozen = frozen};
}

void expect_built_in(const std::string& name) {
  if (!nets::is_network_file(name)) return;
  throw um::Error{
      "a network from a file has the auxiliary heads that are written there; leave out "
      "--aux-heads"};
}

std::string check_network(const std::string& name) {
  if (nets::is_network_file(name)) return {};
  std::string complaint = complaint_of([&] { static_cast<void>(nets::find_network(name)); });
  if (complaint.empty() || name.find_first_of(":+") != std::string::npos) return complaint;
  std::vector<std::string> names;
  for (const nets::CatalogueEntry& entry : nets::catalogue()) names.push_back(entry.name);
  return suggest_name("network", name, names, complaint);
}

}  // namespace spillway::cli
