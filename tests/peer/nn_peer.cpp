// The C++ half of tests/python/test_cpp_nn.py: builds layers, steps optimisers and schedules, and trains, and writes what came out.
//
//   oar_nn_peer layers     <file>            states, outputs and gradients of every layer
//   oar_nn_peer optimizers <file>            parameters after each of 20 steps
//   oar_nn_peer schedules  <file>            rates
//   oar_nn_peer train      <folder> <steps>  goes on from the last checkpoint in the folder; saves one every two steps
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "oar/oar.h"

namespace {

namespace nn = oar::nn;
namespace lr = oar::nn::lr;
using oar::DType;
using oar::NamedTensors;
using oar::Shape;
using oar::Tensor;

Tensor ids(const std::vector<int64_t>& values, const Shape& shape) {
  return Tensor::from_vector(values, shape, DType::Int64);
}

// ---- layers ----------------------------------------------------------------------------------------

// Keeps the layer's state, its results, and the gradients of the sum of their squares.
void record(NamedTensors& out, const std::string& name, nn::Module& layer, const Tensor& x,
            const std::vector<Tensor>& results) {
  Tensor loss;
  for (size_t i = 0; i < results.size(); ++i) {
    out[oar::format("{}/out{}", name, i)] = oar::assign(oar::detach(results[i]));
    const Tensor part = oar::sum(results[i] * results[i]);
    loss = loss.defined() ? loss + part : part;
  }
  for (const auto& [key, value] : layer.state_dict())
    out[oar::format("{}/state/{}", name, key)] = oar::assign(value);
  if (!oar::stop_gradient(loss)) oar::backward({&loss, 1});
  for (const auto& [key, value] : layer.named_parameters()) {
    const oar::History* history = oar::maybe_history(value);
    if (history && history->grad.defined()) {
      Tensor grad = oar::history_of(value).grad.get();
      if (grad.kind() == oar::Kind::SelectedRows) grad = oar::selected_rows_to_dense(grad);
      out[oar::format("{}/grad/{}", name, key)] = oar::assign(grad);
    }
    out[oar::format("{}/name/{}", name, nn::name_of_parameter(value))] = oar::zeros({1});
  }
  if (oar::is_floating(x.dtype()))
    out[name + "/grad_x"] = oar::assign(oar::history_of(x).grad.get());
}

Tensor input(const Shape& shape) {
  const Tensor x = oar::randn(shape);
  oar::set_stop_gradient(x, false);
  return x;
}

template <class Layer, class... A>
std::function<void(NamedTensors&, const std::string&)> on(const Shape& shape, const A&... args) {
  return [=](NamedTensors& out, const std::string& name) {
    Layer layer(args...);
    const Tensor x = input(shape);
    record(out, name, layer, x, {layer(x)});
  };
}

template <class Layer>
std::function<void(NamedTensors&, const std::string&)> recurrent(const nn::RnnOptions& options) {
  return [=](NamedTensors& out, const std::string& name) {
    Layer layer(4, 5, options);
    const Tensor x = input({2, 6, 4});
    const auto [outputs, hidden, cell] = layer.run(x);
    record(out, name, layer, x,
           cell.defined() ? std::vector{outputs, hidden, cell} : std::vector{outputs, hidden});
  };
}

void looked_up(NamedTensors& out, const std::string& name, bool sparse) {
  nn::Embedding layer(6, 3, 1, sparse);
  const Tensor x = ids({0, 5, 1, 5}, {2, 2});
  record(out, name, layer, x, {layer(x)});
}

const std::vector<std::pair<std::string, std::function<void(NamedTensors&, const std::string&)>>>
    kLayers = {
        {"linear", on<nn::Linear>({4, 3}, 3, 5)},
        {"linear_plain", on<nn::Linear>({4, 3}, 3, 5, false)},
        {"embedding", [](auto& out, auto& name) { looked_up(out, name, false); }},
        {"embedding_sparse", [](auto& out, auto& name) { looked_up(out, name, true); }},
        {"conv1d", on<nn::Conv1D>({2, 3, 9}, 3, 4, 3, nn::ConvOptions<1>{.stride = 2, .padding = 1})},
        {"conv2d", on<nn::Conv2D>({2, 4, 7, 6}, 4, 6, nn::Size2(3, 2),
                                  nn::ConvOptions<2>{.padding = {1, 2}, .groups = 2})},
        {"conv2d_same", on<nn::Conv2D>({1, 3, 6, 6}, 3, 4, 3,
                                       nn::ConvOptions<2>{.stride = 2, .padding = "SAME"})},
        {"conv2d_reflect",
         on<nn::Conv2D>({1, 3, 6, 6}, 3, 4, 3,
                        nn::ConvOptions<2>{.padding = 1, .padding_mode = "reflect"})},
        {"conv3d", on<nn::Conv3D>({1, 2, 4, 5, 6}, 2, 3, 2, nn::ConvOptions<3>{.dilation = 2})},
        {"conv1d_transpose",
         on<nn::Conv1DTranspose>({2, 3, 5}, 3, 4, 3, nn::ConvTransposeOptions<1>{.stride = 2})},
        {"conv2d_transpose",
         on<nn::Conv2DTranspose>({1, 4, 4, 3}, 4, 6, 3,
                                 nn::ConvTransposeOptions<2>{.stride = 2, .padding = 1,
                                                             .output_padding = 1, .groups = 2})},
        {"conv3d_transpose", on<nn::Conv3DTranspose>({1, 2, 3, 3, 3}, 2, 3, 2)},
        {"max_pool1d", on<nn::MaxPool1D>({1, 2, 9}, 3)},
        {"max_pool2d", on<nn::MaxPool2D>({1, 2, 7, 7}, 3,
                                         nn::MaxPoolOptions<2>{.stride = 2, .padding = 1,
                                                               .ceil_mode = true})},
        {"max_pool3d", on<nn::MaxPool3D>({1, 2, 4, 4, 4}, 2)},
        {"avg_pool1d", on<nn::AvgPool1D>({1, 2, 9}, 3)},
        {"avg_pool2d", on<nn::AvgPool2D>({1, 2, 7, 7}, 3,
                                         nn::AvgPoolOptions<2>{.stride = 2, .padding = 1,
                                                               .exclusive = false})},
        {"avg_pool3d", on<nn::AvgPool3D>({1, 2, 4, 4, 4}, 2)},
        {"adaptive_avg_pool1d", on<nn::AdaptiveAvgPool1D>({1, 2, 9}, 4)},
        {"adaptive_avg_pool2d", on<nn::AdaptiveAvgPool2D>({1, 2, 7, 5}, nn::Size2(3, 2))},
        {"adaptive_avg_pool3d", on<nn::AdaptiveAvgPool3D>({1, 2, 4, 4, 5}, 2)},
        {"adaptive_max_pool1d", on<nn::AdaptiveMaxPool1D>({1, 2, 9}, 4)},
        {"adaptive_max_pool2d", on<nn::AdaptiveMaxPool2D>({1, 2, 7, 5}, 3)},
        {"adaptive_max_pool3d", on<nn::AdaptiveMaxPool3D>({1, 2, 4, 4, 5}, 2)},
        {"batch_norm1d", on<nn::BatchNorm1D>({4, 3}, 3)},
        {"batch_norm2d", on<nn::BatchNorm2D>({2, 3, 4, 4}, 3, 0.8, 1e-3)},
        {"batch_norm3d", on<nn::BatchNorm3D>({2, 3, 2, 3, 4}, 3)},
        {"layer_norm", on<nn::LayerNorm>({2, 3, 4}, std::vector<int64_t>{3, 4})},
        {"rms_norm", on<nn::RMSNorm>({2, 3, 4}, 4)},
        {"group_norm", on<nn::GroupNorm>({2, 6, 3, 3}, 3, 6)},
        {"instance_norm1d", on<nn::InstanceNorm1D>({2, 3, 5}, 3)},
        {"instance_norm2d", on<nn::InstanceNorm2D>({2, 3, 4, 4}, 3)},
        {"instance_norm3d", on<nn::InstanceNorm3D>({2, 3, 2, 3, 4}, 3)},
        {"dropout", on<nn::Dropout>({8, 8}, 0.3)},
        {"dropout2d", on<nn::Dropout2D>({4, 6, 2, 2}, 0.5)},
        {"dropout3d", on<nn::Dropout3D>({4, 6, 2, 2, 2}, 0.5)},
        {"flatten", on<nn::Flatten>({2, 3, 4})},
        {"prelu", on<nn::PReLU>({2, 3, 4}, 3)},
        {"relu", on<nn::ReLU>({3, 5})},
        {"relu6", on<nn::ReLU6>({3, 5})},
        {"sigmoid", on<nn::Sigmoid>({3, 5})},
        {"tanh", on<nn::Tanh>({3, 5})},
        {"silu", on<nn::Silu>({3, 5})},
        {"swish", on<nn::Swish>({3, 5})},
        {"mish", on<nn::Mish>({3, 5})},
        {"hardswish", on<nn::Hardswish>({3, 5})},
        {"hardsigmoid", on<nn::Hardsigmoid>({3, 5})},
        {"log_sigmoid", on<nn::LogSigmoid>({3, 5})},
        {"softsign", on<nn::Softsign>({3, 5})},
        {"tanhshrink", on<nn::Tanhshrink>({3, 5})},
        {"gelu", on<nn::GELU>({3, 5})},
        {"gelu_tanh", on<nn::GELU>({3, 5}, true)},
        {"celu", on<nn::CELU>({3, 5})},
        {"elu", on<nn::ELU>({3, 5})},
        {"selu", on<nn::SELU>({3, 5})},
        {"leaky_relu", on<nn::LeakyReLU>({3, 5})},
        {"hardshrink", on<nn::Hardshrink>({3, 5})},
        {"softshrink", on<nn::Softshrink>({3, 5})},
        {"hardtanh", on<nn::Hardtanh>({3, 5})},
        {"softplus", on<nn::Softplus>({3, 5})},
        {"thresholded_relu", on<nn::ThresholdedReLU>({3, 5})},
        {"maxout", on<nn::Maxout>({2, 6, 2}, 3)},
        {"glu", on<nn::GLU>({3, 6})},
        {"softmax", on<nn::Softmax>({3, 5})},
        {"log_softmax", on<nn::LogSoftmax>({3, 5})},
        {"simple_rnn", recurrent<nn::SimpleRNN>({})},
        {"lstm", recurrent<nn::LSTM>({.num_layers = 2, .direction = "bidirect", .dropout = 0.2})},
        {"gru", recurrent<nn::GRU>({.num_layers = 2, .time_major = true})},
        {"attention", on<nn::MultiHeadAttention>({2, 5, 8}, 8, 2)},
        {"encoder_layer",
         on<nn::TransformerEncoderLayer>({2, 5, 8}, 8, 2, 16,
                                         nn::TransformerLayerOptions{.activation = "gelu"})},
        {"decoder_layer",
         [](NamedTensors& out, const std::string& name) {
           nn::TransformerDecoderLayer layer(8, 2, 16, {.dropout = 0.1, .normalize_before = true});
           const Tensor x = input({2, 4, 8}), memory = oar::randn({2, 5, 8});
           const Tensor mask = nn::Transformer::square_subsequent_mask(4);
           record(out, name, layer, x, {layer.decode(x, memory, mask)});
         }},
        {"transformer",
         [](NamedTensors& out, const std::string& name) {
           nn::Transformer layer({.d_model = 8, .nhead = 2, .num_encoder_layers = 2,
                                  .num_decoder_layers = 2, .dim_feedforward = 16});
           const Tensor x = input({2, 5, 8}), target = oar::randn({2, 4, 8});
           record(out, name, layer, x, {layer.transform(x, target)});
         }},
};

void write_layers(const std::string& path) {
  NamedTensors out;
  for (const auto& [name, run] : kLayers) {
    nn::restart_names();
    oar::generator::seed(11);
    run(out, name);
  }
  oar::save_safetensors(path, out);
}

// ---- optimisers ------------------------------------------------------------------------------------

using Make = std::function<std::unique_ptr<nn::Optimizer>(nn::Parameters)>;

template <class Optimizer, class Options>
Make with(const Options& options) {
  return [=](nn::Parameters parameters) {
    return std::make_unique<Optimizer>(std::move(parameters), options);
  };
}

const std::vector<std::pair<std::string, Make>> kOptimizers = {
    {"sgd", with<nn::SGD>(nn::SgdOptions{.learning_rate = 0.1, .weight_decay = 0.02})},
    {"sgd_l1", with<nn::SGD>(nn::SgdOptions{.learning_rate = 0.1,
                                            .weight_decay = nn::WeightDecay::l1(0.02)})},
    {"momentum",
     with<nn::Momentum>(nn::MomentumOptions{.learning_rate = 0.05, .weight_decay = 0.01})},
    {"nesterov",
     with<nn::Momentum>(nn::MomentumOptions{.learning_rate = 0.05, .use_nesterov = true})},
    {"adam", with<nn::Adam>(nn::AdamOptions{.learning_rate = 0.01, .weight_decay = 0.02})},
    {"adamw", with<nn::AdamW>(nn::AdamWOptions{.learning_rate = 0.01, .weight_decay = 0.1})},
    {"adamw_some", with<nn::AdamW>(nn::AdamWOptions{.learning_rate = 0.01,
                                                    .weight_decay = 0.1,
                                                    .apply_decay_param_fun =
                                                        [](const std::string& name) {
                                                          return name.find(".w_") !=
                                                                 std::string::npos;
                                                        }})},
    {"adamax", with<nn::Adamax>(nn::AdamaxOptions{.learning_rate = 0.01, .weight_decay = 0.02})},
    {"adagrad",
     with<nn::Adagrad>(nn::AdagradOptions{.learning_rate = 0.1, .initial_accumulator_value = 0.1})},
    {"adadelta", with<nn::Adadelta>(nn::AdadeltaOptions{.learning_rate = 1.0})},
    {"rmsprop", with<nn::RMSProp>(
                    nn::RMSPropOptions{.learning_rate = 0.01, .momentum = 0.9, .centered = true})},
    {"lamb", with<nn::Lamb>(nn::LambOptions{.learning_rate = 0.01})},
    {"clip_value",
     with<nn::SGD>(nn::SgdOptions{.learning_rate = 0.1,
                                  .grad_clip = std::make_shared<nn::ClipGradByValue>(0.05)})},
    {"clip_norm",
     with<nn::SGD>(nn::SgdOptions{.learning_rate = 0.1,
                                  .grad_clip = std::make_shared<nn::ClipGradByNorm>(0.1)})},
    {"clip_global",
     with<nn::AdamW>(nn::AdamWOptions{
         .learning_rate = 0.1, .grad_clip = std::make_shared<nn::ClipGradByGlobalNorm>(0.1)})},
};

struct Net : nn::Module {
  nn::Linear first{4, 6}, second{6, 2};
  Net() {
    register_module("first", first);
    register_module("second", second);
  }
  Tensor forward(const Tensor& x) override { return second(oar::tanh(first(x))); }
};

void run_optimizer(NamedTensors& out, const std::string& name, const Make& make, DType dtype,
                   bool groups) {
  nn::restart_names();
  oar::generator::seed(5);
  Net net;
  net.to(dtype);
  std::vector<nn::ParameterGroup> split{{.parameters = {net.first.weight, net.first.bias},
                                         .learning_rate = 0.5,
                                         .weight_decay = nn::WeightDecay(0.3)},
                                        {.parameters = {net.second.weight, net.second.bias}}};
  const auto optimizer = make(groups ? nn::Parameters(split) : nn::Parameters(net.parameters()));
  for (int step = 0; step < 20; ++step) {
    const Tensor x = oar::cast(oar::randn({8, 4}), dtype);
    // At some steps half of the network gets no gradient.
    const Tensor made = step % 5 == 3 ? net.second(oar::detach(net.first(x))) : net(x);
    const Tensor loss = oar::mean(made * made);
    oar::backward({&loss, 1});
    optimizer->step();
    optimizer->zero_grad();
    for (const auto& [key, value] : net.state_dict())
      out[oar::format("{}/{}/{}", name, step, key)] = oar::assign(value);
  }
  for (const auto& [key, value] : optimizer->state_dict().dict())
    if (value.is_tensor()) out[oar::format("{}/state/{}", name, key)] = oar::assign(value.tensor());
}

void write_optimizers(const std::string& path) {
  NamedTensors out;
  for (const auto& [name, make] : kOptimizers)
    run_optimizer(out, name, make, DType::Float32, false);
  run_optimizer(out, "groups", kOptimizers[4].second, DType::Float32, true);
  run_optimizer(out, "float64", kOptimizers[5].second, DType::Float64, false);
  run_optimizer(out, "masters",
                with<nn::AdamW>(nn::AdamWOptions{.learning_rate = 0.01, .multi_precision = true}),
                DType::BFloat16, false);
  oar::save_safetensors(path, out);
}

// ---- schedules -------------------------------------------------------------------------------------

void write_schedules(const std::string& path) {
  NamedTensors out;
  const auto keep = [&](const std::string& name, const std::vector<double>& rates) {
    out[name] =
        Tensor::from_vector(rates, Shape{static_cast<int64_t>(rates.size())}, DType::Float64);
  };
  const auto run = [&](const std::string& name, lr::LRScheduler& schedule) {
    std::vector<double> rates{schedule()};
    for (int i = 0; i < 25; ++i) {
      schedule.step();
      rates.push_back(schedule());
    }
    keep(name, rates);
  };
  const auto made = [&]<class S>(const std::string& name, std::unique_ptr<S> schedule) {
    run(name, *schedule);
  };
  made("noam", std::make_unique<lr::NoamDecay>(64, 10, 0.5));
  made("piecewise", std::make_unique<lr::PiecewiseDecay>(std::vector<int64_t>{3, 8},
                                                         std::vector<double>{0.3, 0.2, 0.1}));
  made("natural_exp", std::make_unique<lr::NaturalExpDecay>(0.5, 0.1));
  made("inverse_time", std::make_unique<lr::InverseTimeDecay>(0.5, 0.1));
  made("exponential", std::make_unique<lr::ExponentialDecay>(0.5, 0.9));
  made("polynomial", std::make_unique<lr::PolynomialDecay>(0.5, 10, 0.01, 2.0));
  made("polynomial_cycle", std::make_unique<lr::PolynomialDecay>(0.5, 7, 0.01, 1.5, true));
  made("step", std::make_unique<lr::StepDecay>(0.5, 4, 0.3));
  made("multi_step", std::make_unique<lr::MultiStepDecay>(0.5, std::vector<int64_t>{3, 9}, 0.3));
  made("lambda", std::make_unique<lr::LambdaDecay>(
                     0.5, [](int64_t e) { return 1.0 / static_cast<double>(e + 1); }));
  made("multiplicative",
       std::make_unique<lr::MultiplicativeDecay>(0.5, [](int64_t) { return 0.95; }));
  made("cosine", std::make_unique<lr::CosineAnnealingDecay>(0.5, 8, 0.02));
  made("warm_restarts", std::make_unique<lr::CosineAnnealingWarmRestarts>(0.5, 3, 2, 0.01));
  made("one_cycle", std::make_unique<lr::OneCycleLR>(0.5, 30));
  made("one_cycle_linear",
       std::make_unique<lr::OneCycleLR>(
           0.5, 30, lr::OneCycleOptions{.anneal_strategy = "linear", .three_phase = true}));
  made("cyclic",
       std::make_unique<lr::CyclicLR>(0.1, 0.5, 4, lr::CyclicOptions{.step_size_down = 6}));
  made("cyclic2",
       std::make_unique<lr::CyclicLR>(0.1, 0.5, 4, lr::CyclicOptions{.mode = "triangular2"}));
  made("cyclic_exp", std::make_unique<lr::CyclicLR>(
                         0.1, 0.5, 4, lr::CyclicOptions{.mode = "exp_range", .exp_gamma = 0.97}));
  made("linear", std::make_unique<lr::LinearLR>(0.5, 10));
  made("warmup", std::make_unique<lr::LinearWarmup>(
                     std::make_shared<lr::CosineAnnealingDecay>(0.5, 8), 5, 0.0, 0.5));
  made("warmup_number", std::make_unique<lr::LinearWarmup>(0.5, 5, 0.1, 0.5));
  lr::ReduceOnPlateau plateau(0.5, {.factor = 0.5, .patience = 2, .cooldown = 1});
  std::vector<double> rates;
  for (int i = 0; i < 25; ++i) {
    plateau.observe(i < 5 ? 1.0 / (i + 1) : 0.3);
    rates.push_back(plateau());
  }
  keep("plateau", rates);
  oar::save_safetensors(path, out);
}

// ---- training with checkpoints ---------------------------------------------------------------------

struct Dropping : nn::Module {
  nn::Linear first{3, 8}, second{8, 1};
  nn::Dropout drop{0.2};
  Dropping() {
    register_module("first", first);
    register_module("drop", drop);
    register_module("second", second);
  }
  Tensor forward(const Tensor& x) override { return second(drop(oar::relu(first(x)))); }
};

void train(const std::string& folder, int64_t steps) {
  nn::seed_all(3);
  Dropping net;
  const auto rate = std::make_shared<lr::CosineAnnealingDecay>(0.05, 30);
  nn::AdamW optimizer(net.parameters(), {.learning_rate = rate});
  const nn::TensorDataset data({oar::randn({20, 3}), oar::randn({20, 1})});
  nn::DataLoader loader(data, {.batch_size = 4, .shuffle = true});
  nn::CheckpointManager manager(folder, {.max_to_keep = 100});
  manager.add("model", net).add("optimizer", optimizer).add("loader", loader);
  const auto found = manager.restore();
  int64_t step = found ? found->step : 0;
  if (found && found->extra.at("step").integer() != step)
    throw std::runtime_error("the extra value is another one");
  while (step < steps)
    for (const nn::Batch& batch : loader) {
      const Tensor loss = oar::mse_loss(net(batch[0]), batch[1]);
      oar::backward({&loss, 1});
      optimizer.step();
      optimizer.zero_grad();
      rate->step();
      if (++step % 2 == 0) {
        oar::StateTree extra;
        extra.set("step", step);
        manager.save(step, extra);
      }
      if (step == steps) break;
    }
  net.save(folder + "/final.safetensors");
  net.save(folder + "/final.pdparams");
  Dropping twin;
  twin.load(folder + "/final.pdparams");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string what = argc > 2 ? argv[1] : "";
    if (what == "layers")
      write_layers(argv[2]);
    else if (what == "optimizers")
      write_optimizers(argv[2]);
    else if (what == "schedules")
      write_schedules(argv[2]);
    else if (what == "train" && argc > 3)
      train(argv[2], std::stoll(argv[3]));
    else
      throw std::runtime_error("oar_nn_peer layers|optimizers|schedules|train <path> [steps]");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
