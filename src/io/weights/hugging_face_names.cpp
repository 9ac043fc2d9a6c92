#include "src/io/weights/name_table.h"

namespace spillway {
namespace {

constexpr const char* kOtherVocabulary = "give --vocabulary {}";
constexpr const char* kOtherContext = "the file's context is of {} tokens";

NameTable gpt_names() {
  NameTable table{.source = WeightSource::kHuggingFace,
                  .network = "GPT-2",
                  .mark = "h.0.attn.c_attn.weight",
                  .prefix = "transformer.",
                  .ties = {{"lm_head.weight", "transformer.wte.weight"}},
                  .passed_over = {"transformer.h.#.attn.bias", "transformer.h.#.attn.masked_bias"},
                  .hints = {{"transformer.wte.weight", 0, kOtherVocabulary},
                            {"transformer.wpe.weight", 0, kOtherContext}}};
  for (const char* const name : {"wte.weight", "wpe.weight", "h.#.ln_#.*", "h.#.attn.c_attn.bias",
                                 "h.#.*.c_proj.bias", "h.#.mlp.c_fc.bias", "ln_f.*"}) {
    table.rules.push_back({name, table.prefix + name});
  }
  // weights of a Conv1D, which is a linear layer with weights (in, out)
  for (const char* const name :
       {"h.#.attn.c_attn.weight", "h.#.*.c_proj.weight", "h.#.mlp.c_fc.weight"}) {
    table.rules.push_back({name, table.prefix + name, TensorForm::kTransposed});
  }
  return table;
}

// Llama's rotary positions pair channels j and j + d / 2, as nets::Rotary does.
NameTable llama_names() {
  return {.source = WeightSource::kHuggingFace,
          .network = "Llama",
          .mark = "model.layers.0.self_attn.qkv_proj.weight",
          .prefix = "model.",
          .rules = {same_name("model.embed_tokens.weight"),
                    {"model.layers.#.self_attn.qkv_proj.weight",
                     "model.layers.#.self_attn.{q,k,v}_proj.weight"},
                    same_name("model.layers.#.self_attn.o_proj.weight"),
                    {"model.layers.#.mlp.gate_up_proj.weight",
                     "model.layers.#.mlp.{gate,up}_proj.weight"},
                    same_name("model.layers.#.mlp.down_proj.weight"),
                    same_name("model.layers.#.*layernorm.weight"),
                    same_name("model.norm.weight"),
                    same_name("lm_head.weight")},
          .ties = {{"lm_head.weight", "model.embed_tokens.weight"}},
          .passed_over = {"model.layers.#.self_attn.rotary_emb.inv_freq"},
          .hints = {{"model.embed_tokens.weight", 0, kOtherVocabulary}}};
}

NameTable bert_names() {
  const std::string embeddings = "bert.embeddings.";
  const std::string layer = "bert.encoder.layer.#.";
  const std::string head = "cls.predictions.";
  return {
      .source = WeightSource::kHuggingFace,
      .network = "BERT",
      .mark = "bert.encoder.layer.0.attention.output.dense.weight",
      .prefix = "bert.",
      .rules = {same_name(embeddings + "word_embeddings.weight"),
                same_name(embeddings + "position_embeddings.weight"),
                {embeddings + "position_embeddings.segments",
                 embeddings + "token_type_embeddings.weight"},
                same_name(embeddings + "LayerNorm.*"),
                {layer + "attention.self.qkv.*", layer + "attention.self.{query,key,value}.*"},
                same_name(layer + "attention.output.*"),
                same_name(layer + "intermediate.dense.*"),
                same_name(layer + "output.*"),
                same_name(head + "transform.*"),
                same_name(head + "bias")},
      .ties = {{head + "decoder.weight", embeddings + "word_embeddings.weight"},
               {head + "decoder.bias", head + "bias"}},
      .spellings = {{"*LayerNorm.gamma", "*LayerNorm.weight"},
                    {"*LayerNorm.beta", "*LayerNorm.bias"}},
      .passed_over = {embeddings + "position_ids", "bert.pooler.dense.*", "cls.seq_relationship.*"},
      .hints = {{embeddings + "word_embeddings.weight", 0, kOtherVocabulary},
                {embeddings + "position_embeddings.weight", 0, kOtherContext}}};
}

NameTable vit_names() {
  const std::string embeddings = "vit.embeddings.";
  const std::string layer = "vit.encoder.layer.#.";
  return {.source = WeightSource::kHuggingFace,
          .network = "ViT",
          .mark = "vit.encoder.layer.0.layernorm_before.weight",
          .prefix = "vit.",
          .rules = {same_name(embeddings + "patch_embeddings.projection.*"),
                    {embeddings + "cls.token", embeddings + "cls_token", TensorForm::kInTwo},
                    {embeddings + "position_embeddings.weight", embeddings + "position_embeddings",
                     TensorForm::kInOne},
                    {layer + "attention.attention.qkv.*",
                     layer + "attention.attention.{query,key,value}.*"},
                    same_name(layer + "*.dense.*"),
                    same_name(layer + "layernorm_*"),
                    same_name("vit.layernorm.*"),
                    same_name("classifier.*")},
          // names in state_dict() since version 5 of transformers
          .spellings = {{"vit.layers.#.attention.q_proj.*", layer + "attention.attention.query.*"},
                        {"vit.layers.#.attention.k_proj.*", layer + "attention.attention.key.*"},
                        {"vit.layers.#.attention.v_proj.*", layer + "attention.attention.value.*"},
                        {"vit.layers.#.attention.o_proj.*", layer + "attention.output.dense.*"},
                        {"vit.layers.#.mlp.fc1.*", layer + "intermediate.dense.*"},
                        {"vit.layers.#.mlp.fc2.*", layer + "output.dense.*"},
                        {"vit.layers.#.layernorm_*", layer + "layernorm_*"}},
          .passed_over = {"vit.pooler.dense.*"},
          .hints = {{embeddings + "position_embeddings", 1,
                     "the file's images have {} tokens; give its --image-size"},
                    {"classifier.weight", 0, "give --classes {}, or --new-head to draw it anew"}}};
}

}  // namespace

std::vector<NameTable> hugging_face_names() {
  return {gpt_names(), llama_names(), bert_names(), vit_names()};
}

}  // namespace spillway
