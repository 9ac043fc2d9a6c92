#include "src/cli/flags/workload_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <variant>

#include "nets/families/network_catalogue.h"
#include "nets/shape.h"
#include "nets/text/network_file.h"
#include "src/cli/flags/flag_values.h"
#include "src/io/onnx/onnx_model.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

CLI::Validator class_count() { return whole_number(2, nets::kLargestWidth); }

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

OpenedNetwork open_named_network(const std::string& name) {
  if (!is_onnx_file(name)) return {.entry = nets::open_network(name), .imported = nullptr};
  const auto imported = std::make_shared<const ImportedNetwork>(import_onnx(read_onnx(name), name));
  return {.entry = imported->entry, .imported = imported};
}

TensorSource onnx_weights(const OpenedNetwork& network, bool has_new_head) {
  um::expects(network.imported != nullptr, "the network of an ONNX file");
  return [imported = network.imported, has_new_head](const std::string& name,
                                                     std::span<float> numbers) {
    fill_array(*imported, name, numbers, has_new_head);
  };
}

void NetworkSizeFlags::add_to(CLI::App& app, const std::string& group,
                              const std::string& usual_classes) {
  const auto add = [&](const char* name, auto& value, const std::string& help,
                       const CLI::Validator& range) {
    CLI::Option* const option = app.add_option(name, value, help)->check(range);
    if (!group.empty()) option->group(group);
  };
  add("--image-size", image_size, "Height and width of the images (default: the network's)",
      image_side());
  add("--classes", classes, "Number of classes of images (default: " + usual_classes + ")",
      class_count());
  add("--sequence-length", sequence_length, "Tokens of each text (default: the network's)",
      whole_number(1, nets::kLongestSequence));
  add("--vocabulary", vocabulary, "Number of tokens there are (default: the network's)",
      class_count());
}

nets::NetworkOptions NetworkSizeFlags::changes_of(const nets::CatalogueEntry& entry) const {
  const bool is_text = reads_text(entry);
  const auto refuse = [&](bool is_given, const std::string& flag, const std::string& instead) {
    if (!is_given) return;
    throw um::Error{"network " + entry.name + " reads " + (is_text ? "text" : "images") + "; use " +
                    instead + " instead of " + flag};
  };
  refuse(is_text && image_size > 0, "--image-size", "--sequence-length");
  refuse(is_text && classes, "--classes", "--vocabulary");
  refuse(!is_text && sequence_length > 0, "--sequence-length", "--image-size");
  refuse(!is_text && vocabulary, "--vocabulary", "--classes");
  return fitting_changes_of(entry);
}

nets::NetworkOptions NetworkSizeFlags::fitting_changes_of(const nets::CatalogueEntry& entry) const {
  nets::NetworkOptions changes;
  if (reads_text(entry)) {
    if (sequence_length > 0) changes.image = nets::tokens(sequence_length);
    changes.classes = vocabulary;
    return changes;
  }
  if (image_size > 0) {
    changes.image = entry.image;
    changes.image->height = changes.image->width = image_size;
  }
  changes.classes = classes;
  return changes;
}

bool reads_text(const nets::CatalogueEntry& entry) {
  return entry.image.form == nets::Form::kTokens;
}

CLI::Validator image_side() { return whole_number(1, nets::kLargestSide); }

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
      ->check(whole_number(kBatchRange.least, kBatchRange.most))
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
         "where Winograd does not apply). On a GPU, direct is the algorithm with the smallest "
         "workspace, also in linear layers, and winograd does not exist")
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
